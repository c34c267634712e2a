import DBus
import Foundation
import HTTP
import MediaCache
import PluginAPI
import TestSupport
import Testing

@testable import AssetCache

/// The cache with a real origin and real readers.
@Suite struct AssetCacheTests {
    private static let size = 3_000_000

    @Test func resource_isFetchedOnceAndThenAFile() throws {
        let stage = try CacheStage()
        let bytes = try stage.origin.file("song.mp3", Self.size)
        let (address, id) = try stage.open(stage.origin.url("song.mp3"))
        let answer = try stage.read(address)
        #expect(answer.status == 200 && answer.body == bytes && answer.code == 0)
        #expect(answer.fields["content-type"] == "video/mp4" && answer.fields["accept-ranges"] == "bytes")
        #expect(stage.wait { !stage.members("Completed").isEmpty })
        let path = stage.members("Completed")[0][1].stringValue ?? ""
        #expect(FileManager.default.contents(atPath: path) == bytes)
        #expect(try stage.read(address, range: "5-9").body == bytes[5...9])
        let again = try stage.open(stage.origin.url("song.mp3"))
        #expect(again.address == "file://" + path && again.id != id)
        #expect(stage.sent(atLeast: UInt64(Self.size)) == UInt64(Self.size))
        #expect(stage.origin.requests.count == 1)
    }

    @Test func fiftySeeks_fetchEveryByteOnce() throws {
        let stage = try CacheStage()
        let bytes = try stage.origin.file("film.mp4", Self.size)
        try stage.origin.tell("rate 8000000")
        let (address, _) = try stage.open(stage.origin.url("film.mp4"))
        var random = SystemRandomNumberGenerator()
        for _ in 0..<50 {
            let first = Int.random(in: 0..<Self.size, using: &random)
            let last = min(Self.size - 1, first + Int.random(in: 0..<60_000, using: &random))
            let answer = try stage.read(address, range: "\(first)-\(last)")
            #expect(answer.status == 206 && answer.body == bytes[first...last], "\(first)-\(last)")
        }
        try stage.origin.tell("rate 0")
        #expect(stage.wait { !stage.members("Completed").isEmpty })
        let sent = stage.sent(atLeast: UInt64(Self.size))
        // What the origin wrote between the last look at a socket and its end is sent twice: less than a block for each seek.
        #expect(Double(sent) / Double(Self.size) < 1.05, "\(sent)")
    }

    @Test func severalReaders_shareOneRequest() throws {
        let stage = try CacheStage()
        let bytes = try stage.origin.file("film.mp4", Self.size)
        let addresses = try (0..<4).map { _ in try stage.open(stage.origin.url("film.mp4")).address }
        #expect(Set(addresses).count == 4)
        let answers = try stage.readings(addresses.map { ($0, nil) })
        #expect(answers.allSatisfy { $0.body == bytes })
        #expect(stage.sent(atLeast: UInt64(Self.size)) == UInt64(Self.size))
    }

    @Test func ranges_areAnsweredAsTheStandardSays() throws {
        let stage = try CacheStage()
        let bytes = try stage.origin.file("film.mp4", 1_000)
        let (address, _) = try stage.open(stage.origin.url("film.mp4"))
        let tag = try stage.read(address).fields["etag"] ?? ""
        let rows: [(range: String, status: Int, body: Range<Int>)] = [
            ("0-", 206, 0..<1_000), ("999-", 206, 999..<1_000), ("10-19", 206, 10..<20), ("-10", 206, 990..<1_000),
            ("990-2000", 206, 990..<1_000), ("1000-", 416, 0..<0), ("5-3", 200, 0..<1_000), ("0-1,5-6", 200, 0..<1_000),
        ]
        for row in rows {
            let answer = try stage.read(address, more: ["-H", "Range: bytes=\(row.range)"])
            #expect(answer.status == row.status && answer.body == bytes[row.body], "\(row.range)")
        }
        #expect(try stage.read(address, more: ["-H", "Range: bytes=1000-"]).fields["content-range"] == "bytes */1000")
        #expect(try stage.read(address, range: "5-9", more: ["-H", "If-Range: \(tag)"]).status == 206)
        #expect(try stage.read(address, range: "5-9", more: ["-H", "If-Range: \"other\""]).status == 200)
        let head = try stage.read(address, more: ["-I"])
        #expect(head.status == 200 && head.fields["content-length"] == "1000")
        #expect(try stage.read(address, more: ["-X", "POST"]).status == 405)
    }

