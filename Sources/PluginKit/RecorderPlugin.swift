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
    private var interruption: Interruption?
    /// Between `began` and `ended`.
    private struct Interruption {
        /// Whether it was recording, and nobody paused it since.
        var resumes: Bool
        /// Who interrupted it; empty where no session did.
        let byName: String
    }
    /// Counts the orders to record, pause or stop: an answer to an older one than the last does nothing.
    private var orders: UInt64 = 0
    private var wantsSound = false
    /// There is a file that recording would go to.
    private var isPrepared = false
    /// The daemon was asked where the chosen input is.
    private var isPreparing = false
    /// Where a recording of a given length ends, in seconds of the take.
    private var limit: Double?
    /// When it is to begin, granted already, and for how long (`MonotonicClock`).
    private var start: (time: UInt64, seconds: Double?)?
    private lazy var starter = Timer(on: connection.loop) { [unowned self] in startNow() }
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
        engine.state != .failed && interruption?.resumes == true ? .interrupted : engine.state
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
        if engine.state == .recording { return reply(begin(for: seconds)) }
        changing { order(sound: true) }
        let mine = orders
        session.activate { [weak self] result in
            guard let self else { return }
            if let start, start > MonotonicClock.now(), case .success = result, mine == orders {
                interruption = nil
                self.start = (start, seconds)
                starter.arm(at: start)
                return reply(.success(()))
            }
            reply(changing { self.answered(result, to: mine, for: seconds) })
        }
    }

    private func startNow() {
        guard let start else { return }
        self.start = nil
        if case .failure(let failure) = changing({ begin(for: start.seconds) }) { failed(failure.message) }
    }

    /// The take plays as it is; the sound is given back. Paused while interrupted, it does not go on by itself.
    public func pause() {
        changing {
            order(sound: false)
            engine.pause()
            // What is interrupted keeps its claim: told to record by hand, refused, it still hears of the end.
            if interruption != nil { interruption?.resumes = false } else { giveBack(notifyOthers: true) }
        }
    }

    /// Ends the take; `Finished` tells when the file is whole.
    public func stop() {
        changing {
            order(sound: false)
            interruption = nil
            engine.stop()
            // The source is in use until the file is whole.
            if !isBusy { giveBack(notifyOthers: true) }
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

    private func order(sound: Bool) {
        orders &+= 1
        wantsSound = sound
        start = nil
        starter.disarm()
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

    // MARK: The daemon's answers

    private func answered(_ result: Result<Void, Failure>, to order: UInt64, for seconds: Double?) -> Result<
        Void, Failure
    > {
        switch result {
        case .failure:
            if order == orders {
                wantsSound = false
                // The wish outlives the refusal where an interruption stands in its way.
                if interruption != nil { interruption?.resumes = isPrepared }
            }
            return result
        case .success:
            guard order == orders else {
                // Paused, stopped or failed before the daemon had answered.
                if !wantsSound {
                    interruption = nil
                    if engine.state != .recording { giveBack(notifyOthers: true) }
                }
                return result
            }
            return begin(for: seconds)
        }
    }

    /// The sound is ours.
    private func begin(for seconds: Double?) -> Result<Void, Failure> {
        interruption = nil
        do throws(SessionError) {
            if let seconds { try engine.record(for: seconds) } else { try engine.record() }
            limit = seconds.map { engine.position + $0 }
            return .success(())
        } catch {
            wantsSound = false
            if engine.state != .recording { giveBack(notifyOthers: true) }
            return .failure(Failure(error))
        }
    }

    private func giveBack(notifyOthers: Bool) { session.deactivate(notifyOthers: notifyOthers) }

    // MARK: What the session is told

    private func heard(_ event: AudioSessionClient.Event) {
        switch event {
        case .session(let event): heard(event)
        // Nobody arbitrates, and nobody would end the interruption.
        case .daemonLost:
            if interruption?.resumes == true { paused("sessiond went while it was interrupted") }
            interruption = nil
        case .registered: break
        // A new daemon does not let it go on: nobody will say when it may, so it waits for a hand.
        case .refused(let failure):
            guard session.path != nil else { break }
            if engine.state == .recording { paused(failure.message) }
            order(sound: false)
            engine.pause()
        // The engine says what became of the take.
        case .servicesLost, .servicesReset: break
        }
    }

    private func heard(_ event: SessionEvent) {
        switch event {
        case .interruptionBegan(let reason, _, let name, _):
            // What had not begun yet begins when it may.
            let wasRecording = engine.state == .recording || start != nil
            start = nil
            starter.disarm()
            engine.pause()
            // Nothing ends by itself what a device that was taken away began: that is a pause.
            let isPause = reason == .routeDisconnected
            interruption = isPause ? nil : Interruption(resumes: wasRecording, byName: name)
            if isPause, wasRecording { paused(gone([name])) }
        case .interruptionEnded(let shouldResume, _, _): interruptionEnded(shouldResume)
        case .routeChanged(.oldDeviceUnavailable, let previous, let current): inputsChanged(previous, current)
        case .routeChanged, .duckingChanged, .mutedChanged, .silenceSecondaryAudioHint: break
        }
    }

    private func interruptionEnded(_ shouldResume: Bool) {
        guard let was = interruption else { return }
        guard shouldResume, was.resumes, engine.state == .paused || engine.state == .idle, isPrepared else {
            interruption = nil
            if was.resumes, engine.state == .paused {
                let who = was.byName.isEmpty ? "it was interrupted" : "\(quoted(was.byName)) interrupted it"
                paused(who + ", and nothing recommends that it goes on")
            }
            // Those who wait behind it need not wait for the claim to run out.
            return giveBack(notifyOthers: true)
        }
        order(sound: true)
        let mine = orders
        let rest = limit.map { max($0 - engine.position, 1e-6) }
        session.activate { [weak self] result in
            guard let self else { return }
            changing {
                if case .failure = result, mine == orders { interruption = nil }
                _ = answered(result, to: mine, for: rest)
            }
        }
    }

    /// The server would go on with another microphone, one nobody chose.
    private func inputsChanged(_ previous: Route, _ current: Route) {
        let left = previous.inputs.filter { port in !current.inputs.contains { $0.uid == port.uid } }
        guard !left.isEmpty else { return }
        interruption?.resumes = false
        guard engine.state == .recording else { return }
        paused(gone(left.map(\.name)))
        order(sound: false)
        engine.pause()
        giveBack(notifyOthers: false)
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
        changing { over() }
        emit("Finished", [.bool(whole)])
        giveBack(notifyOthers: true)
        onFinished?(whole)
        endNow()
    }

    private func failed(_ message: String) {
        changing { over() }
        emit("Failed", [.string(message)])
        giveBack(notifyOthers: true)
        onFailed?(message)
        endNow()
    }

    private func over() {
        order(sound: false)
        (interruption, limit, isPrepared) = (nil, nil, false)
    }
}
