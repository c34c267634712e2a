import CameraBackend
import Capturing
import DBus
import EventLoop
import GStreamerBackend
import Glibc
import LiveBackend
import PluginAPI
import PluginKit
import SessionBus
import VideoBackend

/// One capture session of a client: its configuration, its camera and microphone, its films, and its audio session while it has
/// sound.
final class CaptureSession {
    typealias Reply = (Result<Void, Failure>) -> Void

    struct Options {
        var category = Category.record
        var mode = Mode.videoRecording
        var desktopEntry = ""
        /// Nil: the usual one of its outputs.
        var onInterruption: CaptureInterruption?
    }

    /// What the caller may set for a film.
    struct FilmOptions {
        /// Seconds; nil: any length.
        var duration: Double?
        /// Bytes; nil: any size.
        var size: UInt64?
        /// Nil: medium, or that of the live stream whose encoder it has.
        var quality: FilmRecipe.Quality?
        /// Nil: the usual one of the format.
        var codec: FilmRecipe.Codec?
        /// Nil: that of the session.
        var orientation: CaptureOrientation?
        var replaces = false
    }

    /// What the caller may set for a photo.
    struct PhotoOptions {
        /// Nil: by the ending of the name.
        var format: PhotoFormat?
        var orientation: CaptureOrientation?
        /// How many, one directly after the other.
        var count = 1
        /// Whether the light of the camera is on meanwhile; nil: as the session was told.
        var hasFlash: Bool?
        var replaces = true
    }

    enum Running: Equatable {
        case no
        /// The first picture is awaited.
        case starting
        case yes(since: UInt64)
        /// A film is completed first.
        case stopping
    }

    /// The id of the input that the route of the session chooses.
    static let routeInput = "default"
    /// Seconds in which a camera that is gone may come back.
    private static let absence = 5.0

    let number: UInt64
    let name: String
    let owner: String
    let path: String
    let plugin: CapturePlugin
    private let options: Options
    var configuration = CaptureConfiguration()
    private(set) var running = Running.no
    private(set) var engine: CaptureEngine?
    private(set) var take = FilmTake()
    private(set) var interruption = ""
    /// Of the last film, when there is none any more.
    private var lastFilm = (length: 0.0, size: UInt64(0), dropped: UInt64(0))
    private var sizeLimit: UInt64?
    private var reason = CaptureEndReason.stopped
    private var lastPhoto: UInt32 = 0
    /// How the camera is held, for films and photos that begin from now on.
    var orientation = CaptureOrientation.upright
    private(set) var controls = CaptureControls()
    private lazy var light = SessionLight(of: plugin.hardware, on: plugin.host.loop) { [unowned self] camera in
        changing { takeControls(of: camera) }
    }
    private var isClosing = false
    private var startReply: Reply?
    /// While the portal is asked, and the user by the portal.
    private var permission: CameraPortal.Wait?
    /// The portal has answered just now.
    private var isPermitted = false
    private var stopReplies: [Reply] = []
    private var endReplies: [Reply] = []
    private var lostCamera: String?
    /// How often it was opened again since it is lost.
    private var tries = 0
    private var audio: AudioSessionClient?
    private var driver: GrantDriver?
    var announcement: Announcement<CaptureSession>?

    private lazy var absent = Timer(on: plugin.host.loop) { [unowned self] in changing { cameraStaysAway() } }
    private lazy var later = Timer(on: plugin.host.loop) { [unowned self] in changing { startAgain() } }
    private lazy var retry = Timer(on: plugin.host.loop) { [unowned self] in tryCameraAgain() }
    /// The outputs that the engine has, of those that may change while it runs.
    private var shown: CaptureConfiguration.Output?
    private var given: CaptureConfiguration.Output?
    /// Of the last output `frames`, when there is none any more.
    private var lastFrames = (written: UInt64(0), lost: UInt64(0))
    /// The output `live`, its object on the bus, and its engine while it runs.
    private var sent: CaptureConfiguration.Output?
    private(set) var live: LiveStreamObject?
    private weak var stream: CaptureLive?
    /// Streams that are being ended.
    private var leavingStreams: [LiveStreamObject] = []
    private lazy var previewWords = Timer(on: plugin.host.loop) { [unowned self] in writeWords() }

    private lazy var limits = Timer(on: plugin.host.loop) { [unowned self] in changing { checkLimits() } }

    init(_ number: UInt64, name: String, owner: String, _ options: Options, in plugin: CapturePlugin) {
        (self.number, self.name, self.owner, self.options, self.plugin) = (number, name, owner, options, plugin)
        path = "\(PluginKind.capture.objectPath)/session/\(number)"
    }

