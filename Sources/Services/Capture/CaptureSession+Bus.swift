import CameraBackend
import Capturing
import DBus
import EventLoop
import LiveStreaming
import PluginAPI
import PluginKit
import SessionBus

// `org.sessiond1.CaptureSession`.
extension CaptureSession {
    static let interfaceName = "org.sessiond1.CaptureSession"

    func export() {
        let objects = plugin.host.connection.objects
        objects.export(self, at: path, interfaces: [Self.interface])
        announcement = Announcement(self, path: path, interface: Self.interfaceName, Self.properties, on: objects)
    }

    func emit(_ member: String, _ arguments: [Value]) {
        plugin.host.connection.objects.emit(path: path, interface: Self.interfaceName, member: member, arguments)
    }

    static var properties: [Announcement<CaptureSession>.Property] {
        [
            .init("Name", "s", { .string($0.name) }),
            .init("Running", "b", { .bool($0.isRunning) }),
            .init(
                "RunningSince", "t",
                { if case .yes(let since) = $0.running { .uint64(since) } else { .uint64(0) } }),
            .init("Interrupted", "b", { .bool(!$0.interruption.isEmpty) }),
            .init("InterruptionReason", "s", { .string($0.interruption) }),
            .init("Recording", "b", { .bool($0.take.isRecording) }),
            .init("Paused", "b", { .bool($0.isPaused) }),
            .init("RecordedDuration", "d", isTold: false, { .double($0.length) }),
            .init("RecordedSize", "t", isTold: false, { .uint64($0.size) }),
            .init("DroppedFrames", "t", isTold: false, { .uint64($0.dropped) }),
            .init(
                "Preset", "s", { .string($0.configuration.next.preset.rawValue) },
                set: { session, value throws(Failure) in
                    let preset = try Self.preset(value.stringValue ?? "")
                    try session.change { (configuration) throws(SessionError) in try configuration.setPreset(preset) }
                }),
            .init(
                "PreviewPaused", "b", { .bool($0.isPreviewPaused) },
                set: { session, value throws(Failure) in
                    do throws(SessionError) {
                        try session.changing { () throws(SessionError) in
                            try session.pausePreview(value.boolValue ?? false)
                        }
                    } catch {
                        throw Failure(error)
                    }
                }),
            .init("FramesWritten", "t", isTold: false, { .uint64($0.frameFacts.written) }),
            .init("FramesLost", "t", isTold: false, { .uint64($0.frameFacts.lost) }),
            .init(
                "Orientation", "u", { .uint32($0.orientation.rawValue) },
                set: { session, value throws(Failure) in
                    do throws(SessionError) {
                        let orientation = try CaptureOrientation(degrees: value.uint32Value ?? 1)
                        session.changing { session.orientation = orientation }
                    } catch {
                        throw Failure(error)
                    }
                }),
            .init("Controls", "a{sv}", { .properties($0.controls.wire) }),
            .init("Format", "(uuuu)", { $0.format }),
            .init("Inputs", "aa{sv}", { $0.inputs }),
            .init("Outputs", "aa{sv}", { $0.outputs }),
        ]
    }

    private var format: Value {
        let choice = configuration.current.choice
        let numbers = [choice?.width, choice?.height, choice?.rate.numerator, choice?.rate.denominator]
        return .structure(numbers.map { .uint32(UInt32($0 ?? 0)) })
    }

    private var inputs: Value {
        .array(
            of: "a{sv}",
            configuration.current.inputs.map { input in
                .properties([
                    ("id", .uint32(input.id)), ("device", .string(input.device.id)),
                    ("name", .string(input.device.name)), ("media", .string(input.device.media.rawValue)),
                    ("position", .string(input.device.position.rawValue)),
                ])
            })
    }

    private var outputs: Value {
        .array(
            of: "a{sv}",
            configuration.current.outputs.map { output in
                let stream = output.kind == .live ? live?.path : nil
                return .properties(
                    [("id", .uint32(output.id)), ("kind", .string(output.kind.rawValue))]
                        + (stream.map { [("stream", .objectPath($0))] } ?? []))
            })
    }

    private static func preset(_ text: String) throws(Failure) -> CapturePreset {
        guard let preset = CapturePreset(rawValue: text) else {
            let names = CapturePreset.allCases.map(\.rawValue).joined(separator: ", ")
            throw Failure(.badParameter("a preset is one of \(names), not \(quoted(text))"))
        }
        return preset
    }

    private static func kind(_ text: String) throws(Failure) -> CaptureConfiguration.OutputKind {
        guard let kind = CaptureConfiguration.OutputKind(rawValue: text) else {
            throw Failure(.badParameter("an output is photo, movie-file, preview, live or frames, not \(quoted(text))"))
        }
        return kind
    }

    private static func orientation(_ reader: OptionReader) throws(Failure) -> CaptureOrientation? {
        guard let degrees = try reader.uint32("orientation") else { return nil }
        do throws(SessionError) { return try CaptureOrientation(degrees: degrees) } catch { throw Failure(error) }
    }

