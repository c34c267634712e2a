import CPulse
import EventLoop
import Foundation
import PluginAPI
import TestSupport
import Testing

@testable import PulseBackend

/// Tests the adapter on a real private server.
@Suite struct PulseBackendTests {
    /// A module that makes a microphone: it records what the server plays.
    private func mic(_ name: String) -> String {
        "module-remap-source source_name=\(name) source_properties=device.form_factor=microphone master=speaker.monitor"
    }

    /// One adapter, its loop, and what it reported.
    struct Bench {
        let pulse: any PrivateServer
        let loop = EventLoop()
        let backend: PulseBackend
        let told: Recorder

        init(
            _ pulse: any PrivateServer, patience: Double = 2, holdIdleTime: Double = 60, connects: Bool = true
        ) throws {
            self.pulse = pulse
            backend = PulseBackend(
                on: loop, server: pulse.serverString, patience: patience, holdIdleTime: holdIdleTime)
            told = Recorder(backend)
            backend.start()
            let backend = backend
            if connects {
                try #require(loop.iterate(timeout: 10) { backend.snapshot.isConnected })
                told.clear()
            }
        }

        func wait(_ timeout: Double = 10, _ condition: () -> Bool) -> Bool {
            loop.iterate(timeout: timeout, until: condition)
        }

        /// The result of a request.
        func result(_ request: (@escaping AudioBackend.Completion) -> Void) -> Result<Void, SessionError>? {
            var result: Result<Void, SessionError>?
            request { result = $0 }
            _ = wait { result != nil }
            return result
        }
    }

    @Test(arguments: ServerKind.allCases) func serverWithSinks_isReadCompletely(_ kind: ServerKind) throws {
        let pulse = try kind.server(sinks: ["speaker", "second"], modules: [mic("mic")])
        try pulse.setDefaultSource("mic")
        let bench = try Bench(pulse)
        let snapshot = bench.backend.snapshot
        #expect(snapshot.serverName.hasPrefix(kind == .pulseAudio ? "pulseaudio " : "PulseAudio (on PipeWire "))
        let isDefaultLast = snapshot.availableOutputs.map(\.uid) == ["second", "speaker"]
        #expect(isDefaultLast, "the default counts as the newest")
        #expect(snapshot.availableOutputs.map(\.type) == [.virtual, .virtual])
        #expect(snapshot.availableInputs.map(\.uid) == ["mic"], "monitors are no inputs")
        #expect(snapshot.route.outputs.first?.sampleRate == 48_000)
        #expect(snapshot.route.inputs.map(\.uid) == ["mic"])
        #expect(bench.told.all.isEmpty)
    }

    @Test(arguments: ServerKind.allCases) func sinkAppears_isReportedWithTheSameRoute(_ kind: ServerKind) throws {
        let bench = try Bench(kind.server())
        try bench.pulse.addSink("other")
        #expect(bench.wait { !bench.told.changes.isEmpty })
        #expect(bench.told.all == [.route(.newDeviceAvailable, from: ["speaker"], to: ["speaker"]), .ports])
        #expect(bench.backend.snapshot.availableOutputs.map(\.uid) == ["speaker", "other"])
    }

    @Test(arguments: ServerKind.allCases)
    func sinkBecomesTheRouteAndIsRemoved_reasonsOneAndTwoAreReportedOnce(_ kind: ServerKind) throws {
        let bench = try Bench(kind.server())
        let module = try bench.pulse.addSink("phones", properties: ["device.form_factor": "headphone"])
        try bench.pulse.control.setDefaultSink("phones")
        #expect(bench.wait { bench.backend.snapshot.route.outputs.first?.uid == "phones" })
        #expect(bench.told.changes.last == .route(.newDeviceAvailable, from: ["speaker"], to: ["phones"]))
        bench.told.clear()
        try bench.pulse.unloadModule(module)
        #expect(bench.wait { !bench.told.changes.isEmpty })
        #expect(bench.told.changes == [.route(.oldDeviceUnavailable, from: ["phones"], to: ["speaker"])])
        #expect(bench.backend.snapshot.availableOutputs.map(\.uid) == ["speaker"])
    }

    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: its modules"))
    func serverSwitchesOnConnect_reasonIsTheSame() throws {
        let bench = try Bench(PrivatePulse(modules: ["module-switch-on-connect ignore_virtual=no"]))
        try bench.pulse.addSink("phones", properties: ["device.form_factor": "headphone"])
        #expect(bench.wait { bench.backend.snapshot.route.outputs.first?.uid == "phones" })
        #expect(bench.told.changes.last == .route(.newDeviceAvailable, from: ["speaker"], to: ["phones"]))
    }

