public import PluginAPI

/// Decides when a plugin may play or record, from what it requests and what the daemon and the engine report.
///
/// It is a value without a bus, a clock or an engine. The plugin passes every event (``Input``) to ``handle(_:)`` and
/// carries out the returned effects (``Effect``) in order. Rules for every sequence of inputs:
///
/// - The sound starts only when the daemon has granted the last request; the answer to an older request starts nothing.
/// - When the plugin falls silent, it gives its claim back: at once, or after a moment if another item usually follows.
/// - After an interruption the sound resumes only with the should-resume hint, if it was playing before, and if the user
///   did not pause, stop or replace it since.
public struct Grant: Sendable, Hashable {
    /// Between `began` and `ended`.
    public struct Interruption: Sendable, Hashable {
        /// It was playing, or was requested to play since, and was not paused.
        public var resumes: Bool
        /// When it was to start, if it had not started yet (`MonotonicClock`).
        public var start: UInt64?
        /// Its output was unplugged before; it also waits for a replug.
        public var isUnplugged = false
    }

    /// A request that the daemon has not answered.
    public struct Ask: Sendable, Hashable {
        /// When the sound is to start; nil: at once.
        public var start: UInt64?
        /// The interruption at the time of the request.
        public var interruption: Interruption?
        /// The end of an interruption made the request, not the user: after a refusal it stays paused.
        public var isResumption = false
        /// It already plays, because an earlier request was granted.
        public var sounds = false
    }

    public enum State: Sendable, Hashable {
        /// Silent, without a claim.
        case idle
        /// Silent, but it keeps its claim for a moment.
        case lingering
        case asking(Ask)
        /// Granted; the sound starts at that time.
        case due(UInt64)
        case sounding
        /// The engine is ending; it keeps its claim until then.
        case ending
        case interrupted(Interruption)
        /// Silent because its output was unplugged; it resumes after a replug.
        case unplugged
    }

    public enum Input: Sendable, Hashable {
        /// A request to play or record; from that time on, or at once.
        case wants(at: UInt64?)
        /// The daemon's answer to that request. `now` is the time of `MonotonicClock`.
        case granted(order: UInt64, now: UInt64)
        case refused(order: UInt64)
        /// The engine did not start.
        case startFailed
        /// Another item follows the one that plays, with the same claim.
        case goesOn
        /// The time of ``Effect/wait(until:)`` has come.
        case due
        case began(InterruptionReason)
        /// - Parameter canResume: whether the engine has something to resume.
        case ended(shouldResume: Bool, canResume: Bool)
        /// The headphones or the input were unplugged, and the daemon does not interrupt this session for that.
        case deviceGone
        /// The daemon reports that the sound server stopped, or is back.
        case servicesLost
        case servicesReset
        /// The engine reports that the sound server stopped.
        case engineLost
        /// The daemon has no sound server either.
        case serverIsAway
        /// The daemon has been away for too long, so the interruption would not end.
        case daemonLost
        /// A new daemon refuses the session, or refuses to activate it again.
        case expelled
        /// Requests of the user.
        case paused
        case stopped
        /// A request to end, which the engine needs time and the claim for.
        case ending
        /// The item was replaced; usually the next one is played at once.
        case replaced
        /// The sounds have ended; others may follow at any moment.
        case burstOver
        /// The time of ``Effect/linger`` is over.
        case lingered
        /// The sound ended, or failed.
        case finished
        /// The engine loaded another item and does not play it.
        case fellSilent
    }

    /// An effect, which the plugin must carry out. The order matters.
    public enum Effect: Sendable, Hashable {
        /// Activate the session, and pass the answer with this number.
        case activate(order: UInt64)
        /// Deactivate the session; with `notifyOthers`, the others get the should-resume hint.
        case deactivate(notifyOthers: Bool)
        /// Start the engine at its current position.
        case start
        /// Pause the engine.
        case silence
        /// Pass ``Input/due`` at that time, unless the state has changed by then.
        case wait(until: UInt64)
        /// Pass ``Input/lingered`` after a moment, unless the state has changed by then.
        case linger
    }

    public private(set) var state = State.idle
    /// The number of the last request to play, pause or stop.
    public private(set) var order: UInt64 = 0
    /// Whether there is no sound server.
    public private(set) var isServerAway = false
    /// Whether it resumes after a replug of its output.
    public let resumesOnReplug: Bool

    public init(resumesOnReplug: Bool = false) { self.resumesOnReplug = resumesOnReplug }

    /// The current interruption; nil: none.
    public var interruption: Interruption? {
        switch state {
        case .interrupted(let interruption): interruption
        case .asking(let ask): ask.interruption
        case .idle, .lingering, .due, .sounding, .ending, .unplugged: nil
        }
    }