    var isRunning: Bool { if case .yes = running { true } else { false } }
    var isBusy: Bool { running != .no }
    /// A film grows, or its end is being written.
    var isWriting: Bool { take.isGrowing || (take.state != .idle && !take.isRecording) }
    var isPaused: Bool { take.isRecording && !take.isGrowing }
    var length: Double { engine?.film?.length ?? lastFilm.length }
    var size: UInt64 { engine?.film?.size ?? lastFilm.size }
    var dropped: UInt64 { engine?.film?.droppedInAll ?? lastFilm.dropped }

    func uses(_ device: String) -> Bool { configuration.current.inputs.contains { $0.device.id == device } }

    /// Runs a change and then sends, once, the properties that it changed.
    func changing<Answer, Problem: Error>(_ body: () throws(Problem) -> Answer) throws(Problem) -> Answer {
        defer {
            configuration.isRecording = take.state != .idle
            plugin.settleBusy()
            announcement?.update(self)
            live?.sessionChanged()
        }
        return try body()
    }

    // MARK: Running

    func start(_ reply: @escaping Reply) {
        guard running == .no else {
            return reply(.failure(Failure(SessionError(.isBusy, "the session runs already"))))
        }
        guard !configuration.isConfiguring else {
            return reply(.failure(Failure(.badParameter("commit the configuration first"))))
        }
        guard let device = configuration.current.camera else {
            return reply(.failure(Failure(.badParameter("the session has no camera: add an input first"))))
        }
        plugin.monitor.refresh()
        let found =
            device.isHidden ? plugin.monitor.camera(called: nil) : plugin.monitor.camera(device.id)
        if found == nil, plugin.monitor.isChanging(device.id) {
            // With PipeWire 1.4 it has left with its last reader, and is there again at once.
            (running, startReply) = (.starting, reply)
            return later.arm(after: CameraMonitor.changeTime + 0.05)
        }
        if let portal = plugin.portal, !isPermitted {
            (running, startReply) = (.starting, reply)
            // Permissions may have changed since the connection was made.
            let isAnew = found == nil && !plugin.hasBusySession(besides: self)
            permission = portal.want(isAnew: isAnew) { [weak self] problem in self?.permitted(problem) }
            return
        }
        guard let camera = found else { return reply(.failure(Failure(Self.gone(device)))) }
        do throws(SessionError) { try configuration.reveal(camera.device) } catch {
            return reply(.failure(Failure(error)))
        }
        let arrangement = configuration.current
        guard let choice = arrangement.choice else { return reply(.failure(Failure(Self.gone(device)))) }
        let engine: CaptureEngine
        do throws(SessionError) {
            engine = try CaptureEngine(
                choice, hasSound: arrangement.usesSound, StreamIdentity(clientName: name), on: plugin.host.loop)
        } catch {
            return reply(.failure(Failure(error)))
        }
        self.engine = engine
        if arrangement.output(.photo)?.options.hasShutterSound == true { plugin.shutter.prepare() }
        takeControls(of: camera.device)
        engine.controls = controls
        running = .starting
        startReply = reply
        listen(to: engine)
        guard arrangement.usesSound else { return open(camera) }
        prepareAudio { [weak self] result in
            guard let self, case .starting = running else { return }
            switch result {
            case .success: changing { open(camera) }
            case .failure(let failure): changing { failStart(failure) }
            }
        }
    }

    /// The user has allowed the camera, or not.
    private func permitted(_ problem: SessionError?) {
        permission = nil
        guard case .starting = running, engine == nil else { return }
        changing {
            if let problem { return failStart(Failure(problem)) }
            isPermitted = true
            startAgain()
            isPermitted = false
        }
    }

    private func startAgain() {
        guard case .starting = running, engine == nil, let reply = startReply else { return }
        (running, startReply) = (.no, nil)
        start(reply)
    }

    /// Whether the camera has failed once since StartRunning was called.
    private var isSecondStart = false

    private static func gone(_ device: CaptureSource) -> SessionError {
        SessionError(
            .resourceNotAvailable,
            device.isHidden ? "no camera is connected" : "the camera '\(device.name)' is not connected")
    }

    private func open(_ camera: CameraMonitor.Camera) {
        do throws(SessionError) {
            let arrangement = configuration.current
            try engine?.start(camera, records: arrangement.has(.movieFile) || arrangement.has(.live))
            try settleOutputs(configuration.current)
        } catch {
            failStart(Failure(error))
        }
    }

    private func failStart(_ failure: Failure) {
        stopNow()
        let reply = startReply
        startReply = nil
        reply?(.failure(failure))
    }

