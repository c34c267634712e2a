import DBus
import EventLoop
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

import class EventLoop.Timer

/// `org.sessiond1.MoviePlayer` of the real program: which notices it sends, and when the screen saver stays off.
@Suite(.serialized) struct MovieNoticeTests {
    /// The screen saver of a desktop.
    private final class Saver {
        var log: [String] = []
    }

    private final class Stage {
        let loop = EventLoop()
        let bus: PrivateBus
        let pulse: any PrivateServer
        let screen: PrivateScreen
        let saver = Saver()
        let connection: Connection
        private let daemon: Child
        private let movie: Child
        private(set) var place = ""
        private var subscription: Subscription?
        /// What was sent, in order: the name of a signal, or of a property with its value.
        var notices: [(name: String, value: Value?)] = []
        /// The pictures of jobs: requested and actual time, path, error.
        var pictures: [[Value]] = []

        init() throws {
            pulse = try ServerKind.standard.server()
            screen = try PrivateScreen()
            bus = try PrivateBus()
            var environment = ["XDG_RUNTIME_DIR": bus.folder.path].merging(pulse.environment) { $1 }
                .merging(bus.environment) { $1 }
            environment["HOME"] = bus.folder.path
            environment["GST_REGISTRY"] = TestMedia.registry
            environment["DISPLAY"] = screen.display
            // The plugin that takes pictures.
            let plugins = bus.folder.path + "/.local/share/sessiond/plugins"
            try FileManager.default.createDirectory(atPath: plugins, withIntermediateDirectories: true)
            let manifest = try String(
                contentsOf: repository.appendingPathComponent("data/plugins/assets.plugin"), encoding: .utf8)
            try manifest.replacingOccurrences(of: "Exec=", with: "Exec=" + Self.folder + "/")
                .write(toFile: plugins + "/assets.plugin", atomically: true, encoding: .utf8)
            connection = try Connection(.custom(bus.address), loop: loop)
            connection.objects.export(
                saver, at: "/org/freedesktop/ScreenSaver",
                interfaces: [
                    Interface<Saver>(
                        name: "org.freedesktop.ScreenSaver",
                        introspection: "<interface name=\"org.freedesktop.ScreenSaver\"/>",
                        methods: [
                            .init("Inhibit", "ss") { saver, call in
                                saver.log.append("on")
                                call.reply([.uint32(7)])
                            },
                            .init("UnInhibit", "u") { saver, call in
                                saver.log.append("off")
                                call.reply()
                            },
                        ], properties: [])
                ])
            _ = try connection.requestName("org.freedesktop.ScreenSaver")
            daemon = try Child(try builtProduct(named: "sessiond"), environment: environment)
            movie = try Child(
                try builtProduct(named: "sessiond-movie"), ["--name", "Film"], environment: environment)
            let prefix = PluginKind.moviePlayer.busName + "."
            guard
                until(
                    30,
                    {
                        let names = (try? connection.askBusAndWait("ListNames", timeout: 5))?.first?.stringsValue ?? []
                        place = names.first { $0.hasPrefix(prefix) } ?? ""
                        return !place.isEmpty && names.contains(BusName.service)
                    })
            else { throw SupportError("sessiond-movie did not come up: \(movie.errors)") }
            subscription = connection.subscribe(path: PluginKind.moviePlayer.objectPath) { [unowned self] message in
                if message.member == "ThumbnailImage" { pictures.append((try? message.arguments()) ?? []) }
                guard message.member == "PropertiesChanged" else {
                    return notices.append((message.member ?? "", try? message.arguments().first))
                }
                connection.readChanges(message) { [unowned self] _, changes in
                    for (name, value) in changes { notices.append((name, value)) }
                }
            }
        }

        private static var folder: String {
            ((try? builtProduct(named: "sessiond-assets")) ?? "").split(separator: "/").dropLast().map { "/" + $0 }
                .joined()
        }

        @discardableResult
        func until(_ timeout: Double = 20, _ condition: () -> Bool) -> Bool {
            loop.iterate(timeout: timeout, askingEvery: 0.01, until: condition)
        }

        /// Calls a method, and waits for the answer.
        @discardableResult
        func call(_ member: String, _ arguments: [Value] = [], of interface: String = BusName.player) -> Failure? {
            var answer: Result<[Value], Failure>?
            connection.call(place, PluginKind.moviePlayer.objectPath, interface, member, arguments) { answer = $0 }
            until(30) { answer != nil }
            if case .failure(let failure) = answer { return failure }
            return nil
        }

        func set(_ property: String, _ value: Value) -> Failure? {
            call(
                "Set", [.string(PluginKind.moviePlayer.interface), .string(property), .variant(value)],
                of: StandardName.properties)
        }

        func values(_ name: String) -> [Value?] { notices.filter { $0.name == name }.map(\.value) }
    }

    private static let movie = PluginKind.moviePlayer.interface