    /// Whether it is interrupted and may resume automatically.
    public var isInterrupted: Bool { interruption?.resumes == true }

    /// Whether it plays or records now.
    public var sounds: Bool {
        switch state {
        case .sounding: true
        case .asking(let ask): ask.sounds
        case .idle, .lingering, .due, .ending, .interrupted, .unplugged: false
        }
    }

    /// Whether it plays, or will start without another request.
    private var isHeard: Bool {
        if case .due = state { true } else { sounds }
    }

    public mutating func handle(_ input: Input) -> [Effect] {
        switch input {
        case .wants(let start): wants(start)
        case .granted(let order, let now): granted(order, now)
        case .refused(let order): refused(order)
        case .startFailed: startFailed()
        case .goesOn: goesOn()
        case .due: due()
        case .began(let reason): began(reason)
        case .ended(let shouldResume, let canResume): ended(shouldResume && canResume)
        case .deviceGone: deviceGone()
        case .servicesLost: servicesLost()
        case .servicesReset: arrived()
        case .engineLost: engineLost()
        case .serverIsAway: away()
        case .daemonLost: daemonLost()
        case .expelled: expelled()
        case .paused: paused()
        case .stopped, .finished: over()
        case .ending: ending()
        case .replaced: replaced()
        case .burstOver: linger()
        case .lingered: lingered()
        case .fellSilent: fellSilent()
        }
    }

    // MARK: Requests

    private mutating func wants(_ start: UInt64?) -> [Effect] {
        var ask = Ask(start: start)
        switch state {
        case .idle, .lingering, .due, .ending, .unplugged: break
        case .sounding: ask.sounds = true
        case .asking(let other): (ask.interruption, ask.sounds) = (other.interruption, other.sounds)
        case .interrupted(let interruption): ask.interruption = interruption
        }
        // After a request of the user it does not wait for a replug any more.
        ask.interruption?.isUnplugged = false
        return asked(ask)
    }

    private mutating func asked(_ ask: Ask) -> [Effect] {
        order &+= 1
        state = .asking(ask)
        return [.activate(order: order)]
    }

    private mutating func paused() -> [Effect] {
        order &+= 1
        // An interrupted session keeps its claim: if a later request is refused, it still learns of the end.
        if letGo() || state == .ending { return [.silence] }
        state = .idle
        return [.silence, .deactivate(notifyOthers: true)]
    }

    private mutating func over() -> [Effect] {
        order &+= 1
        state = .idle
        return [.deactivate(notifyOthers: true)]
    }

    private mutating func ending() -> [Effect] {
        order &+= 1
        state = .ending
        return []
    }

    private mutating func replaced() -> [Effect] {
        order &+= 1
        if letGo() { return [] }
        switch state {
        case .lingering, .asking, .due, .sounding, .ending: return linger()
        case .idle, .interrupted, .unplugged:
            state = .idle
            return []
        }
    }

    private mutating func linger() -> [Effect] {
        state = .lingering
        return [.linger]
    }

    private mutating func lingered() -> [Effect] {
        guard state == .lingering else { return [] }
        state = .idle
        return [.deactivate(notifyOthers: true)]
    }

    private mutating func fellSilent() -> [Effect] {
        guard state == .sounding else { return [] }
        state = .idle
        return [.deactivate(notifyOthers: true)]
    }

    /// Makes sure that an interrupted plugin does not resume automatically. False if it is not interrupted.
    private mutating func letGo() -> Bool {
        guard let interruption else { return false }
        state = .interrupted(Interruption(resumes: false, start: interruption.start))
        return true
    }

    // MARK: Answers of the daemon

    private mutating func granted(_ order: UInt64, _ now: UInt64) -> [Effect] {
        guard order == self.order, case .asking(let ask) = state else { return grantedTooLate() }
        if let start = ask.start, start > now {
            state = .due(start)
            return [.silence, .wait(until: start)]
        }
        state = .sounding
        return [.start]
    }

    /// Paused, stopped or failed before the daemon answered.
    private mutating func grantedTooLate() -> [Effect] {
        switch state {
        case .asking, .due, .sounding, .ending: return []
        case .idle, .lingering, .interrupted: state = .idle
        case .unplugged: break
        }
        return [.deactivate(notifyOthers: true)]
    }

    private mutating func refused(_ order: UInt64) -> [Effect] {
        guard order == self.order, case .asking(let ask) = state else { return [] }
        if ask.sounds {
            state = .sounding
        } else if let interruption = ask.interruption, !ask.isResumption {
            // The request stays valid after the refusal if an interruption is the reason.
            state = .interrupted(
                Interruption(resumes: true, start: ask.start, isUnplugged: interruption.isUnplugged))
        } else {
            // Interrupted again before it could resume: it stays paused.
            state = .idle
        }
        return []
    }

