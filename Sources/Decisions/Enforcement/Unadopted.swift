/// Why a stream of a program without a session of its own gets none.
public enum Unadopted: String, Sendable, Hashable, CaseIterable {
    /// It is a stream of the daemon.
    case own
    /// It is a stream of the sound server, such as one end of a loopback.
    case server
    /// It only measures a level.
    case meter
    /// The settings list its program in `never`.
    case never
    case screenReader = "screen-reader"
    /// By the settings, no program is adopted.
    case off
    /// It records, and its program is not in a call.
    case recording
    /// The server has not linked it to a device.
    case unplaced = "no-device"
    /// It was not heard yet.
    case paused
    /// The rules refuse another session.
    case refused
    /// Its session is about to be created.
    case soon

    /// The rest of a sentence that begins with "because".
    public func text(program: String) -> String {
        switch self {
        case .own: "it belongs to sessiond"
        case .server: "it belongs to the sound server itself, where only a telephone call has a session"
        case .meter: "it only measures a level"
        case .never: "\(program) is listed in [adoption] never"
        case .screenReader: "it reads the screen aloud, and is never silenced"
        case .off: "[adoption] streams = off"
        case .recording: "it only records, and a recording is no call"
        case .unplaced: "the sound server has not connected it to a device"
        case .paused: "it has not played yet"
        case .refused: "the rules refuse another session"
        case .soon: "it has only just begun"
        }
    }
}
