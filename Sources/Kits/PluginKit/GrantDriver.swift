public import DBus
public import EventLoop
import PluginAPI
public import SessionKit

/// Carries out what a ``Grant`` decides: it asks the daemon, starts and silences the engine, and keeps the time.
///
/// All plugins that play or record use it. The plugin passes the events of its user, its engine and its session with
/// ``take(_:)``; the engine is started and silenced only by ``onStart`` and ``onSilence``. Called on the loop's thread
/// alone.
public final class GrantDriver {
    /// Called once, on the loop's thread; during the call if the daemon need not be asked.
    public typealias Reply = (Result<Void, Failure>) -> Void

    /// What it has decided so far. Changed only by ``take(_:)`` and ``decide(_:)``.
    public private(set) var grant: Grant

    /// Starts the engine at its current position; fails if the engine does not start.
    public var onStart: () throws(Failure) -> Void = {}
    /// Pauses the engine.
    public var onSilence: () -> Void = {}
    /// Whether the engine still plays or records although ``onStart`` has failed: then the claim is kept.
    public var soundsAnyway: () -> Bool = { false }
    /// The engine did not start at the requested time, long after the request was answered.
    public var onLateFailure: (Failure) -> Void = { _ in }
    /// The reason why the engine cannot start any more, for a caller whose request was replaced before it was granted.
    public var failureOfEngine: () -> Failure? = { nil }
    /// Whether nothing sounds at the end of ``linger``, so that the claim ends.
    public var isSilent: () -> Bool = { true }
    /// Runs what changes the plugin's state; the plugin may send its changed properties afterwards.
    public var changing: (_ body: () -> Void) -> Void = { $0() }

    private let session: AudioSessionClient
    private let loop: EventLoop
    private let linger: Double
    /// The caller that waits for the answer to the next request.
    private var answers: Reply?
    private lazy var starter = Timer(on: loop) { [unowned self] in startDue() }
    private lazy var lull = Timer(on: loop) { [unowned self] in if isSilent() { take(.lingered) } }

    /// - Parameters:
    ///   - linger: how many seconds the session stays active after a sound that others usually follow.
    ///   - resumesOnReplug: whether it resumes when its output is plugged in again.
    public init(_ session: AudioSessionClient, linger: Double = 1, resumesOnReplug: Bool = false, on loop: EventLoop) {
        (self.session, self.linger, self.loop) = (session, linger, loop)
        grant = Grant(resumesOnReplug: resumesOnReplug)
    }

    /// Asks the daemon to activate the session, and starts the engine when it has.
    /// - Parameters:
    ///   - start: when the sound is to start, in `MonotonicClock` time; nil or past: at once.
    ///   - reply: called when it may sound, or with the refusal, or with the engine's failure.
    public func ask(at start: UInt64? = nil, _ reply: @escaping Reply) {
        answers = reply
        changing { take(.wants(at: start)) }
    }

    /// Carries out the effects of the input; fails if the engine does not start.
    @discardableResult
    public func take(_ input: Grant.Input) -> Result<Void, Failure> { carry(out: grant.handle(input)) }

    /// Returns the effects of the input, for signals that must be sent before they are carried out: pass them to
    /// ``carry(out:)``.
    public func decide(_ input: Grant.Input) -> [Grant.Effect] { grant.handle(input) }

    /// Carries out effects in order; fails if the engine does not start.
    @discardableResult
    public func carry(out effects: [Grant.Effect]) -> Result<Void, Failure> {
        var result: Result<Void, Failure> = .success(())
        for effect in effects {
            switch effect {
            case .activate(let order): activate(order)
            case .deactivate(let notifyOthers): session.deactivate(notifyOthers: notifyOthers)
            case .start:
                do throws(Failure) {
                    try onStart()
                } catch {
                    if !soundsAnyway() { take(.startFailed) }
                    result = .failure(error)
                }
            case .silence: onSilence()
            case .wait(let time): starter.arm(at: time)
            case .linger: lull.arm(after: linger)
            }
        }
        if case .due = grant.state {} else { starter.disarm() }
        if grant.state != .lingering { lull.disarm() }
        return result
    }

    /// The session is registered again. A daemon that was away may have returned with the interruption that was given
    /// up when it left.
    public func registered() {
        if session.state == .interrupted, grant.state == .idle { take(.began(.default)) }
    }

    private func startDue() {
        var result: Result<Void, Failure> = .success(())
        changing { result = take(.due) }
        if case .failure(let failure) = result { onLateFailure(failure) }
    }

    private func activate(_ order: UInt64) {
        let reply = answers
        answers = nil
        session.activate { [weak self] result in
            guard let self else { return }
            var answer = result
            changing { answer = self.answered(result, to: order) }
            reply?(answer)
        }
    }

    private func answered(_ result: Result<Void, Failure>, to order: UInt64) -> Result<Void, Failure> {
        guard case .success = result else {
            take(.refused(order: order))
            return result
        }
        let isLate = order != grant.order
        let started = take(.granted(order: order, now: MonotonicClock.now()))
        if isLate, let failure = failureOfEngine() { return .failure(failure) }
        return started
    }
}
