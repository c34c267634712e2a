public import PluginAPI

/// A plugin's claim to the sound: what it asked for, what it was given, and what follows from what it is told.
///
/// A value without a bus, a clock or an engine. The plugin hands in what happened (``Input``) and carries out, in order,
/// what it gets back (``Effect``). It holds for every sequence of inputs:
///
/// - The sound starts only once the daemon has granted the last order; an answer to an older one starts nothing.
/// - What falls silent gives the claim back: at once, or after a moment where the next item follows as a rule.
/// - After an interruption the sound goes on only where the daemon recommends it, it was to be heard before, and nobody
///   touched it since.
public struct Grant: Sendable, Hashable {
    /// Between `began` and `ended`.
    public struct Interruption: Sendable, Hashable {
        /// It was to be heard, or was told to play since, and nobody paused it.
        public var resumes: Bool
        /// When it was to start, where it had not yet (`MonotonicClock`).
        public var start: UInt64?
        /// Its output went before: the return of that is waited for, too.
        public var isUnplugged = false
    }

    /// An order that the daemon has not answered.
    public struct Ask: Sendable, Hashable {
        /// When the sound is to start; nil: at once.
        public var start: UInt64?
        /// What stood in its way when it was asked for.
        public var interruption: Interruption?
        /// It is the end of an interruption, not a hand, that asked: refused, it is forgotten.
        public var isResumption = false
        /// It is heard meanwhile, by an order that was granted before.
        public var sounds = false
    }

    public enum State: Sendable, Hashable {
        /// Silent; nothing is asked for.
        case idle
        /// Silent; the claim is kept for a moment.
        case lingering
        case asking(Ask)
        /// Granted; it starts at that time.
        case due(UInt64)
        case sounding
        /// Told to end; the claim is kept until it has ended.
        case ending
        case interrupted(Interruption)
        /// Silent because its output went, and untouched since: where that comes back, so does the sound.
        case unplugged
    }

    public enum Input: Sendable, Hashable {
        /// Somebody wants the sound; from that time on, or at once.
        case wants(at: UInt64?)
        /// The daemon's answers to that order. `now` is `MonotonicClock`'s.
        case granted(order: UInt64, now: UInt64)
        case refused(order: UInt64)
        /// The engine did not start.
        case startFailed
        /// Another item follows the one that sounds, under the same claim.
        case goesOn
        /// The time has come that ``Effect/wait(until:)`` named.
        case due
        case began(InterruptionReason)
        /// - Parameter canResume: whether there is anything to resume with.
        case ended(shouldResume: Bool, canResume: Bool)
        /// The device went that only its wearer heard, or that it recorded from. The daemon interrupts some sessions for
        /// that, which keep their claim; others give it back.
        case deviceGone(givesBack: Bool)
        /// The daemon says that the sound server went, or came back.
        case servicesLost
        case servicesReset
        /// The engine says that the sound server went.
        case engineLost
        /// The sound server is found to be away.
        case serverIsAway
        /// The daemon has been away for too long: nobody arbitrates, and nobody would end the interruption.
        case daemonLost
        /// A new daemon does not want the session, or does not let it go on.
        case expelled
        /// By hand.
        case paused
        case stopped
        /// Told to end, which takes the engine a moment that it needs the claim for.
        case ending
        /// What sounded is replaced, silent; the next one plays at once as a rule.
        case replaced
        /// What sounded is over, and more of it comes at any moment.
        case burstOver
        /// The moment is over that ``Effect/linger`` began.
        case lingered
        /// What sounded is over, or failed.
        case finished
        /// The engine was given another item and stays silent.
        case fellSilent
    }

    /// What to do, in this order.
    public enum Effect: Sendable, Hashable {
        /// Ask the daemon for the sound; the answer comes in with the order's number.
        case activate(order: UInt64)
        /// Give the claim back; `notifyOthers` recommends to those who waited that they resume.
        case deactivate(notifyOthers: Bool)
        /// Let the engine sound, from where it is.
        case start
        /// Pause the engine.
        case silence
        /// Hand ``Input/due`` in at that time, unless the state is another one by then.
        case wait(until: UInt64)
        /// Hand ``Input/lingered`` in after a moment, unless the state is another one by then.
        case linger
    }

