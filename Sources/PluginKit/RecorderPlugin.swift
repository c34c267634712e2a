public import DBus
import EventLoop
public import PluginAPI
import SessionBus
public import SessionKit

/// A recorder as the session service knows it: an engine, a session that decides when it may record, and both on the
/// bus as `org.sessiond1.Recorder`.
///
/// An interruption pauses the take, which plays as it is; it goes on, appending, only where the daemon recommends it,
/// it was recording, and nobody touched it since. Pausing by hand and the end of a take give the sound back at once
/// and recommend to those who waited that they resume.
public final class RecorderPlugin: Plugin {
    /// Called once, on the loop's thread; from inside the call where the daemon need not be asked.
    public typealias Reply = (Result<Void, Failure>) -> Void

    /// Its callbacks are the plugin's from the initializer on.
    public let engine: any RecorderEngine
    /// Its ``AudioSessionClient/onEvent`` is the plugin's from the initializer on.
    public let session: AudioSessionClient
    /// The file is whole and closed (false: its end is missing); after the signal went out.
    public var onFinished: ((Bool) -> Void)?
    /// Recording ended early; the message says why.
    public var onFailed: ((String) -> Void)?
    /// The take is paused and will not go on by itself, which nobody asked for; the message says why.
    public var onPaused: ((String) -> Void)?

    let connection: Connection
    private let input: String
    /// When it may record; changed by ``take(_:)`` alone.
    private var grant = Grant()
    /// Who interrupted it last; empty where no session did.
    private var interrupter = ""
    /// There is a file that recording would go to.
    private var isPrepared = false
    /// The daemon was asked where the chosen input is.
    private var isPreparing = false
    /// Where a recording of a given length ends, in seconds of the take.
    private var limit: Double?
    /// How many seconds are to be recorded once it begins; nil for no end.
    private var seconds: Double?
    private lazy var starter = Timer(on: connection.loop) { [unowned self] in startNow() }
    /// Who waits for the answer to the order that is given next.
    private var answers: Reply?
    private var changeDepth = 0
    private var announcements: [Announcement<RecorderPlugin>] = []
    private var ending: (() -> Void)?

    /// Exports the object and asks the daemon for the session. The bus name is the caller's to claim.
    ///
    /// The connection's objects keep it alive.
    /// - Parameter input: the uid of the input to record from; empty: the route's.
    public init(
        _ engine: any RecorderEngine, _ description: AudioSessionClient.Description, on connection: Connection,
        input: String = ""
    ) {
        self.engine = engine
        self.connection = connection
        self.input = input
        session = AudioSessionClient(description, on: connection) { _ in }
        session.onEvent = { [unowned self] event in changing { heard(event) } }
        engine.onStateChanged = { [unowned self] _ in changing {} }
        engine.onFinished = { [unowned self] whole in finished(whole) }
        engine.onFailed = { [unowned self] message in failed(message) }
        announcements = export()
    }

    /// What it is doing, as the bus has it.
    public var state: RecorderState {
        engine.state != .failed && grant.isInterrupted ? .interrupted : engine.state
    }

    private var isBusy: Bool { engine.state == .recording || engine.state == .paused }

    /// Runs a change and then tells, once, which properties it changed.
    func changing<Answer, Problem: Error>(_ body: () throws(Problem) -> Answer) throws(Problem) -> Answer {
        changeDepth += 1
        defer {
            changeDepth -= 1
            if changeDepth == 0 { for announcement in announcements { announcement.update(self) } }
        }
        return try body()
    }

    // MARK: Orders

    /// Makes the file and connects to the source. `path` is absolute; a file that is there is replaced.
    public func prepare(path: String, settings: RecordingSettings, _ reply: @escaping Reply) {
        do throws(SessionError) {
            try checkHasInput(.incompatibleCategory)
            guard path.hasPrefix("/"), !path.utf8.contains(0) else {
                throw .badParameter("'path' must be absolute, not \(quoted(path))")
            }
            guard !isBusy else { throw SessionError(.isBusy, "recording '\(engine.path ?? "")': stop it first") }
        } catch {
            return reply(.failure(Failure(error)))
        }
        guard !input.isEmpty else {
            engine.device = nil
            return reply(make(path, settings))
        }
        isPreparing = true
        session.setPreferredInput(uid: input) { [weak self] result in
            guard case .success = result else {
                self?.isPreparing = false
                return reply(result)
            }
            self?.session.properties { [weak self] result in
                guard let self else { return }
                isPreparing = false
                if case .success(let fields) = result { engine.device = source(fields["CurrentRoute"]?.route) }
                reply(make(path, settings))
            }
        }
    }