    /// Of an output: only what belongs to its kind.
    private static func options(
        _ kind: CaptureConfiguration.OutputKind, _ value: Value
    ) throws(Failure) -> CaptureConfiguration.OutputOptions {
        var options = CaptureConfiguration.OutputOptions()
        switch kind {
        case .photo:
            options.hasShutterSound = try OptionReader(value, known: ["shutter-sound"]).bool("shutter-sound") ?? false
        case .movieFile: _ = try OptionReader(value, known: [])
        case .live:
            let wish = try LiveOptions(output: value)
            do throws(SessionError) {
                options.stream = .init(try LiveTarget(wish.url, key: wish.key), wish.settings)
            } catch {
                throw Failure(error)
            }
        case .preview:
            let reader = try OptionReader(value, known: ["display", "window"])
            options.display = try reader.string("display").flatMap { $0.isEmpty ? nil : $0 }
            options.window = try reader.uint32("window").flatMap { $0 == 0 ? nil : $0 }
        case .frames:
            let reader = try OptionReader(value, known: ["path", "pixels", "header"])
            options.path = try reader.string("path") ?? ""
            options.pixels = try reader.word("pixels") ?? .i420
            options.hasHeader = try reader.bool("header") ?? true
            do throws(SessionError) {
                try FramesBranch.check(options.path)
            } catch {
                throw Failure(error)
            }
        }
        return options
    }

    /// Changes the configuration, and applies it if it is complete; or leaves it as it is.
    @discardableResult
    func change<Answer>(
        _ body: (inout CaptureConfiguration) throws(SessionError) -> Answer
    ) throws(Failure) -> Answer {
        do throws(SessionError) {
            return try changing { () throws(SessionError) in
                var changed = configuration
                let answer = try body(&changed)
                let before = configuration
                if changed.current != before.current, let refusal = refusalWhileRunning(changed.current) {
                    configuration.cancel()
                    throw refusal
                }
                configuration = changed
                do throws(SessionError) {
                    try apply(before.current)
                } catch {
                    configuration = before
                    configuration.cancel()
                    throw error
                }
                settleLive()
                return answer
            }
        } catch {
            throw Failure(error)
        }
    }

    /// A device by its id, for one who waits.
    private func device(_ id: String, _ reply: @escaping (Result<CaptureSource, Failure>) -> Void) {
        plugin.look { [plugin] in
            if let camera = plugin.camera(id) { return reply(.success(camera)) }
            Self.microphone(id, of: plugin, reply)
        }
    }

    private static func microphone(
        _ id: String, of plugin: CapturePlugin, _ reply: @escaping (Result<CaptureSource, Failure>) -> Void
    ) {
        plugin.microphones { microphones in
            if let found = microphones.first(where: { $0.id == id }) { return reply(.success(found)) }
            let message =
                id == routeInput
                ? "there is no microphone" : "there is no camera and no microphone \(quoted(id))"
            reply(.failure(Failure(SessionError(.resourceNotAvailable, message))))
        }
    }

    // MARK: Methods

    private static func method(
        _ name: String, _ signature: String, _ body: @escaping (CaptureSession, Invocation) throws(Failure) -> Void
    ) -> Interface<CaptureSession>.Method {
        .init(name, signature) { session, call in
            do throws(Failure) {
                try body(session, call)
            } catch {
                call.fail(error)
            }
        }
    }

    private static func answer(_ call: Invocation, _ result: Result<Void, Failure>) {
        switch result {
        case .success: call.reply()
        case .failure(let failure): call.fail(failure)
        }
    }

