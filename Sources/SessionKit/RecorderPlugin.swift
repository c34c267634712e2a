public import DBus
import EventLoop
public import PluginAPI
import Processes
import SessionBus

/// A recorder for the session service: an engine, a session that decides when it may record, and both on the
/// bus as `org.sessiond1.Recorder`.
///
/// An interruption pauses the recording; the file can be played as it is. Recording resumes (appends) only with the
/// should-resume hint, if it was recording and was not used since. A pause by the user and the end of a recording
/// deactivate the session at once with notify-others.
public final class RecorderPlugin: Plugin {
    /// Called once, on the loop's thread; during the call if the daemon need not be asked.
    public typealias Reply = (Result<Void, Failure>) -> Void

    /// The plugin owns its callbacks from the initializer on.
    public let engine: any RecorderEngine
    /// The plugin owns its ``AudioSessionClient/onEvent`` from the initializer on.
    public let session: AudioSessionClient
    /// The file is complete and closed (false: its end is missing); called after the signal was sent.
    public var onFinished: ((Bool) -> Void)?
    /// Recording ended early; the message says why.
    public var onFailed: ((String) -> Void)?
    /// The recording paused by itself and will not resume by itself; the message says why.
    public var onPaused: ((String) -> Void)?

    let connection: Connection
    private let input: String
    private var interruption: Interruption?
    /// Between `began` and `ended`.
    private struct Interruption {
        /// Whether it was recording, and was not paused since.
        var resumes: Bool
        /// The session that interrupted it; empty if none did.
        let byName: String
    }
    /// Counts requests to record, pause or stop: the answer to an outdated request is ignored.
    private var orders: UInt64 = 0
    private var wantsSound = false
    /// A file is prepared for recording.
    private var isPrepared = false
    /// The daemon was asked for the device of the chosen input.
    private var isPreparing = false
    /// Where a recording of a given length ends, in seconds of the recording.
    private var limit: Double?
    /// When to begin, with an active session, and for how long (`MonotonicClock`).
    private var start: (time: UInt64, seconds: Double?)?
    private lazy var starter = Timer(on: connection.loop) { [unowned self] in startNow() }
    /// Callers outside of sandboxes, so that the bus is not asked at each call; no name is ever another's.
    private var freeCallers: Set<String> = []
    private var changeDepth = 0
    private var announcements: [Announcement<RecorderPlugin>] = []
    private var ending: (() -> Void)?

    /// Exports the object and creates the session. The caller owns the bus name.
    ///
    /// The objects on the connection keep this object alive.
    /// - Parameter input: the uid of the input to record from; empty: that of the route.
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

    /// The state, with the name on the bus.
    public var state: RecorderState {
        engine.state != .failed && interruption?.resumes == true ? .interrupted : engine.state
    }

    private var isBusy: Bool { engine.state == .recording || engine.state == .paused }

    /// Runs a change and then sends, once, the properties that it changed.
    func changing<Answer, Problem: Error>(_ body: () throws(Problem) -> Answer) throws(Problem) -> Answer {
        changeDepth += 1
        defer {
            changeDepth -= 1
            if changeDepth == 0 { for announcement in announcements { announcement.update(self) } }
        }
        return try body()
    }

    // MARK: Requests

    /// The recorder writes with its own rights: with a path, a program in a sandbox could write outside of the sandbox.
    func requireFree(_ caller: String) throws(Failure) {
        if freeCallers.contains(caller) { return }
        let process = try connection.credentialsAndWait(of: caller, timeout: 5).processID
        guard let process, !Sandbox.holds(process) else {
            throw Failure(
                name: Failure.Name.accessDenied, message: "a program in a sandbox may not name a file to record to")
        }
        if freeCallers.count >= 64 { freeCallers = [] }
        freeCallers.insert(caller)
    }

    /// Creates the file and connects to the source. `path` is absolute; an existing file is replaced.
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

    /// Activates the session, then records, after a pause appending; fails with the daemon's refusal.
    /// - Parameters:
    /// - start: when to begin, in `MonotonicClock` time; nil or past: at once. The session is activated at once anyway.
    ///   - seconds: how much more to record; nil: no limit.
    ///   - reply: called when it may record, or with the refusal.
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

    /// Pauses and deactivates the session; the file can be played. If interrupted at that time, it will not resume by
    /// itself.
    public func pause() {
        changing {
            order(sound: false)
            engine.pause()
            // An interrupted session keeps its claim: if a later Record is refused, it still learns of the end.
            if interruption != nil { interruption?.resumes = false } else { giveBack(notifyOthers: true) }
        }
    }

    /// Ends the recording; `Finished` is sent when the file is complete.
    public func stop() {
        changing {
            order(sound: false)
            interruption = nil
            engine.stop()
            // The source is in use until the file is complete.
            if !isBusy { giveBack(notifyOthers: true) }
        }
    }

    /// Removes the file of a recording that has ended.
    /// - Throws: `IsBusy` before its end, `BadParameter` if there is no file.
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
                code, "recording is not allowed in category '\(category.rawValue)': use record or play-and-record")
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

    /// The server's name of the route's source: the uid is that name, or that name with `/` and the name of a port.
    private func source(_ route: Route?) -> String? {
        route?.inputs.first.map { String($0.uid.prefix { $0 != "/" }) }
    }

    // MARK: Answers of the daemon

    private func answered(_ result: Result<Void, Failure>, to order: UInt64, for seconds: Double?) -> Result<
        Void, Failure
    > {
        switch result {
        case .failure:
            if order == orders {
                wantsSound = false
                // The request stays valid after the refusal if an interruption is the reason.
                if interruption != nil { interruption?.resumes = isPrepared }
            }
            return result
        case .success:
            guard order == orders else {
                // Paused, stopped or failed before the daemon answered.
                if !wantsSound {
                    interruption = nil
                    if engine.state != .recording { giveBack(notifyOthers: true) }
                }
                return result
            }
            return begin(for: seconds)
        }
    }

    /// The session is active.
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

    // MARK: Events of the session

    private func heard(_ event: AudioSessionClient.Event) {
        switch event {
        case .session(let event): heard(event)
        // Without a daemon nobody would end the interruption.
        case .daemonLost:
            if interruption?.resumes == true { paused("sessiond stopped while it was interrupted") }
            interruption = nil
        case .registered: break
        // A new daemon does not know this interruption and would never end it: the recorder waits for the user.
        case .refused(let failure):
            guard session.path != nil else { break }
            if engine.state == .recording { paused(failure.message) }
            order(sound: false)
            engine.pause()
        // The engine reports the result of the recording.
        case .servicesLost, .servicesReset: break
        }
    }

    private func heard(_ event: SessionEvent) {
        switch event {
        case .interruptionBegan(let reason, _, let name, _):
            // A recording that had not begun begins when it may.
            let wasRecording = engine.state == .recording || start != nil
            start = nil
            starter.disarm()
            engine.pause()
            // An interruption by a removed device does not end by itself: it is a pause.
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
                paused(who + ", and the interruption ended without the should-resume hint")
            }
            // Sessions that wait for this one need not wait until its claim expires.
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

    /// The server would continue with another microphone, which the user did not choose.
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
        return (names.isEmpty ? "the input of the recording" : names.joined(separator: " and ")) + " was disconnected"
    }

    /// Sent before the state that follows.
    private func paused(_ message: String) {
        emit("Paused", [.string(message)])
        onPaused?(message)
    }

    // MARK: Events of the engine

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