    private func listen(to engine: CaptureEngine) {
        engine.onPictures = { [unowned self] in changing { picturesCame() } }
        engine.onReopen = { [unowned self] id in plugin.monitor.camera(id) }
        engine.onCameraLost = { [unowned self] message in changing { cameraLost(message) } }
        engine.onPreviewLost = { [unowned self] message in changing { previewGone("screen-lost", message) } }
        engine.onSoundLost = { [unowned self] message in
            changing {
                // What records next asks for the microphone again.
                driver?.take(.engineLost)
                // Not the one of the caller, which would hold itself.
                let hasFilm = self.engine?.film != nil
                runtimeError(.mediaServicesFailed, hasFilm ? "\(message); the film is paused" : message)
                if hasFilm { perform(take.handle(.paused)) }
            }
        }
        engine.onFailed = { [unowned self] message in
            changing {
                runtimeError(.resourceNotAvailable, message)
                if case .starting = running {
                    return failStart(Failure(SessionError(.resourceNotAvailable, message)))
                }
                stream?.fail(SessionError(.resourceNotAvailable, message))
                endFilm(.error)
            }
        }
    }

    private func picturesCame() {
        if case .starting = running {
            running = .yes(since: MonotonicClock.now())
            isSecondStart = false
            // The microphone was granted before the camera was opened.
            if driver?.grant.sounds == true { openMicrophone {} }
            let reply = startReply
            startReply = nil
            reply?(.success(()))
        }
        guard lostCamera != nil else { return }
        lostCamera = nil
        absent.disarm()
        retry.disarm()
        perform(take.handle(.cameraBack))
        let isInCall = configuration.current.usesSound && driver?.grant.isInterrupted == true
        setInterruption(isInCall ? "audio-device-in-use" : "")
        if !isInCall { emit("InterruptionEnded", []) }
    }

    func stop(_ reply: @escaping Reply) {
        if case .starting = running {
            failStart(Failure(SessionError(.cancelled, "the session was stopped")))
        }
        guard running != .no else { return reply(.success(())) }
        stopReplies.append(reply)
        running = .stopping
        if take.state != .idle { endFilm(.stopped) }
        live?.stop()
        stopIfDone()
    }

    /// It stops when the film is complete and the server has all of the stream.
    private func stopIfDone() {
        guard running == .stopping, take.state == .idle, live?.isRunning != true,
            !leavingStreams.contains(where: \.isRunning)
        else { return }
        stopNow()
    }

    private func stopNow() {
        permission = nil
        later.disarm()
        absent.disarm()
        retry.disarm()
        limits.disarm()
        lostCamera = nil
        previewWords.disarm()
        lastFrames = frameFacts
        (shown, given) = (nil, nil)
        stream?.fail(SessionError(.cancelled, "the capture session has stopped"))
        engine?.close()
        engine = nil
        light.goOut()
        running = .no
        isSecondStart = false
        _ = driver?.take(.stopped)
        setInterruption("")
        let replies = stopReplies
        stopReplies = []
        for reply in replies { reply(.success(())) }
        if isClosing { closeNow() }
    }

    /// The owner has left, or the plugin ends: a film is completed first.
    func close() {
        guard !isClosing else { return }
        isClosing = true
        changing { stop { _ in } }
        if running == .no { closeNow() }
    }

    private func closeNow() {
        for stream in leavingStreams + [live].compactMap(\.self) { stream.close() }
        live = nil
        light.goOut()
        audio?.close { _ in }
        audio = nil
        driver = nil
        plugin.closed(self)
    }

    // MARK: The audio session

    private func prepareAudio(_ reply: @escaping Reply) {
        if audio == nil {
            let session = AudioSessionClient(
                .init(
                    name: name, category: options.category, mode: options.mode, desktopEntry: options.desktopEntry),
                on: plugin.host.connection
            ) { _ in }
            let driver = GrantDriver(session, on: plugin.host.loop)
            driver.changing = { [unowned self] body in
                changing {
                    body()
                    settleInterruption()
                }
            }
            driver.onStart = { [unowned self] in granted() }
            driver.onSilence = { [unowned self] in engine?.closeMicrophone() }
            session.onEvent = { [unowned self] event in
                changing {
                    heard(event)
                    settleInterruption()
                }
            }
            (audio, self.driver) = (session, driver)
        }
        driver?.ask(reply)
    }

    /// The session may record, at the start or again.
    private func granted() {
        guard isRunning else { return }
        openMicrophone { [unowned self] in
            changing {
                perform(take.handle(.granted))
                if !interruption.isEmpty, lostCamera == nil {
                    setInterruption("")
                    emit("InterruptionEnded", [])
                }
            }
        }
    }

    private func openMicrophone(_ ready: @escaping () -> Void) {
        guard let engine, let device = configuration.current.microphone else { return ready() }
        guard device.id != Self.routeInput else { return engine.openMicrophone(nil, ready: ready) }
        audio?.setPreferredInput(uid: device.id) { [weak self, weak engine] _ in
            self?.audio?.properties { [weak self, weak engine] result in
                // A call may have begun meanwhile.
                guard self?.driver?.grant.sounds == true else { return }
                let route = (try? result.get())?["CurrentRoute"]?.route
                // The uid is the server's name of the source, or that name with `/` and the name of a port.
                let source = route?.inputs.first.map { String($0.uid.prefix { $0 != "/" }) }
                engine?.openMicrophone(source, ready: ready)
            }
        }
    }

