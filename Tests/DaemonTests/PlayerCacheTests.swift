import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// `[player] cache`: the real player reads a real origin through the real cache.
@Suite struct PlayerCacheTests {
    /// A user's folder with settings and the plugin of the cache, an origin, a sound server and the daemon.
    private final class Stage {
        let home: PrivateFolder
        let origin: OriginServer
        let pulse: any PrivateServer
        let ear: Ear
        let daemon: DaemonStage

        /// - Parameter cache: the setting; nil: none.
        init(_ cache: String?, isInstalled: Bool = true) throws {
            home = try PrivateFolder()
            origin = try OriginServer()
            let plugins = try home.folder(".local/share/sessiond/plugins")
            if isInstalled {
                try FileManager.default.copyItem(
                    atPath: repository.path + "/data/plugins/cache.plugin", toPath: plugins + "/cache.plugin")
            }
            pulse = try ServerKind.standard.server(sinks: ["speaker"])
            if let cache {
                // Where the programs that use this server look for settings.
                let folder = (pulse.environment["XDG_CONFIG_HOME"] ?? home.path) + "/sessiond"
                try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
                try Data("[player]\ncache = \(cache)\n".utf8).write(
                    to: URL(fileURLWithPath: folder + "/sessiond.conf"))
            }
            ear = try Ear(pulse, sink: "speaker")
            daemon = try DaemonStage(pulse: pulse, environment: ["HOME": home.path, "PATH": "/usr/bin:/bin"])
            guard daemon.waitForServer() else { throw SupportError("sessiond does not find the sound server") }
        }

        func player(_ arguments: [String] = []) throws -> PluginProgram {
            var environment = pulse.environment.merging(daemon.bus.environment) { $1 }
            environment["HOME"] = home.path
            environment["GST_REGISTRY"] = PlayerStage.registry
            let child = try Child(try builtProduct(named: "sessiond-player"), arguments, environment: environment)
            return try PluginProgram(
                child, "org.mpris.MediaPlayer2.sessiond_player.instance\(child.processID)", ObjectPath.player,
                BusName.player, daemon)
        }

        /// A minute of a tone at the origin.
        func tone(_ name: String = "episode.wav", _ seconds: Double = 60) throws -> UInt64 {
            let path = origin.folder.path + "/" + name
            _ = try WaveFile.write(WaveFile.sines([(440, seconds)]), to: path)
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            return (attributes[.size] as? NSNumber)?.uint64Value ?? 0
        }

        /// The files that are kept.
        var kept: [String] {
            let folder = home.path + "/.cache/sessiond/media"
            return ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).filter { $0 != "lock" }
        }

        var hasWholeFile: Bool { eventually(timeout: 30) { kept.contains { $0.hasSuffix(".media") } } }

