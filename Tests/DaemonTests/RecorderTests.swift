import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

@Suite(.serialized) struct RecorderTests {
    /// A microphone that records a tone of 440 Hz: the monitor of a null sink.
    private final class Studio {
        let stage: PlayerStage
        let tone: Tone

        init(_ kind: ServerKind = .standard) throws {
            stage = try PlayerStage(
                kind, sinks: ["speaker", "room"],
                modules: ["module-remap-source source_name=microphone master=room.monitor"])
            try stage.pulse.control.setDefaultSource("microphone")
            tone = try Tone(stage.pulse, hertz: 440, sink: "room")
        }

        var file: String { stage.media.path + "/take.wav" }

        /// Adds a second microphone, which is then the route's.
        /// - Returns: its module.
        func plugInMicrophone() throws -> UInt32 {
            let module = try stage.pulse.loadModule("module-remap-source source_name=second master=room.monitor")
            try stage.pulse.control.setDefaultSource("second")
            #expect(
                eventually {
                    let inputs = (try? stage.daemon.property("CurrentRoute"))?.route?.inputs ?? []
                    return inputs.first?.uid.hasPrefix("second") == true
                })
            return module
        }
    }

    @Test(arguments: ServerKind.allCases)
    func callInterruptsARecording_fileIsPlayable_andContinuesAfterwards(_ kind: ServerKind) throws {
        let studio = try Studio(kind)
        let recorder = try studio.stage.recorder()
        #expect(recorder.call("Prepare", [.string(studio.file), .properties([])]) == nil)
        #expect(recorder.call("Record") == nil)
        #expect(eventually { recorder.position > 0.5 })
        let client = try studio.stage.daemon.client()
        let call = try client.beginCall("call")
        #expect(recorder.comes(to: "interrupted"))
        #expect(recorder.call("Delete") == "org.sessiond1.Error.IsBusy")
        #expect(recorder.call("Record") == "org.sessiond1.Error.InsufficientPriority")
        let length = recorder.position
        #expect(length > 0.5)
        #expect(eventually { abs(((try? seconds(studio.file)) ?? 0) - length) < 0.05 }, "the file must be playable")
        #expect(recorder.position == length)
        client.deactivate(call)
        #expect(recorder.comes(to: "recording"))
        #expect(eventually { recorder.position > length + 0.3 })
        #expect(recorder.call("Stop") == nil)
        #expect(eventually { recorder.signals == ["Finished true"] })
        #expect(abs(try seconds(studio.file) - recorder.position) < 0.01)
        #expect(try studio.stage.sessionState(of: recorder) == "inactive")
        #expect(recorder.call("Delete") == nil)
        #expect(!FileManager.default.fileExists(atPath: studio.file))
    }

    @Test(.enabled(if: getuid() == 0, "only root can use chroot"))
    func sandboxedProgram_mayNotNameAFileToRecordTo() throws {
        let studio = try Studio()
        let recorder = try studio.stage.recorder()
        let name = "org.sessiond1.Recorder.instance\(recorder.child.processID)"
        let root = try PrivateFolder()
        try root.file(".flatpak-info", "[Application]\nname=org.example.Game\nruntime=runtime/x\n")
        let game = try studio.stage.daemon.foreigner()
        #expect(game.ask("chroot \(root.path)") == "ok")
        #expect(game.ask("prepare \(name) \(studio.file)") == "org.freedesktop.DBus.Error.AccessDenied")
        #expect(!FileManager.default.fileExists(atPath: studio.file))
        #expect(try studio.stage.daemon.foreigner().ask("prepare \(name) \(studio.file)") == "ok")
    }

    @Test(arguments: ServerKind.allCases)
    func recordForWithAnInterruption_hasTheRequestedLength(_ kind: ServerKind) throws {
        let studio = try Studio(kind)
        let recorder = try studio.stage.recorder()
        let settings: [(String, Value)] = [("sample-rate", .double(48_000)), ("channels", .uint32(1))]
        #expect(recorder.call("Prepare", [.string(studio.file), .properties(settings)]) == nil)
        #expect(recorder.call("RecordFor", [.double(1)]) == nil)
        #expect(eventually { recorder.position > 0.2 })
        let client = try studio.stage.daemon.client()
        let other = try client.session("other")
        client.activate(other)
        #expect(recorder.comes(to: "interrupted"))
        client.deactivate(other, notify: true)
        #expect(eventually { recorder.signals == ["Finished true"] })
        #expect(abs(try seconds(studio.file, rate: 48_000, frame: 2) - 1) < 1e-4)
    }

    @Test(arguments: ServerKind.allCases)
    func userPausesDuringAnInterruption_recorderStaysPaused(_ kind: ServerKind) throws {
        let studio = try Studio(kind)
        let recorder = try recording(studio)
        let client = try studio.stage.daemon.client()
        let other = try client.session("other")
        client.activate(other)
        #expect(recorder.comes(to: "interrupted"))
        #expect(recorder.call("Pause") == nil)
        client.deactivate(other, notify: true)
        #expect(eventually { (try? studio.stage.sessionState(of: recorder)) == "inactive" })
        #expect(recorder.state == "paused")
    }

    @Test(arguments: ServerKind.allCases)
    func microphoneIsRemoved_recorderPausesAndTheFileIsPlayable(_ kind: ServerKind) throws {
        let studio = try Studio(kind)
        let module = try studio.plugInMicrophone()
        let recorder = try recording(studio)
        try studio.stage.pulse.unloadModule(module)
        #expect(recorder.comes(to: "paused"))
        #expect(try eventually { try seconds(studio.file) > 0.2 })
        #expect(recorder.signals.count == 1)
        let signal = try #require(recorder.signals.first)
        #expect(signal.hasPrefix("Paused '") && signal.hasSuffix("' was disconnected"), "\(signal)")
    }

    /// Who is told to come back may, also in the background.
    @Test func callInterruptsARecordingInTheBackground_itContinuesAfterwards() throws {
        let studio = try Studio()
        let recorder = try recording(studio)
        let path = try #require(
            studio.stage.daemon.sessions().first { $0.value["Category"]?.stringValue == "record" }?.key)
        try studio.stage.daemon.manager("SetForeground", [.objectPath(path), .bool(false)])
        let client = try studio.stage.daemon.client()
        for _ in 0..<2 {
            let call = try client.beginCall("Phone")
            #expect(recorder.comes(to: "interrupted"))
            client.deactivate(call)
            #expect(recorder.comes(to: "recording"))
        }
    }

    /// It could not resume: the recording would continue with another microphone.
    @Test(arguments: ServerKind.allCases)
    func microphoneIsRemovedDuringAnInterruption_recorderPausesWithTheReason(_ kind: ServerKind) throws {
        let studio = try Studio(kind)
        let module = try studio.plugInMicrophone()
        let recorder = try recording(studio)
        let client = try studio.stage.daemon.client()
        let call = try client.beginCall("Phone")
        #expect(recorder.comes(to: "interrupted"))
        try studio.stage.pulse.unloadModule(module)
        #expect(recorder.comes(to: "paused"))
        client.deactivate(call, notify: true)
        #expect(eventually { (try? studio.stage.sessionState(of: recorder)) == "inactive" })
        #expect(recorder.signals.count == 1)
        let signal = try #require(recorder.signals.first)
        #expect(signal.hasPrefix("Paused '") && signal.hasSuffix("' was disconnected"), "\(signal)")
        #expect(recorder.state == "paused")
    }

    @Test(arguments: ServerKind.allCases)
    func soundServerIsKilled_recordingFailsAndTheFileIsPlayable(_ kind: ServerKind) throws {
        let studio = try Studio(kind)
        let recorder = try recording(studio)
        studio.stage.pulse.kill()
        #expect(eventually { recorder.signals.count == 1 })
        #expect(recorder.signals.first?.hasPrefix("Failed ") == true)
        #expect(recorder.state == "failed")
        #expect(try seconds(studio.file) > 0.2)
        #expect(eventually { (try? studio.stage.sessionState(of: recorder)) == "inactive" })
    }

    @Test(arguments: ServerKind.allCases) func recorderIsTerminated_fileIsComplete(_ kind: ServerKind) throws {
        let studio = try Studio(kind)
        let recorder = try recording(studio)
        recorder.child.signal(SIGTERM)
        #expect(recorder.child.wait(timeout: 30) == .code(0))
        #expect(try seconds(studio.file) > 0.2)
    }

    /// Records until the file has reached the limit and the recorder has sent its signal. A limit on the file's size
    /// takes the place of a full disk: for the recorder only the error number differs.
    private func recorderThatFills(_ file: String, at limit: Int, _ studio: Studio) throws -> PluginProgram {
        let recorder = try studio.stage.recorder()
        try Child.run("prlimit", ["--fsize=\(limit)", "--pid=\(recorder.child.processID)"])
        #expect(recorder.call("Prepare", [.string(file), .properties([])]) == nil)
        #expect(recorder.call("Record") == nil)
        #expect(eventually(timeout: 20) { recorder.signals.count == 1 })
        return recorder
    }

    @Test(arguments: ["wav", "flac", "ogg", "mp3", "m4a"]) func diskIsFull_isReportedAndTheRecordingIsKept(
        ending: String
    ) throws {
        let studio = try Studio()
        let file = studio.stage.media.path + "/take." + ending
        let limit = ["wav": 150_000, "flac": 60_000, "ogg": 8_000, "mp3": 16_000, "m4a": 16_000][ending] ?? 0
        let recorder = try recorderThatFills(file, at: limit, studio)
        #expect(recorder.signals.first?.hasPrefix("Failed ") == true, "\(recorder.signals)")
        #expect(recorder.state == "failed")
        #expect(eventually { (try? studio.stage.sessionState(of: recorder)) == "inactive" })
        let decoded = try Child.run(
            "ffprobe",
            ["-v", "quiet", "-count_packets", "-show_entries", "stream=nb_read_packets", "-of", "csv=p=0", file])
        #expect((Int(decoded.split(separator: "\n").first ?? "") ?? 0) > 5, "\(ending): \(decoded)")
        // The reported length is the length that plays, up to one frame of the decoder.
        let samples = try Child.run(
            "sh", ["-c", "ffmpeg -v quiet -i '\(file)' -f s16le -ac 1 -ar 44100 - | wc -c"])
        let length = (Double(samples.trimmingCharacters(in: .whitespacesAndNewlines)) ?? 0) / 88_200
        #expect(abs(length - recorder.position) < 0.06, "\(ending): \(length) s, reported \(recorder.position) s")
        if ending == "m4a" {
            // No box of the file is truncated. FFmpeg refuses files with some truncated boxes.
            let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file)))
            var place = 0
            while place + 8 <= bytes.count { place += bytes[place..<place + 4].reduce(0) { $0 << 8 | Int($1) } }
            #expect(place == bytes.count)
        }
        // The recorder continues to serve.
        #expect(recorder.call("Delete") == nil || FileManager.default.fileExists(atPath: file))
        #expect(recorder.call("Prepare", [.string(studio.file), .properties([])]) == nil)
    }

    @Test(arguments: ["wav", "flac", "opus", "mp3", "m4a"]) func diskHasNoSpace_noEmptyFileStays(
        ending: String
    ) throws {
        let studio = try Studio()
        let file = studio.stage.media.path + "/take." + ending
        let recorder = try recorderThatFills(file, at: 0, studio)
        #expect(recorder.signals.first?.hasSuffix("nothing was recorded, so the file was removed") == true)
        #expect(recorder.position == 0)
        #expect(!FileManager.default.fileExists(atPath: file))
    }

    @Test func unwritableFolder_isRefusedWithItsError() throws {
        let studio = try Studio()
        let recorder = try studio.stage.recorder()
        for place in ["/proc/take.wav", "/sys/take.wav", studio.stage.media.path + "/no/take.wav"] {
            let error = recorder.call("Prepare", [.string(place), .properties([])])
            #expect(error == "org.sessiond1.Error.CannotStartRecording", "\(place)")
        }
        #expect(recorder.state == "idle")
    }

    @Test(arguments: ServerKind.allCases) func recordAt_beginsAtThatTime(_ kind: ServerKind) throws {
        let studio = try Studio(kind)
        let recorder = try studio.stage.recorder()
        #expect(recorder.call("Prepare", [.string(studio.file), .properties([])]) == nil)
        #expect(recorder.call("RecordAt", [.double(.nan)]) == "org.sessiond1.Error.BadParameter")
        let start = monotonicNow() + 0.6
        #expect(recorder.call("RecordAt", [.double(start)]) == nil)
        #expect(try studio.stage.sessionState(of: recorder) == "active")
        #expect(recorder.state == "idle" || monotonicNow() >= start)
        #expect(recorder.comes(to: "recording"))
        #expect(monotonicNow() >= start)
        #expect(eventually { recorder.position > 0.2 })
        #expect(recorder.call("Stop") == nil)
        #expect(eventually { recorder.signals == ["Finished true"] })
        // A recording that is stopped before its start time never begins.
        #expect(recorder.call("Prepare", [.string(studio.file), .properties([])]) == nil)
        #expect(recorder.call("RecordAt", [.double(monotonicNow() + 0.3)]) == nil)
        #expect(recorder.call("Stop") == nil)
        #expect(try studio.stage.sessionState(of: recorder) == "inactive")
    }

    @Test(arguments: ServerKind.allCases) func chosenInput_isRecordedFrom(_ kind: ServerKind) throws {
        let studio = try Studio(kind)
        try studio.stage.pulse.addSink("cellar")
        try studio.stage.pulse.loadModule("module-remap-source source_name=deep master=cellar.monitor")
        let other = try Tone(studio.stage.pulse, hertz: 1_000, sink: "cellar")
        try studio.stage.pulse.control.setDefaultSource("microphone")
        #expect(
            eventually {
                let inputs = (try? studio.stage.daemon.property("AvailableInputs"))?.ports ?? []
                return inputs.contains { $0.uid == "deep" }
            })
        let program = try studio.stage.program(
            "sessiond-recorder", ["--input", "deep", "--duration", "0.5", studio.file])
        #expect(program.wait(timeout: 30) == .code(0), "\(program.errors)")
        let samples = try Array(Data(contentsOf: URL(fileURLWithPath: studio.file)).dropFirst(44 + 44_100))
        let values = stride(from: 0, to: samples.count - 3, by: 4).map {
            Int16(truncatingIfNeeded: Int(samples[$0]) | Int(samples[$0 + 1]) << 8)
        }
        // Ten periods, from one rising zero crossing to the tenth after it, are 441 samples at 1,000 Hz. Use the
        // median, because a busy server interrupts the tone now and then.
        let crossings = values.indices.dropFirst().filter { values[$0 - 1] < 0 && values[$0] >= 0 }
        let tens = zip(crossings, crossings.dropFirst(10)).map { $1 - $0 }.sorted()
        let usual = try #require(tens.dropFirst(tens.count / 2).first)
        #expect(abs(usual - 441) <= 1)
        let unknown = try studio.stage.program("sessiond-recorder", ["--input", "nowhere", studio.file])
        #expect(unknown.wait(timeout: 30) == .code(1))
        _ = other
    }

    @Test func impossibleRecording_isRefusedWithItsError() throws {
        let studio = try Studio()
        let deaf = try studio.stage.recorder(["--category", "playback"])
        #expect(
            deaf.call("Prepare", [.string(studio.file), .properties([])])
                == "org.sessiond1.Error.IncompatibleCategory")
        #expect(deaf.call("Record") == "org.sessiond1.Error.CannotStartRecording")
        let recorder = try studio.stage.recorder(["--category", "play-and-record"])
        let bad = "org.sessiond1.Error.BadParameter"
        #expect(recorder.call("Prepare", [.string("take.wav"), .properties([])]) == bad)
        #expect(recorder.call("Prepare", [.string(studio.file), .properties([("format", .string("tape"))])]) == bad)
        #expect(recorder.call("Prepare", [.string(studio.file), .properties([("colour", .string("red"))])]) == bad)
        #expect(
            recorder.call("Prepare", [.string(studio.file), .properties([("channels", .string("2"))])])
                == "org.freedesktop.DBus.Error.InvalidArgs")
        #expect(recorder.call("Record") == "org.sessiond1.Error.CannotStartRecording")
        #expect(eventually { (try? studio.stage.sessionState(of: recorder)) == "inactive" })
        for value in [Double.nan, 0, -1, .infinity] { #expect(recorder.call("RecordFor", [.double(value)]) == bad) }
        #expect(recorder.call("Delete") == bad)
        #expect(recorder.state == "idle")
    }

    private func recording(_ studio: Studio) throws -> PluginProgram {
        let recorder = try studio.stage.recorder()
        #expect(recorder.call("Prepare", [.string(studio.file), .properties([])]) == nil)
        #expect(recorder.call("Record") == nil)
        #expect(eventually { recorder.position > 0.3 })
        return recorder
    }

    /// The length of a 16-bit WAV according to its header; -1 if the file is shorter than that.
    private func seconds(_ path: String, rate: Double = 44_100, frame: Double = 4) throws -> Double {
        let file = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        guard let place = file.indices.first(where: { file[$0...].starts(with: "data".utf8) }), place + 8 <= file.count
        else { return 0 }
        let size = (0..<4).reduce(0) { $0 | Int(file[place + 4 + $1]) << ($1 * 8) }
        guard size <= file.count - place - 8 else { return -1 }
        return Double(size) / rate / frame
    }
}