    static let interface = Interface<CaptureSession>(
        name: interfaceName, introspection: PluginXML.captureSession,
        methods: [
            method("CanAddInput", "s") { (session, call) throws(Failure) in
                session.device(call.arguments[0].stringValue ?? "") { result in
                    let can = (try? result.get()).map { session.configuration.refusal(ofInput: $0) == nil } ?? false
                    call.reply([.bool(can)])
                }
            },
            method("AddInput", "sa{sv}") { (session, call) throws(Failure) in
                _ = try OptionReader(call.arguments[1], known: [])
                session.device(call.arguments[0].stringValue ?? "") { result in
                    do throws(Failure) {
                        let device = try result.get()
                        let id = try session.change { (configuration) throws(SessionError) in
                            try configuration.addInput(device)
                        }
                        session.readControls(of: device) { call.reply([.uint32(id)]) }
                    } catch {
                        call.fail(error)
                    }
                }
            },
            method("RemoveInput", "u") { (session, call) throws(Failure) in
                let id = call.arguments[0].uint32Value ?? 0
                try session.change { (configuration) throws(SessionError) in try configuration.removeInput(id) }
                call.reply()
            },
            method("CanAddOutput", "s") { (session, call) throws(Failure) in
                let kind = try kind(call.arguments[0].stringValue ?? "")
                call.reply([.bool(session.configuration.refusal(ofOutput: kind) == nil)])
            },
            method("AddOutput", "sa{sv}") { (session, call) throws(Failure) in
                let kind = try kind(call.arguments[0].stringValue ?? "")
                let options = try options(kind, call.arguments[1])
                call.reply([
                    .uint32(
                        try session.change { (configuration) throws(SessionError) in
                            try configuration.addOutput(kind, options)
                        })
                ])
            },
            method("RemoveOutput", "u") { (session, call) throws(Failure) in
                let id = call.arguments[0].uint32Value ?? 0
                try session.change { (configuration) throws(SessionError) in try configuration.removeOutput(id) }
                call.reply()
            },
            method("BeginConfiguration", "") { (session, call) throws(Failure) in
                try session.change { (configuration) throws(SessionError) in try configuration.begin() }
                call.reply()
            },
            method("CommitConfiguration", "") { (session, call) throws(Failure) in
                do throws(Failure) {
                    try session.change { (configuration) throws(SessionError) in _ = try configuration.commit() }
                } catch {
                    // It is refused as a whole, and over.
                    session.changing { session.configuration.cancel() }
                    throw error
                }
                call.reply()
            },
            method("CanSetPreset", "s") { (session, call) throws(Failure) in
                let preset = try preset(call.arguments[0].stringValue ?? "")
                call.reply([.bool(session.configuration.refusal(of: preset) == nil)])
            },
            method("SwitchCamera", "s") { (session, call) throws(Failure) in
                try session.switchCamera(call.arguments[0].stringValue ?? "")
                call.reply()
            },
            method("StartRunning", "") { (session, call) throws(Failure) in
                session.changing { session.start { answer(call, $0) } }
            },
            method("StopRunning", "") { (session, call) throws(Failure) in
                session.changing { session.stop { answer(call, $0) } }
            },
            method("Meters", "") { (session, call) throws(Failure) in
                let levels = session.engine?.levels ?? []
                call.reply([
                    .array(of: "(dd)", levels.map { .structure([.double($0.peak), .double($0.average)]) })
                ])
            },
            method("CapturePhoto", "sa{sv}") { (session, call) throws(Failure) in
                let reader = try OptionReader(
                    call.arguments[1], known: ["format", "orientation", "burst", "flash", "overwrite"])
                var options = PhotoOptions()
                options.format = try reader.word("format")
                options.orientation = try orientation(reader)
                let count = try reader.uint32("burst") ?? 1
                guard (1...BurstNames.most).contains(count) else {
                    throw Failure(.badParameter("'burst' must be from 1 to \(BurstNames.most), not \(count)"))
                }
                options.count = Int(count)
                let flash: CaptureFlash? = try reader.word("flash")
                options.hasFlash = flash.map { $0 == .on }
                options.replaces = try reader.bool("overwrite") ?? true
                do throws(SessionError) {
                    call.reply([.uint32(try session.photo(call.arguments[0].stringValue ?? "", options))])
                } catch {
                    throw Failure(error)
                }
            },
            method("StartRecording", "sa{sv}") { (session, call) throws(Failure) in
                let reader = try OptionReader(
                    call.arguments[1],
                    known: ["maximum-duration", "maximum-size", "quality", "codec", "orientation", "overwrite"])
                var options = FilmOptions()
                options.duration = try reader.double("maximum-duration")
                options.size = try reader.uint64("maximum-size")
                options.quality = try reader.word("quality")
                options.codec = try reader.word("codec")
                options.orientation = try orientation(reader)
                options.replaces = try reader.bool("overwrite") ?? false
                session.changing {
                    session.startRecording(call.arguments[0].stringValue ?? "", options) { answer(call, $0) }
                }
            },
            method("PauseRecording", "") { (session, call) throws(Failure) in
                session.changing { session.pauseRecording { answer(call, $0) } }
            },
            method("ResumeRecording", "") { (session, call) throws(Failure) in
                session.changing { session.resumeRecording { answer(call, $0) } }
            },
            method("StopRecording", "") { (session, call) throws(Failure) in
                session.changing { session.stopRecording { answer(call, $0) } }
            },
            method("LockForConfiguration", "s") { (session, call) throws(Failure) in
                try session.lock(call.arguments[0].stringValue ?? "") { call.reply() }
            },
            method("SetControl", "ssv") { (session, call) throws(Failure) in
                do throws(SessionError) {
                    try session.set(
                        call.arguments[1].stringValue ?? "", CameraSetting(call.arguments[2]),
                        of: call.arguments[0].stringValue ?? ""
                    ) { answer(call, $0) }
                } catch {
                    throw Failure(error)
                }
            },
            method("UnlockForConfiguration", "s") { (session, call) throws(Failure) in
                let id = call.arguments[0].stringValue ?? ""
                guard session.plugin.locks[id] == session.number else {
                    throw Failure(SessionError(.notReady, "the session has not locked the device"))
                }
                session.plugin.locks[id] = nil
                call.reply()
            },
        ],
        properties: properties.map(\.exported),
        permission: { (session, caller) throws(Failure) in
            guard caller == session.owner else {
                throw Failure(
                    SessionError(.notOwner, "the capture session '\(session.name)' belongs to another program"))
            }
        })
}