    private func heard(_ event: AudioSessionClient.Event) {
        switch event {
        case .session(.interruptionBegan(let reason, _, _, _)):
            driver?.take(.began(reason))
            guard isRunning, configuration.current.usesSound else { return }
            setInterruption("audio-device-in-use")
            emit("WasInterrupted", [.string(interruption)])
            let policy = options.onInterruption ?? configuration.current.usualInterruption
            perform(take.handle(.interrupted(policy)))
            if policy == .stop { live?.stop() }
            // A microphone that was unplugged does not come back by itself.
            if reason == .routeDisconnected { perform(take.handle(.notResumed)) }
        case .session(.interruptionEnded(let shouldResume, _, _)):
            driver?.take(.ended(shouldResume: shouldResume, canResume: isRunning))
            guard driver?.grant.isInterrupted != true, !isAsking else { return }
            perform(take.handle(.notResumed))
            if !interruption.isEmpty, lostCamera == nil {
                setInterruption("")
                emit("InterruptionEnded", [])
            }
        case .session(.routeChanged(.oldDeviceUnavailable, let previous, let current)):
            let left = previous.inputs.filter { port in !current.inputs.contains { $0.uid == port.uid } }
            guard !left.isEmpty, driver?.grant.sounds == true else { return }
            // The server would go on with another microphone, which the user did not choose.
            driver?.take(.deviceGone)
            perform(take.handle(.paused))
            runtimeError(.resourceNotAvailable, "\(left.map(\.name).joined(separator: " and ")) was disconnected")
        case .session(.routeChanged), .session(.duckingChanged), .session(.mutedChanged),
            .session(.silenceSecondaryAudioHint), .servicesLost, .servicesReset:
            break
        case .daemonLost: driver?.take(.daemonLost)
        case .registered: driver?.registered()
        case .refused: if audio?.path != nil { driver?.take(.expelled) }
        }
    }

    /// An interruption that nothing ends by itself any more, for example because a second call came: the film waits for the
    /// user.
    private func settleInterruption() {
        guard interruption == "audio-device-in-use", lostCamera == nil, let grant = driver?.grant, !grant.isInterrupted,
            !grant.sounds, !isAsking
        else { return }
        perform(take.handle(.notResumed))
        setInterruption("")
        emit("InterruptionEnded", [])
    }

    private var isAsking: Bool { if case .asking = driver?.grant.state { true } else { false } }

    /// Asks for the microphone, if the film has sound and the session does not record.
    private func withMicrophone(_ reply: @escaping Reply) {
        guard configuration.current.usesSound, driver?.grant.sounds != true else { return reply(.success(())) }
        prepareAudio(reply)
    }

    // MARK: Films

    /// - Parameter path: absolute; empty: in the folder of the user for videos.
    func startRecording(_ path: String, _ wish: FilmOptions, _ reply: @escaping (Result<Void, Failure>) -> Void) {
        do throws(SessionError) {
            guard isRunning, let engine else {
                throw SessionError(.cannotStartRecording, "the session does not run: call StartRunning first")
            }
            guard configuration.current.has(.movieFile) else {
                throw SessionError(.cannotStartRecording, "the session has no output 'movie-file': add it first")
            }
            guard take.state == .idle else { throw SessionError(.isBusy, "a film is being recorded: stop it first") }
            guard lostCamera == nil else { throw SessionError(.resourceNotAvailable, "the camera sends no pictures") }
            guard let file = path.isEmpty ? Album.film.path(ending: "mp4") : path, file.hasPrefix("/"),
                !file.utf8.contains(0)
            else { throw .badParameter("'path' must be absolute, or empty for the folder of the user for videos") }
            if let duration = wish.duration, !(duration > 0 && duration < 1e9) {
                throw .badParameter("'maximum-duration' must be above 0 s, not \(duration)")
            }
            let choice = engine.choice
            let recipe = try FilmRecipe(
                path: file, choice, hasSound: engine.hasSound, quality: wish.quality ?? .medium, codec: wish.codec,
                orientation: wish.orientation ?? orientation,
                limit: wish.duration.map { choice.rate.pictures(in: $0) } ?? 0, replaces: wish.replaces)
            withMicrophone { [weak self] result in
                guard let self else { return }
                guard case .success = result else { return reply(result) }
                changing { begin(recipe, wish, reply) }
            }
        } catch {
            reply(.failure(Failure(error)))
        }
    }