    @Test func strangers_getNothingWithoutTheToken() throws {
        let stage = try CacheStage()
        _ = try stage.origin.file("film.mp4", 1_000)
        let (address, id) = try stage.open(stage.origin.url("film.mp4"))
        let parts = address.split(separator: "/")
        #expect(parts[2].count == 32)
        for path in ["", "/", "/\(String(repeating: "0", count: 32))/film.mp4", "/film.mp4", "/../../etc/passwd"] {
            let answer = try stage.read("http://\(parts[1])\(path)", more: ["--path-as-is"])
            #expect(answer.status == 404 && answer.body.isEmpty, "\(path)")
        }
        stage.cache.close(id)
        #expect(try stage.read(address).status == 404)
        // Only this machine is listened to.
        #expect(address.hasPrefix("http://127.0.0.1:"))
    }

    @Test func openings_endWithTheirCaller() throws {
        let stage = try CacheStage()
        _ = try stage.origin.file("film.mp4", 1_000)
        let other = try Connection(.custom(stage.bus.address), loop: stage.loop)
        let (address, _) = try stage.cache.open(
            stage.origin.url("film.mp4"), .init(), for: other.uniqueName)
        #expect(try stage.read(address).status == 200)
        other.close()
        #expect(stage.wait { stage.cache.openings.isEmpty })
        #expect(try stage.read(address).status == 404)
    }

    @Test func part_isKeptOverARestart() throws {
        let stage = try CacheStage { $0.fill = false }
        let bytes = try stage.origin.file("film.mp4", Self.size)
        let first = try stage.open(stage.origin.url("film.mp4")).address
        try stage.origin.tell("stall 2000000 30 1")
        _ = try stage.read(first, range: "0-1999999")
        stage.restart()
        let second = try stage.open(stage.origin.url("film.mp4")).address
        try stage.origin.tell("normal")
        #expect(try stage.read(second).body == bytes)
        let sent = stage.sent(atLeast: UInt64(Self.size))
        #expect(sent == UInt64(Self.size), "\(stage.origin.requests)")
    }

    @Test func leastRecentlyUsed_isRemovedFirst() throws {
        let stage = try CacheStage { $0.size = 0.01 }
        for name in ["a", "b", "c", "d"] {
            _ = try stage.origin.file(name, Self.size)
            let (address, id) = try stage.open(stage.origin.url(name))
            #expect(try stage.read(address).status == 200)
            #expect(stage.wait { stage.members("Completed").contains { $0[0].uint64Value == id } })
            stage.cache.close(id)
        }
        let kept = stage.cache.folder?.entries.map { $0.record.shown.suffix(1) } ?? []
        #expect(Set(kept) == ["b", "c", "d"])
    }

