import DBus
import EventLoop
import Foundation
import HTTP
import MediaCache
import PluginAPI
import SessionBus
import TestSupport
import Testing

@testable import AssetCache

/// Origins that lie, stall and change, and disks that are full: never a wrong byte, and never a short file that looks whole.
@Suite struct CacheFaultTests {
    private static let size = 2_000_000

    @Test func stallBelowTheLimit_leavesNothingOut() throws {
        let stage = try CacheStage(silence: 0.5)
        let bytes = try stage.origin.file("film.mp4", Self.size)
        // Silent once for longer than the limit: asked once more from the same byte.
        try stage.origin.tell("stall 1000000 5 1")
        let answer = try stage.read(try stage.open(stage.origin.url("film.mp4")).address)
        #expect(answer.body == bytes && answer.code == 0)
        #expect(stage.members("Failed").isEmpty)
        #expect(stage.wait { stage.origin.requests.contains { $0.range == "1000000-" } })
        #expect(stage.members("Stalled").map { $0[1].boolValue } == [] || stage.members("Stalled").count % 2 == 0)
    }

    @Test func silenceTwice_isToldOnceAndEndsTheReader() throws {
        let stage = try CacheStage(silence: 0.3)
        let bytes = try stage.origin.file("film.mp4", Self.size)
        try stage.origin.tell("stall 1000000 5 9")
        let (address, id) = try stage.open(stage.origin.url("film.mp4"))
        let answer = try stage.read(address)
        // curl: 18 is a part of what was said.
        #expect(answer.code == 18 && answer.body == bytes.prefix(answer.body.count))
        #expect(stage.wait { !stage.members("Failed").isEmpty })
        let told = stage.members("Failed")
        #expect(told.count == 1 && told[0][0].uint64Value == id)
        #expect(told[0][1].stringValue?.hasSuffix(".TimedOut") == true)
        // The next try goes on where it was.
        try stage.origin.tell("normal")
        #expect(try stage.read(address).body == bytes)
        #expect(stage.origin.requests.last?.range == "1000000-")
    }

    @Test func silenceBeforeTheHead_is504() throws {
        // Nothing is requested before the reader asks, so the reader waits for the head.
        let stage = try CacheStage(silence: 0.2) { $0.fill = false }
        _ = try stage.origin.file("film.mp4", Self.size)
        try stage.origin.tell("stall 0 5 9")
        // The head comes, but no byte: the reader has got nothing yet.
        #expect(try stage.read(try stage.open(stage.origin.url("film.mp4")).address).status == 504)
    }

    @Test(arguments: [
        ("status 404", 404, "NotFound"), ("status 403", 403, "NetworkFailed"), ("status 500", 502, "NetworkFailed"),
        ("shift 7", 502, "InvalidSource"), ("redirect file:///etc/passwd", 502, "InvalidSource"),
    ]) func trouble_isTold(_ command: String, _ status: Int, _ error: String) throws {
        let stage = try CacheStage { $0.fill = false }
        _ = try stage.origin.file("film.mp4", Self.size)
        try stage.origin.tell(command)
        let answer = try stage.read(try stage.open(stage.origin.url("film.mp4")).address)
        #expect(answer.status == status && answer.body.isEmpty)
        #expect(stage.wait { !stage.members("Failed").isEmpty })
        #expect(stage.members("Failed").count == 1)
        #expect(stage.members("Failed").first?[1].stringValue?.hasSuffix("." + error) == true)
        #expect(!stage.files.contains { $0.hasSuffix(".media") })
    }

    @Test func missingFile_isAskedForOnce() throws {
        let stage = try CacheStage()
        let (address, _) = try stage.open(stage.origin.url("nothing.mp4"))
        // The origin has answered before the player reads.
        #expect(stage.wait { stage.members("Failed").count == 1 })
        #expect(try stage.read(address).status == 404)
        #expect(stage.origin.requests.count == 1)
        // A later try asks again.
        #expect(try stage.read(address).status == 404)
        #expect(stage.origin.requests.count == 2)
    }

