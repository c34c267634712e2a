import TestSupport

@testable import MediaLibrary
@testable import TagFormats

/// A library in a folder of its own, with files that are not on the disk.
final class Library {
    let folder: PrivateFolder
    private(set) var store: Store
    private var count: UInt64 = 0

    init() throws {
        folder = try PrivateFolder()
        store = try Store(folder.path)
    }

    /// Another process.
    func reopen(clean: Bool = true) throws {
        if clean { store.close() }
        // The old one must be gone, as after the end of a process.
        store = try Store(try PrivateFolder().path)
        store = try Store(folder.path)
    }

    static func facts(_ tags: [String: [String]], duration: Double = 60) -> SoundFacts {
        var facts = SoundFacts(wantsPicture: false)
        facts.duration = duration
        for (name, values) in tags { for value in values { facts.add(name, value) } }
        return facts
    }

    /// The id of the item.
    @discardableResult
    func add(
        _ path: String, _ tags: [String: [String]], duration: Double = 60, sound: UInt64? = nil,
        inode: UInt64? = nil, size: UInt64? = nil
    ) throws -> Int64 {
        count += 1
        let parts = path.split(separator: "/").map { Array($0.utf8) }
        let directory = Array(("/" + path.split(separator: "/").dropLast().joined(separator: "/")).utf8)
        // The folders are in a folder of the library.
        let root = try store.saw(Array("/".utf8), parent: 0, isMount: false, isWatchable: true, digest: 0)
        let id = try store.saw(directory, parent: root, isMount: false, isWatchable: true, digest: 0)
        let name = parts.last ?? []
        let file = ScanPlan.DiskFile(
            name: name, inode: inode ?? count, size: size ?? 1_000 + count, modified: Int64(count))
        try store.beginBatch()
        try store.carry(out: .add(file), in: id, directory)
        let number = try store.db.number(
            "SELECT id FROM file WHERE directory = ? AND name = ?", [.whole(id), .blob(name)])
        let track = Track(Self.facts(tags, duration: duration), path: Array(path.utf8))
        let stored = try store.store(
            track, for: number ?? 0, sound: sound ?? count, now: 1_000 + Int64(count))
        try store.commitBatch()
        return stored.id
    }

    /// The file at this place is missing now.
    func lose(_ id: Int64, _ path: String) throws {
        let folder = Array(("/" + path.split(separator: "/").dropLast().joined(separator: "/")).utf8)
        guard let directory = try store.directory(folder) else { throw SupportError("no folder of \(path)") }
        try store.beginBatch()
        try store.carry(out: .go(id), in: directory.id, directory.path)
        try store.commitBatch()
    }

    func titles(_ query: Query, max: Int = 1_000) throws -> [String] {
        try store.items(query, offset: 0, max: max).items.map(\.title)
    }
}
