import Glibc
import PluginAPI
import TestSupport
import Testing
import Uploading

@testable import Uploads

/// The records of uploads on the disk, as the next process finds them.
@Suite struct UploadStoreTests {
    private final class Stage {
        let folder: PrivateFolder
        private(set) var complaints: [String] = []

        init() throws { folder = try PrivateFolder() }

        var path: String { folder.path + "/uploads" }

        func open() -> UploadStore? { UploadStore(in: path) { [unowned self] in complaints.append($0) } }

        func names() -> [String] { (try? listing(path)) ?? [] }

        func write(_ name: String, _ text: String) throws { try folder.file("uploads/" + name, text) }
    }

    private static func record(_ number: UInt64, _ path: String = "/films/a.mp4") -> UploadRecord {
        UploadRecord(
            number: number, path: path, address: "http://host/up", options: .init(),
            identity: FileIdentity(inode: 1, size: 2, modified: 3))
    }

    @Test func records_areThereForTheNextProcess_oldestFirst() throws {
        let stage = try Stage()
        do {
            let store = try #require(stage.open())
            for number: UInt64 in [10, 9, 1] { store.save(Self.record(number), mustSurvive: number == 9) }
        }
        let store = try #require(stage.open())
        #expect(store.records() == [1, 9, 10].map { Self.record($0) })
        #expect(stage.complaints == [])
    }

    @Test func savedAgain_theNewRecordReplacesTheOldOne() throws {
        let stage = try Stage()
        let store = try #require(stage.open())
        store.save(Self.record(1), mustSurvive: true)
        store.save(Self.record(1, "/films/b.mp4"), mustSurvive: false)
        #expect(store.records().map(\.path) == ["/films/b.mp4"])
        store.remove(1)
        #expect(store.records() == [])
    }

    @Test func records_areReadableByTheUserAlone() throws {
        let stage = try Stage()
        let store = try #require(stage.open())
        store.save(Self.record(1), mustSurvive: false)
        var status = stat()
        #expect(stat(stage.path + "/1", &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(stage.names().filter { $0.hasPrefix(".") } == [])
    }

    @Test func secondProcess_doesNotContinueTheSameUploads() throws {
        let stage = try Stage()
        let first = try #require(stage.open())
        #expect(stage.open() == nil)
        #expect(stage.complaints.first?.contains("in use by another process") == true)
        _ = consume first
        #expect(stage.open() != nil)
    }

    @Test func folderThatOthersMayWriteTo_isNotUsed() throws {
        let stage = try Stage()
        mkdir(stage.path, 0o700)
        chmod(stage.path, 0o777)
        #expect(stage.open() == nil)
        #expect(stage.complaints.count == 1)
    }

    @Test func numbers_areNeverUsedAgain() throws {
        let stage = try Stage()
        try #require(stage.open()).took(5)
        let next = try #require(stage.open())
        // Numbers are reserved in blocks: the next process begins after the block.
        #expect(next.lastNumber == 1_000)
        next.took(1_000)
        _ = consume next
        #expect(try #require(stage.open()).lastNumber == 2_000)
    }

    @Test func lostNumbers_areAtLeastThoseOfTheRecords() throws {
        let stage = try Stage()
        do {
            let store = try #require(stage.open())
            store.save(Self.record(7_000), mustSurvive: false)
        }
        try stage.write("last", "12 apples")
        let store = try #require(stage.open())
        #expect(store.lastNumber == 7_000)
        #expect(stage.complaints.contains { $0.contains("last is damaged") })
    }

    @Test func damagedRecord_isKeptAside_andTheOthersContinue() throws {
        let stage = try Stage()
        do {
            let store = try #require(stage.open())
            for number: UInt64 in 1...3 { store.save(Self.record(number), mustSurvive: false) }
        }
        // Cut in the middle, and a copy under another number.
        let text = Self.record(2).text
        try stage.write("2", String(text.prefix(text.count / 2)))
        try stage.write("4", Self.record(3).text)
        try stage.write("007", text)
        let store = try #require(stage.open())
        #expect(store.records().map(\.number) == [1, 3])
        #expect(stage.complaints.filter { $0.contains("damaged") }.count == 3)
        #expect(Set(stage.names()).isSuperset(of: ["2.damaged", "4.damaged", "007.damaged"]))
        #expect(store.records().map(\.number) == [1, 3])
    }

    @Test func recordLargerThanTheLimit_isNotWritten() throws {
        let stage = try Stage()
        let store = try #require(stage.open())
        store.save(Self.record(1, "/" + String(repeating: "x", count: 600 << 10)), mustSurvive: true)
        #expect(store.records() == [])
        #expect(stage.complaints.first?.contains("512 KiB") == true)
    }
}

/// The names in a folder.
private func listing(_ path: String) throws -> [String] {
    let folder = try #require(opendir(path))
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { names.append(name) }
    }
    return names
}
