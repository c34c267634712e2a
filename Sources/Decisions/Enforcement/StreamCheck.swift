import PluginAPI

/// One check of a stream: the state that the server shows, and the resulting commands.
struct StreamCheck {
    let stream: AudioStream
    /// Microseconds on the monotonic clock.
    let now: UInt64
    /// In order.
    private(set) var commands: [StreamCommand] = []
    /// When to check again; nil: when something changes.
    private(set) var deadline: UInt64?

    init(_ stream: AudioStream, at now: UInt64, deadline: UInt64? = nil) {
        self.stream = stream
        self.now = now
        self.deadline = deadline
    }

    mutating func add(_ command: StreamCommand) { commands.append(command) }

    mutating func checkAgain(at due: UInt64) { deadline = min(deadline ?? due, due) }

    /// Whether it plays, also while it is being moved to the hold sink.
    var isHeard: Bool { stream.isSounding || stream.isStopping && !stream.isMuted }
}
