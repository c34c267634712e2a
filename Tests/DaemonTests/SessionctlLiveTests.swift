import DBus
import Foundation
import PluginAPI
import SessionBus
import SessionKit
import TestSupport
import Testing

/// `sessionctl live push` and `LiveStream` of SessionKit, with the real plugin, daemon, sound server and server of streams.
@Suite(.serialized) struct SessionctlLiveTests {
    private static let hasServer = RTMPServer.isInstalled
    private static let registry = ["GST_REGISTRY": TestMedia.registry]

    @Test(.enabled(if: hasServer, "nginx has no module for RTMP here"))
    func film_isSentAndRecorded_andTheKeyIsShownNowhere() throws {
        let server = try RTMPServer()
        let stage = try SessionctlStage()
        let key = stage.file("key")
        try "  the-s3cret \nmore\n".write(toFile: key, atomically: true, encoding: .utf8)
        let push = try stage.start(
            [
                "live", "push", "rtmp://127.0.0.1:\(server.port)/live", "--key-file", key, "--file",
                try TestMedia.named("short-gop.mp4").path(), "--record", stage.file("copy.mkv"),
            ], more: Self.registry)
        let shown = "rtmp://127.0.0.1:\(server.port)/live/…"
        #expect(push.line(timeout: 20) { $0 == "connecting to \(shown)" } != nil)
        #expect(push.line(timeout: 20) { $0 == "live" } != nil)
        // What others on the bus can read.
        let name = "org.sessiond1.Live.instance"
        let owner = try stage.daemon.observer.askBusAndWait("ListNames", [], timeout: 5).first?.stringsValue?
            .first { $0.hasPrefix(name) }
        let fields = try stage.daemon.observer.callAndWait(
            try #require(owner), "/org/sessiond1/live/stream/1", StandardName.properties, "GetAll",
            [.string(BusName.liveStream)], timeout: 5
        ).first?.asProperties
        #expect(fields?["Url"]?.stringValue == shown && fields?["State"]?.stringValue == "live")
        #expect(!"\(fields ?? [:])".contains("s3cret"))
        // Only its owner may end it.
        #expect(throws: Failure.self) {
            _ = try stage.daemon.observer.callAndWait(
                owner ?? "", "/org/sessiond1/live/stream/1", BusName.liveStream, "Stop", [], timeout: 5)
        }
        let outcome = try SessionctlStage.outcome(of: push, ["live"], 40)
        #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(outcome)")
        #expect(outcome.output.last?.contains(" sent, 0 pictures dropped, 0 reconnects") == true, "\(outcome.output)")
        #expect(!(outcome.text + outcome.complaint).contains("s3cret"))
        #expect(server.taken.count == 1 && server.taken[0].contains("the-s3cret"))
        let numbers = try TestMedia.numbers(
            ["-i", stage.file("copy.mkv"), "-vsync", "passthrough"], width: 320, height: 180)
        #expect(numbers == Array(0..<300))
    }

    @Test(arguments: ServerKind.allCases)
    func call_silencesTheMicrophoneAndNotThePictures(_ kind: ServerKind) throws {
        let reporter = try ReporterStage(kind, recording: "copy.mp4")
        let (stage, push, file) = (reporter.stage, reporter.push, reporter.file)
        #expect(try stage.session("Reporter")?["Category"]?.stringValue == "play-and-record")
        #expect(try stage.session("Reporter")?["Mode"]?.stringValue == "video-recording")
        // The lengths of the parts; nothing has to be ready.
        Thread.sleep(forTimeInterval: 2)
        let client = try stage.daemon.client()
        let call = try client.beginCall("Phone")
        #expect(push.line { $0 == "interrupted: viewers hear nothing" } != nil)
        Thread.sleep(forTimeInterval: 2)
        client.deactivate(call)
        #expect(push.line { $0 == "the microphone is heard again" } != nil)
        Thread.sleep(forTimeInterval: 2)
        push.signal(SIGINT)
        let outcome = try SessionctlStage.outcome(of: push, ["live"], 20)
        #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(outcome)")
        withExtendedLifetime(reporter) {}
        // One silence between two parts with sound.
        let listener = try Child(
            "ffmpeg", ["-nostdin", "-i", file, "-af", "silencedetect=noise=-50dB:d=1", "-f", "null", "-"])
        #expect(listener.wait(timeout: 20) == .code(0))
        let ends = listener.errors.filter { $0.contains("silence_end") }
        #expect(ends.count == 1, "\(listener.errors)")
        let times = listener.errors.compactMap { line in
            line.range(of: "silence_start: ").flatMap {
                Double(line[$0.upperBound...].prefix { $0.isNumber || $0 == "." })
            }
        }
        #expect(times.count == 1 && (times.first ?? 0) > 1.5, "\(times)")
        // The pictures went on.
        let facts = try Child.run(
            "ffprobe",
            [
                "-v", "error", "-select_streams", "v", "-show_entries", "stream=nb_frames,duration", "-of", "csv=p=0",
                file,
            ]
        ).split(separator: ",").compactMap { Double($0) }
        #expect(
            facts.count == 2 && abs(facts[0] * 30 - facts[1]) < 15 || abs(facts[1] - facts[0] * 30) < 15, "\(facts)")
    }

    /// A machine without programs under the GPL has no x264.
    @Test(.enabled(if: hasServer, "nginx has no module for RTMP here"))
    func otherEncoder_sendsAndRecordsTheSame() throws {
        let server = try RTMPServer()
        let stage = try SessionctlStage()
        let plugins = try stage.daemon.bus.folder.folder("gstreamer")
        let triples = ["x86_64-linux-gnu", "aarch64-linux-gnu"].map { "/usr/lib/\($0)/gstreamer-1.0" }
        for folder in triples where FileManager.default.fileExists(atPath: folder) {
            for name in try FileManager.default.contentsOfDirectory(atPath: folder) where name != "libgstx264.so" {
                try FileManager.default.createSymbolicLink(
                    atPath: plugins + "/" + name, withDestinationPath: folder + "/" + name)
            }
        }
        let more = [
            "GST_PLUGIN_SYSTEM_PATH_1_0": plugins, "GST_PLUGIN_PATH_1_0": "",
            "GST_REGISTRY": stage.file("registry.bin"),
        ]
        let push = try stage.start(
            [
                "live", "push", server.url("name"), "--file", try TestMedia.named("short-gop.mp4").path(), "--record",
                stage.file("copy.mp4"),
            ], more: more)
        let outcome = try SessionctlStage.outcome(of: push, ["live"], 60)
        // The library writes about its first picture.
        #expect(outcome.code == 0 && outcome.errors.allSatisfy { $0.hasPrefix("[OpenH264]") }, "\(outcome)")
        let file = try Data(contentsOf: URL(fileURLWithPath: stage.file("copy.mp4")))
        // x264 writes its name into the stream.
        #expect(file.range(of: Data("x264 - core".utf8)) == nil)
        let numbers = try TestMedia.numbers(
            ["-i", stage.file("copy.mp4"), "-vsync", "passthrough"], width: 320, height: 180)
        #expect(numbers == Array(0..<300), "\(numbers.count)")
        let taken = try TestMedia.numbers(
            ["-i", try #require(server.taken.first), "-vsync", "passthrough"], width: 320, height: 180)
        #expect(taken == Array((300 - taken.count)..<300) && taken.count > 270, "\(taken.count)")
    }

    /// RTMP with TLS: the certificate is checked for its authority, its name and its dates.
    @Test(
        .enabled(
            if: hasServer && TLSRelay.isInstalled && TLSRelay.canBeTrusted,
            "only root may let a program trust an authority of the test"), arguments: TLSRelay.Certificate.allCases)
    func rtmps_needsAValidCertificate(_ certificate: TLSRelay.Certificate) throws {
        let server = try RTMPServer()
        let relay = try TLSRelay(to: server.port, certificate)
        let pulse = try ServerKind.standard.server(sinks: ["speaker"])
        let stage = try SessionctlStage(on: pulse)
        func start(_ words: [String]) throws -> Child {
            try Child(
                "unshare", relay.trusting(try builtProduct(named: "sessionctl"), words),
                environment: stage.environment.merging(Self.registry) { $1 })
        }
        let push = try start(
            ["live", "push", "rtmps://127.0.0.1:\(relay.port)/live/s3cret", "--test", "--size", "320x180"])
        guard certificate == .valid else {
            let outcome = try SessionctlStage.outcome(of: push, ["live"], 15)
            #expect(outcome.code == 1 && outcome.complaint.contains("update-ca-certificates"), "\(outcome)")
            #expect(server.taken.isEmpty && !(outcome.text + outcome.complaint).contains("s3cret"), "\(outcome)")
            return
        }
        #expect(push.line(timeout: 20) { $0 == "live" } != nil, "\(push.output) \(push.errors)")
        let ear = try Ear(pulse, sink: "speaker")
        let watch = try start(
            ["live", "watch", "rtmps://127.0.0.1:\(relay.port)/live/s3cret", "--output", "none"])
        #expect(ear.waitUntil(440, above: -40, timeout: 20), "\(watch.output) \(watch.errors)")
        for child in [watch, push] {
            child.signal(SIGINT)
            #expect(child.wait(timeout: 10) != nil)
        }
        #expect(server.taken.count == 1)
    }

    @Test(
        .enabled(
            if: RTSPServer.isInstalled && TLSRelay.isInstalled && TLSRelay.canBeTrusted,
            "only root may let a program trust an authority of the test"),
        arguments: [TLSRelay.Certificate.valid, .own])
    func rtsps_needsAValidCertificate(_ certificate: TLSRelay.Certificate) throws {
        let pulse = try ServerKind.standard.server(sinks: ["speaker"])
        let stage = try SessionctlStage(on: pulse)
        let film = stage.file("camera.mp4")
        try Child.run(
            "ffmpeg",
            [
                "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc=s=320x180:r=25:d=60", "-f", "lavfi", "-i",
                "sine=440:d=60", "-c:v", "libx264", "-tune", "zerolatency", "-g", "25", "-pix_fmt", "yuv420p", "-c:a",
                "aac", film,
            ], timeout: 60)
        let server = try RTSPServer(film)
        let relay = try TLSRelay(to: server.port, certificate)
        let ear = try Ear(pulse, sink: "speaker")
        let watch = try Child(
            "unshare",
            relay.trusting(
                try builtProduct(named: "sessionctl"),
                ["live", "watch", "rtsps://127.0.0.1:\(relay.port)/stream", "--output", "none"]),
            environment: stage.environment.merging(Self.registry) { $1 })
        guard certificate == .valid else {
            let outcome = try SessionctlStage.outcome(of: watch, ["live"], 20)
            #expect(outcome.code == 1 && outcome.complaint.contains("update-ca-certificates"), "\(outcome)")
            return
        }
        #expect(ear.waitUntil(440, above: -40, timeout: 20), "\(watch.output) \(watch.errors)")
        watch.signal(SIGINT)
        #expect(watch.wait(timeout: 10) != nil)
    }

    /// GLib ends a process that asks for settings of the desktop which are not described on this machine.
    @Test(
        .enabled(if: hasServer && TLSRelay.isInstalled, "nginx has no module for RTMP here, or openssl is missing"),
        arguments: ["push", "watch"])
    func machineWithoutDescriptionsOfSettings_saysWhatIsWrong(_ verb: String) throws {
        let relay = try TLSRelay(to: try RTMPServer().port, .own)
        let pulse = try ServerKind.standard.server()
        let stage = try SessionctlStage(on: pulse)
        let outcome = try stage.run(
            ["live", verb, "rtmps://127.0.0.1:\(relay.port)/live/key"]
                + (verb == "push" ? ["--test"] : ["--output", "none"]),
            more: Self.registry.merging(["XDG_DATA_DIRS": stage.file("nothing")]) { $1 }, timeout: 20)
        #expect(outcome.code == 1 && outcome.complaint.contains("update-ca-certificates"), "\(outcome)")
    }

    /// The same without glib-networking, which has TLS.
    @Test(
        .enabled(if: hasServer && TLSRelay.isInstalled, "nginx has no module for RTMP here, or openssl is missing"),
        arguments: ["push", "watch"])
    func machineWithoutTLS_saysWhatToInstall(_ verb: String) throws {
        let relay = try TLSRelay(to: try RTMPServer().port)
        let pulse = try ServerKind.standard.server()
        let stage = try SessionctlStage(on: pulse)
        let outcome = try stage.run(
            ["live", verb, "rtmps://127.0.0.1:\(relay.port)/live/key"]
                + (verb == "push" ? ["--test"] : ["--output", "none"]),
            more: Self.registry.merging(["GIO_MODULE_DIR": stage.file("nothing")]) { $1 }, timeout: 20)
        #expect(outcome.code == 1 && outcome.complaint.contains("install glib-networking"), "\(outcome)")
    }

    @Test func wrongCommands_areRefusedWithAReason() throws {
        let stage = try SessionctlStage()
        let rows: [(words: [String], code: Int32, text: String)] = [
            (["rtmp://host/live/key"], 64, "--file FILE, --screen, --camera CAMERA or --test"),
            (["rtmp://host/live/key", "--test", "--screen"], 64, "--file FILE, --screen, --camera CAMERA or --test"),
            (["rtmp://host/live/key", "--test", "--device", "x"], 64, "need --microphone"),
            (["ftp://host/live", "--test"], 1, "rtmp:, rtmps:, srt:"),
            (["rtmp://host/live", "--test"], 1, "the key is missing"),
            (["srt://host:9000", "--test", "--size", "321x180"], 1, "even numbers"),
            (["rtmp://host/live/key", "--file", stage.file("missing.mp4")], 1, "missing.mp4"),
            (["rtmp://host/live/key", "--test", "--record", stage.file("film.avi")], 1, ".mp4, .mov or .mkv"),
            (["rtmp://127.0.0.1:1/live/s3cret", "--test", "--give-up", "1.2"], 1, "/live/… cannot be reached"),
        ]
        for row in rows {
            let outcome = try stage.run(["live", "push"] + row.words, more: Self.registry, timeout: 40)
            #expect(outcome.code == row.code && outcome.complaint.contains(row.text), "\(row.words): \(outcome)")
            #expect(!(outcome.text + outcome.complaint).contains("s3cret"), "\(outcome)")
        }
    }

    @Test(.enabled(if: hasServer, "nginx has no module for RTMP here"))
    func liveStreamOfSessionKit_saysItsStates() async throws {
        let server = try RTMPServer()
        let stage = try KitStage()
        var options = LiveStream.Options()
        options.size = PictureSize(width: 320, height: 180)
        options.recording = stage.media.path + "/copy.mp4"
        let stream = LiveStream(
            url: "rtmp://127.0.0.1:\(server.port)/live", key: "some-key", source: .test, options: options,
            bus: stage.bus, environment: stage.environment)
        let (notices, ends) = (stream.notices, stream.notices)
        try await stream.start()
        #expect(await firstElement(of: notices) { $0 == .stateDidChange(.live) } != nil)
        try await stream.setBitrate(500_000)
        let facts = await stream.statistics
        #expect(facts.state == .live && facts.bitrate == 500_000)
        await #expect(throws: SessionError.self) { try await stream.setMicrophone(true) }
        await stream.stop()
        #expect(await firstElement(of: ends) { $0 == .didFinish(.stopped) } != nil)
        await stream.close()
    }
}
