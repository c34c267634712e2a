import EventLoop
import Glibc
import MediaLibrary
import TestSupport
import Testing
import Workers

@testable import Library

/// What the plugin and its workers tell each other, and what a worker says about files.
@Suite struct LibraryWorkerTests {
    @Test func walk_isCodedAndBack() throws {
        let message = WorkerMessage(LibraryRequest.Walk(path: [1, 255], root: [1], isDeep: false))
        #expect(message.name == "walk")
        let walk: LibraryRequest.Walk = try message.request()
        #expect(walk.path == [1, 255] && walk.root == [1] && !walk.isDeep)
    }

    @Test func files_areCodedAndBack() throws {
        let file = LibraryRequest.File(id: 5, path: [47, 200], base: 1, type: "podcast", wantsFormer: true)
        let tags: LibraryRequest.Tags = try WorkerMessage(LibraryRequest.Tags(files: [file, .init()])).request()
        #expect(tags.files.count == 2 && tags.files[0].id == 5 && tags.files[0].path == [47, 200])
        #expect(tags.files[0].type == "podcast" && tags.files[0].wantsFormer && tags.files[1].type == nil)
    }

    @Test func misspeltField_isAnError_notADefault() {
        var message = WorkerMessage(LibraryRequest.Art(path: [1], size: 64))
        message.fields["sise"] = message.fields.removeValue(forKey: "size")
        #expect(throws: BadRequest.self) { let _: LibraryRequest.Art = try message.request() }
    }

    @Test func track_isTheSameAfterTheWorker() {
        var track = Track()
        (track.title, track.album, track.artist, track.albumKey) = ("Jóga", "Homogenic", "Björk", "k")
        track.artists = ["Björk", "Mark Bell"]
        track.genres = ["Pop"]
        (track.disc, track.number, track.released, track.duration) = (1, 2, 1997, 305.5)
        (track.isCompilation, track.hasPicture) = (true, true)
        #expect(Track(track.message) == track)
        #expect(Track(Track().message) == Track())
    }

    // MARK: Files

    @Test func openFile_knowsItsSizeAndReadsAnyPlace() throws {
        let folder = try PrivateFolder()
        let text = String(repeating: "0123456789", count: 20_000)
        let file = try #require(OpenFile(Array(try folder.file("a", text).utf8)))
        #expect(file.size == 200_000 && file.isRegular)
        #expect(file.read(199_995, 10) == Array("56789".utf8))
        #expect(file.read(300_000, 10) == [])
    }

    @Test func fingerprint_isThatOfTheEndsAndTheSize() throws {
        let folder = try PrivateFolder()
        func fingerprint(_ text: String) throws -> UInt64 {
            try #require(OpenFile(Array(try folder.file("f", text).utf8))).fingerprint
        }
        let text = String(repeating: "x", count: 200_000)
        let whole = try fingerprint(text)
        #expect(try fingerprint(text) == whole)
        #expect(try fingerprint(text + "x") != whole)
        #expect(try fingerprint("y" + text.dropFirst()) != whole)
        #expect(try fingerprint(text.dropLast() + "y") != whole)
    }

    @Test func pipe_isNoRegularFile_andOpeningItDoesNotWait() throws {
        let folder = try PrivateFolder()
        mkfifo(folder.path + "/pipe", 0o600)
        #expect(OpenFile(Array((folder.path + "/pipe").utf8))?.isRegular == false)
        #expect(OpenFile(Array((folder.path + "/none").utf8)) == nil)
    }

    // MARK: Watched folders

    private final class Watch {
        let folder: PrivateFolder
        let loop = EventLoop()
        let watcher: FolderWatcher
        private(set) var changed: [[String]] = []

        init() throws {
            folder = try PrivateFolder()
            watcher = FolderWatcher(on: loop, interval: 1_000)
            watcher.onChanged = { [unowned self] in changed.append($0.map { String(decoding: $0, as: UTF8.self) }) }
        }

        func saw(_ path: String, isWatchable: Bool = true) {
            var status = stat()
            stat(path, &status)
            let modified = Int64(status.st_mtim.tv_sec) * 1_000_000_000 + Int64(status.st_mtim.tv_nsec)
            watcher.saw(Array(path.utf8), isWatchable: isWatchable, modified: modified)
        }
    }

    @Test func removedFolder_isNotWatched_andItsNeighbourWithALongerNameIs() throws {
        let watch = try Watch()
        for name in ["music", "music/rock", "music2", "musical"] { watch.saw(try watch.folder.folder(name)) }
        watch.saw(try watch.folder.folder("music/far"), isWatchable: false)
        watch.saw(try watch.folder.folder("music3"), isWatchable: false)
        #expect(watch.watcher.watchedCount == 4 && watch.watcher.polledCount == 2)
        watch.watcher.forget(below: Array((watch.folder.path + "/music").utf8))
        #expect(watch.watcher.watchedCount == 2 && watch.watcher.polledCount == 1)
        try watch.folder.file("music2/new.mp3", "")
        try watch.folder.file("music/new.mp3", "")
        let isTold = watch.loop.iterate(timeout: 20) { !watch.changed.isEmpty }
        #expect(isTold && watch.changed == [[watch.folder.path + "/music2"]])
    }

    @Test func changes_areToldTogether_onceTheyEnd() throws {
        let watch = try Watch()
        for name in ["a", "b"] { watch.saw(try watch.folder.folder(name)) }
        for name in ["a/1", "b/1", "a/2"] { try watch.folder.file(name, "") }
        let isTold = watch.loop.iterate(timeout: 20) { !watch.changed.isEmpty }
        #expect(isTold && watch.changed == [[watch.folder.path + "/a", watch.folder.path + "/b"]])
    }

    @Test func folderThatChangedBeforeItWasWatched_isTold() throws {
        let watch = try Watch()
        let path = try watch.folder.folder("a")
        watch.watcher.saw(Array(path.utf8), isWatchable: true, modified: 1)
        let isTold = watch.loop.iterate(timeout: 20) { !watch.changed.isEmpty }
        #expect(isTold && watch.changed == [[path]])
    }

    @Test func unwantedFolder_isNeitherWatchedNorChecked() throws {
        let watch = try Watch()
        watch.watcher.isWanted = { _ in false }
        watch.saw(try watch.folder.folder("a"))
        watch.saw(try watch.folder.folder("b"), isWatchable: false)
        #expect(watch.watcher.watchedCount == 0 && watch.watcher.polledCount == 0)
    }

    @Test(arguments: [
        ("/music", "/music", true), ("/music/usb", "/music", true), ("/", "/music", true), ("/music2", "/music", false),
        ("/mus", "/music", false),
    ]) func mount_concernsFoldersInItAndAboveIt(_ point: String, _ folder: String, _ expected: Bool) {
        let mount = MountWatch.Mount(point: Array(point.utf8), device: [])
        #expect(mount.concerns(Array(folder.utf8)) == expected)
    }

    @Test func mountsOfThisProcess_haveTheRoot() {
        #expect(MountWatch.mounts.contains { $0.point == [UInt8(ascii: "/")] })
    }
}
