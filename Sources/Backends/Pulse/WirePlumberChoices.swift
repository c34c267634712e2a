import Glibc

/// The default devices that the user has chosen, which WirePlumber keeps in a file. A client of PulseAudio sees only the
/// defaults in use: whether one was chosen is written nowhere else.
struct WirePlumberChoices {
    private let lines: [Substring]

    init(_ text: some StringProtocol) { lines = text.split(separator: "\n").map { Substring($0) } }

    /// The file of this user. Without a file, nothing was chosen yet. It is a second old at most.
    init(environment: (String) -> String?) {
        let folder = environment("XDG_STATE_HOME") ?? environment("HOME").map { $0 + "/.local/state" }
        self.init(folder.flatMap { WirePlumberChoices.read($0 + "/wireplumber/default-nodes") } ?? "")
    }

    /// Whether a default is configured, even if its device is absent. The names with a number after them are former ones.
    func hasChosen(input isInput: Bool) -> Bool {
        let key = "default.configured.audio." + (isInput ? "source" : "sink") + "="
        return lines.contains { $0.hasPrefix(key) && $0.utf8.count > key.utf8.count }
    }

    private static let limit = 65_536

    private static func read(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: limit)
        let count = Glibc.read(descriptor, &bytes, limit)
        return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
    }
}