    @Test(arguments: ServerKind.allCases) func onlySinkIsRemoved_routeIsEmpty(_ kind: ServerKind) throws {
        let bench = try Bench(kind.server(sinks: []))
        let module = try bench.pulse.addSink("only")
        #expect(bench.wait { bench.backend.snapshot.route.outputs.first?.uid == "only" })
        bench.told.clear()
        try bench.pulse.unloadModule(module)
        #expect(bench.wait { !bench.told.changes.isEmpty })
        #expect(bench.told.changes == [.route(.oldDeviceUnavailable, from: ["only"], to: [])])
    }

    @Test(arguments: ServerKind.allCases) func defaultChangedByTheDaemon_hasItsReason(_ kind: ServerKind)
        throws
    {
        let bench = try Bench(kind.server(sinks: ["first", "second"]))
        #expect(
            bench.result {
                bench.backend.selectOutput("second", reason: .override, isTemporary: false, completion: $0)
            }?.isSuccess == true)
        #expect(bench.wait { !bench.told.changes.isEmpty })
        #expect(bench.told.changes == [.route(.override, from: ["first"], to: ["second"])])
        #expect(
            bench.result {
                bench.backend.selectOutput("nowhere", reason: .override, isTemporary: false, completion: $0)
            }?.code
                == .badParameter)
    }

    @Test(arguments: ServerKind.allCases) func sameSinkWithOtherChannels_isConfigurationChange(_ kind: ServerKind)
        throws
    {
        let bench = try Bench(kind.server(sinks: []))
        let module = try bench.pulse.addSink("card", channels: 2)
        #expect(bench.wait { bench.backend.snapshot.route.outputs.first?.uid == "card" })
        bench.told.clear()
        // It is removed and back while the loop does not run: for the adapter, the same port with other settings.
        try bench.pulse.unloadModule(module)
        #expect(try eventually { try !bench.pulse.control.has(sink: "card") })
        try bench.pulse.addSink("card", channels: 6)
        #expect(bench.wait { !bench.told.changes.isEmpty })
        #expect(bench.told.all == [.route(.routeConfigurationChange, from: ["card"], to: ["card"]), .ports])
        #expect(bench.backend.snapshot.route.outputs.first?.channels == 6)
    }

    @Test(arguments: ServerKind.allCases) func inputMuteAndOutputVolume_areReported(_ kind: ServerKind) throws {
        let pulse = try kind.server(modules: [mic("mic")])
        try pulse.setDefaultSource("mic")
        try pulse.wake("mic")
        let bench = try Bench(pulse)
        try bench.pulse.pactl(["set-source-mute", "mic", "1"])
        #expect(bench.wait { bench.told.all.contains(.inputMute(true)) })
        try bench.pulse.pactl(["set-sink-volume", "speaker", "50%"])
        #expect(bench.wait { bench.told.all.contains(.volume(0.5)) })
        #expect(bench.told.changes.isEmpty)
    }

    @Test(arguments: ServerKind.allCases) func streams_areListedWithProcessRoleAndCork(_ kind: ServerKind) throws {
        let bench = try Bench(kind.server(sinks: ["speaker", "other"]))
        let tone = try Tone(
            bench.pulse, hertz: 440, name: "player", processID: 4_711, properties: ["media.role": "music"])
        func stream() -> AudioStream? { bench.backend.snapshot.streams.first { $0.processID == 4_711 } }
        #expect(bench.wait { stream() != nil })
        #expect(stream()?.id == AudioStream.ID(.playback, tone.index))
        #expect(stream()?.role == "music")
        #expect(stream()?.applicationName == "player")
        #expect(stream()?.portUID == "speaker")
        // PipeWire shows it as paused until it is linked.
        #expect(bench.wait { stream()?.isCorked == false })
        try tone.cork()
        #expect(bench.wait { stream()?.isCorked == true })
        let id = AudioStream.ID(.playback, tone.index)
        #expect(bench.result { bench.backend.moveStream(id, to: "other", completion: $0) }?.isSuccess == true)
        #expect(bench.wait { stream()?.portUID == "other" })
        #expect(bench.result { bench.backend.setMuted(true, stream: id, completion: $0) }?.isSuccess == true)
        #expect(bench.wait { stream()?.isMuted == true })
        let program = try Tone.program(bench.pulse, hertz: 1_000)
        #expect(bench.wait { bench.backend.snapshot.streams.contains { $0.processID == UInt32(program.processID) } })
        program.kill()
        #expect(bench.wait { bench.backend.snapshot.streams.count == 1 })
        #expect(
            bench.result { bench.backend.setMuted(true, stream: .init(.record, 9_999), completion: $0) }?.code
                == .mediaServicesFailed)
        withExtendedLifetime(tone) {}
    }

    /// The hold sink is only being created when the stream is let go again.
    @Test(arguments: ServerKind.allCases) func streamLetGoBeforeTheHoldSinkExists_isNotHeldAfterwards(
        _ kind: ServerKind
    ) throws {
        let bench = try Bench(kind.server(sinks: ["speaker", "other"]))
        let tone = try Tone(bench.pulse, hertz: 440, name: "player", processID: 4_711)
        let id = AudioStream.ID(.playback, tone.index)
        func stream() -> AudioStream? { bench.backend.snapshot.streams.first { $0.id == id } }
        #expect(bench.wait { stream()?.isCorked == false })
        var held: Result<Void, SessionError>?
        var free: Result<Void, SessionError>?
        bench.backend.hold(id) { held = $0 }
        bench.backend.letGo(id, to: "other") { free = $0 }
        #expect(bench.wait { held != nil && free != nil })
        #expect(held?.isSuccess == true)
        #expect(free?.isSuccess == true)
        // The sink is there, and whatever the server was asked for has been done.
        #expect(bench.wait { bench.backend.snapshot.hasHold })
        #expect(bench.wait { stream()?.deviceName == "other" })
        #expect(!bench.wait(0.3) { stream()?.isHeld == true })
        withExtendedLifetime(tone) {}
    }

    /// PipeWire reports a stream that runs always before it is linked, and then no more.
    @Test(.enabled(if: ServerKind.pipeWire.isHere, "PipeWire only: the programs are its own"))
    func nativeProgramThatRunsAlways_isShownWithItsDevice() throws {
        let pulse = try ServerKind.pipeWire.server(modules: [mic("mic")])
        try pulse.setDefaultSource("mic")
        let bench = try Bench(pulse)
        let file = try Tone.file(pulse, hertz: 440)
        let programs = [
            ["mpv", "--no-config", "--no-terminal", "--no-video", "--ao=pipewire", "--demuxer=rawaudio", file],
            ["pw-cat", "--record", "--properties={ node.always-process = true }", pulse.folder.path + "/take.wav"],
        ]
        for words in programs {
            for start in 1...10 {
                let program = try Child(words[0], Array(words.dropFirst()), environment: pulse.environment)
                func device() -> String? {
                    bench.backend.snapshot.streams.first { $0.processID == UInt32(program.processID) }?.deviceName
                }
                #expect(
                    bench.wait(5) { device() == (words[0] == "mpv" ? "speaker" : "mic") },
                    "\(words[0]), start \(start): \(device() ?? "no stream")")
                program.kill()
                #expect(bench.wait { device() == nil })
            }
        }
    }

    @Test(arguments: ServerKind.allCases) func recording_movesToTheChosenInput(_ kind: ServerKind) throws {
        let pulse = try kind.server(modules: [mic("one"), mic("two")])
        let bench = try Bench(pulse)
        let recorder = try Child("parec", ["--device=one", "/dev/null"], environment: pulse.environment)
        let process = UInt32(recorder.processID)
        func stream() -> AudioStream? { bench.backend.snapshot.streams.first { $0.processID == process } }
        #expect(bench.wait { stream()?.portUID == "one" })
        let id = try #require(stream()?.id)
        #expect(bench.result { bench.backend.moveStream(id, to: "two", completion: $0) }?.isSuccess == true)
        #expect(bench.wait { stream()?.portUID == "two" })
    }

    @Test(arguments: ServerKind.allCases) func burstOfChanges_lastStateAndAllReasonsAreRight(_ kind: ServerKind) throws
    {
        let bench = try Bench(kind.server())
        let admin = try PulseThread(server: bench.pulse.serverString, name: "admin")
        var present = Set<String>(["speaker"])
        var indices: [String: UInt32] = [:]
        for step in 0..<500 {
            let name = "sink\(step % 7)"
            if let index = indices.removeValue(forKey: name) {
                try admin.wait { pa_context_unload_module(admin.context, index, nil, nil) }
                present.remove(name)
            } else {
                let loaded = Loaded()
                try admin.wait {
                    pa_context_load_module(
                        admin.context, "module-null-sink", "sink_name=\(name)",
                        { _, index, loaded in
                            Unmanaged<Loaded>.fromOpaque(loaded!).takeUnretainedValue().index = index
                        }, Unmanaged.passUnretained(loaded).toOpaque())
                }
                indices[name] = loaded.index
                present.insert(name)
            }
            if step % 5 == 0 { bench.loop.iterate(blocking: false) }
        }
        #expect(bench.wait { Set(bench.backend.snapshot.availableOutputs.map(\.uid)) == present })
        #expect(bench.backend.snapshot.route.outputs.map(\.uid) == ["speaker"])
        // The speaker was the route all the time: devices appeared, but none of the route was removed.
        #expect(bench.told.routes.allSatisfy { $0.reason == .newDeviceAvailable && $0.previous == $0.current })
    }

    private final class Loaded { var index: UInt32 = 0 }
}

extension Result where Success == Void, Failure == SessionError {
    var isSuccess: Bool { if case .success = self { true } else { false } }
    var code: SessionError.Code? { if case .failure(let error) = self { error.code } else { nil } }
}
