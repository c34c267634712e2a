public import MediaControl

/// One player on the bus: a connection that owns names of MPRIS, however many.
public struct Player: Sendable, Identifiable {
    /// The connection's unique name: a player that starts anew is another one.
    public let id: String
    /// Its names below `org.mpris.MediaPlayer2`, such as `vlc`.
    public internal(set) var names: Set<String> = []
    /// As the bus has it from the kernel.
    public internal(set) var processID: UInt32
    /// Nil until it has answered; it takes part from then on.
    public internal(set) var facts: PlayerFacts?
    /// When it last started or stopped playing, or appeared; higher is later.
    var order: UInt64 = 0

    init(id: String, processID: UInt32) {
        self.id = id
        self.processID = processID
    }
}