        /// The process of the cache.
        var cacheProcess: Int32 {
            let plugins =
                (try? daemon.observer.callAndWait(
                    BusName.service, ObjectPath.root, BusName.plugins, "List", [], timeout: 10))?.first?.arrayValue
                ?? []
            let name = plugins.compactMap(\.asProperties).first { $0["kind"]?.stringValue == "cache" }?["bus-name"]
            guard let name = name?.stringValue, !name.isEmpty else { return 0 }
            return Int32((try? daemon.observer.credentialsAndWait(of: name, timeout: 5).processID) ?? 0)
        }
    }

    private static func entry(_ uri: String, _ type: String? = nil) -> Value {
        .properties([("uri", .string(uri))] + (type.map { [("media-type", .string($0))] } ?? []))
    }

    private static func load(_ player: PluginProgram, _ entries: [Value]) {
        #expect(player.call("LoadItems", [.array(of: "a{sv}", entries), .uint32(0)]) == nil)
    }

    @Test func playSeekAndPlayAgain_fetchEveryByteOnce_andThenNone() throws {
        let stage = try Stage("all")
        let size = try stage.tone()
        // As fast as a good network: a seek to the middle comes before its bytes.
        try stage.origin.tell("rate 1000000")
        let uri = stage.origin.url("episode.wav")
        let player = try stage.player()
        #expect(player.call("Load", [.string(uri)]) == nil && player.call("Play") == nil)
        #expect(stage.ear.waitUntil(440, above: -20))
        // The address of the cache is nobody else's.
        #expect(try player.get("Uri").stringValue == uri)
        for place in [45.0, 20, 58] {
            #expect(player.call("SeekTo", [.double(place)]) == nil)
            #expect(eventually { player.position > place + 0.3 })
        }
        #expect(eventually(timeout: 30) { player.signals.contains("Finished true") })
        #expect(stage.hasWholeFile)
        #expect(player.call("Play") == nil && eventually { player.position > 0.3 })
        let sent = stage.origin.sent
        // What was on its way at a seek was sent in vain: less than 128 kB each.
        #expect(sent >= size && sent < size + 3 * 131_072, "\(sent) of \(size)")
        // What is whole needs no network, also for another player.
        try stage.origin.tell("status 500")
        let requests = stage.origin.requests.count
        let other = try stage.player()
        #expect(other.call("Load", [.string(uri)]) == nil && other.call("Play") == nil)
        #expect(other.call("SeekTo", [.double(59)]) == nil)
        #expect(eventually(timeout: 30) { other.signals.contains("Finished true") })
        #expect(stage.origin.requests.count == requests && stage.origin.sent == sent)
    }

    /// From its beginning to its end, without a seek.
    @Test func straightPlay_fetchesExactlyTheFile() throws {
        let stage = try Stage("all")
        let size = try stage.tone("short.wav", 3)
        let player = try stage.player()
        #expect(player.call("Load", [.string(stage.origin.url("short.wav"))]) == nil && player.call("Play") == nil)
        #expect(eventually(timeout: 30) { player.signals.contains("Finished true") })
        #expect(player.call("Play") == nil && eventually(timeout: 30) { player.signals.count == 2 })
        #expect(stage.origin.sent == size && stage.origin.requests.count == 1)
    }

    @Test(
        arguments: [
            // setting, type of the item, mode, whether it is kept
            (nil, "podcast", nil, false), ("off", "podcast", "spoken-audio", false), ("podcasts", "podcast", nil, true),
            ("podcasts", "audiobook", nil, false), ("podcasts, audiobooks", "audiobook", nil, true),
            ("podcasts", nil, nil, false), ("audiobooks", nil, "spoken-audio", true), ("all", nil, nil, true),
        ] as [(String?, String?, String?, Bool)])
    func whatIsKept_dependsOnTheSetting(_ setting: String?, _ type: String?, _ mode: String?, _ isKept: Bool) throws {
        let stage = try Stage(setting)
        let size = try stage.tone("short.wav", 2)
        let player = try stage.player(mode.map { ["--mode", $0] } ?? [])
        Self.load(player, [Self.entry(stage.origin.url("short.wav"), type)])
        #expect(player.call("Play") == nil)
        #expect(eventually(timeout: 30) { player.signals.contains("Finished true") })
        #expect((stage.cacheProcess != 0) == isKept)
        #expect(isKept ? stage.hasWholeFile : stage.kept.isEmpty)
        if isKept { #expect(stage.origin.sent == size) }
    }

    @Test func withoutTheCache_isReadAtItsAddress_andTheLogSaysWhy() throws {
        let stage = try Stage("all", isInstalled: false)
        _ = try stage.tone("short.wav", 2)
        let player = try stage.player()
        #expect(player.call("Load", [.string(stage.origin.url("short.wav"))]) == nil && player.call("Play") == nil)
        #expect(eventually(timeout: 30) { player.signals.contains("Finished true") })
        #expect(player.child.line { $0.contains("/short.wav is not kept: ") } != nil, "\(player.child.errors)")
    }

    @Test func cacheThatIsKilled_isStartedAgain_andThePlayerGoesOn() throws {
        let stage = try Stage("all")
        let size = try stage.tone()
        try stage.origin.tell("rate 1000000")
        let player = try stage.player()
        #expect(player.call("Load", [.string(stage.origin.url("episode.wav"))]) == nil && player.call("Play") == nil)
        #expect(stage.ear.waitUntil(440, above: -20))
        let first = stage.cacheProcess
        // 0 would be this process group.
        try #require(first > 1)
        kill(first, SIGKILL)
        #expect(eventually(timeout: 30) { stage.cacheProcess != 0 && stage.cacheProcess != first })
        #expect(player.call("SeekTo", [.double(55)]) == nil)
        #expect(eventually(timeout: 60) { player.signals.contains("Finished true") }, "\(player.signals)")
        #expect(stage.hasWholeFile)
        // What was not recorded yet, at most 256 KiB, and what was on its way.
        #expect(stage.origin.sent < size + 1_000_000, "\(stage.origin.sent) of \(size)")
        #expect(player.child.line { $0.contains("the cache has ended") } != nil, "\(player.child.errors)")
    }

    @Test func whatHasNoSize_isReadAtItsAddress() throws {
        let stage = try Stage("all")
        _ = try stage.tone("radio", 3)
        try stage.origin.tell("unsized")
        let player = try stage.player()
        #expect(player.call("Load", [.string(stage.origin.url("radio"))]) == nil && player.call("Play") == nil)
        #expect(eventually(timeout: 30) { player.signals.contains("Finished true") }, "\(player.signals)")
        // The second request is that of the player.
        #expect(stage.origin.requests.map(\.range) == ["0-", ""])
        #expect(!stage.kept.contains { $0.hasSuffix(".media") || $0.hasSuffix(".map") })
    }

    @Test func example_keepsAnEpisode_andPlaysItWithoutTheNetwork() throws {
        let stage = try Stage(nil)
        _ = try stage.tone("episode.wav", 3)
        func play() throws -> Child {
            var environment = stage.pulse.environment.merging(stage.daemon.bus.environment) { $1 }
            let player = try builtProduct(named: "sessiond-player")
            environment["GST_REGISTRY"] = PlayerStage.registry
            environment["PATH"] = (player as NSString).deletingLastPathComponent + ":/usr/bin:/bin"
            let child = try Child(
                try builtProduct(named: "example-episode"), [stage.origin.url("episode.wav")],
                environment: environment)
            #expect(child.wait() == .code(0), "\(child.errors)")
            return child
        }
        let first = try play()
        #expect(first.output.first == "it plays while it is fetched" && first.output.contains("played"))
        #expect(first.output.contains { $0.hasPrefix("kept as ") && $0.hasSuffix("/episode.wav") })
        try stage.origin.tell("status 500")
        #expect(try play().output == ["it is here", "played"])
        #expect(stage.origin.requests.count == 1)
    }

    /// The player's own message, not that of the cache.
    @Test func whatIsNotThere_failsWithTheReasonOfTheServer() throws {
        let stage = try Stage("all")
        let player = try stage.player()
        #expect(player.call("Load", [.string(stage.origin.url("nothing.wav"))]) == nil && player.call("Play") == nil)
        #expect(eventually(timeout: 30) { player.signals.contains { $0.hasPrefix("Failed") } }, "\(player.signals)")
        #expect(player.signals.contains { $0.contains("/nothing.wav") && $0.contains("does not exist") })
        #expect(!player.signals.contains { $0.contains("127.0.0.1") && !$0.contains(":\(stage.origin.port)") })
    }
}
