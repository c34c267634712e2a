public import PluginAPI

/// The names of the contract: bus, objects and interfaces. Those of the plugins' kinds are ``PluginKind``'s.
public enum BusName {
    public static let service = "org.sessiond1"
    public static let manager = "org.sessiond1.Manager"
    public static let session = "org.sessiond1.Session"
    public static let plugins = "org.sessiond1.Plugins"
    public static let player = PluginKind.player.interface
    public static let recorder = PluginKind.recorder.interface
    public static let soundEffects = PluginKind.soundEffects.interface
    /// What a refusal's error name starts with.
    public static let errorPrefix = "org.sessiond1.Error."
}

/// The objects' paths.
public enum ObjectPath {
    public static let root = "/org/sessiond1"
    public static let player = PluginKind.player.objectPath
    public static let recorder = PluginKind.recorder.objectPath
    public static let soundEffects = PluginKind.soundEffects.objectPath
    /// What stands for "none" where a path must stand.
    public static let none = "/"

    private static let sessions = "/org/sessiond1/session/"

    public static func session(_ id: SessionID) -> String { sessions + String(id.number) }

    /// The session a path names; nil where it names none (wrong place, not a number, not written as we write it).
    public static func sessionID(_ path: String) -> SessionID? {
        guard path.hasPrefix(sessions), let number = UInt64(path.dropFirst(sessions.count)),
            path == session(SessionID(number))
        else { return nil }
        return SessionID(number)
    }
}
