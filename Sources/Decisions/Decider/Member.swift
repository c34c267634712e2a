public import Enforcement

/// The data of a session for decisions about streams and players, in addition to the data of the rules.
public struct Member: Sendable, Hashable, Codable {
    /// The process whose streams, with those of its descendants, belong to the session; 0: unknown, or it has ended, as
    /// another one may have its number then.
    public var process: UInt32
    /// Its user; nil: unknown.
    public var user: UInt32?
    /// As the client stated it, or the id of an adopted program's sandbox; empty: none.
    public var desktopEntry: String
    /// The id of the application from its sandbox, or else the desktop entry; nil: not read yet.
    public internal(set) var application: String?
    /// The process and its ancestors; nil: not read, because there is no player.
    public internal(set) var ancestry: [UInt32]?
    /// Whether the client ducks its own sound when it gets the signal.
    public var lowersItself: Bool
    /// Present for adopted programs.
    public internal(set) var adopted: AdoptedProgram?

    /// The session of a client.
    public init(process: UInt32, user: UInt32?, desktopEntry: String, lowersItself: Bool = false) {
        self.process = process
        self.user = user
        self.desktopEntry = desktopEntry
        self.lowersItself = lowersItself
    }

    /// The session of an adopted program. It has no process if the program is only known by its sandbox or its name.
    public init(_ adopted: AdoptedProgram) {
        switch adopted.program {
        case .process(let id): self.init(process: id, user: nil, desktopEntry: "")
        case .sandbox(let id): self.init(process: 0, user: nil, desktopEntry: id)
        case .name: self.init(process: 0, user: nil, desktopEntry: "")
        }
        application = desktopEntry
        self.adopted = adopted
    }
}
