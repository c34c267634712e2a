import EventLoop
import Foundation
import GStreamerBackend
import PluginAPI
import TestSupport
import Testing

@Suite(.serialized) struct RecorderTests {
    let folder: PrivateFolder
    /// The player of this stage plays a tone of 1 kHz, which the recorder records from the sink's monitor.
    let stage: Stage
    let recorder: GStreamerRecorder
    let told: Told

    final class Told {
        var finished: [Bool] = []
        var failures: [String] = []
        var states: [RecorderState] = []
        /// From this time on, the recording must contain the tone.
        let began = monotonicNow()
    }

    init() throws {
        folder = try PrivateFolder()
        stage = try Stage()
        recorder = GStreamerRecorder(
            loop: stage.loop, identity: StreamIdentity(clientName: "test recorder", server: stage.pulse.serverString))
        recorder.device = "speaker.monitor"
        let tone = folder.path + "/tone.wav"
        // Long enough that the loop need not run while the test waits for another process.
        try Media.wave(tone, [(1_000, 30)], rate: 8_000, channels: 1)
        stage.player.loops = -1
        stage.player.load(uri: Media.uri(tone))
        try stage.player.play()
        #expect(stage.hears(1_000, above: -8))
        told = Told()
        recorder.onFinished = { [told] in told.finished.append($0) }
        recorder.onFailed = { [told] in told.failures.append($0) }
        recorder.onStateChanged = { [told] in told.states.append($0) }
    }

    private func record(_ name: String, _ settings: RecordingSettings = RecordingSettings()) throws -> String {
        let path = folder.path + "/" + name
        try recorder.prepare(path: path, settings: settings)
        try recorder.record()
        return path
    }

    private func stop() {
        recorder.stop()
        #expect(stage.until { !told.finished.isEmpty })
        #expect(told.finished == [true] && told.failures.isEmpty, "\(told.failures)")
        #expect(recorder.state == .idle)
    }

    /// Decodes a file and expects an uninterrupted tone of 1 kHz and that length. Returns its rate and channels.
    @discardableResult
    private func expectTone(
        _ path: String, seconds: Double, within tolerance: Double = 0.03, gaps: Int = 0
    ) throws -> (rate: Double, channels: Int) {
        let (samples, rate, channels) = try Media.decode(path, in: folder)
        let length = Double(samples.count) / rate
        #expect(abs(length - seconds) < tolerance, "\(length) s of \(seconds)")
        // Both ends are left out, because encoders may change them.
        let window = Int(rate * 0.02)
        var quiet = 0
        for start in stride(from: Int(rate * 0.15), to: samples.count - Int(rate * 0.1) - window, by: window) {
            let level = Media.level(of: 1_000, in: samples[start..<start + window], rate: rate)
            if level < -9 || level > -4 { quiet += 1 }
        }
        // On a busy machine, the server itself skips sound. Sound that is also missing in the recording of the monitor
        // was not lost by the recorder.
        let trace = stage.ear.trace(1_000, window: 0.02, since: told.began)
        let unheard = trace.filter { $0.level < -9 || $0.level > -4 }.count
        #expect(quiet <= gaps + 2 * unheard, "windows without the tone, \(unheard) of them unheard")
        return (rate, channels)
    }

    @Test(arguments: RecordingFormat.allCases) func everyFormat_keepsTheToneAndItsLength(
        format: RecordingFormat
    ) throws {
        let endings: [RecordingFormat: String] = [.vorbis: "ogg", .alac: "m4a", .aac: "m4a"]
        let ending = endings[format] ?? format.rawValue
        let path = try record("take.\(ending)", RecordingSettings(format: format))
        #expect(recorder.state == .recording)
        #expect(stage.until { recorder.position > 1.5 })
        stop()
        let (rate, channels) = try expectTone(
            path, seconds: recorder.position, within: [.mp3, .aac].contains(format) ? 0.1 : 0.05)
        #expect(rate == (format == .opus ? 48_000 : 44_100))
        #expect(channels == 2)
    }

    @Test(arguments: ["wav", "flac", "ogg", "opus", "mp3"]) func pauseLeavesAPlayableFile_andResumingAppends(
        ending: String
    ) throws {
        let path = try record("take.\(ending)")
        #expect(stage.until { recorder.position > 1 })
        recorder.pause()
        #expect(recorder.state == .paused)
        stage.pass(0.3)
        let first = recorder.position
        stage.pass(0.3)
        #expect(recorder.position == first)
        // The encoder's buffers are not in the file yet.
        try expectTone(path, seconds: first, within: ending == "wav" ? 0.001 : 0.35)
        try recorder.record()
        #expect(stage.until { recorder.position > first + 1 })
        stop()
        #expect(told.states == [.recording, .paused, .recording, .idle])
        // The wave may jump at the pause, but nothing more.
        try expectTone(path, seconds: recorder.position, within: ending == "mp3" ? 0.1 : 0.05, gaps: 2)
    }

