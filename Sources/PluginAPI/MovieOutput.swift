/// Where films are shown. ``word`` is what `SetOutput`, `[movie] output` and `sessionctl watch --output` call it.
public enum MovieOutput: Sendable, Hashable, Codable {
    /// The first of X11 and Wayland that answers, otherwise nowhere.
    case automatic
    /// A window of X11.
    case x11
    /// The window of a client, by its number at the X11 server; not 0.
    case window(UInt32)
    /// A window of Wayland.
    case wayland
    /// A node of PipeWire, from which other programs read the pictures, by its name.
    case pipewire(node: String)
    case none

    /// The name of a node to which none was given.
    public static let usualNode = "sessiond-movie"
    /// The longest name of a node, in bytes.
    public static let longestNode = 64

    /// - Throws: `BadParameter` if the word is no output.
    public init(_ word: String) throws(SessionError) {
        switch word {
        case "auto": self = .automatic
        case "x11": self = .x11
        case "wayland": self = .wayland
        case "pipewire": self = .pipewire(node: Self.usualNode)
        case "none": self = .none
        case _ where word.hasPrefix("x11:"):
            let number = word.dropFirst(4)
            let id = number.hasPrefix("0x") ? UInt32(number.dropFirst(2), radix: 16) : UInt32(number)
            guard let id, id != 0 else {
                throw .badParameter("the id of a window is a number, such as x11:0x3a00007")
            }
            self = .window(id)
        case _ where word.hasPrefix("pipewire:"):
            let name = String(word.dropFirst(9))
            let isPlain = name.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7f..<0xa0).contains($0.value) }
            guard isPlain, (1...Self.longestNode).contains(name.utf8.count) else {
                throw .badParameter(
                    "the name of a node has 1 to \(Self.longestNode) bytes without control characters, such as "
                        + "pipewire:film")
            }
            self = .pipewire(node: name)
        default: throw .badParameter("the output must be auto, x11, x11:ID, wayland, pipewire, pipewire:NODE or none")
        }
    }

    public var word: String {
        switch self {
        case .automatic: "auto"
        case .x11: "x11"
        case .window(let id): "x11:0x" + String(id, radix: 16)
        case .wayland: "wayland"
        case .pipewire(Self.usualNode): "pipewire"
        case .pipewire(let name): "pipewire:" + name
        case .none: "none"
        }
    }
}
