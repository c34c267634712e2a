import DBus
import Foundation
import PluginAPI
import TestSupport
import Testing

/// What the real plugin says of files.
@Suite struct InspectTests {
    @Test func film_isDescribed() throws {
        let stage = try FilmStage()
        let path = try TestMedia.named("rotated.mp4").path()
        let facts = try stage.inspect(path)
        #expect(abs((facts["duration"]?.doubleValue ?? 0) - 12) < 0.1)
        #expect(facts["mime-type"] == .string("video/mp4"))
        #expect(facts["playable"] == .bool(true))
        #expect(facts["seekable"] == .bool(true))
        #expect(facts["missing"] == .strings([]))
        let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
        #expect(facts["size"]?.uint64Value == size.map(UInt64.init))
        let tracks = facts["tracks"]?.arrayValue?.compactMap(\.asProperties) ?? []
        let video = try #require(tracks.first { $0["type"] == .string("video") })
        #expect(video["codec"] == .string("h264"))
        #expect(video["width"] == .uint32(320))
        #expect(video["height"] == .uint32(180))
        #expect(video["rotation"] == .uint32(270))
        #expect(video["frame-rate"] == .structure([.uint32(25), .uint32(1)]))
        let audio = try #require(tracks.first { $0["type"] == .string("audio") })
        #expect(audio["codec"] == .string("aac"))
        #expect(audio["channels"] == .uint32(1))
        #expect(audio["sample-rate"] == .uint32(44_100))
    }

    @Test(arguments: TestMedia.all) func everyFile_canBePlayed(_ film: TestMedia) throws {
        let stage = try FilmStage()
        let facts = try stage.inspect(try film.path())
        #expect(facts["playable"] == .bool(true), "\(facts)")
        #expect(facts["duration"]?.doubleValue ?? 0 > 2)
    }

    @Test func preciseDuration_isComputedFromThePackets() throws {
        let stage = try FilmStage()
        let path = try TestMedia.named("stream.ts").path()
        let exact = try stage.inspect(path, precise: true)["duration"]?.doubleValue ?? 0
        #expect(abs(exact - 12) < 1)
        // A second time, from what is remembered of the file, and after it has changed.
        #expect(try stage.inspect(path, precise: true)["duration"]?.doubleValue == exact)
    }

    @Test func otherFiles_areRefusedWithTheirError() throws {
        let stage = try FilmStage()
        let folder = stage.folder
        let text = try folder.file("text.mp4", String(repeating: "This is no film.\n", count: 100))
        let empty = try folder.file("empty.mp4", "")
        let pipe = folder.path + "/pipe.mp4"
        #expect(mkfifo(pipe, 0o600) == 0)
        func refusal(_ path: String) throws -> String? {
            try stage.refusal("Inspect", [FilmStage.uri(path), .properties([])])
        }
        #expect(try refusal(text) == "FormatNotSupported")
        #expect(try refusal(empty) == "InvalidSource")
        #expect(try refusal(pipe) == "InvalidSource")
        #expect(try refusal("/dev/zero") == "InvalidSource")
        #expect(try refusal(folder.path) == "InvalidSource")
        #expect(try refusal(folder.path + "/nothing.mp4") == "NotFound")
        #expect(try stage.refusal("Inspect", [.string("http://localhost/a.mp4"), .properties([])]) == "NotSupported")
        #expect(try stage.refusal("Inspect", [.string("relative.mp4"), .properties([])]) == "NotSupported")
        #expect(try stage.refusal("Inspect", [.string(""), .properties([("x", .bool(true))])]) == "BadParameter")
    }

    /// Cut short, and with bytes that are not its own: an answer or an error, and the next file is served.
    @Test func damagedFiles_failOnlyTheirRequest() throws {
        let stage = try FilmStage()
        for name in ["index-first.mp4", "matroska.mkv", "web.webm", "old.avi", "stream.ts", "fragmented.mp4"] {
            let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: TestMedia.named(name).path())))
            for (number, part) in [bytes.prefix(bytes.count / 2), bytes.prefix(700)].enumerated() {
                var damaged = Array(part)
                for index in stride(from: 64, to: damaged.count, by: 997 + 131 * number) { damaged[index] ^= 0x5A }
                let path = "\(stage.folder.path)/\(number)-\(name)"
                try Data(damaged).write(to: URL(fileURLWithPath: path))
                _ = try stage.refusal("Inspect", [FilmStage.uri(path), .properties([])])
                _ = try stage.refusal("Thumbnail", [FilmStage.uri(path), .string("normal")])
            }
        }
        #expect(try stage.inspect(try TestMedia.named("short-gop.mp4").path())["playable"] == .bool(true))
        #expect(stage.plugin.isRunning)
    }

    @Test func nameThatIsNotUTF8_isAccepted() throws {
        let stage = try FilmStage()
        let film = try TestMedia.named("short-gop.mp4").path()
        let bytes = Array((stage.folder.path + "/caf").utf8) + [0xE9, 0]
        let name = bytes.map { CChar(bitPattern: $0) }
        #expect(symlink(film, name) == 0)
        let facts = try stage.call(
            "Inspect", [.string("file://\(stage.folder.path)/caf%E9"), .properties([])]
        ).first?.asProperties
        #expect(facts?["playable"] == .bool(true))
        unlink(name)
    }

    @Test func workers_haveNoNetworkAndCannotWrite() throws {
        let stage = try FilmStage()
        _ = try stage.inspect(try TestMedia.named("short-gop.mp4").path())
        let worker = try #require(stage.workers.first)
        let status = try String(contentsOfFile: "/proc/\(worker)/status", encoding: .utf8)
        func field(_ name: String) -> String? {
            status.split(separator: "\n").first { $0.hasPrefix(name + ":") }?.split(separator: "\t").last.map(
                String.init)
        }
        #expect(field("Seccomp") == "2")
        #expect(field("NoNewPrivs") == "1")
        #expect(field("CapEff") == "0000000000000000")
        let limits = try String(contentsOfFile: "/proc/\(worker)/limits", encoding: .utf8)
        #expect(limits.contains("Max core file size        0                    0"))
        // Where an ordinary user may have a network of its own.
        let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/ns/net")
        let theirs = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(worker)/ns/net")
        if (try? Child.run("unshare", ["-Urn", "true"])) != nil { #expect(own != theirs) }
    }
}
