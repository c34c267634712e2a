import Processes

/// The default devices that the user chose, as WirePlumber remembers them in its file `default-nodes`.
///
/// WirePlumber writes the file one second after a change. PipeWire's PulseAudio server does not tell what is chosen.
struct ChosenDefaults: Sendable, Equatable {
    /// The chosen devices of one direction. Sinks count as their monitors, too.
    struct Choices: Sendable, Equatable {
        /// The configured default; it need not exist.
        var configured: String?
        /// What WirePlumber keeps as `….0`, `….1`, …: version 0.4 also the configured one, later versions only those
        /// before it. A nil was not written.
        var numbered: [String?] = []
    }

    var sinks = Choices()
    var sources = Choices()

    init(sinks: Choices = Choices(), sources: Choices = Choices()) {
        self.sinks = sinks
        self.sources = sources
    }

    /// The most that WirePlumber 0.4 remembers; later versions remember any number.
    private static let most = 256

    /// From the file of this user. Without a file, nothing was chosen yet.
    init(environment: (String) -> String?) {
        self.init(ChosenDefaults.path(environment).flatMap { readFile($0, limit: 1 << 16) } ?? [])
    }

    /// From the content of the file. Lines that mean nothing here are ignored.
    init(_ content: [UInt8]) {
        for line in content.split(separator: UInt8(ascii: "\n")) {
            guard let equals = line.firstIndex(of: UInt8(ascii: "=")), equals + 1 < line.endIndex else { continue }
            let key = String(decoding: line[..<equals], as: UTF8.self)
            let name = String(decoding: line[(equals + 1)...], as: UTF8.self)
            if let number = ChosenDefaults.number(in: key, "default.configured.audio.sink") {
                sinks.set(name, number)
            } else if let number = ChosenDefaults.number(in: key, "default.configured.audio.source") {
                sources.set(name, number)
            }
        }
    }

    /// The number after that prefix; nil inside: there is none; nil: another key, or a number out of range.
    private static func number(in key: String, _ prefix: String) -> Int?? {
        guard key.hasPrefix(prefix) else { return nil }
        let rest = key.dropFirst(prefix.count)
        if rest.isEmpty { return .some(nil) }
        guard rest.first == ".", let number = Int(rest.dropFirst()), (0..<most).contains(number) else { return nil }
        return number
    }

    /// The path of the file.
    static func path(_ environment: (String) -> String?) -> String? {
        let folder = environment("XDG_STATE_HOME").flatMap { $0.isEmpty ? nil : $0 }
        return (folder ?? environment("HOME").map { $0 + "/.local/state" }).map { $0 + "/wireplumber/default-nodes" }
    }
}

extension ChosenDefaults.Choices {
    fileprivate mutating func set(_ name: String, _ number: Int?) {
        guard let number else {
            configured = name
            return
        }
        while numbered.count <= number { numbered.append(nil) }
        numbered[number] = name
    }
}