    private func begin(_ recipe: FilmRecipe, _ wish: FilmOptions, _ reply: (Result<Void, Failure>) -> Void) {
        guard isRunning, take.state == .idle, let engine else {
            return reply(.failure(Failure(SessionError(.cannotStartRecording, "the session was stopped"))))
        }
        do throws(SessionError) {
            try engine.begin(recipe, by: sharedEncoder(recipe, wish))
        } catch {
            return reply(.failure(Failure(error)))
        }
        plugin.journal.add(recipe.path, soundDelay: recipe.soundDelay)
        sizeLimit = wish.size
        perform(take.handle(.started))
        engine.film?.onFull = { [unowned self] in changing { endFilm(.maximumDuration) } }
        engine.film?.onFailed = { [unowned self] message, isDiskFull in
            changing {
                runtimeError(isDiskFull ? .diskFull : .cannotStartRecording, message)
                endFilm(isDiskFull ? .diskFull : .error)
            }
        }
        let path = recipe.path
        engine.film?.onFinished = { [unowned self] outcome in changing { finished(path, outcome) } }
        limits.arm(after: 0.25)
        emit("DidStartRecording", [.string(path)])
        reply(.success(()))
    }

    /// The encoder of the live stream, also if that does not run now: it may run before the film ends.
    /// - Returns: nil if the film needs another one.
    private func sharedEncoder(_ recipe: FilmRecipe, _ wish: FilmOptions) throws(SessionError) -> StreamEncoder? {
        guard let engine, let stream = sent?.options.stream, configuration.current.canShareEncoder,
            recipe.isPlainH264, wish.quality == nil, wish.codec == nil || wish.codec == .h264
        else { return nil }
        return try CaptureLive.encoder(stream.settings, for: stream.target, of: engine)
    }

    func pauseRecording(_ reply: Reply) {
        guard take.isRecording else {
            return reply(.failure(Failure(SessionError(.notReady, "no film is being recorded"))))
        }
        perform(take.handle(.paused))
        reply(.success(()))
    }

    func resumeRecording(_ reply: @escaping Reply) {
        guard take.isRecording else {
            return reply(.failure(Failure(SessionError(.notReady, "no film is being recorded"))))
        }
        withMicrophone { [weak self] result in
            guard let self else { return }
            guard case .success = result else { return reply(result) }
            changing { perform(take.handle(.resumed)) }
            reply(.success(()))
        }
    }

    func stopRecording(_ reply: @escaping Reply) {
        guard take.state != .idle else {
            return reply(.failure(Failure(SessionError(.notReady, "no film is being recorded"))))
        }
        endReplies.append(reply)
        endFilm(.stopped)
    }

    private func endFilm(_ reason: CaptureEndReason) {
        perform(take.handle(.stopped(reason)))
    }

    private func perform(_ acts: [FilmTake.Act]) {
        for act in acts {
            switch act {
            case .hold: engine?.film?.pause()
            case .proceed: engine?.film?.resume()
            case .end(let reason):
                self.reason = reason
                engine?.film?.end()
            }
        }
    }

    private func finished(_ path: String, _ outcome: FilmBranch.Outcome) {
        limits.disarm()
        if let film = engine?.film { lastFilm = (film.length, film.size, film.droppedInAll) }
        _ = take.handle(.closed)
        plugin.journal.remove(path)
        switch outcome {
        case .complete: emit("DidFinishRecording", [.string(path), .bool(true), .string(reason.rawValue)])
        case .cut(let message):
            runtimeError(.exportFailed, "'\(path)': \(message)")
            emit("DidFinishRecording", [.string(path), .bool(false), .string(reason.rawValue)])
        case .empty:
            runtimeError(.cannotStartRecording, "'\(path)': no picture was recorded, so there is no film")
            emit("DidFinishRecording", [.string(path), .bool(false), .string(reason.rawValue)])
        }
        let replies = endReplies
        endReplies = []
        for reply in replies { reply(.success(())) }
        stopIfDone()
    }

    private func checkLimits() {
        guard take.isRecording, let film = engine?.film else { return }
        limits.arm(after: 0.25)
        if let sizeLimit {
            // What is on its way, and the index.
            let perSecond = film.length > 0.5 ? Double(film.size) / film.length : 0
            let index = film.length * 2_000
            if Double(film.size) + perSecond + index >= Double(sizeLimit) { return endFilm(.maximumSize) }
        }
        if film.isDiskAlmostFull { endFilm(.diskFull) }
    }

    // MARK: Photos

