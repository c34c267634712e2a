/// The pending requests for the hold sink.
struct HoldState {
    enum Sink: Sendable, Hashable {
        /// It was not requested, or was removed since.
        case none
        /// PulseAudio was asked for it; it is not known yet whether the sink writes to our pipe.
        case unproven
        /// It was requested, and may exist.
        case requested
    }

    var sink = Sink.none
    /// Whether PulseAudio cannot open our pipe: its hold sink is a null sink.
    var isPipeRefused = false
    /// The sink exists, and no stream uses it.
    var isIdle = false
    /// Whether the server reports its clients, because streams are held on PipeWire.
    var watchesClients = false
    /// Requests that wait for it, in their order.
    var waiters: [Waiter] = []
    /// Streams that were moved back and are still shown on it.
    var leaving: Set<UInt32> = []
    /// The moves of paused streams, which wait until it has taken back the data that it had fetched.
    var takingBack: [UInt32: () -> Void] = [:]

    /// A hold sink was removed. While ours is being created, it was that of an earlier daemon.
    mutating func removed() { if sink == .requested { sink = .none } }

    /// A stream that is to be held.
    struct Waiter {
        let stream: UInt32
        /// Requests the move, whose answer goes to the closure.
        let move: (@escaping (Bool) -> Void) -> Void
        /// Ends the request, with whether it succeeded.
        let end: (Bool) -> Void
    }
}
