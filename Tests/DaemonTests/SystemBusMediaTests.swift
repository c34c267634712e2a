import DBus
import EventLoop
import Foundation
import SessionBus
import TestSupport
import Testing

/// Players and recorders on the system bus, on a machine where no user is logged in.
@Suite(.serialized, .enabled(if: getuid() == 0, "only root can run programs as several users"))
struct SystemBusMediaTests {
    private static let denied = "org.freedesktop.DBus.Error.AccessDenied"
    private static let prefix = "org.mpris.MediaPlayer2.sessiond_player"
    private static let mpris = "/org/mpris/MediaPlayer2 org.mpris.MediaPlayer2.Player"

    /// A music file that every user may read.
    private static func music(_ stage: SystemStage) throws -> String {
        let path = try CountedMusic.file(in: stage.folder, seconds: 60)
        chmod(path, 0o644)
        return path
    }

    /// The name of the only player on the bus.
    private static func player(_ stage: SystemStage) throws -> String {
        let address = try #require(stage.environment["DBUS_SYSTEM_BUS_ADDRESS"])
        let connection = try Connection(.custom(address), loop: EventLoop())
        var name: String?
        _ = try eventually(timeout: 20) {
            let names = try connection.askBusAndWait("ListNames", timeout: 5).first?.stringsValue ?? []
            name = names.first { $0.hasPrefix(prefix) }
            return name != nil
        }
        return try #require(name)
    }

    @Test func player_isHeardAndObeysOnlyItsUserAndRoot() throws {
        let pulse = try ServerKind.standard.server()
        let stage = try SystemStage(pulse: pulse)
        let music = try Self.music(stage)
        let ear = try Ear(pulse, sink: "speaker")
        let play = try Child(
            "setpriv",
            [
                "--reuid=nobody", "--clear-groups", try builtProduct(named: "sessionctl"), "play", "--system", music,
            ], environment: stage.environment)
        defer { play.kill() }
        #expect(ear.hears(true), "\(play.output) \(play.errors)")
        let player = try Self.player(stage)
        let stranger = try stage.client(as: "daemon")
        #expect(stranger.ask("call \(player) \(Self.mpris) Pause") == Self.denied)
        #expect(stranger.ask("call \(player) /org/sessiond1/player org.sessiond1.Player Stop") == Self.denied)
        #expect(try stage.client(as: "root").ask("call \(player) \(Self.mpris) Pause") == "ok")
        #expect(ear.hears(false))
        #expect(try stage.client(as: "nobody").ask("call \(player) \(Self.mpris) Play") == "ok")
        #expect(ear.hears(true))
    }

    /// Everybody on the bus hears that something has changed, and nothing else.
    @Test(arguments: SystemStage.Kind.installed) func others_hearNoValues(kind: SystemStage.Kind) throws {
        let pulse = try ServerKind.standard.server()
        let stage = try SystemStage(pulse: pulse, on: kind)
        let music = try CountedMusic.file(in: stage.folder, seconds: 1)
        chmod(music, 0o644)
        let address = try #require(stage.environment["DBUS_SYSTEM_BUS_ADDRESS"])
        let loop = EventLoop()
        let onlooker = try Connection(.custom(address), loop: loop)
        var heard: [(interface: String, member: String, text: String)] = []
        let subscription = onlooker.subscribe {
            heard.append(($0.interface ?? "", $0.member ?? "", "\((try? $0.arguments()) ?? [])"))
        }
        let refused = "http://user:secret@127.0.0.1:1/a.ogg?token=secret#secret"
        let play = try Child(
            "setpriv",
            [
                "--reuid=nobody", "--clear-groups", try builtProduct(named: "sessionctl"), "play", "--system", refused,
                music,
            ],
            environment: stage.environment)
        defer { play.kill() }
        let begun = monotonicNow()
        // The end of a program does not wake the loop.
        while play.isRunning, monotonicNow() < begun + 20 { _ = loop.iterate(timeout: 0.1) { false } }
        #expect(play.wait() == .code(1), "one of the two could not be played: \(play.errors)")
        // The program that has called hears it.
        let said = (play.output + play.errors).joined(separator: "\n")
        #expect(said.contains("127.0.0.1") && !said.contains("token"), "\(said)")
        let changes = heard.filter { $0.member == "PropertiesChanged" }
        #expect(changes.contains { $0.text.contains("Uri") } && changes.contains { $0.text.contains("Metadata") })
        for secret in ["secret", "127.0.0.1", music, "Failed"] {
            #expect(!heard.contains { $0.text.contains(secret) || $0.member.contains(secret) }, "\(secret): \(heard)")
        }
        withExtendedLifetime(subscription) {}
    }

    /// The kernel does not let the recorder examine root's processes. The recorder must not take root for a sandboxed
    /// program.
    @Test func recorder_obeysOnlyItsUserAndRoot() throws {
        let pulse = try ServerKind.standard.server()
        let stage = try SystemStage(pulse: pulse)
        let recorder = try Child(
            "setpriv", ["--reuid=nobody", "--clear-groups", try builtProduct(named: "sessiond-recorder"), "--system"],
            environment: stage.environment)
        defer { recorder.kill() }
        let name = "org.sessiond1.Recorder.instance\(recorder.processID)"
        let folder = try stage.folder.folder("takes")
        chmod(folder, 0o777)
        let root = try stage.client(as: "root")
        #expect(eventually { root.ask("prepare \(name) \(folder)/root.wav") == "ok" }, "\(recorder.errors)")
        #expect(try stage.client(as: "daemon").ask("prepare \(name) \(folder)/daemon.wav") == Self.denied)
        #expect(try stage.client(as: "nobody").ask("prepare \(name) \(folder)/nobody.wav") == "ok")
    }

    @Test func pluginOpenedByRoot_servesTheBusOfItsDaemon() throws {
        let pulse = try ServerKind.standard.server()
        let share = try PrivateFolder()
        let plugins = try share.folder("sessiond/plugins")
        let manifest = try String(contentsOfFile: repository.path + "/data/plugins/player.plugin", encoding: .utf8)
        try manifest.replacingOccurrences(
            of: "Exec=sessiond-player", with: "Exec=" + (try builtProduct(named: "sessiond-player"))
        ).write(toFile: plugins + "/player.plugin", atomically: true, encoding: .utf8)
        let stage = try SystemStage(pulse: pulse, environment: ["XDG_DATA_DIRS": share.path])
        let music = try Self.music(stage)
        let ear = try Ear(pulse, sink: "speaker")
        let root = try stage.client(as: "root")
        let answer = root.ask("open player file://\(music)")
        #expect(answer.hasPrefix("ok :"), "\(answer)")
        let player = "call \(answer.dropFirst(3)) /org/sessiond1/player org.sessiond1.Player"
        #expect(root.ask("\(player) Load file://\(music)") == "ok")
        #expect(root.ask("\(player) Play") == "ok")
        #expect(ear.hears(true))
    }
}

extension Ear {
    /// Waits until the music is heard, or until it is silent.
    fileprivate func hears(_ music: Bool) -> Bool {
        waitUntil(CountedMusic.hertz, above: music ? -30 : nil, below: music ? nil : -60, window: 0.05)
    }
}