    @Test func lessThanSaid_neverLooksWhole() throws {
        let stage = try CacheStage()
        let bytes = try stage.origin.file("film.mp4", Self.size)
        try stage.origin.tell("short 1000")
        let (address, _) = try stage.open(stage.origin.url("film.mp4"))
        let answer = try stage.read(address)
        #expect(answer.code == 18 && answer.body == bytes.prefix(answer.body.count))
        #expect(!stage.files.contains { $0.hasSuffix(".media") })
    }

    @Test func moreThanSaid_isIgnored() throws {
        let stage = try CacheStage()
        let bytes = try stage.origin.file("film.mp4", Self.size)
        try stage.origin.tell("long 1000")
        #expect(try stage.read(try stage.open(stage.origin.url("film.mp4")).address).body == bytes)
    }

    @Test func changeInMidFilm_isNeverAMixture() throws {
        let stage = try CacheStage { $0.fill = false }
        let bytes = try stage.origin.file("film.mp4", Self.size)
        let (address, _) = try stage.open(stage.origin.url("film.mp4"))
        #expect(try stage.read(address, range: "1500000-1599999").body == bytes[1_500_000...1_599_999])
        try stage.origin.tell("change")
        let answer = try stage.read(address)
        // Of one version, whole or ended with an error.
        let other = Data(bytes.map { $0 ^ 1 })
        #expect(answer.body == other.prefix(answer.body.count) || answer.body == bytes.prefix(answer.body.count))
        #expect(stage.wait { stage.members("Failed").count == 1 })
        #expect(try stage.read(address).body == other)
    }

    @Test(arguments: ["gzip", "nostore", "unsized"]) func whatMayNotBeKept_isPassedOn(_ command: String) throws {
        let stage = try CacheStage()
        let bytes = try stage.origin.file("film.mp4", Self.size)
        try stage.origin.tell(command)
        let (address, id) = try stage.open(stage.origin.url("film.mp4"))
        #expect(try stage.read(address).body == bytes)
        stage.cache.close(id)
        #expect(!stage.files.contains { $0.hasSuffix(".media") || $0.hasSuffix(".map") })
    }

    @Test func endlessAnswer_isHeldBack() throws {
        let stage = try CacheStage()
        _ = try stage.origin.file("radio", 1_000_000)
        try stage.origin.tell("endless")
        let (address, id) = try stage.open(stage.origin.url("radio"))
        let answer = try stage.read(address, more: ["--max-time", "1"])
        #expect(answer.status == 200 && answer.body.count > 100_000)
        stage.cache.close(id)
        #expect(stage.files.isEmpty)
    }

    @Test func playlists_areReadAtTheirOrigin() throws {
        let stage = try CacheStage()
        try "#EXTM3U\n".write(toFile: stage.origin.folder.path + "/music.list", atomically: true, encoding: .utf8)
        let url = stage.origin.url("music.list")
        let answer = try stage.read(try stage.open(url).address)
        #expect(answer.status == 307 && answer.fields["location"] == url)
        #expect(try stage.open("https://example.org/live.m3u8?x=1").address == "https://example.org/live.m3u8?x=1")
    }

    @Test func originWithoutRanges_isReadOnce() throws {
        let stage = try CacheStage()
        let bytes = try stage.origin.file("film.mp4", Self.size)
        try stage.origin.tell("plain")
        let (address, _) = try stage.open(stage.origin.url("film.mp4"))
        #expect(try stage.read(address, range: "0-9").body == bytes[0...9])
        let answers = try stage.readings([(address, nil), (address, "1900000-1900009")])
        #expect(answers[0].body == bytes && answers[1].body == bytes[1_900_000...1_900_009])
        #expect(stage.sent(atLeast: UInt64(Self.size)) == UInt64(Self.size))
    }

    @Test func folderThatIsGone_isPassedThrough() throws {
        let stage = try CacheStage()
        let bytes = try stage.origin.file("film.mp4", Self.size)
        let (address, _) = try stage.open(stage.origin.url("film.mp4"))
        try FileManager.default.removeItem(atPath: stage.home.path + "/sessiond/media")
        #expect(try stage.read(address).body == bytes)
        let second = try stage.open(stage.origin.url("film.mp4") + "?2")
        #expect(try stage.read(second.address).body == bytes)
    }

