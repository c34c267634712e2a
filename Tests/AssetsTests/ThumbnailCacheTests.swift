import FileFormats
import Glibc
import PluginAPI
import TestSupport
import Testing

@testable import Assets

/// The thumbnails that all programs of a user share.
@Suite struct ThumbnailCacheTests {
    private let folder: PrivateFolder
    private let cache: ThumbnailCache
    private static let uri = "file:///films/a.mkv"
    /// A picture as small as possible: its header and its end.
    private static let picture: [UInt8] =
        [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + [0, 0, 0, 13] + Array("IHDR".utf8)
        + [UInt8](repeating: 0, count: 17) + [0, 0, 0, 0] + Array("IEND".utf8) + [0xAE, 0x42, 0x60, 0x82]

    init() throws {
        folder = try PrivateFolder()
        cache = ThumbnailCache(in: folder.path) { "md5-of-\($0.utf8.count)" }
    }

    private func texts(_ path: String) throws -> [String: String] {
        let file = try #require(fopen(path, "r"))
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = fread(&bytes, 1, bytes.count, file)
        return try #require(PNGText.read(Array(bytes[..<count])))
    }

    @Test func newFile_hasNoEntry_andItsPathIsThatOfTheStandard() {
        #expect(cache.entry(of: Self.uri, .large) == nil)
        #expect(cache.path(of: Self.uri, .xxLarge) == "\(folder.path)/xx-large/md5-of-19.png")
    }

    @Test func picture_isFoundWithTheTimeOfItsFile() throws {
        let path = try cache.add(Self.picture, of: Self.uri, .normal, modified: 1_700_000_000, [("Thumb::Size", "5")])
        #expect(path == cache.path(of: Self.uri, .normal))
        #expect(cache.entry(of: Self.uri, .normal) == .picture(modified: 1_700_000_000))
        #expect(cache.entry(of: Self.uri, .large) == nil)
        let texts = try texts(path)
        #expect(texts["Thumb::URI"] == Self.uri && texts["Thumb::MTime"] == "1700000000")
        #expect(texts["Thumb::Size"] == "5" && texts["Software"] == "sessiond")
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
    }

    @Test func failure_isFoundForEachSize() {
        cache.addFailure(of: Self.uri, modified: 7)
        for flavor in ThumbnailFlavor.allCases { #expect(cache.entry(of: Self.uri, flavor) == .failure(modified: 7)) }
    }

    @Test func pictureAfterAFailure_removesTheFailure() throws {
        cache.addFailure(of: Self.uri, modified: 7)
        _ = try cache.add(Self.picture, of: Self.uri, .normal, modified: 8, [])
        #expect(cache.entry(of: Self.uri, .large) == nil)
        #expect(cache.entry(of: Self.uri, .normal) == .picture(modified: 8))
    }

    @Test func entryOfAnotherFile_isNone_alsoWithTheSameHash() throws {
        _ = try cache.add(Self.picture, of: Self.uri, .normal, modified: 7, [])
        #expect(cache.entry(of: "file:///films/b.mkv", .normal) == nil)
    }

    @Test func pipeAtTheNameOfAThumbnail_doesNotBlock() throws {
        let path = try #require(cache.path(of: Self.uri, .normal))
        mkdir("\(folder.path)/normal", 0o700)
        #expect(mkfifo(path, 0o600) == 0)
        #expect(cache.entry(of: Self.uri, .normal) == nil)
        #expect(throws: SessionError.self) { try cache.add(Self.picture, of: Self.uri, .normal, modified: 7, []) }
    }

    @Test func whatIsNoPicture_isNotStored() {
        #expect(throws: SessionError.self) { try cache.add([1, 2, 3], of: Self.uri, .normal, modified: 7, []) }
        #expect(cache.entry(of: Self.uri, .normal) == nil)
    }

    @Test func userWithoutHome_getsTheReason() {
        let cache = ThumbnailCache(in: nil) { $0 }
        #expect(cache.entry(of: Self.uri, .normal) == nil)
        cache.addFailure(of: Self.uri, modified: 7)
        let error = #expect(throws: SessionError.self) {
            try cache.add(Self.picture, of: Self.uri, .normal, modified: 7, [])
        }
        #expect(error?.message.contains("HOME") == true)
    }
}
