import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// Real calls: unmodified programs that do not declare their calls, while an unmodified mpv plays music. The tests
/// record the sink's monitor.
@Suite(.serialized) struct RealCallTests {
    /// A server with a silent microphone. The sound of a call would hide the music in the recording.
    final class Scene {
        let server: any PrivateServer
        let stage: DaemonStage
        let ear: Ear

        init(_ kind: ServerKind, settings: String? = nil) throws {
            server = try kind.server(
                sinks: ["speaker", "voice"],
                modules: [
                    "module-remap-source master=voice.monitor source_name=mic source_properties=device.description=Mic"
                ])
            try server.control.setDefaultSource("mic")
            stage = try DaemonStage(pulse: server, settings: settings)
            ear = try Ear(server, sink: "speaker")
            #expect(stage.waitForServer())
        }

        func session(_ name: String) throws -> [String: Value]? {
            try stage.listedSessions().first { $0["Name"]?.stringValue == name && $0["Class"] == .string("app") }
        }

        /// The session of the active call.
        func call() throws -> [String: Value]? {
            try stage.listedSessions().first { $0["Class"] == .string("call") && $0["State"] == .string("active") }
        }

        func music() throws -> Child {
            let file = try CountedMusic.file(in: server.folder)
            let music = try Child(
                "mpv", ["--no-config", "--no-terminal", "--no-video", "--ao=pulse", "--loop=inf", file],
                environment: server.environment)
            #expect(ear.waitUntil(CountedMusic.hertz, above: -25, window: 0.5, timeout: 30), "\(music.errors)")
            #expect(try eventually { try session("mpv")?["State"] == .string("active") })
            return music
        }
    }

    enum Browser: String, CaseIterable, CustomTestStringConvertible {
        case chromium
        case firefox = "firefox-esr"

        var testDescription: String { rawValue }

        /// Shows a page in a browser that asks for no permissions.
        func show(_ page: String, on scene: Scene) throws -> Child {
            let profile = try scene.server.folder.folder(rawValue)
            let environment = scene.server.environment.merging(scene.stage.bus.environment) { $1 }
            switch self {
            case .chromium:
                return try Child(
                    rawValue,
                    [
                        "--headless=new", "--no-sandbox", "--disable-gpu", "--use-fake-ui-for-media-stream",
                        "--autoplay-policy=no-user-gesture-required", "--user-data-dir=\(profile)", page,
                    ], environment: environment)
            case .firefox:
                let wishes = [
                    ("media.navigator.permission.disabled", "true"), ("media.autoplay.default", "0"),
                    ("media.peerconnection.ice.loopback", "true"), ("browser.shell.checkDefaultBrowser", "false"),
                    ("datareporting.policy.dataSubmissionEnabled", "false"),
                ]
                let lines = wishes.map { "user_pref(\"\($0.0)\", \($0.1));\n" }.joined()
                try Data(lines.utf8).write(to: URL(fileURLWithPath: profile + "/user.js"))
                return try Child(
                    rawValue, ["--no-remote", "--profile", profile, page],
                    environment: environment.merging(["MOZ_HEADLESS": "1"]) { $1 })
            }
        }
    }

    /// The scripts of the pages, in JavaScript.
    enum Page {
        /// The page calls itself. In between it mutes the microphone as Jitsi does.
        static let call = """
            const stream = await navigator.mediaDevices.getUserMedia({audio: true});
            const near = new RTCPeerConnection(), far = new RTCPeerConnection();
            near.onicecandidate = e => e.candidate && far.addIceCandidate(e.candidate);
            far.onicecandidate = e => e.candidate && near.addIceCandidate(e.candidate);
            far.ontrack = e => { sound.srcObject = e.streams[0]; sound.play(); };
            stream.getTracks().forEach(track => near.addTrack(track, stream));
            await near.setLocalDescription(await near.createOffer());
            await far.setRemoteDescription(near.localDescription);
            await far.setLocalDescription(await far.createAnswer());
            await near.setRemoteDescription(far.localDescription);
            await wait(2);
            stream.getTracks().forEach(track => track.enabled = false);
            await wait(2);
            stream.getTracks().forEach(track => track.enabled = true);
            await wait(1);
            stream.getTracks().forEach(track => track.stop());
            near.close(); far.close(); sound.srcObject = null;
            """
        /// A webinar: it plays and does not use the microphone.
        static let listening = """
            const context = new AudioContext(), tone = context.createOscillator();
            tone.frequency.value = 1000; tone.connect(context.destination); tone.start();
            await wait(30);
            """
        /// A voice memo: it records and does not play.
        static let memo = """
            const stream = await navigator.mediaDevices.getUserMedia({audio: true});
            new MediaRecorder(stream).start();
            await wait(30);
            """
    }

