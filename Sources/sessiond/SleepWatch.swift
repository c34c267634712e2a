import DBus
import EventLoop
import Logging

/// Tells when the machine has woken up: logind's `PrepareForSleep(false)`, on the system bus.
///
/// Listens and never asks; without a system bus, or without logind, it hears nothing and costs nothing.
final class SleepWatch {
    private let connection: Connection
    private let isOwn: Bool
    private var subscription: Subscription?

    /// On `shared` where that is the system bus already, else on a connection of its own; nil: there is no such bus.
    init?(loop: EventLoop, shared: Connection?, log: Logger, _ woke: @escaping () -> Void) {
        if let shared {
            connection = shared
            isOwn = false
        } else {
            do throws(Failure) {
                connection = try Connection(.system, loop: loop)
            } catch {
                log.debug("no system bus, so nobody tells when the machine wakes up: \(error.message)")
                return nil
            }
            isOwn = true
        }
        subscription = connection.subscribe(
            path: "/org/freedesktop/login1", interface: "org.freedesktop.login1.Manager", member: "PrepareForSleep",
            sender: "org.freedesktop.login1"
        ) { message in
            if (try? message.arguments())?.first?.boolValue == false { woke() }
        }
    }

    deinit {
        subscription = nil
        if isOwn { connection.close() }
    }
}
