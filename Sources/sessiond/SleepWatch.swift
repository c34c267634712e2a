import DBus
import EventLoop
import Logging

/// Reports when the machine has woken up: logind's `PrepareForSleep(false)`, on the system bus.
///
/// Only listens; without a system bus or logind it does nothing.
final class SleepWatch {
    private var connection: Connection?
    private let isOwn: Bool
    private var probe: BusProbe?
    private var subscription: Subscription?
    private let woke: () -> Void

    /// Seconds in which the system bus must answer.
    private static let patience = 5.0

    /// Uses `shared` if that is the system bus, else a separate connection, after checking that the bus answers, so
    /// that nothing has to wait for it.
    init(loop: EventLoop, shared: Connection?, log: Logger, _ woke: @escaping () -> Void) {
        self.woke = woke
        connection = shared
        isOwn = shared == nil
        guard isOwn else {
            listen()
            return
        }
        probe = BusProbe(.system, loop: loop, patience: SleepWatch.patience) { [weak self] answers in
            guard let self else { return }
            probe = nil
            do throws(Failure) {
                guard answers else { throw .failed("it does not answer") }
                connection = try Connection(.system, loop: loop)
                listen()
            } catch {
                log.debug("no system bus: a wake-up of the machine will not be noticed: \(error.message)")
            }
        }
    }

    private func listen() {
        subscription = connection?.subscribe(
            path: "/org/freedesktop/login1", interface: "org.freedesktop.login1.Manager", member: "PrepareForSleep",
            sender: "org.freedesktop.login1"
        ) { [woke] message in
            if (try? message.arguments())?.first?.boolValue == false { woke() }
        }
    }

    deinit {
        subscription = nil
        if isOwn { connection?.close() }
    }
}
