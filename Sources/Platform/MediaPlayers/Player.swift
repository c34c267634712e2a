import MediaControl

/// One player on the bus: a connection that owns one or more MPRIS names.
public struct Player: Sendable, Identifiable {
    /// The connection's unique name: a restarted player is another one.
    public let id: String
    /// Its names below `org.mpris.MediaPlayer2`, such as `vlc`.
    public internal(set) var names: Set<String> = []
    /// Its process, which the bus has from the kernel.
    public internal(set) var processID: UInt32
    /// Nil until it has answered.
    var facts: PlayerFacts?
    /// When it last started or stopped playing, or appeared; higher is later.
    var order: UInt64 = 0

    init(id: String, processID: UInt32) {
        self.id = id
        self.processID = processID
    }
}
