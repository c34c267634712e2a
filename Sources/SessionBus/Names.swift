public import PluginAPI

/// The names of the contract: bus, objects and interfaces.
public enum BusName {
    public static let service = "org.sessiond1"
    public static let manager = "org.sessiond1.Manager"
    public static let session = "org.sessiond1.Session"
    public static let plugins = "org.sessiond1.Plugins"
    public static let player = "org.sessiond1.Player"
    public static let recorder = "org.sessiond1.Recorder"
    public static let soundEffects = "org.sessiond1.SoundEffects"
    /// The prefix of a refusal's error name.
    public static let errorPrefix = "org.sessiond1.Error."
}

/// The objects' paths.
public enum ObjectPath {
    public static let root = "/org/sessiond1"
    public static let player = "/org/sessiond1/player"
    public static let recorder = "/org/sessiond1/recorder"
    public static let soundEffects = "/org/sessiond1/effects"
    /// The path that means "none".
    public static let none = "/"

    private static let sessions = "/org/sessiond1/session/"

    public static func session(_ id: SessionID) -> String { sessions + String(id.number) }

    /// The session of a path; nil if it is not a session's path in its normal form.
    public static func sessionID(_ path: String) -> SessionID? {
        guard path.hasPrefix(sessions), let number = UInt64(path.dropFirst(sessions.count)),
            path == session(SessionID(number))
        else { return nil }
        return SessionID(number)
    }
}
