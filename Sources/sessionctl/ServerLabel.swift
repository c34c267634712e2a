/// The sound server in words for people, from the name and version that it tells.
struct ServerLabel {
    /// `PipeWire 0.3.65` for "PulseAudio (on PipeWire 0.3.65)", or the name and version themselves.
    let text: String
    private let isPipeWire: Bool

    /// - Parameters:
    ///   - name: the server's own name; it may end with the version.
    ///   - version: that of the protocol, if the server is PipeWire.
    init(_ name: String, version: String = "") {
        let mark = "(on PipeWire"
        guard let begin = name.firstIndex(of: "("), name[begin...].hasPrefix(mark) else {
            isPipeWire = false
            text = version.isEmpty ? name : "\(name) \(version)"
            return
        }
        isPipeWire = true
        let number = name[begin...].dropFirst(mark.count).prefix { $0 != ")" }
        text = "PipeWire" + number
    }

    /// Whether a recording without an input gets what an output plays.
    var recordsOutputs: Bool { !isPipeWire }

    /// What a recording without an input will be.
    var recordingWithoutInput: String {
        recordsOutputs
            ? "this records what the output plays" : "the recording has no sound before one is connected"
    }
}
