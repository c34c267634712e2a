import DBus
import EventLoop
import Logging

/// Reports when the machine is about to sleep and when it has woken up (logind's `PrepareForSleep`, on the system bus), and
/// makes it wait (logind's `Inhibit`, of kind `delay`).
///
/// Without a system bus or logind it does nothing.
final class SleepWatch {
    private var connection: Connection?
    private let isOwn: Bool
    private let log: Logger
    private var probe: BusProbe?
    private var subscriptions: [Subscription] = []
    private let changed: (_ isAsleep: Bool) -> Void
    /// While it exists, the machine waits before it sleeps.
    private var inhibitor: FileDescriptor?
    private var isAsking = false

    /// Whether the machine must wait until this is false again; logind limits the time (`InhibitDelayMaxSec=`).
    var delaysSleep = false {
        didSet { if delaysSleep != oldValue { update() } }
    }

    /// Seconds in which the system bus must answer.
    private static let patience = 5.0
    private static let logind = "org.freedesktop.login1"

    /// Uses `shared` if that is the system bus, else a separate connection, after checking that the bus answers, so
    /// that nothing has to wait for it. `wasAsleep`: the machine was asleep when an earlier daemon ended; then it is
    /// reported if it is awake now.
    init(
        loop: EventLoop, shared: Connection?, wasAsleep: Bool, log: Logger,
        _ changed: @escaping (_ isAsleep: Bool) -> Void
    ) {
        self.changed = changed
        self.log = log
        connection = shared
        isOwn = shared == nil
        guard isOwn else {
            listen(wasAsleep: wasAsleep)
            return
        }
        probe = BusProbe(.system, loop: loop, patience: SleepWatch.patience) { [weak self] answers in
            guard let self else { return }
            probe = nil
            do throws(Failure) {
                guard answers else { throw .failed("it does not answer") }
                connection = try Connection(.system, loop: loop)
                listen(wasAsleep: wasAsleep)
            } catch {
                log.debug("no system bus: that the machine sleeps will not be noticed: \(error.message)")
                if wasAsleep { changed(false) }
            }
        }
    }

    private func listen(wasAsleep: Bool) {
        guard let connection else { return }
        subscriptions = [
            connection.subscribe(
                path: "/org/freedesktop/login1", interface: "org.freedesktop.login1.Manager",
                member: "PrepareForSleep", sender: SleepWatch.logind
            ) { [changed] message in
                if let isAsleep = (try? message.arguments())?.first?.boolValue { changed(isAsleep) }
            },
            // An inhibitor is lost with the process that gave it.
            connection.watchOwner(of: SleepWatch.logind) { [weak self] owner in
                self?.inhibitor = nil
                if !owner.isEmpty { self?.update() }
            },
        ]
        update()
        guard wasAsleep else { return }
        call("org.freedesktop.DBus.Properties", "Get", ["org.freedesktop.login1.Manager", "PreparingForSleep"]) {
            [changed] values in
            if values?.first?.unwrapped.boolValue != true { changed(false) }
        }
    }

    private func update() {
        guard delaysSleep else {
            inhibitor = nil
            return
        }
        guard connection != nil, inhibitor == nil, !isAsking else { return }
        isAsking = true
        call(
            "org.freedesktop.login1.Manager", "Inhibit",
            ["sleep", "sessiond", "Players are paused, and recordings are kept, before the machine sleeps", "delay"]
        ) { [weak self] values in
            guard let self else { return }
            isAsking = false
            guard let values else { return }
            // No longer wanted: it is released here.
            inhibitor = delaysSleep ? values.first?.fileDescriptorValue : nil
        }
    }

    /// Nil if there was no answer. Nothing waits for it.
    private func call(
        _ interface: String, _ member: String, _ arguments: [String], _ reply: @escaping ([Value]?) -> Void
    ) {
        guard
            let message = try? Message.methodCall(
                destination: SleepWatch.logind, path: "/org/freedesktop/login1", interface: interface, member: member)
        else { return reply(nil) }
        message.autoStart = false
        message.append(arguments.map { .string($0) })
        connection?.call(message, timeout: SleepWatch.patience) { [log] result in
            if case .failure(let failure) = result { log.debug("logind: \(member): \(failure.message)") }
            reply(try? result.get())
        }
    }

    deinit {
        inhibitor = nil
        subscriptions = []
        if isOwn { connection?.close() }
    }
}