    public private(set) var state = State.idle
    /// Counts the orders to play, pause or stop.
    public private(set) var order: UInt64 = 0
    /// What asks for the sound now would get nothing but silence.
    public private(set) var isServerAway = false
    /// Whether it goes on by itself where the output comes back that it played on.
    public let resumesOnReplug: Bool

    public init(resumesOnReplug: Bool = false) { self.resumesOnReplug = resumesOnReplug }

    /// The interruption that stands in the way of the sound; nil: none.
    public var interruption: Interruption? {
        switch state {
        case .interrupted(let interruption): interruption
        case .asking(let ask): ask.interruption
        case .idle, .lingering, .due, .sounding, .ending, .unplugged: nil
        }
    }

    /// Whether what sounded was interrupted and may go on by itself.
    public var isInterrupted: Bool { interruption?.resumes == true }

    /// Whether it is heard now.
    public var sounds: Bool {
        switch state {
        case .sounding: true
        case .asking(let ask): ask.sounds
        case .idle, .lingering, .due, .ending, .interrupted, .unplugged: false
        }
    }

    /// Whether it is heard, or will be without being asked again.
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
        case .deviceGone(let givesBack): deviceGone(givesBack)
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

    // MARK: Orders

    private mutating func wants(_ start: UInt64?) -> [Effect] {
        var ask = Ask(start: start)
        switch state {
        case .idle, .lingering, .due, .ending, .unplugged: break
        case .sounding: ask.sounds = true
        case .asking(let other): (ask.interruption, ask.sounds) = (other.interruption, other.sounds)
        case .interrupted(let interruption): ask.interruption = interruption
        }
        // Touched by hand, it does not wait for the output any more.
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
        // What is interrupted keeps its claim: played by hand, refused, it still hears of the end.
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
        if state == .sounding { state = .idle }
        return []
    }

    /// Interrupted, it does not go on by itself any more; false where it is not.
    private mutating func letGo() -> Bool {
        guard let interruption else { return false }
        state = .interrupted(Interruption(resumes: false, start: interruption.start))
        return true
    }

    // MARK: The daemon's answers

    private mutating func granted(_ order: UInt64, _ now: UInt64) -> [Effect] {
        guard order == self.order, case .asking(let ask) = state else { return grantedTooLate() }
        if let start = ask.start, start > now {
            state = .due(start)
            return [.silence, .wait(until: start)]
        }
        state = .sounding
        return [.start]
    }

    /// Paused, stopped or failed before the daemon had answered.
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
            // The wish outlives the refusal where an interruption stands in its way.
            state = .interrupted(
                Interruption(resumes: true, start: ask.start, isUnplugged: interruption.isUnplugged))
        } else {
            // Taken away again before it could come back: that is no interruption of what sounded, but a pause.
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

    // MARK: What the session is told

    private mutating func began(_ reason: InterruptionReason) -> [Effect] {
        // Nothing ends by itself what a device that was taken away began: that is a pause, until it is back.
        let isPause = reason == .routeDisconnected
        switch state {
        case .asking(var ask):
            // What is asked for already is answered after this.
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
            // Those who wait behind it need not wait for the claim to run out.
            return [.deactivate(notifyOthers: true)]
        case .unplugged:
            if resumes { return asked(Ask(isResumption: true)) }
            return [.deactivate(notifyOthers: true)]
        case .asking(var ask):
            // The answer is on its way, and decides; nothing else is waited for any more.
            guard let interruption = ask.interruption else { return [] }
            ask.isResumption = true
            if !resumes || !interruption.resumes { ask.interruption = nil }
            state = .asking(ask)
            return []
        case .idle, .lingering, .due, .sounding, .ending: return []
        }
    }

    private mutating func deviceGone(_ givesBack: Bool) -> [Effect] {
        guard isHeard else {
            forgetToResume()
            return []
        }
        order &+= 1
        state = unplugged
        return givesBack ? [.silence, .deactivate(notifyOthers: false)] : [.silence]
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

    // MARK: Servers and daemons that come and go

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
