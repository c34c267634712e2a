public import Enforcement
public import PluginAPI

/// A stream at the sound server from the view of a user.
public struct ListedStream: Sendable, Hashable {
    public let stream: AudioStream
    /// For display; empty if unknown.
    public let program: String
    public let sessions: [SessionID]
    /// Why it has no session; nil: it has.
    public let reason: Unadopted?

    public init(_ stream: AudioStream, program: String, sessions: [SessionID] = [], reason: Unadopted?) {
        self.stream = stream
        self.program = program
        self.sessions = sessions
        self.reason = reason
    }
}