    @Test func eachNotice_isSentOnce_andThatOfAirPlayNever() throws {
        let stage = try Stage()
        let film = "file://" + (try TestMedia.named("short-gop.mp4").path())
        #expect(stage.call("Load", [.string(film)]) == nil)
        #expect(stage.until { !stage.values("ReadyForDisplay").isEmpty && stage.screen.number() == 0 })
        #expect(stage.set("ScalingMode", .string("fill")) == nil)
        #expect(stage.call("Play") == nil)
        #expect(stage.until { stage.screen.number() > 5 })
        #expect(stage.until { stage.saver.log == ["on"] })
        #expect(stage.call("SetFullscreen", [.bool(true)], of: Self.movie) == nil)
        #expect(stage.until { !stage.values("DidEnterFullscreen").isEmpty })
        #expect(stage.call("SetFullscreen", [.bool(false)], of: Self.movie) == nil)
        #expect(stage.call("SeekTo", [.double(11.5)]) == nil)
        #expect(stage.until { !stage.values("PlaybackDidFinish").isEmpty })
        #expect(stage.until { stage.saver.log == ["on", "off"] })
        for name in [
            "ScalingMode", "PlaybackDidFinish", "LoadState", "Uri", "CurrentItem", "WillEnterFullscreen",
            "DidEnterFullscreen", "WillExitFullscreen", "DidExitFullscreen", "ReadyForDisplay", "MediaTypes",
            "SourceType", "Duration", "NaturalSize", "PreparedToPlay",
        ] {
            #expect(stage.values(name).count == 1, "\(name): \(stage.values(name))")
        }
        #expect(stage.values("State").map { $0?.stringValue } == ["playing", "paused"])
        #expect(stage.values("PlaybackDidFinish").first??.stringValue == "ended")
        #expect(stage.values("AirPlayVideoActive").isEmpty)
    }

    @Test func tracksAndSteps_areRefusedWithTheReason_andDoWhatTheySay() throws {
        let stage = try Stage()
        let select: (String, Int32) -> Failure? = {
            stage.call("SelectTrack", [.string($0), .int32($1)], of: Self.movie)
        }
        #expect(select("audio", 0)?.message.contains("load a film") == true)
        #expect(stage.call("Step", [.int32(1)], of: Self.movie) != nil)
        let film = "file://" + (try TestMedia.named("tracks.mkv").path())
        #expect(stage.call("Load", [.string(film)]) == nil)
        #expect(stage.until { !stage.values("ReadyForDisplay").isEmpty && stage.screen.number() == 0 })
        let tracks = stage.values("Tracks").last??.arrayValue?.compactMap(\.asProperties) ?? []
        #expect(tracks.map { $0["type"]?.stringValue } == ["video", "audio", "audio", "subtitle", "subtitle"])
        #expect(tracks.last?["language"]?.stringValue == "de")
        #expect(select("sound", 0) != nil && select("audio", 5) != nil && select("audio", -1) != nil)
        #expect(select("subtitle", 1) == nil && select("subtitle", -1) == nil && select("audio", 1) == nil)
        // The film is opened again for another sound: it has no tracks until then.
        #expect(stage.until { (stage.values("Tracks").last??.arrayValue?.count ?? 0) == 5 })
        #expect(stage.until { stage.screen.number() == 0 })
        #expect(stage.until { stage.call("Step", [.int32(3)], of: Self.movie) == nil })
        #expect(stage.until { stage.screen.number() == 3 })
        #expect(stage.saver.log.isEmpty)
    }

    @Test func chapters_areKnown_andSkipped() throws {
        let stage = try Stage()
        let skip: (Int32) -> Failure? = { stage.call("SkipChapters", [.int32($0)], of: Self.movie) }
        #expect(skip(1)?.message.contains("no film is ready") == true)
        #expect(stage.call("Load", [.string("file://" + (try TestMedia.named("short-gop.mp4").path()))]) == nil)
        #expect(stage.until { stage.screen.number() == 0 && !stage.values("PreparedToPlay").isEmpty })
        #expect(skip(1)?.message.contains("no chapters") == true)
        #expect(stage.call("Load", [.string("file://" + (try TestMedia.named("chapters.mkv").path()))]) == nil)
        #expect(stage.until { stage.values("Chapters").last??.arrayValue?.count == 3 })
        #expect(
            stage.values("Chapters").last??.arrayValue?.last?.structureValue
                == [.double(8), .string("End & credits")])
        // In Matroska, the pictures are 21 ms later than the sound.
        for (steps, numbers) in [(1, 98...101), (1, 198...201), (-1, 98...101)] as [(Int32, ClosedRange<Int>)] {
            #expect(stage.until { skip(steps) == nil })
            #expect(stage.until { numbers.contains(stage.screen.number()) }, "\(stage.screen.number())")
        }
        #expect(skip(5)?.message.contains("the film has 3") == true)
        #expect(skip(-7) == nil)
        #expect(stage.until { stage.screen.number() == 0 })
    }

    @Test func thumbnails_areTakenWhileTheFilmPlays_inTheOrderOfTheTimes() throws {
        let stage = try Stage()
        let request: ([Double], String) -> Failure? = {
            stage.call("RequestThumbnails", [.array(of: "d", $0.map(Value.double)), .string($1)], of: Self.movie)
        }
        #expect(request([1], "exact")?.message.contains("load one first") == true)
        let film = "file://" + (try TestMedia.named("short-gop.mp4").path())
        #expect(stage.call("Load", [.string(film)]) == nil)
        #expect(stage.call("Play") == nil)
        #expect(stage.until { stage.screen.number() > 5 })
        #expect(request([], "exact") != nil && request([1], "nearest") != nil && request([-1], "exact") != nil)
        #expect(request([3.001, 1.001, 99], "exact") == nil)
        #expect(stage.until(60) { stage.pictures.count == 3 })
        #expect(stage.pictures.map { $0[1].doubleValue } == [3.001, 1.001, 99])
        #expect(stage.pictures.prefix(2).map { $0[2].doubleValue } == [3, 1])
        for (picture, number) in zip(stage.pictures, [75, 25]) {
            let path = picture[3].stringValue ?? ""
            #expect(try TestMedia.numbers(["-i", path], width: 320, height: 180) == [number])
        }
        #expect(stage.pictures.last?[4].stringValue?.hasSuffix("NoImageAtTime") == true)
        // It has played on.
        let number = stage.screen.number()
        #expect(stage.until { stage.screen.number() > number })
        #expect(stage.values("State").map { $0?.stringValue } == ["playing"])
    }
}
