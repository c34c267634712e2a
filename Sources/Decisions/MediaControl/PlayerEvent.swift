/// The origin of a player, as far as the bus and the kernel know it.
public struct PlayerOrigin: Sendable, Hashable, Codable {
    /// Its name below `org.mpris.MediaPlayer2`, such as `vlc`.
    public var name: String
    /// Its process; 0: unknown.
    public var process: UInt32
    /// The process and its ancestors.
    public var ancestry: [UInt32]
    /// The id of its sandbox, in which process ids mean nothing; nil: none.
    public var sandbox: String?
    /// All names of its program, by which settings may list it.
    public var names: Set<String>

    /// Whether the settings mean it by that name: a name of its program, or its name on the bus, with or without an
    /// instance (`chromium` for `chromium.instance123`).
    public func isNamed(_ other: String) -> Bool {
        name == other || name.hasPrefix(other + ".instance") || names.contains(other)
    }

    /// Whether BlueZ's mpris-proxy shows the phone of that name by it. The proxy replaces what a bus name may not contain.
    public func isPhone(_ phone: String) -> Bool {
        let written = String(
            phone.unicodeScalars.map { scalar in
                scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar))
                    ? Character(scalar) : "_"
            })
        return names.contains("mpris-proxy") && name == written
    }

    public init(
        name: String, process: UInt32, ancestry: [UInt32], sandbox: String? = nil, names: Set<String> = []
    ) {
        self.names = names
        self.name = name
        self.process = process
        self.ancestry = ancestry
        self.sandbox = sandbox
    }
}

/// An event of a player on the bus.
public enum PlayerEvent: Sendable, Hashable, Codable {
    /// It is on the bus. Its state is reported later.
    case appeared(PlayerOrigin)
    /// It answered for the first time, or changed. `order`: when it last started or stopped playing, or appeared;
    /// higher is later.
    case told(PlayerFacts, order: UInt64)
    /// The answer to ``PlayerRequest/ask``; nil: it did not answer in time.
    case answered(PlayerFacts?)
    /// The result of ``PlayerRequest/pause``.
    case pauseEnded(succeeded: Bool)
    /// The result of ``PlayerRequest/play``.
    case playEnded(succeeded: Bool)
    /// The user used the media keys, or another program, to pause, start or stop it.
    case touched
    /// It left the bus.
    case gone
}

/// A request to a player. The result is a separate event.
public enum PlayerRequest: Sendable, Hashable {
    /// Its state.
    case ask
    case pause
    case play
}
