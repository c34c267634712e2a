import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// `sessionctl play`, `record` and `effect`, with the real programs on a real sound server.
@Suite(.serialized) struct SessionctlMediaTests {
    let pulse: any PrivateServer
    let stage: SessionctlStage

    init() throws {
        pulse = try ServerKind.standard.server()
        stage = try SessionctlStage(on: pulse)
    }

    @Test func files_areNamedAndPlayedToTheirEnds() throws {
        let outcome = try stage.run(
            ["play", stage.tone("one.wav", seconds: 0.3), stage.tone("two.wav", seconds: 0.2)], timeout: 60)
        #expect(outcome.code == 0)
        #expect(outcome.output.filter { $0.hasPrefix("playing ") }.count == 2)
        #expect(outcome.text.contains("one") && outcome.text.contains("two"))
        #expect(!outcome.text.contains("\u{1B}"))
    }

    @Test(arguments: ["q.avi", "a film.v2", "q.MPG"]) func exportToAnotherEnding_isRefusedWithTheFour(_ name: String)
        throws
    {
        let film = try stage.tone("film.wav", seconds: 0.2)
        let outcome = try stage.run(["export", film, stage.file(name)])
        #expect(outcome.code == 64 && outcome.complaint.contains(".mp4, .mov, .m4a, .webm"), "\(outcome)")
        #expect(!FileManager.default.fileExists(atPath: stage.file(name)))
    }

    private func installFilms() throws {
        let plugins = pulse.folder.path + "/.local/share/sessiond/plugins"
        try FileManager.default.createDirectory(atPath: plugins, withIntermediateDirectories: true)
        try FileManager.default.copyItem(
            atPath: repository.path + "/data/plugins/assets.plugin", toPath: plugins + "/assets.plugin")
    }

    @Test func targetThatExists_isRefusedWithTheOptionThatReplacesIt_andADetachedJobIsNamedAsInJobs() throws {
        try installFilms()
        let film = try TestMedia.named("short-gop.mp4").path()
        _ = try stage.daemon.bus.folder.file("out.mp4", "old")
        let refused = try stage.run(["export", film, stage.file("out.mp4")], timeout: 60)
        #expect(refused.code == 1 && refused.complaint.hasSuffix("replace it with --overwrite"), "\(refused)")
        let begun = try stage.run(["export", "--detach", film, stage.file("new.mp4")], timeout: 60)
        #expect(begun.code == 0 && begun.text.hasPrefix("assets/"), "\(begun)")
        let jobs = try stage.run(["jobs"])
        #expect(jobs.output.contains { $0.hasPrefix(begun.text + " ") }, "\(jobs)")
    }