    @Test func credentials_stayWithTheirOrigin() throws {
        let stage = try CacheStage()
        let other = try OriginServer()
        _ = try other.file("film.mp4", 1_000)
        _ = try stage.origin.file("film.mp4", 1_000)
        var options = CachePlugin.Options()
        options.headers = [try #require(HTTPField("Authorization", "Bearer secret"))]
        let url = stage.origin.url("film.mp4") + "?key=secret"
        let (address, id) = try stage.open(url, options)
        try stage.origin.tell("redirect \(other.url("film.mp4", host: "localhost"))")
        #expect(try stage.read(address).status == 200)
        #expect(stage.origin.requests.first?.authorization == "Bearer secret")
        #expect(other.requests.allSatisfy { $0.authorization.isEmpty })
        // Nothing of it is stored or listed.
        #expect(stage.wait { !stage.members("Completed").isEmpty })
        #expect(stage.wait { stage.cache.folder?.entries.isEmpty == false })
        for file in stage.files where file.hasSuffix(".map") {
            #expect(try !String(contentsOfFile: file, encoding: .utf8).contains("secret"))
        }
        // Without the headers, it is another resource.
        stage.cache.close(id)
        #expect(try stage.open(url).address.hasPrefix("http://"))
    }

    /// The last parts of addresses, and the names of the files.
    @Test(arguments: [
        ("a%20song%3F.mp3?key=1", "a song?.mp3"), ("..%2F..%2Fpasswd", ".._.._passwd"), ("%2e%2e", "media"),
        ("two%0Alines.ogg", "two_lines.ogg"),
        (String(repeating: "%C3%A4", count: 150) + ".flac", String(repeating: "ä", count: 97) + ".flac"),
    ]) func wholeFile_hasTheNameOfItsAddress(_ part: String, _ name: String) throws {
        let stage = try CacheStage()
        let bytes = try stage.origin.file("film.mp4", 1_000)
        // The origin serves this file for each address.
        try stage.origin.tell("only film.mp4")
        let (address, id) = try stage.open(stage.origin.url(part))
        #expect(try stage.read(address).body == bytes)
        #expect(stage.wait { !stage.members("Completed").isEmpty })
        let path = stage.members("Completed")[0][1].stringValue ?? ""
        // A newer libcurl resolves `%2e%2e`: the address has only its host then.
        let host = "127.0.0.1:\(stage.origin.port)"
        let names = part == "%2e%2e" ? [name, host] : [name]
        #expect(names.contains { path.hasSuffix(".named/" + $0) }, "\(path)")
        #expect(FileManager.default.contents(atPath: path) == bytes)
        stage.cache.close(id)
        // The link is inside of the cache, and goes with its file.
        try stage.cache.remove(stage.origin.url(part))
        #expect(stage.files.isEmpty)
    }

    @Test func removed_isGone() throws {
        let stage = try CacheStage()
        _ = try stage.origin.file("film.mp4", 1_000)
        let url = stage.origin.url("film.mp4")
        _ = try stage.read(try stage.open(url).address)
        #expect(stage.wait { !stage.members("Completed").isEmpty })
        try stage.cache.remove(url)
        #expect(stage.files.isEmpty && stage.cache.openings.isEmpty)
        #expect(throws: Failure.self) { try stage.cache.remove(url) }
    }

    @Test func cleared_isGoneUnlessSomebodyHasItOpen() throws {
        let stage = try CacheStage()
        for name in ["mine.mp4", "asked.mp4"] { _ = try stage.origin.file(name, 1_000) }
        var options = CachePlugin.Options()
        options.isDetached = true
        let asked = try stage.open(stage.origin.url("asked.mp4"), options).address
        for address in [asked, try stage.open(stage.origin.url("mine.mp4")).address] {
            #expect(try stage.read(address).status == 200)
        }
        let isWhole = { (count: Int) in stage.files.count { $0.hasSuffix(".media") } == count }
        #expect(stage.wait { isWhole(2) })
        // Its reader has left.
        #expect(stage.wait { stage.cache.openings.values.allSatisfy { $0.readers == 0 } })
        stage.cache.clear()
        #expect(isWhole(1) && stage.cache.openings.count == 1)
        #expect(try stage.read(asked).status == 404)
    }

    @Test func prefetch_isAJob() throws {
        let stage = try CacheStage { $0.fill = false }
        let bytes = try stage.origin.file("film.mp4", Self.size)
        _ = try stage.cache.prefetch(stage.origin.url("film.mp4"), .init(), for: stage.caller.uniqueName)
        #expect(stage.wait { stage.files.contains { $0.hasSuffix(".media") } && stage.cache.resources.isEmpty })
        let file = stage.files.first { $0.hasSuffix(".media") } ?? ""
        #expect(FileManager.default.contents(atPath: file) == bytes)
        // Without the network.
        try stage.origin.tell("status 500")
        #expect(
            try stage.open(stage.origin.url("film.mp4")).address
                == "file://" + file.replacing(".media", with: ".named/film.mp4"))
    }
}