    /// A web server with one page that runs the script.
    static func serve(_ script: String, on scene: Scene) throws -> (server: Child, page: String) {
        let folder = try scene.server.folder.folder("web")
        try scene.server.folder.file(
            "web/index.html",
            """
            <!doctype html><title>Meeting</title><audio id=sound></audio><script>
            const wait = seconds => new Promise(done => setTimeout(done, seconds * 1000));
            (async () => { await wait(1); \(script) })().then(() => document.title = "over")
            </script>

            """)
        let server = try Child(
            "/usr/bin/python3",
            ["-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory", folder, "0"])
        let line = server.line { $0.contains("Serving HTTP") } ?? ""
        guard let port = line.split(separator: " ").compactMap({ UInt16($0) }).first else {
            throw SupportError("no web server: \(line) \(server.errors)")
        }
        return (server, "http://127.0.0.1:\(port)/")
    }

    /// Checks that a call holds the music and that the music plays on afterwards. `end` ends the call after some
    /// seconds; nil if the call ends by itself. `endsWithATone` says that the program plays a tone near the music's
    /// frequency when the call ends, so the recording is not checked after that. `log` is what the program prints.
    private func expectMusicToYield(
        _ scene: Scene, _ who: String, toCall begin: () throws -> Void, end: (() -> Void)? = nil,
        measuresLoss: Bool = true, endsWithATone: Bool = false, log: () -> String = { "" }
    ) throws {
        let hertz = CountedMusic.hertz
        let music = try scene.music()
        let before = scene.ear.steadyLevel(of: hertz)
        try begin()
        #expect(try eventually(timeout: 60) { try scene.call() != nil })
        let began = monotonicNow()
        #expect(scene.ear.waitUntil(hertz, below: -80, window: 0.1))
        #expect(try scene.session("mpv")?["State"] == .string("interrupted"))
        let evidence = try scene.call()?["Evidence"]?.stringValue ?? ""
        #expect(evidence.hasPrefix("records from 'Mic") && evidence.hasSuffix("and plays"), "\(evidence)")
        // The music stays silent until the call ends, also while the microphone is muted.
        var heardInCall: [String] = []
        var end = end
        while try scene.call() != nil, monotonicNow() - began < 60 {
            let level = scene.ear.level(of: hertz, last: 0.1)
            if level > -60, !endsWithATone || end != nil, let call = try scene.call() {
                heardInCall.append("\(level) dB after \(monotonicNow() - began) s of \(call)")
            }
            if monotonicNow() - began > 4 {
                end?()
                end = nil
            }
            usleep(20_000)
        }
        #expect(heardInCall.isEmpty, "\(heardInCall)")
        if let call = try scene.call() { Issue.record("does not end: \(call); \(log())") }
        #expect(scene.ear.waitUntil(hertz, above: before - 0.5, window: 0.1, timeout: 20))
        let back = scene.ear.duration
        #expect(eventually(timeout: 30) { scene.ear.duration > back + 0.7 })
        // A telephone line is never quite silent, so the lost part of the music cannot be measured over it.
        guard measuresLoss else { return }
        let heard = try #require(scene.ear.music(from: began - 1, to: monotonicNow() - 0.6))
        print(
            "\(who): music silent for \(Int(heard.silence * 1_000)) ms, lost \(Int((heard.lost * 1_000).rounded())) ms")
        #expect(abs(heard.lost) < 0.05)
        withExtendedLifetime(music) {}
    }

    @Test(arguments: ServerKind.allCases, Browser.allCases)
    func callInABrowser_holdsTheMusicAndReleasesIt(_ kind: ServerKind, _ browser: Browser) throws {
        let scene = try Scene(kind)
        let web = try Self.serve(Page.call, on: scene)
        var child: Child?
        try expectMusicToYield(scene, "\(browser.rawValue) on \(kind)") {
            child = try browser.show(web.page, on: scene)
        }
        withExtendedLifetime((web, child)) {}
    }