    /// A player that asks radios itself for their titles.
    @Test func whatHasNoSize_isReadAtTheServerByPlayersThatWishIt() throws {
        let stage = try CacheStage { $0.fill = false }
        _ = try stage.origin.file("radio", 100_000)
        try stage.origin.tell("endless")
        var options = CachePlugin.Options()
        options.redirectsLive = true
        let (address, _) = try stage.open(stage.origin.url("radio"), options)
        for _ in 0..<2 {
            let answer = try stage.read(address)
            #expect(answer.status == 307 && answer.fields["location"] == stage.origin.url("radio"))
        }
        // Other programs read it through the cache; and headers are sent by the cache alone.
        #expect(try stage.read(stage.open(stage.origin.url("radio")).address, more: ["--max-time", "1"]).status == 200)
        options.headers = [try #require(HTTPField("X-Key", "1"))]
        let secret = try stage.open(stage.origin.url("radio"), options).address
        #expect(try stage.read(secret, more: ["--max-time", "1"]).status == 200)
    }

    /// Whether this process may mount a small disk.
    private static let mayMount = (try? Child.run("/usr/bin/unshare", ["--mount", "/bin/true"])) != nil

    @Test(.enabled(if: mayMount)) func fullDisk_isPassedOnAndTold() throws {
        let stage = try CacheStage(diskSize: "1m")
        let bytes = try stage.origin.file("film.mp4", Self.size)
        let (address, _) = try stage.open(stage.origin.url("film.mp4"))
        let answer = try stage.read(address)
        #expect(answer.body == bytes && answer.code == 0)
        #expect(stage.members("Completed").isEmpty && !stage.files.contains { $0.hasSuffix(".media") })
        // A fetch ends with the reason.
        _ = try stage.origin.file("other.mp4", Self.size, seed: 2)
        let job = try stage.cache.prefetch(stage.origin.url("other.mp4"), .init(), for: stage.caller.uniqueName)
        var error = ""
        let subscription = stage.caller.subscribe(path: job, interface: StandardName.properties) { message in
            let changed = ((try? message.arguments()) ?? []).dropFirst().first?.asProperties ?? [:]
            error = changed["Error"]?.stringValue ?? error
        }
        #expect(stage.wait { error.hasSuffix(".DiskFull") }, "\(error)")
        #expect(!stage.files.contains { $0.hasSuffix(".media") })
        _ = subscription
    }

    @Test func largerThanTheCache_isPassedOn() throws {
        let stage = try CacheStage { $0.size = 0.01 }
        let bytes = try stage.origin.file("film.mp4", 12_000_000)
        let (address, _) = try stage.open(stage.origin.url("film.mp4"))
        #expect(try stage.read(address).body == bytes)
        #expect(!stage.files.contains { $0.hasSuffix(".media") })
    }

    @Test func clientsThatLeave_leaveNoDescriptors() throws {
        let stage = try CacheStage()
        _ = try stage.origin.file("film.mp4", Self.size)
        try stage.origin.tell("stall 500000 60 9")
        let (address, _) = try stage.open(stage.origin.url("film.mp4"))
        _ = try stage.read(address, range: "0-1000")
        func descriptors() -> Int { (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0 }
        let port = try #require(UInt16(address.split(separator: ":")[2].prefix { $0.isNumber }))
        let path = "/" + address.split(separator: "/").dropFirst(2).joined(separator: "/")
        let program = """
            import socket, sys, time
            all = []
            for index in range(200):
                one = socket.create_connection(("127.0.0.1", \(port)))
                one.sendall(b"GET \(path) HTTP/1.1\\r\\nHost: x\\r\\nRange: bytes=510000-\\r\\n\\r\\n")
                all.append(one)
            print("open", flush=True)
            sys.stdin.readline()
            """
        let before = descriptors()
        let child = try Child("/usr/bin/python3", ["-c", program])
        let timer = Timer(on: stage.loop) {}
        func poll(_ condition: () -> Bool) -> Bool {
            stage.wait {
                timer.arm(after: 0.01)
                return condition()
            }
        }
        #expect(poll { child.text.contains("open") && descriptors() >= before + 200 })
        child.kill()
        #expect(poll { descriptors() < before + 20 })
    }
}
