import Glibc
import Processes

/// The database of the library, in its own folder: `library.db`, which a scan can create again, and `library-kept.db`
/// with folders, playlists, counts, ratings and bookmarks.
///
/// A damaged file is renamed, and all content that can be read is copied to the new file.
public final class Store {
    let db: SQLite
    public let folder: String
    /// Damage that was found when the database was opened, as messages for users.
    public private(set) var findings: [String] = []
    /// Increased by 1 with each change.
    public internal(set) var revision: UInt64 = 0
    /// The revision of the last change of the music or the playlists. Changes of counts, ratings and bookmarks leave it as
    /// it is. A store that has just been opened does not know it, and returns its revision.
    public private(set) var contents: UInt64 = 0
    /// Answers that are still valid.
    var cache = AnswerCache()
    var wordsMerge = WordsMerge()
    /// Whether this batch has changed what a client can see.
    var hasBatchChanges = false
    /// The items whose files have another sound since this scan, by the sound that they had.
    var formerSounds: [UInt64: Set<Int64>] = [:]

    /// The kinds of entries in the full-text index.
    enum Kind: Int64, CaseIterable {
        case song = 0
        case album = 1
        case name = 2
        case list = 3

        static let shift: Int64 = 1 << 40
        func row(_ id: Int64) -> Int64 { rawValue * Self.shift + id }
    }

    static let firstFileList: Int64 = 1 << 40

    /// Opens the database, or creates it.
    /// - Throws: if the folder cannot be written to, or the disk is full.
    public init(_ folder: String) throws(SQLError) {
        self.folder = folder
        guard makeFolders(folder) else {
            throw SQLError(code: 14, message: "\(folder): \(String(cString: strerror(errno)))")
        }
        let (main, kept) = (folder + "/library.db", folder + "/library-kept.db")
        var findings: [String] = []
        if Store.continueSaving(kept) { findings.append("\(kept) was damaged: its readable content was restored") }
        if let reason = Store.damage(kept, isIndex: false) {
            let saved = try Store.save(kept)
            let aside = try Store.putAside(kept)
            try Store.rename(Store.saved(kept), to: kept)
            findings.append("\(kept) \(reason): renamed to \(aside)")
            findings.append("\(saved) bookmarks, counts, ratings and entries of playlists were restored from it")
        }
        if let reason = Store.damage(main, isIndex: true) {
            findings.append("\(main) \(reason): renamed to \(try Store.putAside(main)); the music is scanned again")
        }
        // Not done yet only if this failed above.
        for (path, isIndex) in [(kept, false), (main, true)] {
            try Schema.upgrade(try SQLite(path), ofIndex: isIndex)
        }
        db = try SQLite(main)
        try db.script("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -4000")
        try db.run("ATTACH ? AS kept", [.text(kept)])
        // Data that a scan cannot read again is on the disk before a change is reported.
        try db.script("PRAGMA kept.journal_mode = WAL; PRAGMA kept.synchronous = FULL; PRAGMA temp_store = MEMORY")
        try db.transaction { () throws(SQLError) in
            if try db.number("PRAGMA kept.user_version") == 0 {
                try db.script("\(Schema.kept); PRAGMA kept.user_version = \(Schema.keptVersion)")
            }
            if try db.number("PRAGMA main.user_version") == 0 {
                try db.script("\(Schema.main); PRAGMA main.user_version = \(Schema.version)")
                // New items must not get the ids of items in `kept`.
                let last = try db.number("SELECT max(id) FROM kept.item") ?? 0
                try db.run("INSERT INTO sqlite_sequence(name, seq) VALUES('file', ?)", [.whole(last)])
            }
        }
        try db.script(Schema.views)
        if try db.number("SELECT 1 FROM meta WHERE key = 'lists'") == nil {
            try db.transaction { () throws(SQLError) in
                for list in try db.all("SELECT id, name FROM kept.playlist", [], { ($0.whole(0), $0.text(1)) }) {
                    try addWords(.list, listRow(list.0), [list.1])
                }
                try db.run("INSERT INTO meta VALUES('lists', 1)")
            }
        }
        revision = UInt64(clamping: try db.number("SELECT value FROM meta WHERE key = 'revision'") ?? 0)
        contents = revision
        try db.run("INSERT OR REPLACE INTO meta VALUES('open', 1)")
        self.findings = findings
    }

