import Glibc
import PluginAPI
import TestSupport
import Testing

@testable import PluginKit

/// Files that appear whole, or not at all.
@Suite struct WholeFileTests {
    private let folder: PrivateFolder

    init() throws { folder = try PrivateFolder() }

    @Test func whatIsNoFile_isNotReplaced() throws {
        let pipe = folder.path + "/pipe"
        #expect(mkfifo(pipe, 0o600) == 0)
        #expect(throws: SessionError.self) { try WholeFile.write([1], to: pipe) }
        // Also if it came after the work had begun.
        let path = folder.path + "/later"
        let file = try WholeFile(path, replaces: true)
        try file.write([1])
        #expect(mkfifo(path, 0o600) == 0)
        #expect(throws: SessionError.self) { try file.keep(replaces: true) }
        for path in [pipe, path] {
            var status = stat()
            #expect(lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO)
        }
    }

    @Test func fileAndLink_areReplaced_andWhatTheLinkNamesStays() throws {
        let (file, link) = (folder.path + "/file", folder.path + "/link")
        try WholeFile.write([1], to: file)
        #expect(symlink(file, link) == 0)
        try WholeFile.write([2], to: link)
        try WholeFile.write([3], to: file)
        var status = stat()
        #expect(lstat(link, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && status.st_mode & 0o777 == 0o600)
        #expect(readBytes(link) == [2] && readBytes(file) == [3])
    }

    private func readBytes(_ path: String) -> [UInt8] {
        let file = open(path, O_RDONLY)
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 16)
        return Array(bytes[..<max(0, read(file, &bytes, bytes.count))])
    }
}