    /// Asks for the sound, then records, appending after a pause; fails with the daemon's refusal.
    /// - Parameters:
    ///   - start: when to begin, of `MonotonicClock`; nil or past: at once. The sound is asked for at once all the same.
    ///   - seconds: how much more to record; nil for no end.
    ///   - reply: called when it may record, or may not.
    public func record(at start: UInt64? = nil, for seconds: Double? = nil, _ reply: @escaping Reply) {
        do throws(SessionError) {
            try checkHasInput(.cannotStartRecording)
            if let seconds, !(seconds > 0 && seconds < 1e9) {
                throw .badParameter("record for \(seconds) s: give more than 0")
            }
            guard isPrepared || isPreparing else {
                throw SessionError(.cannotStartRecording, "no recording is prepared: give a file first")
            }
        } catch {
            return reply(.failure(Failure(error)))
        }
        self.seconds = seconds
        if engine.state == .recording { return reply(begin()) }
        answers = reply
        changing { _ = take(.wants(at: start)) }
    }

    private func startNow() {
        if case .failure(let failure) = changing({ take(.due) }) { failed(failure.message) }
    }

    /// The take plays as it is; the sound is given back. Paused while interrupted, it does not go on by itself.
    public func pause() {
        changing { _ = take(.paused) }
    }

    /// Ends the take; `Finished` tells when the file is whole.
    public func stop() {
        changing {
            engine.stop()
            // The source is in use until the file is whole.
            _ = take(isBusy ? .ending : .stopped)
        }
    }

    /// Removes the file of a take that has ended.
    /// - Throws: `IsBusy` before its end, `BadParameter` where there is no file.
    public func delete() throws(Failure) {
        try changing { () throws(Failure) in
            do throws(SessionError) {
                try engine.delete()
                isPrepared = false
            } catch {
                throw Failure(error)
            }
        }
    }

    public func end(_ done: @escaping () -> Void) {
        let wasBusy = isBusy
        ending = { [session, connection] in
            session.close { _ in }
            connection.flush()
            done()
        }
        stop()
        if !wasBusy { endNow() }
    }

    private func endNow() {
        let done = ending
        ending = nil
        done?()
    }

    private func checkHasInput(_ code: SessionError.Code) throws(SessionError) {
        let category = session.description.category
        guard category.hasInput else {
            throw SessionError(
                code, "nothing is recorded in category '\(category.rawValue)': use record or play-and-record")
        }
    }

    private func make(_ path: String, _ settings: RecordingSettings) -> Result<Void, Failure> {
        changing {
            do throws(SessionError) {
                try engine.prepare(path: path, settings: settings)
                (isPrepared, limit) = (true, nil)
                return .success(())
            } catch {
                return .failure(Failure(error))
            }
        }
    }

    /// The server's name of the route's source: a uid is that, or that with `/` and a port's name.
    private func source(_ route: Route?) -> String? {
        route?.inputs.first.map { String($0.uid.prefix { $0 != "/" }) }
    }

    // MARK: The claim to the sound

    /// Carries out what follows; where the engine does not start, with its refusal.
    private func take(_ input: Grant.Input) -> Result<Void, Failure> { carry(out: grant.handle(input)) }

    @discardableResult
    private func carry(out effects: [Grant.Effect]) -> Result<Void, Failure> {
        var result: Result<Void, Failure> = .success(())
        for effect in effects {
            switch effect {
            case .activate(let order): activate(order)
            case .deactivate(let notifyOthers): session.deactivate(notifyOthers: notifyOthers)
            case .start:
                result = begin()
                if case .failure = result, engine.state != .recording { _ = take(.startFailed) }
            case .silence: engine.pause()
            case .wait(let time): starter.arm(at: time)
            // A recording ends once, in a file of its own.
            case .linger: break
            }
        }
        if case .due = grant.state {} else { starter.disarm() }
        return result
    }