    @Test(
        arguments: ServerKind.allCases,
        [(Browser.chromium, Page.listening), (.firefox, Page.listening), (.chromium, Page.memo)])
    func pageWithoutACall_doesNotAffectTheMusic(_ kind: ServerKind, _ given: (browser: Browser, script: String)) throws
    {
        let scene = try Scene(kind)
        let music = try scene.music()
        let web = try Self.serve(given.script, on: scene)
        let isRecording = given.script == Page.memo
        let binary = given.browser == .firefox ? "firefox-esr" : "chromium"
        var child: Child?
        // Firefox sometimes starts without ever opening a stream; then it is started again.
        let hasStream = try (0..<3).contains { _ in
            child?.kill()
            child = try given.browser.show(web.page, on: scene)
            return try eventually(timeout: 25) {
                let list = try scene.server.pactl(["list", isRecording ? "source-outputs" : "sink-inputs"]).lowercased()
                return list.contains("application.process.binary = \"\(binary)\"")
            }
        }
        #expect(hasStream)
        // The page plays or records for longer than the daemon needs to guess a call.
        let since = scene.ear.duration
        #expect(eventually(timeout: 30) { scene.ear.duration > since + 2 })
        #expect(try scene.call() == nil)
        #expect(try scene.session("mpv")?["State"] == .string("active"))
        withExtendedLifetime((music, web, child)) {}
    }

    /// A baresip that is ready, and its port. With `sound` it uses the sound server, otherwise files.
    private func baresip(
        _ scene: Scene, _ name: String, answers: Bool, sound: Bool
    ) throws -> (program: Child, port: Int) {
        // Another program may take the port before baresip does.
        for _ in 0..<5 {
            let port = try LoopbackPort.free()
            let program = try baresip(scene, name, port, answers: answers, sound: sound)
            let line = program.line { $0.contains("is ready") || $0.contains("init failed") }
            if let line, line.contains("is ready") { return (program, port) }
        }
        throw SupportError("baresip does not start")
    }

