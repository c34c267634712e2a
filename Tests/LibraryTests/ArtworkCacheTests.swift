import Glibc
import TestSupport
import Testing

@testable import Library

/// Covers as files: one for each content, found again, and never too many.
@Suite struct ArtworkCacheTests {
    private let folder: PrivateFolder
    private let cache: ArtworkCache

    init() throws {
        folder = try PrivateFolder()
        cache = ArtworkCache(in: folder.path + "/covers")
    }

    private func song(_ name: String) throws -> [UInt8] { Array(try folder.file(name, "song").utf8) }

    private func inode(_ path: String) -> ino_t {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_ino : 0
    }

    @Test(arguments: [(0, 0), (1, 16), (16, 16), (17, 16), (99, 64), (300, 300), (2_048, 2_048), (.max, 2_048)])
    func size_isOneOfAFew(_ asked: Int, _ made: Int) { #expect(ArtworkCache.step(asked) == made) }

    @Test func key_changesWithTheFileTheSizeAndTheImageBesideIt() throws {
        let path = try song("a.mp3")
        let key = cache.key(of: path, 0)
        #expect(cache.key(of: path, 0) == key && cache.key(of: path, 64) != key)
        #expect(cache.key(of: try song("b.mp3"), 0) != key)
        var times = [timespec(tv_sec: 5, tv_nsec: 0), timespec(tv_sec: 5, tv_nsec: 0)]
        utimensat(AT_FDCWD, folder.path + "/a.mp3", &times, 0)
        let touched = cache.key(of: path, 0)
        #expect(touched != key)
        try folder.file("cover.jpg", "image")
        #expect(cache.key(of: path, 0) != touched)
    }

    @Test func cover_isFoundAgain_byTheNextProcessToo() throws {
        #expect(cache.known("k") == nil)
        let path = try #require(cache.keep([1, 2], "k", "png"))
        #expect(path == folder.path + "/covers/k.png" && cache.known("k") == path)
        #expect(ArtworkCache(in: folder.path + "/covers").known("k") == path)
    }

    @Test func unscaledCover_hasSeveralNamesAndOneFile() throws {
        let small = try #require(cache.keep([1, 2], "small", "jpg", original: "whole"))
        let whole = try #require(cache.known("whole"))
        #expect(small != whole && inode(small) == inode(whole) && inode(small) != 0)
        // The same again is no error.
        #expect(cache.keep([1, 2], "small", "jpg", original: "whole") == small)
    }

    @Test func fileWithoutACover_isNotReadAgain_untilItChanges() throws {
        let path = try song("a.mp3")
        #expect(cache.miss(path) == nil)
        cache.remember(.failed, of: path)
        #expect(cache.miss(path) == .failed)
        cache.remember(.none, of: path)
        #expect(cache.miss(path) == ArtworkCache.Miss.none)
        // Another worker that fails to read it knows less.
        cache.remember(.failed, of: path)
        #expect(cache.miss(path) == ArtworkCache.Miss.none)
        try folder.file("cover.jpg", "image")
        #expect(cache.miss(path) == nil)
    }

    @Test func fullCache_losesItsOldestHalf() throws {
        for number in 0..<2_048 {
            let path = try #require(cache.keep([1], "k\(number)", "jpg"))
            var times = [timespec(tv_sec: number, tv_nsec: 0), timespec(tv_sec: number, tv_nsec: 0)]
            utimensat(AT_FDCWD, path, &times, 0)
        }
        #expect(cache.keep([1], "new", "jpg") != nil)
        #expect(cache.known("k0") == nil && cache.known("k1023") == nil)
        #expect(cache.known("k1024") != nil && cache.known("k2047") != nil && cache.known("new") != nil)
    }

    @Test func userWithoutAFolder_hasNoCovers() throws {
        let cache = ArtworkCache(in: nil)
        #expect(cache.keep([1], "k", "png") == nil && cache.known("k") == nil)
    }
}