    private func activate(_ order: UInt64) {
        let reply = answers
        answers = nil
        session.activate { [weak self] result in
            guard let self else { return }
            let answer = changing { self.answered(result, to: order) }
            reply?(answer)
        }
    }

    private func answered(_ result: Result<Void, Failure>, to order: UInt64) -> Result<Void, Failure> {
        guard case .success = result else {
            _ = take(.refused(order: order))
            return result
        }
        return take(.granted(order: order, now: MonotonicClock.now()))
    }

    /// The sound is ours.
    private func begin() -> Result<Void, Failure> {
        do throws(SessionError) {
            if let seconds { try engine.record(for: seconds) } else { try engine.record() }
            limit = seconds.map { engine.position + $0 }
            seconds = nil
            return .success(())
        } catch {
            return .failure(Failure(error))
        }
    }

    // MARK: What the session is told

    private func heard(_ event: AudioSessionClient.Event) {
        switch event {
        case .session(let event): heard(event)
        // Nobody arbitrates, and nobody would end the interruption.
        case .daemonLost:
            if grant.isInterrupted { paused("sessiond went while it was interrupted") }
            _ = take(.daemonLost)
        case .registered: break
        // A new daemon does not let it go on: nobody will say when it may, so it waits for a hand.
        case .refused(let failure):
            guard session.path != nil else { break }
            if engine.state == .recording { paused(failure.message) }
            _ = take(.expelled)
        // The engine says what became of the take.
        case .servicesLost, .servicesReset: break
        }
    }

    private func heard(_ event: SessionEvent) {
        switch event {
        case .interruptionBegan(let reason, _, let name, _):
            var wasRecording = engine.state == .recording
            if case .due = grant.state { wasRecording = true }
            interrupter = name
            _ = take(.began(reason))
            if reason == .routeDisconnected, wasRecording { paused(gone([name])) }
        case .interruptionEnded(let shouldResume, _, _): interruptionEnded(shouldResume)
        case .routeChanged(.oldDeviceUnavailable, let previous, let current): inputsChanged(previous, current)
        case .routeChanged, .duckingChanged, .mutedChanged, .silenceSecondaryAudioHint: break
        }
    }

    private func interruptionEnded(_ shouldResume: Bool) {
        let canResume = isPrepared && (engine.state == .paused || engine.state == .idle)
        if grant.isInterrupted, engine.state == .paused, !(shouldResume && canResume) {
            let who = interrupter.isEmpty ? "it was interrupted" : "\(quoted(interrupter)) interrupted it"
            paused(who + ", and nothing recommends that it goes on")
        }
        if let limit { seconds = max(limit - engine.position, 1e-6) }
        _ = take(.ended(shouldResume: shouldResume, canResume: canResume))
    }

    /// The server would go on with another microphone, one nobody chose.
    private func inputsChanged(_ previous: Route, _ current: Route) {
        let left = previous.inputs.filter { port in !current.inputs.contains { $0.uid == port.uid } }
        guard !left.isEmpty else { return }
        // What has not begun yet begins with whatever is there then.
        if case .due = grant.state { return }
        if engine.state == .recording { paused(gone(left.map(\.name))) }
        _ = take(.deviceGone(givesBack: true))
    }

    private func gone(_ names: [String]) -> String {
        let names = names.filter { !$0.isEmpty }.map(quoted)
        return (names.isEmpty ? "what it recorded from" : names.joined(separator: " and ")) + " was disconnected"
    }

    /// Told before the state that follows.
    private func paused(_ message: String) {
        emit("Paused", [.string(message)])
        onPaused?(message)
    }

    // MARK: What the engine says

    private func finished(_ whole: Bool) {
        over { emit("Finished", [.bool(whole)]) }
        onFinished?(whole)
        endNow()
    }

    private func failed(_ message: String) {
        over { emit("Failed", [.string(message)]) }
        onFailed?(message)
        endNow()
    }

    /// Tells it between the change and what follows from it.
    private func over(_ tell: () -> Void) {
        let effects = changing { () -> [Grant.Effect] in
            (limit, seconds, isPrepared) = (nil, nil, false)
            return grant.handle(.finished)
        }
        tell()
        carry(out: effects)
    }
}
