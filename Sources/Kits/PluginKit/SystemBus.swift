public import DBus
public import EventLoop

/// The system bus, for a program that also works without it.
///
/// It is used only after it has answered, so a bus that accepts connections and never answers delays no call.
public final class SystemBus {
    /// Nil until it has answered.
    public private(set) var connection: Connection?
    /// Whether it has answered, or is known not to answer.
    private var isKnown = false
    private var handlers: [(Connection?) -> Void] = []
    private var probe: BusProbe?

    /// The time limit for its answer, in seconds.
    private static let patience = 5.0

    public init(on loop: EventLoop) {
        probe = BusProbe(.system, loop: loop, patience: Self.patience) { [weak self] answers in
            guard let self else { return }
            probe = nil
            connection = answers ? try? Connection(.system, loop: loop) : nil
            isKnown = true
            let handlers = handlers
            self.handlers = []
            for handler in handlers { handler(connection) }
        }
    }

    /// Calls the handler once, with nil if there is no system bus: at once if that is known, otherwise later from the
    /// loop.
    public func whenKnown(_ handler: @escaping (Connection?) -> Void) {
        if isKnown { handler(connection) } else { handlers.append(handler) }
    }
}