    @Test(arguments: ["wav", "flac", "ogg"]) func stopWhilePaused_finishesTheFile(ending: String) throws {
        let path = try record("take.\(ending)")
        #expect(stage.until { recorder.position > 0.7 })
        recorder.pause()
        stage.pass(0.2)
        stop()
        try expectTone(path, seconds: recorder.position, within: 0.05)
    }

    /// Both would be written into it, and neither could be heard.
    @Test(arguments: ["wav", "flac"]) func fileOfAnotherRecording_isRefused_untilThatHasEnded(ending: String) throws {
        let path = try record("take.\(ending)")
        #expect(stage.until { recorder.position > 0.7 })
        let second = GStreamerRecorder(
            loop: stage.loop, identity: StreamIdentity(clientName: "second", server: stage.pulse.serverString))
        second.device = "speaker.monitor"
        do {
            try second.prepare(path: path, settings: RecordingSettings())
            Issue.record("two recordings have one file")
        } catch {
            #expect(error.code == .isBusy && error.message.hasPrefix("'\(path)' is being recorded"), "\(error)")
        }
        #expect(stage.until { recorder.position > 1.2 })
        stop()
        try expectTone(path, seconds: recorder.position, within: 0.05)
        try second.prepare(path: path, settings: RecordingSettings())
    }

