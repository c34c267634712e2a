public import PluginAPI

/// A program from the user's view: all processes of one application.
public struct Program: Sendable, Hashable, Codable {
    /// How the processes of one application are recognised.
    public enum Key: Sendable, Hashable, Codable {
        /// The first of the processes that run the same executable and were not started with different files, each the
        /// child of the one before.
        case process(UInt32)
        /// In a sandbox, where process ids mean nothing.
        case sandbox(String)
        /// Nothing else is known.
        case name(String)
    }

    public let key: Key
    /// For display.
    public let name: String
    /// All names by which the settings may list it.
    public let names: Set<String>
    /// Whether the settings allow it the class `call`.
    public let mayCall: Bool
    /// Whether the settings allow it the class `alert`.
    public let mayAlert: Bool
    /// Whether its streams may be taken for a call that it does not declare.
    public let mayBeGuessed: Bool

    /// The sound server itself, one end of a loopback: it takes part only with a telephone call, such as one over
    /// Bluetooth.
    public static let server = Program(key: .name("Telephone"), name: "Telephone", names: ["Telephone"])
    /// All alarms of programs that do not use sessiond: a clock that rings again and again, by a process each time, is one
    /// alert.
    public static let alarm = Key.name("Alarm")
    /// The key of event sounds from the server's cache, which are streams of no client.
    public static let eventSounds = Key.name("Event sounds")
    /// Follows the name in the name of a guessed call.
    public static let callSuffix = " (call)"
    /// Whether it is ``server``.
    public var isServer: Bool { self == .server }
    /// Whether it reads the screen aloud. Its stream plays silence between two texts, so nobody knows when it speaks.
    public var isScreenReader: Bool { Settings.Adoption.isScreenReader(names) }

    public init(
        key: Key, name: String, names: Set<String>, mayCall: Bool = true, mayAlert: Bool = true,
        mayBeGuessed: Bool = true
    ) {
        self.key = key
        self.name = name
        self.names = names
        self.mayCall = mayCall
        self.mayAlert = mayAlert
        self.mayBeGuessed = mayBeGuessed
    }
}

/// A stream with the kernel's facts about its program.
public struct StreamFacts: Sendable, Hashable, Codable {
    public let stream: AudioStream
    /// The process and its ancestors, as far as they are the same application; empty if unknown.
    public let ancestry: [UInt32]
    /// The user of the process; nil: unknown.
    public let user: UInt32?
    /// The id of the sandboxed application; nil: none.
    public let sandbox: String?
    /// Nil for a stream of the server or of the daemon.
    public let program: Program?

    /// Whether it reads the screen aloud: such a stream is never silenced, because without it a blind user can do
    /// nothing, not even end the call.
    public var readsAloud: Bool { program?.isScreenReader == true || stream.role?.lowercased() == "a11y" }

    public init(stream: AudioStream, ancestry: [UInt32], user: UInt32? = nil, sandbox: String?, program: Program?) {
        self.stream = stream
        self.ancestry = ancestry
        self.user = user
        self.sandbox = sandbox
        self.program = program
    }
}
