import DBus
import EventLoop
package import LiveStreaming
package import PluginAPI
import SessionBus
import SessionKit

/// One live stream on the bus: an engine while it runs, and a session if it has a microphone.
///
/// While another session interrupts the microphone, viewers see the pictures and hear nothing; the microphone is closed
/// meanwhile. The session is given back when the stream ends. A stream of a capture session has the session of that one.
package final class LiveStreamObject {
    package let number: UInt64
    package let owner: String
    package let path: String
    package var onClosed: (LiveStreamObject) -> Void = { _ in }
    /// It started, or ended.
    package var onChanged: () -> Void = {}

    private let target: LiveTarget
    private let options: LiveOptions
    private let host: PluginHost
    /// The session that its sound belongs to, if that is not its own.
    package struct OuterSession {
        /// Its path; `/`: none.
        let path: () -> String
        let isInterrupted: () -> Bool

        package init(path: @escaping () -> String, isInterrupted: @escaping () -> Bool) {
            (self.path, self.isInterrupted) = (path, isInterrupted)
        }
    }

    private let outer: OuterSession?
    /// For one run.
    private let makeEngine: () throws(SessionError) -> any LiveEngine
    private var engine: (any LiveEngine)?
    private let session: AudioSessionClient?
    private var driver: GrantDriver?
    private var announcement: Announcement<LiveStreamObject>?
    private var told = LiveState.idle
    /// What is wrong besides the connection.
    private var remark = ""
    /// Of the last run, after its end.
    private var last = Figures()

    private struct Figures {
        var bytesSent: UInt64 = 0
        var droppedFrames: UInt64 = 0
        var reconnects = 0
    }

    private var figures: Figures {
        engine.map { Figures(bytesSent: $0.bytesSent, droppedFrames: $0.droppedFrames, reconnects: $0.reconnects) }
            ?? last
    }
    private var isClosing = false
    private var isGone = false
    private var failed = false

    package init(
        _ number: UInt64, at path: String, _ target: LiveTarget, _ options: LiveOptions, owner: String,
        in outer: OuterSession? = nil, on host: PluginHost,
        _ makeEngine: @escaping () throws(SessionError) -> any LiveEngine
    ) {
        self.outer = outer
        (self.number, self.target, self.options, self.owner, self.host) = (number, target, options, owner, host)
        (self.path, self.makeEngine) = (path, makeEngine)
        if options.settings.hasMicrophone {
            session = AudioSessionClient(
                .init(
                    name: options.name.isEmpty ? "Live stream" : options.name, category: options.category,
                    mode: .videoRecording, desktopEntry: options.desktopEntry), on: host.connection
            ) { _ in }
        } else {
            session = nil
        }
        host.connection.objects.export(self, at: path, interfaces: [Self.interface])
        announcement = Announcement(
            self, path: path, interface: Self.interface.name, Self.properties, on: host.connection.objects)
        if let session { listen(to: session) }
    }

    package var isRunning: Bool { engine != nil }
    var state: LiveState { engine?.state ?? (failed ? .failed : .idle) }
    private var isInterrupted: Bool {
        isRunning && (outer?.isInterrupted() ?? (driver?.grant.isInterrupted == true))
    }

    /// The session that its sound belongs to may be interrupted, or may not be any more.
    package func sessionChanged() {
        engine?.isInterrupted = isInterrupted
        update()
    }

    /// Sends what has changed.
    private func update() {
        announcement?.update(self)
        guard state != told else { return }
        told = state
        emit("StateChanged", [.string(state.rawValue)])
    }

    private func emit(_ member: String, _ arguments: [Value]) {
        host.connection.objects.emit(
            path: path, interface: Self.interface.name, member: member, arguments)
    }

    // MARK: Requests

    private func start(_ reply: @escaping (Result<Void, Failure>) -> Void) {
        guard engine == nil, !isClosing else {
            return reply(.failure(Failure(SessionError(.isBusy, "the stream runs already: stop it first"))))
        }
        (remark, failed, last) = ("", false, Figures())
        do throws(SessionError) {
            let made = try makeEngine()
            engine = made
            made.onEvent = { [unowned self] in heard($0) }
        } catch {
            return reply(.failure(Failure(error)))
        }
        onChanged()
        guard let driver else { return open(reply) }
        driver.ask { [weak self] result in
            guard let self, engine != nil else { return reply(.failure(.disconnected)) }
            guard case .success = result else {
                drop()
                return reply(result)
            }
            open(reply)
        }
    }

    private func open(_ reply: @escaping (Result<Void, Failure>) -> Void) {
        engine?.start { [weak self] result in
            guard let self else { return }
            switch result {
            case .success:
                if driver?.grant.sounds == true { engine?.microphoneIsOn = true }
                update()
                reply(.success(()))
            case .failure(let error):
                drop()
                driver?.take(.stopped)
                reply(.failure(Failure(error)))
            }
        }
    }

    /// Forgets the engine.
    private func drop() {
        engine?.close()
        engine = nil
        update()
        onChanged()
    }

    package func stop() {
        engine?.stop()
        update()
    }

    /// Ends it, and removes the object when the recording is complete.
    package func close() {
        guard !isClosing else { return }
        isClosing = true
        if engine == nil { vanish() } else { stop() }
    }

    private func vanish() {
        // Its owner may close it while it tells its end.
        guard !isGone else { return }
        isGone = true
        host.connection.objects.remove(path: path)
        session?.close { _ in }
        driver = nil
        onClosed(self)
    }

    private func setMicrophone(_ isOn: Bool) throws(Failure) {
        guard driver != nil || outer?.path() ?? "/" != "/" else {
            throw Failure(SessionError(.notSupported, "the stream was made without a microphone"))
        }
        guard let engine else { throw Failure(SessionError(.notReady, "the stream does not run: start it first")) }
        remark = ""
        guard let driver else {
            // The films of the capture session keep the sound.
            engine.microphoneIsOn = isOn
            return update()
        }
        if isOn {
            driver.ask { [weak self] result in
                if case .failure(let failure) = result { self?.remark = failure.message }
                self?.update()
            }
        } else {
            driver.take(.paused)
        }
        update()
    }

    // MARK: Events of the engine

    private func heard(_ event: LiveEvent) {
        switch event {
        case .changed: update()
        case .recordingFailed(let error):
            update()
            emit("RecordingFailed", [.string(BusName.errorPrefix + error.code.rawValue), .string(error.message)])
        case .microphoneLost(let message):
            remark = message
            driver?.take(.engineLost)
            update()
        case .failed(let error):
            failed = true
            remark = error.reason
            ended()
            emit("Failed", [.string(BusName.errorPrefix + error.code.rawValue), .string(error.message)])
            finished()
        case .finished(let end):
            ended()
            emit("Finished", [.string(end.rawValue)])
            finished()
        }
    }

    private func ended() {
        last = figures
        engine?.close()
        engine = nil
        driver?.take(.stopped)
        update()
    }

    private func finished() {
        onChanged()
        if isClosing { vanish() }
    }

    // MARK: Events of the session

    private func listen(to session: AudioSessionClient) {
        let driver = GrantDriver(session, on: host.loop)
        driver.onStart = { [unowned self] () throws(Failure) in engine?.microphoneIsOn = true }
        driver.onSilence = { [unowned self] in engine?.microphoneIsOn = false }
        driver.changing = { [unowned self] body in
            body()
            update()
        }
        self.driver = driver
        session.onEvent = { [unowned self] event in
            heard(event)
            engine?.isInterrupted = isInterrupted
            update()
        }
    }

    private func heard(_ event: AudioSessionClient.Event) {
        guard let driver else { return }
        switch event {
        case .session(let event): heard(event, driver)
        case .daemonLost: driver.take(.daemonLost)
        case .registered: driver.registered()
        case .refused: if session?.path != nil { driver.take(.expelled) }
        // The engine reports a microphone that is gone.
        case .servicesLost, .servicesReset: break
        }
    }

    private func heard(_ event: SessionEvent, _ driver: GrantDriver) {
        switch event {
        case .interruptionBegan(let reason, _, _, _):
            driver.take(.began(reason))
            if options.interruption == .stop { stop() }
        case .interruptionEnded(let shouldResume, _, _):
            driver.take(.ended(shouldResume: shouldResume, canResume: isRunning))
        case .routeChanged(.oldDeviceUnavailable, let previous, let current):
            // The server would go on with another microphone, which the user did not choose.
            let gone = previous.inputs.filter { port in !current.inputs.contains { $0.uid == port.uid } }
            guard !gone.isEmpty, isRunning else { return }
            remark = "\(gone.map { quoted($0.name) }.joined(separator: " and ")) was disconnected"
            driver.take(.deviceGone)
        case .routeChanged, .duckingChanged, .mutedChanged, .silenceSecondaryAudioHint: break
        }
    }

    // MARK: The bus

    private var message: String {
        let reason = engine?.message ?? ""
        return reason.isEmpty ? remark : reason
    }

    private static let properties: [Announcement<LiveStreamObject>.Property] = [
        .init("State", "s") { .string($0.state.rawValue) },
        .init("Url", "s") { .string($0.target.shown) },
        .init("Uptime", "d", isTold: false) { .double($0.engine?.uptime ?? 0) },
        .init("BytesSent", "t", isTold: false) { .uint64($0.figures.bytesSent) },
        .init("Bitrate", "u") { .uint32(UInt32(clamping: $0.engine?.bitrate ?? $0.options.settings.bitrate)) },
        .init("Rtt", "d", isTold: false) { .double($0.engine?.roundTrip ?? 0) },
        .init("DroppedFrames", "t") { .uint64($0.figures.droppedFrames) },
        .init("Reconnects", "u") { .uint32(UInt32(clamping: $0.figures.reconnects)) },
        .init("Message", "s") { .string($0.message) },
        .init("Recording", "s") {
            .string($0.engine?.isRecording == true ? $0.options.settings.recording ?? "" : "")
        },
        .init(
            "Microphone", "b", { .bool($0.engine?.microphoneIsOn == true) },
            set: { stream, value throws(Failure) in try stream.setMicrophone(value.boolValue == true) }),
        .init("Interrupted", "b") { .bool($0.isInterrupted) },
        .init("Session", "o") { .objectPath($0.outer?.path() ?? $0.session?.path ?? "/") },
    ]

    private static func method(
        _ name: String, _ signature: String = "",
        _ body: @escaping @Sendable (LiveStreamObject, Invocation) -> Void
    ) -> Interface<LiveStreamObject>.Method { .init(name, signature, body) }

    private static let interface = Interface<LiveStreamObject>(
        name: BusName.liveStream, introspection: PluginXML.liveStream,
        methods: [
            method("Start") { stream, call in stream.start { call.answer($0) } },
            method("Stop") { stream, call in
                stream.stop()
                call.reply()
            },
            method("SetBitrate", "u") { stream, call in
                call.answer { () throws(Failure) in
                    let bitrate = call.arguments[0].uint32Value ?? 0
                    guard (64_000...100_000_000).contains(bitrate) else {
                        throw Failure(
                            .badParameter(
                                "the bit rate must be from 64000 to 100000000 bits per second, not \(bitrate)"))
                    }
                    guard let engine = stream.engine else {
                        throw Failure(SessionError(.notReady, "the stream does not run: start it first"))
                    }
                    engine.want(bitrate: Int(bitrate))
                    stream.update()
                }
            },
            method("Close") { stream, call in
                call.reply()
                stream.close()
            },
        ],
        properties: properties.map(\.exported),
        permission: { (stream, caller) throws(Failure) in
            guard caller == stream.owner else {
                throw Failure(SessionError(.notOwner, "the live stream belongs to another program"))
            }
        })
}