    @Test(arguments: ["removed", "moved", "replaced"])
    func fileThatHasNotItsNameAnyMore_isAFailure(what: String) throws {
        let path = try record("take.wav")
        #expect(stage.until { recorder.position > 0.3 })
        if what == "moved" {
            try FileManager.default.moveItem(atPath: path, toPath: path + "-2")
        } else {
            try FileManager.default.removeItem(atPath: path)
        }
        if what == "replaced" { try Data("mine".utf8).write(to: URL(fileURLWithPath: path)) }
        recorder.stop()
        #expect(stage.until { told.failures.count + told.finished.count > 0 })
        #expect(recorder.state == .failed && told.finished.isEmpty)
        let reason = what == "moved" ? "it is '\(path)-2'" : "it was removed while it was recorded"
        #expect(told.failures.first?.contains(reason) == true, "\(told.failures)")
        if what == "replaced" { #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data("mine".utf8)) }
    }

    @Test(arguments: ["wav", "ogg"]) func sourceGivesNoData_stopFinishesTheFileAtOnce(ending: String) throws {
        let path = try record("tone.\(ending)")
        #expect(stage.until { recorder.position > 1 })
        try Child.run("pactl", ["-s", stage.pulse.serverString, "suspend-sink", "speaker", "1"])
        stage.pass(0.2)
        let length = recorder.position
        let before = monotonicNow()
        stop()
        #expect(monotonicNow() - before < 1)
        try Child.run("pactl", ["-s", stage.pulse.serverString, "suspend-sink", "speaker", "0"])
        try expectTone(path, seconds: length)
    }

    @Test func serverIsStopped_callsReturnAtOnce_andTheFileIsComplete() throws {
        let path = try record("a.wav")
        #expect(stage.until { recorder.position > 0.3 })
        stage.pulse.suspend()
        let asked = monotonicNow()
        recorder.pause()
        #expect(recorder.state == .paused)
        #expect(recorder.position > 0.3)
        try recorder.record()
        recorder.pause()
        #expect(throws: SessionError.self) { try recorder.prepare(path: path, settings: RecordingSettings()) }
        // The calls must not wait for the server.
        #expect(monotonicNow() - asked < 10)
        stage.pulse.resume()
        stage.pass(0.3)
        stop()
        #expect(try Media.decode(path, in: folder).samples.count > 4_000)
        stage.pulse.suspend()
        #expect(throws: SessionError(.mediaServicesFailed, "the sound server does not answer")) {
            try recorder.prepare(path: folder.path + "/b.wav", settings: RecordingSettings())
        }
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/b.wav"))
        stage.pulse.resume()
        told.finished = []
        // This succeeds when the server has carried out the requests made meanwhile.
        let again = folder.path + "/b.wav"
        #expect(
            stage.until {
                // Each refused attempt makes another request.
                stage.pass(0.1)
                return (try? recorder.prepare(path: again, settings: RecordingSettings())) != nil
            })
        try recorder.record()
        #expect(stage.until { recorder.position > 0.1 })
        stop()
    }

    @Test func telephoneSettings_are8BitMono() throws {
        let path = try record("take.wav", RecordingSettings(sampleRate: 8_000, channels: 1, bitDepth: 8))
        #expect(stage.until { recorder.position > 1 })
        stop()
        let header = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)).prefix(44))
        #expect(header[34] == 8 && header[32] == 1)
        let (rate, channels) = try expectTone(path, seconds: recorder.position)
        #expect(rate == 8_000 && channels == 1)
    }

    @Test(arguments: [
        ("wav", 16, false), ("wav", 24, false), ("wav", 32, false), ("wav", 32, true), ("flac", 8, false),
        ("flac", 24, false),
    ]) func everyDepth_keepsTheTone(ending: String, depth: Int, isFloat: Bool) throws {
        let settings = RecordingSettings(sampleRate: 44_100, channels: 1, bitDepth: depth, isFloat: isFloat)
        let path = try record("take.\(ending)", settings)
        #expect(stage.until { recorder.position > 0.6 })
        stop()
        let (rate, channels) = try expectTone(path, seconds: recorder.position)
        #expect(rate == 44_100 && channels == 1)
    }

    @Test func recordingForATime_isExactToTheSample() throws {
        let path = folder.path + "/take.wav"
        try recorder.prepare(path: path, settings: RecordingSettings(channels: 1))
        try recorder.record(for: 0.75)
        #expect(stage.until { !told.finished.isEmpty })
        #expect(told.finished == [true])
        #expect(recorder.position == 0.75)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)).count == 44 + 33_075 * 2)
    }

    @Test func meters_changeWhileRecording() throws {
        let path = try record("take.wav", RecordingSettings(bitDepth: 24))
        #expect(recorder.meters().isEmpty)
        recorder.meteringEnabled = true
        #expect(
            stage.until {
                guard let level = recorder.meters().first else { return false }
                return abs(level.peak + 6) < 0.5 && abs(level.average + 9) < 0.5
            }, "\(recorder.meters())")
        #expect(recorder.meters().count == 2)
        recorder.meteringEnabled = false
        stage.pass(0.3)
        #expect(recorder.meters().isEmpty)
        stop()
        try expectTone(path, seconds: recorder.position)
    }

    @Test func delete_worksOnlyWhenStopped() throws {
        let path = try record("take.wav")
        #expect(throws: SessionError.self) { try recorder.delete() }
        #expect(throws: SessionError.self) { try recorder.prepare(path: path, settings: RecordingSettings()) }
        stop()
        try recorder.delete()
        #expect(!FileManager.default.fileExists(atPath: path))
        #expect(throws: SessionError.self) { try recorder.delete() }
        #expect(throws: SessionError.self) { try recorder.record() }
    }

    @Test func incompatibleSettings_areRefusedByName() {
        func refusal(_ path: String, _ settings: RecordingSettings) -> String {
            do {
                try recorder.prepare(path: folder.path + "/" + path, settings: settings)
                return ""
            } catch { return error.message }
        }
        #expect(refusal("take", RecordingSettings()).contains("format"))
        #expect(refusal("take.opus", RecordingSettings(sampleRate: 44_100)).contains("sample-rate"))
        #expect(refusal("take.wav", RecordingSettings(sampleRate: .nan)).contains("sample-rate"))
        #expect(refusal("take.wav", RecordingSettings(channels: 0)).contains("channels"))
        #expect(refusal("take.wav", RecordingSettings(bitDepth: 12)).contains("bit-depth"))
        #expect(refusal("take.mp3", RecordingSettings(bitDepth: 16)).contains("bit-depth"))
        #expect(refusal("take.flac", RecordingSettings(isFloat: true)).contains("float"))
        #expect(refusal("no/such/folder.wav", RecordingSettings()).contains("no/such' does not exist"))
        #expect(recorder.state == .idle && recorder.path == nil)
    }

    @Test func appleLossless_is44100HzMono() throws {
        let path = try record("take.m4a", RecordingSettings(format: .alac, sampleRate: 44_100, channels: 1))
        #expect(stage.until { recorder.position > 1 })
        stop()
        let (rate, channels) = try expectTone(path, seconds: recorder.position, within: 0.1)
        #expect(rate == 44_100 && channels == 1)
    }

    @Test(arguments: ["wav", "flac", "ogg", "m4a"]) func sourceEnds_isReportedAndTheFileIsPlayable(
        ending: String
    ) throws {
        let path = try record("take.\(ending)")
        #expect(stage.until { recorder.position > 0.5 })
        stage.pulse.kill()
        #expect(stage.until { !told.failures.isEmpty })
        #expect(recorder.state == .failed)
        #expect(told.failures.first?.contains("sound server") == true, "\(told.failures)")
        // The encoder's buffers were written before the failure was reported.
        try expectTone(path, seconds: recorder.position, within: ending == "wav" ? 0.01 : 0.1)
    }

    @Test(arguments: ["wav", "flac"]) func noServer_isReportedByPrepareAndNoFileIsChanged(ending: String) throws {
        stage.pulse.kill()
        let old = try folder.file("old.\(ending)", "the last take")
        let new = folder.path + "/new.\(ending)"
        for path in [old, new] {
            #expect(throws: SessionError.self) { try recorder.prepare(path: path, settings: RecordingSettings()) }
        }
        #expect(try String(contentsOfFile: old, encoding: .utf8) == "the last take")
        #expect(!FileManager.default.fileExists(atPath: new))
    }

    @Test(arguments: ["wav", "flac", "ogg", "opus", "mp3", "m4a"]) func processIsKilled_recordingIsKept(
        ending: String
    ) async throws {
        let path = folder.path + "/take.\(ending)"
        let server = stage.pulse.serverString
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String, server = server as String] in
            let loop = EventLoop()
            let recorder = GStreamerRecorder(
                loop: loop, identity: StreamIdentity(clientName: "killed", server: server))
            recorder.device = "speaker.monitor"
            try recorder.prepare(path: path, settings: RecordingSettings())
            try recorder.record()
            let tick = Ticker(on: loop)
            loop.iterate(timeout: 20) { recorder.position > 2.4 }
            tick.stop()
            kill(getpid(), SIGKILL)
        }
        try expectTone(path, seconds: 2.4, within: ending == "m4a" ? 1 : 0.5)
        if ending == "wav" { try expectEveryReader(path) }
    }

    /// Copies the file while it grows.
    @Test func growingWAV_playsToItsEndInEveryReader() throws {
        let path = try record("take.wav")
        #expect(stage.until { recorder.position > 1.2 })
        let copy = folder.path + "/copy.wav"
        try FileManager.default.copyItem(atPath: path, toPath: copy)
        stop()
        try expectEveryReader(copy)
        try expectEveryReader(path)
    }

    /// Expects that GStreamer, FFmpeg, mpv and paplay (libsndfile) play all samples of a WAV with a header of 44 bytes,
    /// and no more.
    ///
    /// The headers of the WAVs that they write are a few bytes longer, which count as a few frames here.
    private func expectEveryReader(_ path: String) throws {
        let size = try #require(try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int)
        let frames = (size - 44) / 4
        let decoded = try Media.decode(path, in: folder).samples.count
        #expect((frames...frames + 16).contains(decoded), "\(decoded) of \(frames)")
        let probe = try Child.run(
            "ffprobe", ["-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", path])
        #expect(abs((Double(probe) ?? 0) - Double(frames) / 44_100) < 0.001, "\(probe)")
        for (program, arguments, output) in [
            ("ffmpeg", ["-nostdin", "-v", "error", "-y", "-i", path], "ffmpeg.wav"),
            ("mpv", ["--no-config", "--really-quiet", "--ao=pcm", path], "mpv.wav"),
        ] {
            let made = folder.path + "/" + output
            try Child.run(program, arguments + [program == "mpv" ? "--ao-pcm-file=\(made)" : made])
            let samples = try Media.decode(made, in: folder).samples.count
            #expect((frames...frames + 16).contains(samples), "\(program): \(samples) of \(frames)")
        }
        // Played to its end, because paplay writes no file. Silence in the recording came from the server.
        let sound = Sounding(try Media.decode(path, in: folder).samples, rate: 44_100)
        stage.player.pause()
        #expect(stage.hears(1_000, below: -60))
        let begin = monotonicNow()
        try Child.run("paplay", [path], environment: stage.pulse.environment)
        #expect(stage.hears(1_000, below: -60))
        let heard = stage.ear.sounding(since: begin)
        #expect(abs(heard.seconds - sound.seconds) < 0.02, "\(heard) of \(sound)")
        try stage.player.play()
        #expect(stage.hears(1_000, above: -8))
    }
}