    private mutating func startFailed() -> [Effect] {
        switch state {
        case .sounding, .asking: return over()
        case .idle, .lingering, .due, .ending, .interrupted, .unplugged: return []
        }
    }

    private mutating func goesOn() -> [Effect] {
        switch state {
        case .lingering: state = .sounding
        case .sounding: break
        case .asking(let ask): if !ask.sounds { return [] }
        case .idle, .due, .ending, .interrupted, .unplugged: return []
        }
        return [.start]
    }

    private mutating func due() -> [Effect] {
        guard case .due = state else { return [] }
        state = .sounding
        return [.start]
    }

    // MARK: Events of the session

    private mutating func began(_ reason: InterruptionReason) -> [Effect] {
        // An interruption by an unplugged device does not end automatically: it is a pause until the device is back.
        let isPause = reason == .routeDisconnected
        switch state {
        case .asking(var ask):
            // The answer to the request comes after this.
            ask.interruption = isPause ? nil : Interruption(resumes: ask.sounds)
            ask.sounds = false
            state = .asking(ask)
        case .sounding: state = isPause ? unplugged : .interrupted(Interruption(resumes: true))
        case .due(let start): state = isPause ? unplugged : .interrupted(Interruption(resumes: true, start: start))
        case .idle, .lingering: state = isPause ? .idle : .interrupted(Interruption(resumes: false))
        case .ending: break
        case .interrupted(let interruption):
            state =
                isPause
                ? interruption.isUnplugged ? .unplugged : .idle
                : .interrupted(Interruption(resumes: false, isUnplugged: interruption.isUnplugged))
        case .unplugged: if !isPause { state = .interrupted(Interruption(resumes: false, isUnplugged: true)) }
        }
        return [.silence]
    }

    private var unplugged: State { resumesOnReplug ? .unplugged : .idle }

    private mutating func ended(_ resumes: Bool) -> [Effect] {
        switch state {
        case .interrupted(let interruption):
            if resumes, interruption.resumes {
                return asked(Ask(start: interruption.start, interruption: interruption, isResumption: true))
            }
            state = interruption.isUnplugged ? .unplugged : .idle
            // Sessions that wait for this one need not wait until its claim expires.
            return [.deactivate(notifyOthers: true)]
        case .unplugged:
            if resumes { return asked(Ask(isResumption: true)) }
            return [.deactivate(notifyOthers: true)]
        case .asking(var ask):
            // The answer to the request decides; no other end follows.
            guard let interruption = ask.interruption else { return [] }
            ask.isResumption = true
            if !resumes || !interruption.resumes { ask.interruption = nil }
            state = .asking(ask)
            return []
        case .idle, .lingering, .due, .sounding, .ending: return []
        }
    }

    private mutating func deviceGone() -> [Effect] {
        guard isHeard else {
            forgetToResume()
            return []
        }
        order &+= 1
        state = unplugged
        return [.silence, .deactivate(notifyOthers: false)]
    }

    private mutating func forgetToResume() {
        switch state {
        case .interrupted(var interruption):
            interruption.resumes = false
            state = .interrupted(interruption)
        case .asking(var ask):
            ask.interruption?.resumes = false
            state = .asking(ask)
        case .idle, .lingering, .due, .sounding, .ending, .unplugged: break
        }
    }

    // MARK: Sound server and daemon

    private mutating func servicesLost() -> [Effect] {
        isServerAway = true
        guard isHeard else {
            forgetToResume()
            return []
        }
        return engineLost()
    }

    private mutating func engineLost() -> [Effect] {
        order &+= 1
        if !letGo() { state = .idle }
        return [.silence, .deactivate(notifyOthers: false)]
    }

    private mutating func arrived() -> [Effect] {
        isServerAway = false
        return []
    }

    private mutating func away() -> [Effect] {
        isServerAway = true
        return []
    }

    private mutating func daemonLost() -> [Effect] {
        isServerAway = false
        switch state {
        case .interrupted(let interruption): state = interruption.isUnplugged ? .unplugged : .idle
        case .asking(var ask):
            ask.interruption = nil
            state = .asking(ask)
        case .idle, .lingering, .due, .sounding, .ending, .unplugged: break
        }
        return []
    }

    private mutating func expelled() -> [Effect] {
        order &+= 1
        if var interruption {
            interruption.isUnplugged = false
            state = .interrupted(interruption)
        } else {
            state = .idle
        }
        return [.silence]
    }
}