    /// - Returns: the number of the first photo; `DidCapturePhoto` follows for each.
    func photo(_ path: String, _ options: PhotoOptions) throws(SessionError) -> UInt32 {
        guard isRunning, let engine else {
            throw SessionError(.notReady, "the session does not run: call StartRunning first")
        }
        guard configuration.current.has(.photo) else {
            throw SessionError(.notReady, "the session has no output 'photo': add it first")
        }
        guard let format = options.format ?? (path.isEmpty ? .jpeg : PhotoFormat(path: path)) else {
            throw .badParameter("'\(path)': the name of a photo must end in .jpg or .png, or 'format' must be given")
        }
        guard let file = path.isEmpty ? Album.photo.path(ending: format == .jpeg ? "jpg" : "png") : path,
            file.hasPrefix("/"), !file.utf8.contains(0)
        else { throw .badParameter("'path' must be absolute, or empty for the folder of the user for pictures") }
        let replaces = options.replaces && !path.isEmpty
        if !replaces {
            for place in 1...options.count {
                let name = BurstNames.path(file, number: place, of: options.count)
                if access(name, F_OK) == 0 { throw SessionError(.fileAlreadyExists, "'\(name)' exists already") }
            }
        }
        let orientation = options.orientation ?? orientation
        guard format == .jpeg || orientation == .upright else {
            throw SessionError(
                .notSupported, "a photo in PNG has no orientation: use jpeg, or the orientation 0")
        }
        let hasFlash = options.hasFlash ?? controls.hasFlash
        guard let camera = configuration.current.camera, !hasFlash || controls.abilities[.flash] != nil else {
            let name = configuration.current.camera?.name ?? ""
            throw SessionError(.notSupported, "'\(name)' has no light: take the photo without flash")
        }
        let first = lastPhoto &+ 1
        lastPhoto &+= UInt32(options.count)
        let count = options.count
        func save(_ place: Int, _ result: Result<[UInt8], SessionError>) {
            let name = BurstNames.path(file, number: place, of: count)
            var message = ""
            do throws(SessionError) {
                let whole = try WholeFile(name, replaces: replaces)
                try whole.write(try result.get())
                try whole.keep(replaces: replaces)
            } catch {
                message = error.reason
            }
            emit("DidCapturePhoto", [.uint32(first &+ UInt32(place - 1)), .string(name), .string(message)])
        }
        func take(_ done: @escaping () -> Void) {
            if configuration.current.output(.photo)?.options.hasShutterSound == true { plugin.shutter.play() }
            guard count > 1 else {
                return engine.photo(format, orientation) { [weak self] result in
                    done()
                    if self != nil { save(1, result) }
                }
            }
            engine.photos(count, format, orientation) { [weak self] place, result in
                if place == count { done() }
                if self != nil { save(place, result) }
            }
        }
        guard hasFlash else {
            take {}
            return first
        }
        let light = light
        light.photograph(with: camera) { problem in
            guard let problem else { return take { light.endPhoto() } }
            for place in 1...count { save(place, .failure(problem)) }
            light.endPhoto()
        }
        return first
    }

    // MARK: Controls

    /// Locks a device that is an input, and reads what can be set of it.
    func lock(_ id: String, _ done: @escaping () -> Void) throws(Failure) {
        // Also one that is added by the configuration that has begun.
        let inputs = configuration.current.inputs + configuration.next.inputs
        guard let device = inputs.first(where: { $0.device.id == id })?.device else {
            throw Failure(.badParameter("\(quoted(id)) is no input of this session"))
        }
        if let holder = plugin.locks[id], holder != number {
            let name = plugin.sessions[holder]?.name ?? "another session"
            throw Failure(SessionError(.isBusy, "'\(name)' has locked the device"))
        }
        plugin.locks[id] = number
        readControls(of: device, done)
    }

    /// Asks the driver of a camera what can be set of it.
    func readControls(of device: CaptureSource, _ done: @escaping () -> Void) {
        guard device.media == .video else { return done() }
        plugin.readControls(of: [device]) { [weak self] in
            self?.changing { self?.takeControls(of: device) }
            done()
        }
    }

    /// What the driver of a camera has said last.
    private func takeControls(of device: CaptureSource) {
        guard configuration.next.camera?.id == device.id else { return }
        let found = plugin.hardware.controls(of: device.id)
        (controls.video, controls.light) = (found.video, found.light)
    }

    /// Sets a control of the camera, which the session has locked.
    func set(
        _ control: String, _ setting: CameraSetting, of id: String, _ reply: @escaping Reply
    ) throws(SessionError) {
        guard plugin.locks[id] == number else {
            throw SessionError(.notReady, "lock the device first: call LockForConfiguration")
        }
        guard let device = configuration.next.inputs.first(where: { $0.device.id == id })?.device,
            device.media == .video
        else { throw SessionError(.notSupported, "a microphone has no controls") }
        let deed = try changing { () throws(SessionError) in try controls.set(control, setting, of: device.name) }
        engine?.controls = controls
        if control == CaptureControl.torch.rawValue { light.note(setting, of: device) }
        plugin.hardware.perform(deed, of: device, control) { [weak self] result in
            self?.changing { self?.takeControls(of: device) }
            reply(result.mapError { Failure($0) })
        }
    }

    // MARK: Cameras that come and go

    func cameraConnected(_ id: String) {
        guard lostCamera == id else { return }
        retry.disarm()
        openLostCamera()
    }