    @Test func pictureThatCannotBeWritten_isNamedAsItWasAskedFor() throws {
        try installFilms()
        let film = try TestMedia.named("short-gop.mp4").path()
        let target = stage.file("nowhere/shot-%d.jpg")
        let outcome = try stage.run(["thumbnail", film, "--at", "0.5,1", "-o", target], timeout: 60)
        #expect(
            outcome.code == 1 && outcome.complaint.contains("/nowhere/shot-1.jpg': there is no such folder"),
            "\(outcome)")
    }

    @Test(arguments: [
        (["--audio", "7"], "there is no sound track 7: the film has only 1"),
        (["--from", "1:40"], "--from 1:40 is after the end of the film, which lasts 0:02"),
    ]) func filmWithoutWhatIsAskedFor_isRefusedInTheWordsOfTheOption(options: [String], text: String) throws {
        let film = stage.file("part.mp4")
        try Child.run(
            "ffmpeg",
            [
                "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc=d=2:s=160x120:r=10", "-f", "lavfi", "-i",
                "sine=d=2", "-c:v", "mjpeg", "-c:a", "aac", film,
            ])
        let outcome = try stage.run(["watch", "--output", "none", film] + options, timeout: 60)
        #expect(outcome.code == 1 && outcome.complaint == "sessionctl: " + text, "\(outcome)")
    }

    @Test func noFilm_isNotCalledAudio() throws {
        let junk = try stage.daemon.bus.folder.file("junk.mp4", String(repeating: "no film ", count: 700))
        let outcome = try stage.run(["watch", "--output", "none", junk], timeout: 60)
        #expect(outcome.code == 1 && !outcome.complaint.contains("it is not audio"), "\(outcome)")
    }

    /// Names that people and cameras give to films look like addresses.
    @Test func nameWithAColon_isThatOfTheFile() throws {
        let film = stage.file("Alien: Romulus.avi")
        try Child.run(
            "ffmpeg", ["-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc=d=1:s=160x120:r=10", "file:" + film])
        let folder = film.prefix(film.count - "Alien: Romulus.avi".count)
        let text = try Child.run(
            "sh",
            [
                "-c",
                "cd '\(folder)' && exec '\(builtProduct(named: "sessionctl"))' watch --output none 'Alien: Romulus.avi'",
            ], environment: stage.environment, timeout: 60)
        #expect(text.contains("playing Alien: Romulus.avi (0:01)"), "\(text)")
    }

    @Test func unknownInput_isToldWithTheCommandThatListsThem() throws {
        let outcome = try stage.run(["record", "--device", "nosuch", stage.file("take.wav")], timeout: 60)
        #expect(outcome.code == 1 && outcome.complaint.contains("'sessionctl route' lists"), "\(outcome)")
        #expect(!outcome.complaint.contains("AvailableInputs"), "\(outcome)")
    }

    /// The plugin of another author is not ours, and has no queue.
    @Test func uriOfAnotherPlugin_isPlayedByItUntilControlC() throws {
        let plugins = pulse.folder.path + "/.local/share/sessiond/plugins"
        try FileManager.default.createDirectory(atPath: plugins, withIntermediateDirectories: true)
        let example = repository.path + "/Examples/Plugins/tone/"
        try String(contentsOfFile: example + "tone.plugin", encoding: .utf8)
            .replacingOccurrences(of: "Exec=", with: "Exec=" + example)
            .write(toFile: plugins + "/tone.plugin", atomically: true, encoding: .utf8)
        let child = try stage.start(["play", "tone:440"])
        #expect(child.line(timeout: 60) { $0 == "playing tone:440" } != nil, "\(child.errors)")
        #expect(try stage.session("Tone")?["State"]?.stringValue == "active")
        child.signal(SIGINT)
        #expect(child.wait(timeout: 20) == .code(130))
        #expect(try eventually { try stage.session("Tone")?["State"]?.stringValue != "active" })
        let several = try stage.run(["play", "tone:440", "tone:880"])
        #expect(several.code == 64 && several.complaint.contains("alone"), "\(several)")
        let named = try stage.run(["play", "--name", "Mine", "tone:440"])
        #expect(named.code == 64 && named.complaint.contains("a session of its own"), "\(named)")
        let kept = try stage.run(["play", "--cache", "tone:440"])
        #expect(kept.code == 64 && kept.complaint.contains("--cache does not apply to 'tone:440'"), "\(kept)")
        let unknown = try stage.run(["play", "flute:440"])
        #expect(unknown.code == 1, "\(unknown)")
    }

    @Test func noInput_isSaidBeforeTheRecording() throws {
        let child = try stage.start(["record", "--duration", "0.3", stage.file("take.wav")])
        #expect(child.line(timeout: 60) { $0.contains("there is no input, such as a microphone") } != nil)
        child.signal(SIGINT)
        _ = child.wait(timeout: 60)
    }

    @Test func folder_isPlayedInTheOrderOfItsNames() throws {
        try FileManager.default.createDirectory(
            atPath: stage.file("Music/disc 2"), withIntermediateDirectories: true)
        for name in ["Music/02 #2? 50%.wav", "Music/01.wav", "Music/disc 2/01 last.wav", "Music/.hidden.wav"] {
            _ = try stage.tone(name, seconds: 0.2)
        }
        _ = try stage.daemon.bus.folder.file("Music/list.m3u", "01.wav\n")
        _ = try stage.daemon.bus.folder.file("Music/cover.jpg", "no picture")
        let outcome = try stage.run(["play", stage.file("Music")], timeout: 60)
        #expect(outcome.code == 0, "\(outcome)")
        let played = outcome.output.filter { $0.hasPrefix("playing ") }
        #expect(played.count == 3, "\(outcome)")
        for (line, title) in zip(played, ["01", "02 #2? 50%", "01 last"]) { #expect(line.contains(title), "\(played)") }
        try FileManager.default.createDirectory(
            atPath: stage.file("Empty"), withIntermediateDirectories: true)
        let empty = try stage.run(["play", stage.file("Empty")])
        #expect(empty.code == 1 && empty.complaint.contains("nothing in this folder can be played"), "\(empty)")
    }

    /// A program that ends normally closes its session, so that the history shows no lost client.
    @Test func playerAndRecorderEnd_theirSessionsAreClosed() throws {
        for (count, arguments) in [
            ["play", try stage.tone("one.wav", seconds: 0.2)], ["record", "--duration", "0.3", stage.file("take.wav")],
        ].enumerated() {
            #expect(try stage.run(arguments, timeout: 60).code == 0)
            let decisions = try stage.daemon.manager("History", [.uint32(100)]).first?.arrayValue ?? []
            let events = decisions.compactMap { $0.asProperties?["event"]?.stringValue }
            #expect(events.filter { $0 == "close" }.count == count + 1, "\(events)")
            #expect(!events.contains("client-vanished"), "\(events)")
        }
    }

    @Test func oneFileIsMissing_othersArePlayedAndTheExitCodeIsOne() throws {
        let outcome = try stage.run(
            ["play", stage.file("absent.wav"), stage.tone("one.wav", seconds: 0.2)], timeout: 60)
        #expect(outcome.code == 1)
        #expect(outcome.errors.count == 1 && outcome.complaint.contains("absent.wav"), "\(outcome.errors)")
        #expect(outcome.output.contains { $0.contains("one") })
    }

    @Test func soundServerDiffersFromTheDaemons_playTellsWhatToDo() throws {
        let outcome = try stage.run(
            ["play", stage.tone("one.wav", seconds: 0.2)], more: ["PULSE_SERVER": "unix:/nowhere"], timeout: 60)
        #expect(outcome.code == 1 && outcome.text.isEmpty)
        #expect(outcome.complaint.contains("unix:/nowhere") && outcome.complaint.contains("unset"), "\(outcome)")
    }

    @Test func daemonHasNoSoundServer_playUsesItsOwn() throws {
        let deaf = try SessionctlStage()
        let more = ["PULSE_SERVER": pulse.serverString]
        let outcome = try deaf.run(
            [
                "play", stage.file("absent.wav"), stage.tone("one.wav", seconds: 0.2),
                stage.tone("two.wav", seconds: 0.2),
            ], more: more,
            timeout: 60)
        #expect(outcome.code == 1 && outcome.output.count == 2, "\(outcome)")
        #expect(outcome.errors.count == 1 && outcome.complaint.contains("absent.wav"), "\(outcome)")
    }

    @Test func callBegins_playPrintsWhoInterrupts() throws {
        let child = try stage.start(["play", "--name", "Tune", stage.tone("long.wav", seconds: 30)])
        #expect(child.line { $0.hasPrefix("playing ") } != nil)
        let client = try stage.daemon.client()
        let phone = try client.beginCall("Phone")
        #expect(child.line { $0 == "interrupted by Phone" } != nil)
        client.deactivate(phone, notify: true)
        #expect(child.line { $0 == "resumed" } != nil)
        child.signal(SIGINT)
        #expect(child.wait() == .code(130))
        #expect(try eventually { try stage.session("Tune") == nil })
    }

    @Test func effects_arePlayedToTheirEnds_andTheExitCodeReportsErrors() throws {
        let ear = try Ear(pulse, sink: "speaker")
        let outcome = try stage.run(
            ["effect", stage.tone("one.wav", seconds: 0.5), stage.tone("two.wav", seconds: 0.3)], timeout: 60)
        #expect(outcome.code == 0 && outcome.text.isEmpty && outcome.complaint.isEmpty, "\(outcome)")
        #expect(ear.trace(440, window: 0.02).contains { $0.level > -20 })
        #expect(try stage.run(["effect", stage.file("absent.wav"), stage.file("two.wav")], timeout: 60).code == 1)
        let refused = try stage.run(["effect", stage.tone("long.wav", seconds: 31)], timeout: 60)
        #expect(refused.code == 1)
        #expect(refused.complaint.contains("longer than 30 s"))
        #expect(try pulse.pactl(["list", "short", "samples"]) == "")
        #expect(try stage.run(["effect"], timeout: 60).code == 64)
    }

    @Test func recordingWithADuration_writesAndNamesItsFile() throws {
        let outcome = try stage.run(["record", "--duration", "0.5", stage.file("take.wav")], timeout: 60)
        #expect(outcome.code == 0)
        #expect(outcome.output.last?.contains("take.wav  0.5 s") == true)
        let size = try FileManager.default.attributesOfItem(atPath: stage.file("take.wav"))[.size] as? Int
        #expect(size ?? 0 > 20_000)
    }

    @Test func recordingIsEndedWithControlC_fileIsComplete() throws {
        let child = try stage.start(["record", stage.file("take.flac")])
        #expect(child.line { $0.hasPrefix("recording ") } != nil)
        child.signal(SIGINT)
        #expect(child.wait(timeout: 30) == .code(0))
        #expect(child.text.contains("take.flac  "))
    }

    @Test func microphoneIsRemoved_recordingToAPipeEndsWithItsFile() throws {
        let source = try Tone(pulse, hertz: 440, sink: "speaker")
        let module = try pulse.loadModule("module-remap-source source_name=microphone master=speaker.monitor")
        #expect(eventually { (try? stage.daemon.property("CurrentRoute"))?.route?.inputs.isEmpty == false })
        let child = try stage.start(["record", stage.file("take.wav")])
        #expect(child.line { $0.hasPrefix("recording ") } != nil)
        #expect(
            eventually { ((try? Data(contentsOf: URL(fileURLWithPath: stage.file("take.wav"))))?.count ?? 0) > 40_000 })
        try pulse.unloadModule(module)
        let outcome = try SessionctlStage.outcome(of: child, ["record"], 30)
        #expect(outcome.code == 1)
        #expect(outcome.output.count == 2 && outcome.output.last?.contains("take.wav  ") == true, "\(outcome)")
        #expect(outcome.errors.count == 1 && outcome.complaint.contains("was disconnected"), "\(outcome)")
        try source.cork()
    }

    @Test(arguments: ["play", "record", "effect"]) func modeOfAnotherCategory_isReportedOnce(command: String) throws {
        let outcome = try stage.run(
            [command, stage.tone("one.wav", seconds: 0.2), "--category", "ambient", "--mode", "voice-chat"], timeout: 60
        )
        #expect(outcome.code == 1)
        #expect(outcome.errors.count == 1 && outcome.complaint.contains("not allowed with category 'ambient'"))
    }

    @Test func folderIsMissing_recordingIsRefused() throws {
        let outcome = try stage.run(["record", stage.file("nowhere/take.wav")], timeout: 60)
        #expect(outcome.code == 1)
        #expect(outcome.complaint.contains("nowhere' does not exist; create it first"))
    }

    /// Two common settings of iOS apps: Apple Lossless, 44.1 kHz, mono; and telephone quality, 8 kHz, mono, 8 bit.
    @Test(arguments: [
        ("take.m4a", ["--format", "alac", "--rate", "44100", "--channels", "1"], "alac,44100,1"),
        ("take.wav", ["--rate", "8000", "--channels", "1", "--bit-depth", "8"], "pcm_u8,8000,1"),
    ])
    func recordedFile_isPlayedBack(name: String, settings: [String], kind: String) throws {
        let ear = try Ear(pulse, sink: "speaker")
        let source = try Tone(pulse, hertz: 440, sink: "speaker")
        #expect(try stage.run(["record", "--duration", "1.5"] + settings + [stage.file(name)], timeout: 60).code == 0)
        let probe = try Child.run(
            "ffprobe",
            [
                "-v", "error", "-show_entries", "stream=codec_name,sample_rate,channels", "-of", "csv=p=0",
                stage.file(name),
            ])
        #expect(probe.hasPrefix(kind), "\(probe)")
        try source.cork()
        #expect(ear.waitUntil(440, below: -60))
        let begin = monotonicNow()
        let outcome = try stage.run(["play", stage.file(name)], timeout: 60)
        #expect(outcome.code == 0 && outcome.output == ["playing \(name) (0:01)"], "\(outcome)")
        let trace = ear.trace(440, window: 0.02, since: begin)
        #expect(trace.filter { $0.level > -18 }.count > 50)
    }

    @Test func noSoundServer_playEndsWithTheReason() throws {
        let path = try stage.tone("one.wav", seconds: 0.3)
        pulse.kill()
        #expect(eventually { (try? stage.daemon.property("ServerConnected")) == .bool(false) })
        let outcome = try stage.run(["play", path], timeout: 60)
        #expect(outcome.code == 1)
        #expect(outcome.complaint.contains("sound server"), "\(outcome)")
    }

    /// A radio that sends MP3 in real time, with a title between the pieces (ICY).
    private static let radio = """
        import socket, sys, time
        data = open(sys.argv[1], 'rb').read()
        step = 4000
        server = socket.socket()
        server.bind(('127.0.0.1', 0))
        server.listen(8)
        print('port', server.getsockname()[1])
        while True:
            peer = server.accept()[0]
            peer.recv(65536)
            try:
                peer.sendall(b'HTTP/1.0 200 OK\\r\\nContent-Type: audio/mpeg\\r\\nicy-metaint: %d\\r\\n\\r\\n' % step)
                begin = time.monotonic()
                for at in range(0, len(data) - step, step):
                    title = b"StreamTitle='%s Song';" % (b'First' if at < 120000 else b'Second')
                    length = -(-len(title) // 16)
                    peer.sendall(data[at:at + step] + bytes([length]) + title.ljust(length * 16, b'\\0'))
                    time.sleep(max(0, begin + (at - 80000) / 16000 - time.monotonic()))
            except OSError:
                pass
        """

    @Test func radioPlaysTheNextSong_itsTitleIsPrinted() throws {
        let music = stage.file("music.mp3")
        try Child.run(
            "ffmpeg",
            ["-nostdin", "-v", "error", "-f", "lavfi", "-i", "sine=d=30:r=44100", "-b:a", "128k", music])
        let radio = try Child("/usr/bin/python3", ["-u", "-c", Self.radio, music])
        let port = try #require(radio.line { $0.hasPrefix("port ") }?.dropFirst(5))
        let child = try stage.start(["play", "http://127.0.0.1:\(port)/"])
        #expect(child.line(timeout: 30) { $0 == "playing First Song" } != nil, "\(child.text) \(child.errors)")
        #expect(child.line(timeout: 30) { $0 == "playing Second Song" } != nil, "\(child.text) \(child.errors)")
        child.signal(SIGINT)
        #expect(child.wait() == .code(130))
    }
}
