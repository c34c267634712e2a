import Glibc
import TestSupport
import Testing

@testable import Library

/// Folders as clients write them, and the names of covers.
@Suite struct FolderPathTests {
    private static func plain(_ path: String) -> String? {
        FolderPath.plain(Array(path.utf8)).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(arguments: [
        ("/music", "/music"), ("/music/", "/music"), ("//music///rock//", "/music/rock"), ("/./music/.", "/music"),
        ("/", "/"), ("/.", "/"), ("/music/...", "/music/..."), ("/a b/ü", "/a b/ü"),
    ]) func path_hasOneForm(_ given: String, _ expected: String) {
        #expect(Self.plain(given) == expected)
    }

    @Test(arguments: ["", "music", "./music", "/mu\0sic"]) func pathThatIsNone_isRefused(_ given: String) {
        #expect(Self.plain(given) == nil)
    }

    @Test func dots_areResolvedThroughLinks_andOtherLinksStay() throws {
        let folder = try PrivateFolder()
        let real = try folder.folder("real/inner")
        symlink(real, folder.path + "/link")
        #expect(Self.plain(folder.path + "/link") == folder.path + "/link")
        let resolved = try #require(Self.plain(folder.path + "/link/.."))
        #expect(resolved.hasSuffix("/real"))
        #expect(Self.plain(folder.path + "/none/..") == nil)
    }

    // MARK: Covers

    private func cover(_ names: [String]) throws -> String? {
        let folder = try PrivateFolder()
        for name in names { try folder.file(name, "") }
        return CoverFile.name(in: Array(folder.path.utf8)).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(arguments: [
        (["a.mp3", "folder.jpg", "cover.png"], "cover.png"), (["front.webp", "album.jpg"], "front.webp"),
        (["Cover.JPG"], "Cover.JPG"), (["albumart.jpeg", "album.png"], "albumart.jpeg"),
    ]) func cover_isTheBestName(_ names: [String], _ expected: String) throws {
        #expect(try cover(names) == expected)
    }

    @Test(arguments: [["back.jpg"], ["cover.gif"], ["cover.jpg.part"], ["cover"], []])
    func otherImages_areNoCover(_ names: [String]) throws {
        #expect(try cover(names) == nil)
    }

    @Test func folderThatIsMissing_hasNoCover() { #expect(CoverFile.name(in: Array("/none/there".utf8)) == nil) }
}