    func cameraDisconnected(_ id: String) {
        guard isRunning, lostCamera == nil, configuration.current.camera?.id == id else { return }
        engine?.closeCamera()
        changing { cameraLost("it was disconnected") }
    }

    private func cameraLost(_ message: String) {
        guard let device = configuration.current.camera else { return }
        let text = "the camera '\(device.name)': \(message)"
        if case .starting = running {
            let failure = Failure(SessionError(.resourceNotAvailable, text))
            guard !isSecondStart else { return failStart(failure) }
            // With PipeWire 1.4, a camera without hardware leaves with its last reader, and is there again at once.
            isSecondStart = true
            engine?.close()
            engine = nil
            _ = driver?.take(.stopped)
            return later.arm(after: CameraMonitor.changeTime)
        }
        guard isRunning else { return }
        if lostCamera == nil {
            plugin.host.complain(text)
            lostCamera = device.id
            perform(take.handle(.cameraGone))
            setInterruption("video-device-not-available")
            emit("WasInterrupted", [.string(interruption)])
            absent.arm(after: Self.absence)
            tries = 0
        }
        retry.arm(after: 1)
    }

    private func tryCameraAgain() {
        guard let id = lostCamera, isRunning else { return }
        // A camera that was silent may be the same one. A server of PipeWire that was restarted is found only by another
        // connection.
        let isFirst = tries == 0 && plugin.monitor.camera(id) != nil
        tries += 1
        if !isFirst, plugin.lookAgain(for: id, besides: self) {
            // If it is there, it is reported as connected.
            retry.arm(after: 1)
        } else {
            openLostCamera()
        }
    }

    private func openLostCamera() {
        guard let id = lostCamera, isRunning else { return }
        guard let camera = plugin.monitor.camera(id) else { return retry.arm(after: 1) }
        do throws(SessionError) {
            try engine?.show(camera)
        } catch {
            retry.arm(after: 1)
        }
    }

    private func cameraStaysAway() {
        guard lostCamera != nil, let device = configuration.current.camera else { return }
        let message = "the camera '\(device.name)' did not come back"
        runtimeError(.resourceNotAvailable, message)
        stream?.fail(SessionError(.resourceNotAvailable, message))
        _ = plugin.lookAgain(for: device.id, besides: self)
        if take.state == .idle { return stopNow() }
        running = .stopping
        endFilm(.deviceDisconnected)
    }

    /// Applies a configuration that has changed while the session runs.
    func apply(_ before: CaptureConfiguration.Arrangement) throws(SessionError) {
        let now = configuration.current
        guard isRunning, let engine, now != before else { return }
        if let device = now.camera, device.id != before.camera?.id {
            guard let camera = plugin.monitor.camera(device.id) else { throw Self.gone(device) }
            try engine.show(camera)
            light.goOut()
            readControls(of: device) {}
        }
        if now.microphone?.id != before.microphone?.id, driver?.grant.sounds == true { openMicrophone {} }
        do throws(SessionError) {
            try settleOutputs(now)
        } catch {
            try? settleOutputs(before)
            throw error
        }
    }

    // MARK: The preview, and pictures for other programs

    /// Gives the engine the outputs that it may get and lose while it runs.
    private func settleOutputs(_ arrangement: CaptureConfiguration.Arrangement) throws(SessionError) {
        guard let engine else { return }
        let (preview, frames) = (arrangement.output(.preview), arrangement.output(.frames))
        if shown != preview {
            engine.hidePreview()
            shown = nil
            if let preview {
                let camera = arrangement.camera?.name ?? ""
                try engine.showPreview(
                    display: preview.options.display, in: preview.options.window, title: "\(camera) – \(name)")
                shown = preview
                engine.preview?.onCommand = { [unowned self] command in changing { obey(command) } }
                writeWords()
            }
        }
        if given != frames {
            lastFrames = frameFacts
            engine.stopFrames()
            given = nil
            if let frames {
                let options = frames.options
                try engine.startFrames(to: options.path, options.pixels, hasHeader: options.hasHeader)
                given = frames
            }
        }
        if let camera = arrangement.camera, let preview = engine.preview { preview.title = "\(camera.name) – \(name)" }
    }

    /// Gives the session the object of its live stream, or takes it away.
    func settleLive() {
        let wanted = configuration.current.output(.live)
        guard sent != wanted else { return }
        sent = wanted
        if let live {
            self.live = nil
            leavingStreams.append(live)
            live.close()
        }
        guard let wanted, let stream = wanted.options.stream else { return }
        let outer = LiveStreamObject.OuterSession(
            path: { [unowned self] in engine?.hasSound == true ? audio?.path ?? "/" : "/" },
            isInterrupted: { [unowned self] in
                configuration.current.usesSound && driver?.grant.isInterrupted == true
            })
        let made = LiveStreamObject(
            UInt64(wanted.id), at: "\(path)/live/\(wanted.id)", stream.target, LiveOptions(stream.settings),
            owner: owner,
            in: outer, on: plugin.host
        ) { [unowned self] () throws(SessionError) in try makeStream(stream) }
        made.onChanged = { [unowned self] in changing { stopIfDone() } }
        made.onClosed = { [unowned self] closed in
            leavingStreams.removeAll { $0 === closed }
            changing { stopIfDone() }
        }
        live = made
    }

