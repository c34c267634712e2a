public import PluginAPI

/// A program as a person understands it: all the processes of one application.
public struct Program: Sendable, Hashable {
    /// By what the processes of one application are known to be that.
    public enum Key: Sendable, Hashable {
        /// The first of the processes that run the same executable, each the child of the one before.
        case process(UInt32)
        /// In a sandbox, where process numbers mean nothing.
        case sandbox(String)
        /// Nothing else is known.
        case name(String)
    }

    public let key: Key
    /// For people.
    public let name: String
    /// Everything the lists of programs in the settings may call it by.
    public let names: Set<String>
    /// Whether the settings let it take the class `call`.
    public let mayCall: Bool
    /// Whether they let it take the class `alert`.
    public let mayAlert: Bool

    /// The sound server itself, one end of a loopback: it takes part only where it carries a telephone call, as with a
    /// telephone that is connected by Bluetooth.
    public static let server = Program(key: .name("Telephone"), name: "Telephone", names: ["Telephone"])
    /// Whether it is ``server``.
    public var isServer: Bool { self == .server }

    public init(key: Key, name: String, names: Set<String>, mayCall: Bool = true, mayAlert: Bool = true) {
        self.key = key
        self.name = name
        self.names = names
        self.mayCall = mayCall
        self.mayAlert = mayAlert
    }
}

/// A stream with what the kernel says of who plays it.
public struct StreamFacts: Sendable, Hashable {
    public let stream: AudioStream
    /// The process, who started it, and so on up, as far as it is the same application; empty where it is not known.
    public let ancestry: [UInt32]
    /// Whose processes play it; nil: unknown.
    public let user: UInt32?
    /// The id of the sandboxed application; nil where it is in none.
    public let sandbox: String?
    /// Nil for a stream of the server's own, or of ours.
    public let program: Program?

    public init(stream: AudioStream, ancestry: [UInt32], user: UInt32? = nil, sandbox: String?, program: Program?) {
        self.stream = stream
        self.ancestry = ancestry
        self.user = user
        self.sandbox = sandbox
        self.program = program
    }
}