    /// Closes the database; must be the last call. The next process then skips the full check for damage.
    public func close() {
        try? db.run("DELETE FROM meta WHERE key = 'open'")
        try? db.script("PRAGMA optimize")
        try? db.run("PRAGMA wal_checkpoint(TRUNCATE)")
    }

    /// Reads for a client. The reads end with `SQLError.isTooLong` when they have used that many seconds of processor time.
    public func within<Result>(
        _ seconds: Double, _ body: () throws(SQLError) -> Result
    ) throws(SQLError) -> Result {
        try db.reading { () throws(SQLError) in try db.within(seconds, body) }
    }

    // MARK: Damage

    /// The reason why a file cannot be used; nil: it can be used, or does not exist.
    private static func damage(_ path: String, isIndex: Bool) -> String? {
        let version = isIndex ? Schema.version : Schema.keptVersion
        var status = stat()
        guard stat(path, &status) == 0, status.st_size > 0 else { return nil }
        do throws(SQLError) {
            let db = try SQLite(path)
            try Schema.upgrade(db, ofIndex: isIndex)
            let found = try db.number("PRAGMA user_version") ?? 0
            guard found == 0 || found == version else { return "has version \(found), not \(version)" }
            guard found != 0 else {
                return try db.number("SELECT count(*) FROM sqlite_master") == 0 ? nil : "is another database"
            }
            guard try Schema.hasTables(db, ofIndex: isIndex) else { return "has other tables" }
            // A database that was closed can only be damaged by a missing end.
            let isClosed = isIndex ? try db.number("SELECT 1 FROM meta WHERE key = 'open'") == nil : false
            if isClosed {
                try db.run("PRAGMA wal_checkpoint(TRUNCATE)")
                let size = (try db.number("PRAGMA page_count") ?? 0) * (try db.number("PRAGMA page_size") ?? 0)
                return stat(path, &status) == 0 && Int64(status.st_size) < size ? "is truncated" : nil
            }
            let finding = try db.first("PRAGMA quick_check(1)") { $0.text(0) }
            return finding == "ok" ? nil : "is damaged (\(finding ?? "it cannot be read"))"
        } catch {
            return error.isDamage ? "is damaged (\(error.message))" : nil
        }
    }

    private static func putAside(_ path: String) throws(SQLError) -> String {
        for number in 1...9_999 {
            let aside = "\(path).damaged-\(number)"
            if access(aside, F_OK) == 0 { continue }
            try rename(path, to: aside)
            for part in ["-wal", "-shm"] { Glibc.rename(path + part, aside + part) }
            return aside
        }
        throw SQLError(code: 14, message: "\(path): too many damaged files beside it; remove some")
    }

    private static func rename(_ path: String, to new: String) throws(SQLError) {
        guard Glibc.rename(path, new) == 0 else {
            throw SQLError(code: 14, message: "\(path): \(String(cString: strerror(errno)))")
        }
    }

    /// The file into which the readable content of a damaged file is copied. It takes the place of the damaged file when
    /// it is complete, so a process that is killed loses nothing.
    private static func saved(_ path: String) -> String { path + ".saved" }

    /// Completes what a killed process began: the damaged file had been renamed, and its content had not taken its place.
    private static func continueSaving(_ path: String) -> Bool {
        let saved = saved(path)
        // With a journal, the copy is not complete.
        guard access(path, F_OK) != 0, access(saved, F_OK) == 0, access(saved + "-journal", F_OK) != 0 else {
            return false
        }
        return Glibc.rename(saved, path) == 0
    }

    /// Copies the readable content of a damaged file into another file; returns the number of rows of items and playlists.
    private static func save(_ path: String) throws(SQLError) -> Int {
        let saved = saved(path)
        for part in ["", "-journal", "-wal", "-shm"] { unlink(saved + part) }
        let new = try SQLite(":memory:")
        try new.run("ATTACH ? AS kept", [.text(saved)])
        try new.script("PRAGMA kept.synchronous = FULL")
        var count = 0
        try new.transaction { () throws(SQLError) in
            try new.script("\(Schema.kept); PRAGMA kept.user_version = \(Schema.keptVersion)")
            count = try salvage(from: path, to: new)
        }
        return count
    }