    private func makeStream(_ wish: CaptureConfiguration.Stream) throws(SessionError) -> CaptureLive {
        guard isRunning, let engine else {
            throw SessionError(.notReady, "the capture session does not run: call StartRunning first")
        }
        guard lostCamera == nil else { throw SessionError(.resourceNotAvailable, "the camera sends no pictures") }
        let made = try CaptureLive(
            wish.target, wish.settings, of: engine, hasMicrophone: configuration.current.usesSound,
            on: plugin.host.loop)
        stream = made
        return made
    }

    var frameFacts: (written: UInt64, lost: UInt64) { engine?.frames?.facts ?? lastFrames }
    var isPreviewPaused: Bool { engine?.preview?.isPaused ?? false }

    func pausePreview(_ isPaused: Bool) throws(SessionError) {
        guard let preview = engine?.preview else { throw SessionError(.notReady, "no preview is shown") }
        preview.isPaused = isPaused
    }

    /// A key in the window of the preview.
    private func obey(_ command: PreviewCommand) {
        switch command {
        case .pause:
            if !take.isRecording {
                engine?.preview?.isPaused = !isPreviewPaused
            } else if isPaused {
                resumeRecording { _ in }
            } else {
                pauseRecording { _ in }
            }
        case .switchCamera:
            do throws(Failure) { try switchCamera("") } catch { plugin.host.complain(error.message) }
        case .takePhoto: if configuration.current.has(.photo) { _ = try? photo("", PhotoOptions()) }
        case .exit: previewGone("user-exited", nil)
        case .toggleFullscreen, .leaveFullscreen: break
        }
    }

    private func previewGone(_ reason: String, _ message: String?) {
        guard shown != nil else { return }
        shown = nil
        previewWords.disarm()
        engine?.hidePreview()
        configuration.lost(.preview)
        if let message { runtimeError(.resourceNotAvailable, message) }
        emit("PreviewDidClose", [.string(reason)])
    }

    /// The time, and the level of the microphone, in the pictures of the preview.
    private func writeWords() {
        guard let engine, let preview = engine.preview else { return }
        previewWords.arm(after: 0.1)
        let seconds: Double
        if take.isRecording {
            seconds = length
        } else if case .yes(let since) = running {
            seconds = Double(MonotonicClock.now() - since) / 1e6
        } else {
            seconds = 0
        }
        preview.words =
            PreviewWords(
                seconds: seconds, isRecording: take.isRecording,
                isPaused: take.isRecording ? isPaused : preview.isPaused,
                level: engine.hasSound ? engine.levels.map(\.average).max() ?? -160 : nil
            ).text
    }

    /// Another camera in the place of the current one: at a position, or the next one if it is empty.
    func switchCamera(_ text: String) throws(Failure) {
        let current = configuration.next.camera?.id
        let cameras = plugin.monitor.cameras.map(\.device)
        let found: CaptureSource?
        if text.isEmpty {
            let place = cameras.firstIndex { $0.id == current }
            found = cameras.isEmpty ? nil : cameras[((place ?? -1) + 1) % cameras.count]
        } else if let position = CapturePosition(rawValue: text) {
            found =
                cameras.first { $0.position == position && $0.id != current }
                ?? cameras.first { $0.position == position }
        } else {
            throw Failure(.badParameter("a camera is front, back or external, not \(quoted(text))"))
        }
        guard let found else {
            throw Failure(SessionError(.resourceNotAvailable, "there is no camera '\(text)'"))
        }
        try change { (configuration) throws(SessionError) in try configuration.switchCamera(to: found) }
    }

    /// Why a configuration cannot be applied while the session runs; nil: it can.
    func refusalWhileRunning(_ next: CaptureConfiguration.Arrangement) -> SessionError? {
        guard running != .no, let engine else { return nil }
        let isSame =
            next.usesSound == engine.hasSound && next.preset == configuration.current.preset && next.camera != nil
        return isSame
            ? nil
            : SessionError(
                .isBusy, "the session runs: stop it to change its preset, whether it has sound, or to remove its camera"
            )
    }

    // MARK: Signals

    private func setInterruption(_ text: String) { interruption = text }

    private func runtimeError(_ code: SessionError.Code, _ message: String) {
        let error = SessionError(code, message)
        emit("RuntimeError", [.string(BusName.errorPrefix + code.rawValue), .string(error.message)])
    }
}
