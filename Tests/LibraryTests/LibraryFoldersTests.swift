import MediaLibrary
import TestSupport
import Testing

@testable import Library

/// The folders of the library, and what follows from them for other paths.
@Suite struct LibraryFoldersTests {
    private let folder: PrivateFolder
    private let store: Store

    init() throws {
        folder = try PrivateFolder()
        store = try Store(folder.path)
    }

    private func folders(_ paths: [String]) throws -> LibraryFolders {
        for path in paths { try store.add(folder: Array(path.utf8), nil, isWatched: true) }
        return LibraryFolders(try store.folders())
    }

    private func text(_ path: [UInt8]?) -> String? { path.map { String(decoding: $0, as: UTF8.self) } }

    @Test func noFolders_containNothing() {
        let folders = LibraryFolders()
        #expect(folders.isEmpty && folders.whole == [] && folders.texts == [])
        #expect(folders.folder(of: Array("/music".utf8)) == nil && folders.targets(changed: [[0x2F]]) == [])
    }

    @Test(arguments: [
        ("/music", "/music"), ("/music/rock", "/music/rock"), ("/music/rock/a", "/music/rock"),
        ("/music/rocket", "/music"), ("/music2", nil), ("/", nil), ("/mus", nil),
    ]) func path_isInTheInnermostFolder(_ path: String, _ expected: String?) throws {
        let folders = try folders(["/music", "/music/rock", "/other"])
        #expect(text(folders.folder(of: Array(path.utf8))?.path) == expected)
    }

    @Test func rootOfTheDisk_containsEverything() throws {
        let folders = try folders(["/"])
        #expect(text(folders.folder(of: Array("/music".utf8))?.path) == "/")
    }

    @Test func parent_isInTheSameFolderOfTheLibrary() throws {
        let folders = try folders(["/music", "/music/rock"])
        #expect(text(folders.parent(of: Array("/music/rock/a".utf8))) == "/music/rock")
        #expect(folders.parent(of: Array("/music/rock".utf8)) == nil)
        #expect(folders.isRoot(Array("/music/rock".utf8)) && !folders.isRoot(Array("/music/pop".utf8)))
    }

    @Test func fewChanges_scanThoseFolders_andManyScanAll() throws {
        let folders = try folders(["/music"])
        func paths(_ count: Int) -> [[UInt8]] { (0..<count).map { Array("/music/\($0)".utf8) } }
        let few = folders.targets(changed: paths(64) + [Array("/other".utf8)])
        #expect(few.count == 64 && few.allSatisfy { !$0.isDeep })
        #expect(folders.targets(changed: paths(65)) == folders.whole)
        #expect(folders.whole == [ScanTargets.Target(path: Array("/music".utf8), isDeep: true)])
    }

    @Test func mount_concernsTheFoldersAroundIt() throws {
        let folders = try folders(["/media/usb/music", "/music"])
        func concerned(_ point: String) -> [String?] {
            folders.concerned(by: [.init(point: Array(point.utf8), device: [1])]).map { text($0) }
        }
        #expect(concerned("/media/usb") == ["/media/usb/music"])
        #expect(concerned("/music/far") == ["/music"])
        #expect(concerned("/srv") == [])
    }

    @Test(arguments: [
        ("", "/home/ada/Music"), ("XDG_MUSIC_DIR=\"$HOME/Musik\"\n", "/home/ada/Musik"),
        ("# x\nXDG_MUSIC_DIR=\"/srv/music/\"\nXDG_VIDEOS_DIR=\"/srv/films\"", "/srv/music"),
        ("XDG_MUSIC_DIR=\"$HOME/\"", nil), ("XDG_MUSIC_DIR=\"$HOME/.\"", "/home/ada/."),
        ("XDG_MUSIC_DIR=\"music\"", nil), ("XDG_MUSIC_DIR=\"/\"", nil), ("XDG_MUSIC_DIR=/srv", "/home/ada/Music"),
        ("XDG_MUSIC_DIR=\"\"", nil),
    ]) func music_isTheFolderOfTheUser(_ settings: String, _ expected: String?) {
        #expect(LibraryFolders.music(home: "/home/ada", settings: settings) == expected)
    }
}
