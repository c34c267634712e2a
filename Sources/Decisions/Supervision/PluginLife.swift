import Glibc
public import Processes

/// The life of one plugin: when its program is started and ended, and which answer waiting clients get.
///
/// It starts no process, and uses no bus and no clock: it gets what happened, and returns the actions, in order. Times are
/// microseconds on the monotonic clock.
public struct PluginLife: Sendable {
    /// As listed on the bus.
    public enum State: String, Sendable, Hashable {
        case starting, running, stopping, stopped, crashed
    }

    /// Where a program serves the plugin.
    public struct Registration: Sendable, Hashable {
        /// The unique name of its connection.
        public var busName: String
        public var path: String
        /// Whether it works for a client that may have left: then it is not ended.
        public var isBusy: Bool

        public init(busName: String, path: String, isBusy: Bool) {
            self.busName = busName
            self.path = path
            self.isBusy = isBusy
        }
    }

    public enum Action: Sendable, Hashable {
        /// The state or its message has changed.
        case announce(State, String)
        /// All that wait get the registration.
        case serve
        /// All that wait get an error with that reason.
        case refuse(String)
        /// Ask the process, and all in its group, to end; the reason is for the log.
        case end(Int32, String)
        /// Kill the process and all in its group.
        case kill(Int32)
        /// The first process of that group has ended: the others must end, too. Then ``groupEnded(_:)`` follows.
        /// `wasAsked`: the whole group was asked to end already.
        case endGroup(Int32, wasAsked: Bool)
        /// Start it soon, to continue its work, if it is not started before.
        case startSoon
        /// Start it if a client waits.
        case startIfAwaited
    }

    /// What a client that opens it gets.
    public enum Opening: Sendable, Hashable {
        case served(Registration)
        /// It must be started.
        case start
        /// The answer comes later.
        case wait([Action])
    }

    /// Why a registration is refused.
    public enum Objection: Sendable, Hashable {
        case isStopping
        case isTaken(by: String)
    }

    /// The program and its place on the bus.
    private enum Phase: Sendable, Hashable {
        /// No process of it is known.
        ///
        /// Can transition to: `starting`; `running`, if another has started it.
        case ended
        /// Until it registers, at the latest at the deadline.
        ///
        /// Can transition to: `running`; `astray`, if it does not register; `ended`.
        case starting(Int32, deadline: UInt64)
        /// It is registered.
        ///
        /// Can transition to: `stopping`, when idle; `astray`, if it leaves the bus; `ended`.
        case running(Running)
        /// It has left the bus, or did not register properly, and its process still runs.
        ///
        /// Can transition to: `running`; `stopping`, when it is opened again; `ended`.
        case astray(Int32, wasBusy: Bool)
        /// It was asked to end. It is killed at `due`; nil: it was killed already.
        ///
        /// Can transition to: `settling`.
        case stopping(Int32, due: UInt64?)
        /// It was asked to end, and its process has ended; others in its group may not have.
        ///
        /// Can transition to: `ended`.
        case settling(Int32)
    }

    private struct Running: Sendable, Hashable {
        var registration: Registration
        /// Nil if it was not started here.
        let process: Int32?
        /// When it is ended, if it is still idle then; nil: it is in use, or is never ended.
        var idleDue: UInt64?
    }

    private var phase = Phase.ended
    /// How it failed last; empty: it did not, or was started again since.
    private var failure = ""
    /// The times of its crashes, latest last.
    private var crashes: [UInt64] = []
    /// The clients that opened it and are still connected, by unique name.
    private var users: Set<String> = []
    /// Seconds after which it is ended when idle; 0: never.
    public var idleTimeout = 0

    /// Seconds in which a started plugin must register.
    private static let startTime = 10.0
    /// Microseconds that it may take to exit.
    public static let endTime: UInt64 = 5_000_000
    /// After that many crashes within that many microseconds, the plugin is not started for as long.
    private static let crashLimit = (count: 3, microseconds: UInt64(30_000_000))

    public init() {}

    // MARK: State

    public var state: State {
        switch phase {
        case .starting: .starting
        case .running: .running
        case .stopping, .settling: .stopping
        case .ended, .astray: failure.isEmpty ? .stopped : .crashed
        }
    }

    /// The reason of a crash; else empty.
    public var message: String { state == .crashed ? failure : "" }

    /// The process that was started here and has not ended.
    public var process: Int32? {
        switch phase {
        case .starting(let process, _), .astray(let process, _), .stopping(let process, _): process
        case .running(let running): running.process
        case .ended, .settling: nil
        }
    }

    public var registration: Registration? {
        if case .running(let running) = phase { running.registration } else { nil }
    }

    /// Whether it can be forgotten: nothing runs, and no crash counts.
    public var isBlank: Bool { phase == .ended && crashes.isEmpty }

    /// When ``timePassed(at:isBusy:)`` is due; nil: never.
    public var nextDeadline: UInt64? {
        switch phase {
        case .starting(_, let deadline): deadline
        case .running(let running): running.idleDue
        case .stopping(_, let due): due
        case .ended, .astray, .settling: nil
        }
    }

    /// How often it crashed within the last half minute, if that is too often to start it; else nil.
    public mutating func crashCount(at now: UInt64) -> Int? {
        crashes.removeAll { now &- $0 > PluginLife.crashLimit.microseconds }
        return crashes.count < PluginLife.crashLimit.count ? nil : crashes.count
    }

    // MARK: Clients