    /// Copies all rows that can be read; returns the number of rows of items and playlists.
    private static func salvage(from path: String, to new: SQLite) throws(SQLError) -> Int {
        guard let old = try? SQLite(path) else { return 0 }
        // Without this, SQLite reads nothing of a file that is shorter than its header states.
        try? old.script("PRAGMA writable_schema = ON")
        var count = 0
        var failure: SQLError?
        for (table, columns) in [
            ("meta", ["key", "value"]), ("folder", ["path", "media_type", "is_watched"]),
            (
                "item",
                [
                    "id", "path", "fingerprint", "size", "plays", "skips", "played", "rating", "bookmark", "media_type",
                    "sound",
                ]
            ),
            ("playlist", ["id", "name"]), ("playlist_item", ["playlist", "position", "item"]),
        ] {
            // Files of an earlier version have fewer columns.
            let columns = columns.filter { (try? old.run("SELECT \($0) FROM \(table) LIMIT 0")) != nil }
            guard let key = columns.first else { continue }
            let list = columns.joined(separator: ", ")
            let marks = columns.map { _ in "?" }.joined(separator: ", ")
            func copy(_ order: String) {
                try? old.rows("SELECT \(list) FROM \(table) \(order)") { row throws(SQLError) in
                    let values = columns.indices.map { row.value($0) }
                    do throws(SQLError) {
                        try new.run("INSERT OR IGNORE INTO kept.\(table)(\(list)) VALUES(\(marks))", values)
                    } catch  where !error.isOfValue {
                        failure = error
                        throw error
                    } catch {}
                }
            }
            // Reads from both ends, because the damage may be in the middle.
            copy("")
            copy("ORDER BY \(key) DESC")
            if let failure { throw failure }
            if table == "item" || table == "playlist_item" {
                count += Int((try? new.number("SELECT count(*) FROM kept.\(table)")) ?? 0)
            }
        }
        return count
    }

    // MARK: Changes

    /// Commits everything or nothing; counts as one change.
    /// - Parameter ofContents: whether the music or the playlists change.
    func change(ofContents: Bool = true, _ body: () throws(SQLError) -> Void) throws(SQLError) {
        try db.transaction { () throws(SQLError) in
            try body()
            try writeRevision()
        }
        committed(ofContents: ofContents)
    }

    private func writeRevision() throws(SQLError) {
        try db.run("INSERT OR REPLACE INTO meta VALUES('revision', ?)", [SQLValue(revision + 1)])
    }

    private func committed(ofContents: Bool) {
        revision += 1
        if ofContents { contents = revision }
    }

    /// A number that changes when an answer to the query becomes invalid.
    func stamp(of query: Query) -> UInt64 { query.needsKept ? revision : contents }

    /// Begins a transaction of a scan: many files, and one change, or none if only what the scan itself needs is stored.
    public func beginBatch() throws(SQLError) {
        hasBatchChanges = false
        try db.begin()
    }

    public func commitBatch() throws(SQLError) {
        do throws(SQLError) {
            if hasBatchChanges { try writeRevision() }
            try db.commit()
        } catch {
            cancelBatch()
            throw error
        }
        if hasBatchChanges { committed(ofContents: true) }
    }

    public func cancelBatch() {
        db.rollBack()
        // Answers from the middle of the batch are wrong.
        cache = AnswerCache()
        formerSounds = [:]
    }

    public var isInBatch: Bool { db.isInTransaction }

    public func setMeta(_ key: String, _ value: Int64) throws(SQLError) {
        try db.run("INSERT OR REPLACE INTO meta VALUES(?, ?)", [.text(key), .whole(value)])
    }

    /// Like `setMeta`, for a value that stays if the index is created again.
    public func setKeptMeta(_ key: String, _ value: Int64) throws(SQLError) {
        try db.run("INSERT OR REPLACE INTO kept.meta VALUES(?, ?)", [.text(key), .whole(value)])
    }

    public func keptMeta(_ key: String) -> Int64? {
        (try? db.number("SELECT value FROM kept.meta WHERE key = ?", [.text(key)])) ?? nil
    }

    public func meta(_ key: String) -> Int64? {
        (try? db.number("SELECT value FROM meta WHERE key = ?", [.text(key)])) ?? nil
    }
}