    private func baresip(
        _ scene: Scene, _ name: String, _ port: Int, answers: Bool, sound: Bool
    ) throws -> Child {
        let folder = try scene.server.folder.folder(name)
        let modules = ["stdio", "account", "menu", "g711", "uuid"] + [sound ? "alsa" : "aufile"]
        let lines =
            [
                "poll_method epoll", "audio_path \(folder)", "sip_listen 127.0.0.1:\(port)",
                "module_path /usr/lib/baresip/modules",
                "audio_player \(sound ? "alsa,pulse" : "aufile,\(folder)/heard.wav")",
                "audio_source \(sound ? "alsa,pulse" : "aufile,\(folder)/silence.wav")", "audio_alert alsa,null",
                "rtp_ports 16000-17000",
            ] + modules.map { "module \($0).so" }
        // A minute of silence for the other end of the line.
        let silence = [Int16](repeating: 0, count: 8_000 * 60)
        try WaveFile.write(silence, rate: 8_000, to: folder + "/silence.wav")
        try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: URL(fileURLWithPath: folder + "/config"))
        let account = "<sip:\(name)@127.0.0.1:\(port)>;regint=0\(answers ? ";answermode=auto" : "")\n"
        try Data(account.utf8).write(to: URL(fileURLWithPath: folder + "/accounts"))
        try Data("pcm.pulse { type pulse }\nctl.pulse { type pulse }\n".utf8)
            .write(to: URL(fileURLWithPath: scene.server.folder.path + "/.asoundrc"))
        return try Child("baresip", ["-f", folder], environment: scene.server.environment)
    }

    /// One baresip calls another one on the same machine, which answers automatically.
    @Test(arguments: ServerKind.allCases) func callByBaresip_holdsTheMusicAndReleasesIt(_ kind: ServerKind) throws {
        let scene = try Scene(kind)
        let (other, port) = try baresip(scene, "other", answers: true, sound: false)
        let (own, _) = try baresip(scene, "own", answers: false, sound: true)
        try expectMusicToYield(
            scene, "baresip on \(kind)",
            toCall: { own.send("/dial sip:other@127.0.0.1:\(port)") }, end: { own.send("/hangup") },
            measuresLoss: false, log: { "\(own.text) \(other.text)" })
        withExtendedLifetime((own, other)) {}
    }

    /// Linphone calls a baresip that answers automatically. Without the folder for its databases Linphone opens no
    /// port.
    @Test(
        .enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: Debian 13 is tested without Linphone"),
        arguments: ServerKind.allCases)
    func callByLinphone_holdsTheMusicAndReleasesIt(_ kind: ServerKind) throws {
        let scene = try Scene(kind)
        let home = try scene.server.folder.folder("linphone")
        _ = try scene.server.folder.folder("linphone/.local/share/linphone")
        let (other, port) = try baresip(scene, "other", answers: true, sound: false)
        let settings = """
            [sip]
            sip_port=\(try LoopbackPort.free())
            sip_tcp_port=0
            sip_tls_port=0
            use_ipv6=0
            guess_hostname=0
            contact="own" <sip:own@127.0.0.1>
            bind_address=127.0.0.1

            """
        let file = try scene.server.folder.file("linphone/settings", settings)
        let own = try Child(
            "linphonec", ["-c", file],
            environment: scene.server.environment.merging(["HOME": home, "XDG_CONFIG_HOME": home]) { $1 })
        try expectMusicToYield(
            scene, "Linphone on \(kind)",
            toCall: { own.send("call sip:other@127.0.0.1:\(port)") }, end: { own.send("terminate") },
            measuresLoss: false, endsWithATone: true, log: { "\(own.text) \(other.text)" })
        withExtendedLifetime((own, other)) {}
    }

    /// Starts a program in a sandbox like Flatpak's, with its own process ids. In its sandbox each program has the
    /// process id 1.
    private func confined(_ id: String, _ command: [String], on scene: Scene) throws -> Child {
        let root = try scene.server.folder.folder("root-" + id)
        try scene.server.folder.file("root-\(id)/.flatpak-info", "[Application]\nname=\(id)\n")
        // Only this process sees the mounts, and they end with it.
        let script = """
            root=$1; shift
            for folder in bin dev etc lib lib64 sbin sys tmp usr; do
                [ -d /$folder ] && mkdir -p "$root/$folder" && mount --rbind /$folder "$root/$folder"
            done
            mkdir -p "$root/proc" && mount -t proc proc "$root/proc"
            exec chroot "$root" "$@"
            """
        return try Child(
            "unshare", ["--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", script, "sh", root] + command,
            environment: scene.server.environment)
    }

    /// PulseAudio uses the process ids that programs state. Both programs state the same id, which belongs to another
    /// process outside.
    @Test(.enabled(if: getuid() == 0, "only root can mount"), arguments: ServerKind.allCases)
    func callInASandbox_holdsThePlayerInAnotherSandbox(_ kind: ServerKind) throws {
        let scene = try Scene(kind)
        let wave = try Tone.file(scene.server, hertz: 440)
        let music = try confined(
            "org.example.Music",
            [
                "pacat", "--playback", "--raw", "--format=s16le", "--rate=48000", "--channels=1", "--client-name=Music",
                wave,
            ],
            on: scene)
        #expect(scene.ear.waitUntil(440, above: -20, timeout: 20), "\(music.errors)")
        #expect(try eventually { try scene.session("Music")?["State"] == .string("active") })
        #expect(try scene.session("Music")?["DesktopEntry"] == .string("org.example.Music"))
        // A sandboxed program may not declare a call, but the daemon can guess it.
        let phone = try confined(
            "net.example.Phone",
            [
                "gst-launch-1.0", "-q", "pulsesrc", "!", "fakesink", "audiotestsrc", "wave=silence", "!", "pulsesink",
                "stream-properties=props,media.role=phone",
            ], on: scene)
        #expect(try eventually(timeout: 30) { try scene.call() != nil }, "\(phone.errors)")
        let call = try scene.call()
        #expect(call?["DesktopEntry"] == .string("net.example.Phone"))
        #expect(call?["Evidence"]?.stringValue?.hasSuffix("and plays") == true)
        #expect(scene.ear.waitUntil(440, below: -80))
        #expect(try scene.session("Music")?["State"] == .string("interrupted"))
        phone.kill()
        #expect(scene.ear.waitUntil(440, above: -20, timeout: 20))
        withExtendedLifetime(music) {}
    }
}