    /// A process that left the bus is ended first, and a new one is started when it has ended.
    public mutating func open(at now: UInt64) -> Opening {
        switch phase {
        case .ended: return .start
        case .starting, .stopping, .settling: return .wait([])
        case .running(let running): return .served(running.registration)
        case .astray(let process, _):
            if state == .crashed { crashes.append(now) }
            return .wait(end(process, "left the bus or did not register", at: now))
        }
    }

    public mutating func used(by client: String, at now: UInt64) {
        users.insert(client)
        settleIdle(at: now)
    }

    public mutating func left(by client: String, at now: UInt64) {
        users.remove(client)
        settleIdle(at: now)
    }

    // MARK: Its program

    public mutating func started(_ process: Int32, at now: UInt64) -> [Action] {
        phase = .starting(process, deadline: now + UInt64(PluginLife.startTime * 1_000_000))
        failure = ""
        return [announcement]
    }

    public func objection(to busName: String) -> Objection? {
        switch phase {
        case .stopping, .settling: .isStopping
        case .running(let running):
            running.registration.busName == busName ? nil : .isTaken(by: running.registration.busName)
        case .ended, .starting, .astray: nil
        }
    }

    /// It registered, for the first time or with other data. There must be no ``objection(to:)``.
    public mutating func registered(_ registration: Registration, at now: UInt64) -> [Action] {
        if case .running(var running) = phase {
            running.registration = registration
            phase = .running(running)
            settleIdle(at: now)
            return []
        }
        phase = .running(Running(registration: registration, process: process))
        failure = ""
        settleIdle(at: now)
        return [announcement, .serve]
    }

    /// It tried to register with a version of the interface that is not supported.
    public mutating func registeredWrongly(version: Int) -> [Action] {
        guard case .starting(let process, _) = phase else { return [] }
        return fail(
            "registered with version \(version) of the plugin interface", astray: process,
            .end(process, "has a wrong version"))
    }

    /// Its connection is gone.
    public mutating func leftBus() -> [Action] {
        guard case .running(let running) = phase else { return [] }
        phase = running.process.map { .astray($0, wasBusy: running.registration.isBusy) } ?? .ended
        return [announcement]
    }

    /// Its process has ended.
    public mutating func exited(_ change: ChildChange, at now: UInt64) -> [Action] {
        guard let process, change.isEnd else { return [] }
        switch phase {
        case .ended, .settling: return []
        case .stopping:
            // A crash before it could exit is a crash.
            if case .killed(let signal) = change, signal != SIGTERM, signal != SIGKILL { crashes.append(now) }
            phase = .settling(process)
            return [.endGroup(process, wasAsked: true)]
        case .astray where state == .crashed:
            phase = .ended
            crashes.append(now)
            return [.endGroup(process, wasAsked: false)]
        case .starting: return exited(process, change, wasBusy: false, at: now)
        case .astray(_, let wasBusy): return exited(process, change, wasBusy: wasBusy, at: now)
        case .running(let running):
            return exited(process, change, wasBusy: running.registration.isBusy, at: now)
        }
    }

    /// Nothing of that group runs any more.
    public mutating func groupEnded(_ group: Int32) -> [Action] {
        guard phase == .settling(group) else { return [] }
        phase = .ended
        failure = ""
        return [announcement, .startIfAwaited]
    }

    /// - Parameter isBusy: whether one of its sessions is active or interrupted.
    public mutating func timePassed(at now: UInt64, isBusy: Bool) -> [Action] {
        guard let due = nextDeadline, due <= now else { return [] }
        switch phase {
        case .starting(let process, _):
            return fail("did not register within \(PluginLife.startTime) s", astray: process, .kill(process))
        case .running(var running):
            running.idleDue = nil
            phase = .running(running)
            guard !isBusy, let process = running.process else {
                settleIdle(at: now)
                return []
            }
            return end(process, "is idle", at: now)
        case .stopping(let process, _):
            phase = .stopping(process, due: nil)
            return [.kill(process)]
        case .ended, .astray, .settling: return []
        }
    }

    // MARK: Steps

    private var announcement: Action { .announce(state, message) }

    private mutating func end(_ process: Int32, _ why: String, at now: UInt64) -> [Action] {
        phase = .stopping(process, due: now + PluginLife.endTime)
        return [.end(process, why), announcement]
    }

    private mutating func fail(_ how: String, astray process: Int32, _ action: Action) -> [Action] {
        phase = .astray(process, wasBusy: false)
        failure = how
        return [action, announcement, .refuse(how)]
    }

    /// It has ended without being asked. The programs of a script end with it: they would not be watched any more.
    private mutating func exited(_ process: Int32, _ change: ChildChange, wasBusy: Bool, at now: UInt64) -> [Action] {
        // One that left the bus is announced as stopped already.
        let isAnnounced = state == .stopped
        phase = .ended
        let rest = Action.endGroup(process, wasAsked: false)
        switch change {
        case .exited(0): return [rest] + (isAnnounced ? [] : [announcement]) + [.refuse("exited")]
        case .exited(let code): failure = "exited with \(code)"
        case .killed(let signal): failure = "was ended by signal \(signal)"
        case .stopped, .continued: return []
        }
        crashes.append(now)
        return [rest, announcement, .refuse(failure)] + (wasBusy ? [.startSoon] : [])
    }

    /// It is ended some time after it has no user and is not busy, if it was started here.
    private mutating func settleIdle(at now: UInt64) {
        guard case .running(var running) = phase else { return }
        let mayEnd =
            running.process != nil && users.isEmpty && idleTimeout > 0 && !running.registration.isBusy
        running.idleDue = mayEnd ? running.idleDue ?? now + UInt64(idleTimeout) * 1_000_000 : nil
        phase = .running(running)
    }
}
