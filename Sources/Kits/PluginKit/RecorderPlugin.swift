public import DBus
import EventLoop
public import PluginAPI
import SessionBus
public import SessionKit

/// A recorder for the session service: an engine, a session that decides when it may record, and both on the
/// bus as `org.sessiond1.Recorder`.
///
/// An interruption pauses the recording; the file can be played as it is. Recording resumes (appends) only with the
/// should-resume hint, if it was recording and was not used since. A pause by the user and the end of a recording
/// deactivate the session at once with notify-others.
public final class RecorderPlugin: Plugin {
    public typealias Reply = GrantDriver.Reply

    /// The plugin owns its callbacks from the initializer on.
    public let engine: any RecorderEngine
    /// The plugin owns its ``AudioSessionClient/onEvent`` from the initializer on.
    public let session: AudioSessionClient
    /// The file is complete and closed (false: its end is missing); called after the signal was sent.
    public var onFinished: ((Bool) -> Void)?
    /// Recording ended early; the message gives the reason.
    public var onFailed: ((String) -> Void)?
    /// The recording paused without a request and will not resume automatically; the message gives the reason.
    public var onPaused: ((String) -> Void)?

    let connection: Connection
    private let input: String
    /// Decides when it may record, and starts the engine.
    private let driver: GrantDriver
    private var grant: Grant { driver.grant }
    /// The session that interrupted it last; empty if none did.
    private var interrupter = ""
    /// A file is prepared for recording.
    private var isPrepared = false
    /// The daemon was asked for the device of the chosen input.
    private var isPreparing = false
    /// The end of a recording with a given length, in seconds of the recording.
    private var limit: Double?
    /// How many seconds to record; nil: no limit.
    private var seconds: Double?
    private let freeCallers: FreeCallers
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
        freeCallers = FreeCallers(on: connection)
        session = AudioSessionClient(description, on: connection) { _ in }
        driver = GrantDriver(session, on: connection.loop)
        driver.changing = { [unowned self] body in changing(body) }
        driver.onStart = { [unowned self] () throws(Failure) in try begin() }
        driver.onSilence = { [engine] in engine.pause() }
        driver.soundsAnyway = { [engine] in engine.state == .recording }
        driver.onLateFailure = { [unowned self] in failed($0.message) }
        session.onEvent = { [unowned self] event in changing { heard(event) } }
        engine.onStateChanged = { [unowned self] _ in changing {} }
        engine.onFinished = { [unowned self] whole in finished(whole) }
        engine.onFailed = { [unowned self] message in failed(message) }
        announcements = export()
    }

    /// The state, with the name on the bus.
    public var state: RecorderState {
        engine.state != .failed && grant.isInterrupted ? .interrupted : engine.state
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

    /// The recorder writes with its own rights.
    func requireFree(_ caller: String) throws(Failure) {
        try freeCallers.require(caller, to: "name a file to record to")
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
    ///   - start: when to begin, in `MonotonicClock` time; nil or past: at once. The session is activated at once anyway.
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
        self.seconds = seconds
        if engine.state == .recording { return reply(Result { () throws(Failure) in try begin() }) }
        driver.ask(at: start, reply)
    }

    /// Pauses and deactivates the session; the file can be played. If it is interrupted at that time, it will not
    /// resume automatically.
    public func pause() {
        changing { _ = driver.take(.paused) }
    }

    /// Ends the recording; `Finished` is sent when the file is complete.
    public func stop() {
        changing {
            engine.stop()
            // The source is in use until the file is complete.
            driver.take(isBusy ? .ending : .stopped)
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

    /// The session is active.
    private func begin() throws(Failure) {
        do throws(SessionError) {
            if let seconds { try engine.record(for: seconds) } else { try engine.record() }
            limit = seconds.map { engine.position + $0 }
            seconds = nil
        } catch {
            throw Failure(error)
        }
    }

    // MARK: Events of the session

    private func heard(_ event: AudioSessionClient.Event) {
        switch event {
        case .session(let event): heard(event)
        // Without a daemon, the interruption would not end.
        case .daemonLost:
            if grant.isInterrupted { paused("sessiond stopped while it was interrupted") }
            driver.take(.daemonLost)
        case .registered: driver.registered()
        // A new daemon does not know this interruption and would never end it: the recorder waits for the user.
        case .refused(let failure):
            guard session.path != nil else { break }
            if engine.state == .recording { paused(failure.message) }
            driver.take(.expelled)
        // The engine reports the result of the recording.
        case .servicesLost, .servicesReset: break
        }
    }

    private func heard(_ event: SessionEvent) {
        switch event {
        case .interruptionBegan(let reason, _, let name, _):
            var wasRecording = engine.state == .recording
            if case .due = grant.state { wasRecording = true }
            interrupter = name
            driver.take(.began(reason))
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
            paused(who + ", and the interruption ended without the should-resume hint")
        }
        if let limit { seconds = max(limit - engine.position, 1e-6) }
        driver.take(.ended(shouldResume: shouldResume, canResume: canResume))
    }

    /// The server would continue with another microphone, which the user did not choose.
    private func inputsChanged(_ previous: Route, _ current: Route) {
        let left = previous.inputs.filter { port in !current.inputs.contains { $0.uid == port.uid } }
        guard !left.isEmpty else { return }
        // A recording that has not begun uses the inputs that are there when it begins.
        if case .due = grant.state { return }
        // An interrupted recording will not resume either, and the end of the interruption reports nothing more.
        if engine.state == .recording || grant.isInterrupted { paused(gone(left.map(\.name))) }
        driver.take(.deviceGone)
    }

    private func gone(_ names: [String]) -> String {
        let names = names.filter { !$0.isEmpty }.map(quoted)
        return (names.isEmpty ? "the input of the recording" : names.joined(separator: " and ")) + " was disconnected"
    }

    /// Sends the message before the new state.
    private func paused(_ message: String) {
        emit("Paused", [.string(message)])
        onPaused?(message)
    }

    // MARK: Events of the engine

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

    /// Sends the signal before it carries out the effects.
    private func over(_ tell: () -> Void) {
        let effects = changing { () -> [Grant.Effect] in
            (limit, seconds, isPrepared) = (nil, nil, false)
            return driver.decide(.finished)
        }
        tell()
        driver.carry(out: effects)
    }
}
