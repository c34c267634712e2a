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
    public static let assets = PluginKind.assets.interface
    /// What takes long in a plugin; see ``ObjectPath/job(_:of:)``.
    public static let job = "org.sessiond1.Job"
    /// An object of the plugin for live streams.
    public static let liveStream = "org.sessiond1.LiveStream"
    public static let captureSession = "org.sessiond1.CaptureSession"
    /// The prefix of a refusal's error name.
    public static let errorPrefix = "org.sessiond1.Error."
}

/// The objects' paths.
public enum ObjectPath {
    public static let root = "/org/sessiond1"
    public static let player = PluginKind.player.objectPath
    public static let recorder = PluginKind.recorder.objectPath
    public static let soundEffects = PluginKind.soundEffects.objectPath
    public static let assets = PluginKind.assets.objectPath
    /// The path that means "none".
    public static let none = "/"

    /// A job of a plugin of that kind.
    public static func job(_ number: UInt64, of kind: PluginKind) -> String { "\(kind.objectPath)/job/\(number)" }

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
