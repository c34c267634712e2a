import Glibc
import HTTP
import PluginAPI
import TestSupport
import Testing
import Uploading

@testable import Uploads

/// The file of an upload: the same file is sent to the end, or none.
@Suite struct SourceFileTests {
    private let folder: PrivateFolder

    init() throws { folder = try PrivateFolder() }

    private func code(_ body: () throws -> Void) -> SessionError.Code? {
        do {
            try body()
            return nil
        } catch {
            return (error as? SessionError)?.code
        }
    }

    @Test func file_isKnownByItsContentAndItsTime() throws {
        let path = try folder.file("a", "one")
        let identity = try SourceFile.identity(of: path)
        #expect(try SourceFile.identity(of: path) == identity && identity.size == 3)
        #expect(try SourceFile.open(path, as: identity).isTheSame)
    }

    @Test func link_isTheFileThatItNames() throws {
        let path = try folder.file("a", "one")
        symlink(path, folder.path + "/link")
        #expect(try SourceFile.identity(of: folder.path + "/link") == SourceFile.identity(of: path))
    }

    @Test func changedFile_isNotOpened() throws {
        let path = try folder.file("a", "one")
        let identity = try SourceFile.identity(of: path)
        let file = try #require(fopen(path, "a"))
        fputs("more", file)
        fclose(file)
        #expect(code { _ = try SourceFile.open(path, as: identity) } == .invalidSource)
    }

    @Test func fileThatChangesWhileItIsSent_isNoticed() throws {
        let path = try folder.file("a", "one")
        let body = try SourceFile.open(path, as: SourceFile.identity(of: path))
        #expect(body.isTheSame)
        truncate(path, 1)
        #expect(!body.isTheSame)
    }

    @Test func exchangedFile_isAnotherOne_alsoWithTheSameContent() throws {
        let path = try folder.file("a", "one")
        let identity = try SourceFile.identity(of: path)
        rename(try folder.file("b", "one"), path)
        #expect(code { _ = try SourceFile.open(path, as: identity) } == .invalidSource)
    }

    @Test func missingFile_isNotFound_andAFolderIsNoSource() throws {
        #expect(code { _ = try SourceFile.identity(of: folder.path + "/none") } == .notFound)
        #expect(code { _ = try SourceFile.identity(of: try folder.file("a", "x") + "/in") } == .notFound)
        #expect(code { _ = try SourceFile.identity(of: folder.path) } == .invalidSource)
    }

    @Test func pipe_isRefusedWithoutWaiting() throws {
        mkfifo(folder.path + "/pipe", 0o600)
        #expect(code { _ = try SourceFile.identity(of: folder.path + "/pipe") } == .invalidSource)
    }
}
