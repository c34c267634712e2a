import DBus
import EventLoop
import Logging

/// Tells when the machine has woken up: logind's `PrepareForSleep(false)`, on the system bus.
///
/// Listens and never asks; without a system bus, or without logind, it hears nothing and costs nothing.
final class SleepWatch {
    private var connection: Connection?
    private let isOwn: Bool
    private var probe: BusProbe?
    private var subscription: Subscription?
    private let woke: () -> Void

    /// Seconds within which the system bus has to answer.
    private static let patience = 5.0

    /// On `shared` where that is the system bus already, else on a connection of its own, once that bus is known to
    /// answer: nobody may have to wait for it.
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
