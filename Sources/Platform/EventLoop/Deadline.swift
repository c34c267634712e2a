/// The end of the time in which something must arrive on the same loop, such as an answer.
///
/// A process that was stopped (`SIGSTOP`), or that got no processor, finds the deadline passed and the answer not read yet.
/// So a deadline that fires much too late fires again a moment later; what has arrived is handled before.
public final class Deadline {
    /// Seconds after the due time at which the process must have been stopped.
    private static let lateness = 0.25
    /// Seconds in which the loop reads what arrived meanwhile.
    private static let moment = 0.1

    private let handler: () -> Void
    private var due: UInt64 = 0
    private lazy var timer = Timer(on: loop) { [unowned self] in fire() }
    private let loop: EventLoop

    /// Not armed yet; calls the handler from the loop, once per arming.
    public init(on loop: EventLoop, _ handler: @escaping () -> Void) {
        self.loop = loop
        self.handler = handler
    }

    /// Passes after that many seconds. Replaces an earlier arming.
    public func arm(after seconds: Double) { arm(at: MonotonicClock.now() &+ MonotonicClock.microseconds(seconds)) }

    /// Passes when ``MonotonicClock`` reaches `instant`. Replaces an earlier arming.
    public func arm(at instant: UInt64) {
        due = instant
        timer.arm(at: instant)
    }

    /// It does not pass until it is armed again.
    public func disarm() { timer.disarm() }

    private func fire() {
        if MonotonicClock.now() > due &+ MonotonicClock.microseconds(Self.lateness) {
            arm(after: Self.moment)
        } else {
            handler()
        }
    }
}
