// Reads and writes of a scan.

extension Store {
    /// A folder of the library.
    public struct Folder: Sendable, Hashable {
        public let path: [UInt8]
        /// The type of all its files; nil: each file decides.
        public var mediaType: ItemType?
        public var isWatched: Bool
    }

    /// A folder on the disk.
    public struct Directory: Sendable, Hashable {
        public let id: Int64
        public let path: [UInt8]
        /// The id of the folder that contains it; 0: it is a folder of the library.
        public let parent: Int64
        public let isMount: Bool
        public let digest: UInt64
        public let isAvailable: Bool
    }

    // MARK: Folders

    public func folders() throws(SQLError) -> [Folder] {
        try db.all("SELECT path, media_type, is_watched FROM kept.folder ORDER BY path") { row in
            Folder(
                path: row.blob(0), mediaType: row.isNull(1) ? nil : ItemType(rawValue: row.whole(1)),
                isWatched: row.flag(2))
        }
    }

    public func add(folder path: [UInt8], _ type: ItemType?, isWatched: Bool) throws(SQLError) {
        try change { () throws(SQLError) in
            try db.run(
                "INSERT OR REPLACE INTO kept.folder VALUES(?, ?, ?)",
                [.blob(path), type.map { .whole($0.rawValue) } ?? .null, SQLValue(isWatched)])
            // The type of the folder has changed: all its files are read again.
            try db.run(
                "UPDATE file SET state = 0 WHERE state = 1 AND directory IN (SELECT id FROM directory WHERE \(Self.below))",
                Self.range(path))
        }
    }

    /// - Returns: the items that are removed with it; nil: it is not a folder of the library.
    public func remove(folder path: [UInt8]) throws(SQLError) -> [Int64]? {
        guard try db.number("SELECT 1 FROM kept.folder WHERE path = ?", [.blob(path)]) != nil else { return nil }
        var removed: [Int64] = []
        try change { () throws(SQLError) in
            try db.run("DELETE FROM kept.folder WHERE path = ?", [.blob(path)])
            // The content of other folders of the library stays.
            let others = try folders().map(\.path)
            let inside = others.filter { Self.contains(path, $0) }
            var isInOther = false
            if others.contains(where: { Self.contains($0, path) }), let slash = path.lastIndex(of: UInt8(ascii: "/")),
                let parent = try directory(Array(path[..<slash]))
            {
                isInOther = true
                try db.run("UPDATE directory SET parent = ? WHERE path = ?", [.whole(parent.id), .blob(path)])
                // The next scan decides whether it enters this folder.
                try forgetListing(parent.path)
            }
            let all = try db.all("SELECT id, path FROM directory WHERE \(Self.below)", Self.range(path)) {
                (id: $0.whole(0), path: $0.blob(1))
            }
            for directory in all where !inside.contains(where: { Self.contains($0, directory.path) }) {
                if isInOther {
                    // The folder around it now decides the types of its files.
                    try db.run("UPDATE directory SET digest = 0 WHERE id = ?", [.whole(directory.id)])
                    try db.run("UPDATE file SET state = 0 WHERE state = 1 AND directory = ?", [.whole(directory.id)])
                } else {
                    try db.run("UPDATE file SET is_gone = 1 WHERE directory = ?", [.whole(directory.id)])
                    try db.run("DELETE FROM directory WHERE id = ?", [.whole(directory.id)])
                }
            }
            removed = try removeGone()
        }
        return removed
    }

    static func contains(_ folder: [UInt8], _ path: [UInt8]) -> Bool {
        path.starts(with: folder) && (path.count == folder.count || path[folder.count] == UInt8(ascii: "/"))
    }

    /// A folder and its whole content, in the order of paths: "0" is the character after "/".
    static let below = "(path = ?1 OR path > ?2 AND path < ?3)"
    static func range(_ path: [UInt8]) -> [SQLValue] {
        [.blob(path), .blob(path + [UInt8(ascii: "/")]), .blob(path + [UInt8(ascii: "0")])]
    }

    // MARK: Directories

    private func directory(_ row: SQLite.Row) -> Directory {
        Directory(
            id: row.whole(0), path: row.blob(1), parent: row.whole(2), isMount: row.flag(3), digest: row.unsigned(4),
            isAvailable: row.flag(5))
    }

    private static let columns = "id, path, parent, is_mount, digest, is_available"

    public func directory(_ path: [UInt8]) throws(SQLError) -> Directory? {
        try db.first("SELECT \(Self.columns) FROM directory WHERE path = ?", [.blob(path)]) { directory($0) }
    }

    public func children(of id: Int64) throws(SQLError) -> [Directory] {
        try db.all("SELECT \(Self.columns) FROM directory WHERE parent = ?", [.whole(id)]) { directory($0) }
    }

    /// The folders on file systems that report changes, or all other folders.
    public func directories(watchable: Bool, max: Int) throws(SQLError) -> [[UInt8]] {
        try db.all(
            "SELECT path FROM directory WHERE is_available = 1 AND is_watchable = ? ORDER BY path LIMIT ?",
            [SQLValue(watchable), SQLValue(max)]
        ) { $0.blob(0) }
    }

    /// Adds the folder, or makes it available again; returns its id.
    public func saw(
        _ path: [UInt8], parent: Int64, isMount: Bool, isWatchable: Bool, digest: UInt64
    ) throws(SQLError) -> Int64 {
        if let known = try directory(path) {
            try db.run(
                "UPDATE directory SET parent = ?, is_mount = ?, digest = ?, is_watchable = ? WHERE id = ?",
                [.whole(parent), SQLValue(isMount), SQLValue(digest), SQLValue(isWatchable), .whole(known.id)])
            if !known.isAvailable { try setAvailable(known.id, true) }
            return known.id
        }
        try db.run(
            "INSERT INTO directory(path, parent, is_mount, digest, is_watchable) VALUES(?, ?, ?, ?, ?)",
            [.blob(path), .whole(parent), SQLValue(isMount), SQLValue(digest), SQLValue(isWatchable)])
        return db.lastID
    }

    /// The next scan compares the folder with the disk, even if its listing is the same as before.
    public func forgetListing(_ path: [UInt8]) throws(SQLError) {
        try db.run("UPDATE directory SET digest = 0 WHERE path = ?", [.blob(path)])
    }

    private func setAvailable(_ directory: Int64, _ isAvailable: Bool) throws(SQLError) {
        try db.run("UPDATE directory SET is_available = ? WHERE id = ?", [SQLValue(isAvailable), .whole(directory)])
        try db.run(
            "UPDATE track SET is_available = ? WHERE id IN (SELECT id FROM file WHERE directory = ?)",
            [SQLValue(isAvailable), .whole(directory)])
        if db.changes > 0 { hasBatchChanges = true }
    }

    /// The file system that was mounted there is not mounted any more.
    public func setUnavailable(below path: [UInt8]) throws(SQLError) {
        let available = try db.all(
            "SELECT id FROM directory WHERE \(Self.below) AND is_available = 1", Self.range(path)
        ) { $0.whole(0) }
        for id in available {
            try setAvailable(id, false)
            try db.run("UPDATE directory SET digest = 0 WHERE id = ?", [.whole(id)])
        }
    }

    /// The folder and its content do not exist any more. Folders in it on which a file system was mounted, or that the user
    /// added to the library, become unavailable instead.
    public func goes(_ path: [UInt8]) throws(SQLError) {
        let mounts = try db.all(
            "SELECT path FROM directory WHERE \(Self.below) AND (is_mount = 1 OR parent = 0)", Self.range(path)
        ) { $0.blob(0) }
        for mount in mounts { try setUnavailable(below: mount) }
        let all = try db.all("SELECT id, path FROM directory WHERE \(Self.below)", Self.range(path)) {
            (id: $0.whole(0), path: $0.blob(1))
        }
        for directory in all where !mounts.contains(where: { Self.contains($0, directory.path) }) {
            // A new folder may get the id of this one. The files must not be in it.
            try db.run("UPDATE file SET is_gone = 1, directory = -id WHERE directory = ?", [.whole(directory.id)])
            try db.run("DELETE FROM directory WHERE id = ?", [.whole(directory.id)])
        }
    }

    // MARK: Files

    /// The files of a folder in the order of their names: after `after`, up to `last`; nil: from the first, or to the
    /// last.
    public func files(
        in directory: Int64, after: [UInt8]?, to last: [UInt8]?
    ) throws(SQLError) -> [ScanPlan.KnownFile] {
        var sql = "SELECT id, name, inode, size, modified, is_gone FROM file WHERE directory = ?"
        var values: [SQLValue] = [.whole(directory)]
        if let after {
            sql += " AND name > ?"
            values.append(.blob(after))
        }
        if let last {
            sql += " AND name <= ?"
            values.append(.blob(last))
        }
        return try db.all(sql + " ORDER BY name", values) { row in
            ScanPlan.KnownFile(
                id: row.whole(0), name: row.blob(1), inode: row.unsigned(2), size: row.unsigned(3),
                modified: row.whole(4),
                isGone: row.flag(5))
        }
    }

    /// - Returns: the item that is removed with it, if any.
    @discardableResult
    public func carry(out step: ScanPlan.Step, in directory: Int64, _ path: [UInt8]) throws(SQLError) -> Int64? {
        switch step {
        case .add(let file): try add(file, directory, path)
        case .change(let id, let file):
            try db.run(
                """
                UPDATE file SET inode = ?, size = ?, modified = ?, state = ?, error = ?, is_gone = 0, fingerprint = NULL
                WHERE id = ?
                """, Self.facts(file) + [.whole(id)])
            if !file.isRegular, try removeContent(id) { return id }
        case .comeBack(let id): try db.run("UPDATE file SET is_gone = 0 WHERE id = ?", [.whole(id)])
        case .go(let id): try db.run("UPDATE file SET is_gone = 1 WHERE id = ?", [.whole(id)])
        }
        return nil
    }

    private static func facts(_ file: ScanPlan.DiskFile) -> [SQLValue] {
        [
            SQLValue(file.inode), SQLValue(file.size), .whole(file.modified), SQLValue(file.isRegular ? 0 : 2),
            file.isRegular ? .null : .text("it is not a regular file"),
        ]
    }

    private func add(_ file: ScanPlan.DiskFile, _ directory: Int64, _ path: [UInt8]) throws(SQLError) {
        // A file that was here before gets its old number again.
        let known = try db.number(
            "SELECT id FROM kept.item WHERE path = ? AND id NOT IN (SELECT id FROM file)",
            [.blob(path + [UInt8(ascii: "/")] + file.name)])
        try db.run(
            """
            INSERT INTO file(id, directory, name, inode, size, modified, state, error) VALUES(?, ?, ?, ?, ?, ?, ?, ?)
            """, [known.map { .whole($0) } ?? .null, .whole(directory), .blob(file.name)] + Self.facts(file))
    }

    /// Finds new files that are missing files at a new place, and moves the old items there.
    /// - Returns: the number of moved items, and the items whose files were overwritten by them.
    public func findMoved() throws(SQLError) -> (count: Int, removed: [Int64]) {
        let gone = try db.all("SELECT id, inode, size, modified FROM file WHERE is_gone = 1") { row in
            ScanPlan.KnownFile(
                id: row.whole(0), name: [], inode: row.unsigned(1), size: row.unsigned(2), modified: row.whole(3),
                isGone: true)
        }
        var count = 0
        var removed: [Int64] = []
        for file in gone {
            let new = try db.number(
                """
                SELECT id FROM file WHERE inode = ? AND size = ? AND modified = ? AND is_gone = 0 AND state = 0
                    AND fingerprint IS NULL
                """, [SQLValue(file.inode), SQLValue(file.size), .whole(file.modified)])
            if let new {
                if try move(file.id, to: new) { removed.append(new) }
                count += 1
            }
        }
        return (count, removed)
    }

    /// Moves the item `old` to the place of `new`, whose tags have not been read yet. They are read, because the title, the
    /// type and the entries of a playlist may depend on the place.
    /// - Returns: whether there was another item at this place, which is removed.
    @discardableResult
    func move(_ old: Int64, to new: Int64) throws(SQLError) -> Bool {
        let place = try db.first("SELECT directory, name, inode, modified FROM file WHERE id = ?", [.whole(new)]) {
            row in
            [SQLValue.whole(row.whole(0)), .blob(row.blob(1)), .whole(row.whole(2)), .whole(row.whole(3))]
        }
        guard let place else { return false }
        let isRemoved = try removeContent(new)
        try db.run("DELETE FROM file WHERE id = ?", [.whole(new)])
        try db.run(
            "UPDATE file SET directory = ?, name = ?, inode = ?, modified = ?, state = 0, is_gone = 0 WHERE id = ?",
            place + [.whole(old)])
        try db.run("UPDATE track SET is_available = 1 WHERE id = ?", [.whole(old)])
        hasBatchChanges = true
        try keepPath(of: old)
        return isRemoved
    }

    public func path(of id: Int64) throws(SQLError) -> [UInt8]? {
        try db.first(
            "SELECT d.path, f.name FROM file f JOIN directory d ON d.id = f.directory WHERE f.id = ?", [.whole(id)]
        ) { $0.blob(0) + [UInt8(ascii: "/")] + $0.blob(1) }
    }

    /// Files whose tags have not been read, in the order of their numbers.
    public func pending(after id: Int64, max: Int) throws(SQLError) -> [(id: Int64, path: [UInt8])] {
        try db.all(
            """
            SELECT f.id, d.path, f.name FROM file f JOIN directory d ON d.id = f.directory
            WHERE f.state = 0 AND f.is_gone = 0 AND f.id > ? AND d.is_available = 1 ORDER BY f.id LIMIT ?
            """, [.whole(id), SQLValue(max)]
        ) { ($0.whole(0), $0.blob(1) + [UInt8(ascii: "/")] + $0.blob(2)) }
    }

    public func pendingCount() throws(SQLError) -> Int {
        Int(
            try db.number(
                """
                SELECT count(*) FROM file f JOIN directory d ON d.id = f.directory
                WHERE f.state = 0 AND f.is_gone = 0 AND d.is_available = 1
                """) ?? 0)
    }

    /// The files that could not be read for one of these reasons are read again.
    public func readAgain(failedBecause reasons: [String]) throws(SQLError) {
        let places = reasons.map { _ in "?" }.joined(separator: ",")
        try db.run(
            "UPDATE file SET state = 0 WHERE state = 2 AND is_gone = 0 AND error IN (\(places))",
            reasons.map { .text($0) })
    }

    /// The file cannot be read. It is not read again until it changes, or until ``readAgain(failedBecause:)``.
    /// - Returns: whether it was an item, which is removed.
    @discardableResult
    public func failed(_ id: Int64, _ reason: String) throws(SQLError) -> Bool {
        let isRemoved = try removeContent(id)
        try db.run("UPDATE file SET state = 2, error = ? WHERE id = ?", [.text(reason), .whole(id)])
        hasBatchChanges = true
        return isRemoved
    }

    public func failures(max: Int) throws(SQLError) -> [(path: [UInt8], reason: String)] {
        try db.all(
            """
            SELECT d.path, f.name, f.error FROM file f JOIN directory d ON d.id = f.directory WHERE f.state = 2
            ORDER BY d.path, f.name LIMIT ?
            """, [SQLValue(max)]
        ) { ($0.blob(0) + [UInt8(ascii: "/")] + $0.blob(1), $0.text(2)) }
    }

    public func failureCount() throws(SQLError) -> Int {
        Int(try db.number("SELECT count(*) FROM file WHERE state = 2 AND is_gone = 0") ?? 0)
    }

    /// Stores a playlist file, with the paths of its entries.
    public func store(list file: Int64, name: String, _ entries: [[UInt8]], content: UInt64) throws(SQLError) {
        try removeList(file)
        try db.run("INSERT INTO list(file, name) VALUES(?, ?)", [.whole(file), .text(name)])
        let list = db.lastID
        for (index, entry) in entries.enumerated() {
            guard let slash = entry.lastIndex(of: UInt8(ascii: "/")) else { continue }
            try db.run(
                "INSERT INTO list_item VALUES(?, ?, ?, ?)",
                [.whole(list), SQLValue(index), .blob(Array(entry[..<slash])), .blob(Array(entry[(slash + 1)...]))])
        }
        try addWords(.list, list, [name])
        try db.run(
            "UPDATE file SET state = 1, error = NULL, fingerprint = ? WHERE id = ?",
            [SQLValue(content), .whole(file)])
    }

    private func removeList(_ file: Int64) throws(SQLError) {
        guard
            let list = try db.first(
                "SELECT id, name FROM list WHERE file = ?", [.whole(file)], { ($0.whole(0), $0.text(1)) })
        else { return }
        try removeWords(.list, list.0, [list.1])
        try db.run("DELETE FROM list_item WHERE list = ?", [.whole(list.0)])
        try db.run("DELETE FROM list WHERE id = ?", [.whole(list.0)])
    }

    func insert(_ track: Track, _ id: Int64, added: Int64) throws(SQLError) {
        var album: Int64 = 0
        if !track.albumKey.isEmpty {
            if let known = try db.number("SELECT id FROM album WHERE key = ?", [.text(track.albumKey)]) {
                album = known
            } else {
                try db.run(
                    "INSERT INTO album(key, title, title_sort, artist, artist_sort, words) VALUES(?, ?, ?, ?, ?, ?)",
                    [
                        .text(track.albumKey), .text(track.album), .text(track.albumSort), .text(track.albumArtist),
                        .text(track.albumArtistSort), .text(track.albumArtists.joined(separator: " ")),
                    ])
                album = db.lastID
                try addWords(.album, album, [track.album, track.albumArtist])
            }
        }
        let type =
            try db.number("SELECT media_type FROM kept.item WHERE id = ?", [.whole(id)]) ?? track.mediaType.rawValue
        let titleKey = Folding.fold(track.title)
        let artistKey = Self.key([track.artist] + track.artists)
        let albumKey = Folding.fold(track.album)
        let composerKey = Self.key(track.composers)
        let genreKey = Self.key(track.genres)
        try db.run(
            "INSERT INTO track VALUES(?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                .whole(id), .whole(type), .text(track.title), .text(titleKey), .text(track.titleSort),
                .text(track.artist), .text(artistKey), .text(track.artistSort), .whole(album), .text(track.album),
                .text(albumKey), .text(track.albumSort), .text(track.albumArtist),
                .text(Self.key([track.albumArtist] + track.albumArtists)), .text(track.albumArtistSort),
                .text(track.composers.joined(separator: ", ")), .text(composerKey),
                .text(track.genres.joined(separator: ", ")), .text(genreKey), SQLValue(track.disc),
                SQLValue(track.number),
                SQLValue(track.released), .number(track.duration), SQLValue(track.isCompilation),
                SQLValue(track.hasPicture), .whole(track.mediaType.rawValue), .whole(added),
            ])
        for (role, names) in [track.artists, track.albumArtists, track.composers, track.genres].enumerated() {
            for name in names {
                try db.run(
                    "INSERT OR IGNORE INTO track_name VALUES(?, ?, ?)",
                    [SQLValue(role), .whole(try self.name(name)), .whole(id)])
            }
        }
        try addWords(.song, id, [track.title, artistKey, track.album, composerKey + " " + genreKey])
    }

    private func name(_ name: String) throws(SQLError) -> Int64 {
        let key = Folding.fold(name)
        if let known = try db.number("SELECT id FROM name WHERE key = ?", [.text(key)]) { return known }
        try db.run(
            "INSERT INTO name(key, name, sort) VALUES(?, ?, ?)", [.text(key), .text(name), .text(Folding.sortKey(key))])
        let id = db.lastID
        try addWords(.name, id, [name])
        return id
    }

    /// Several values as one text, with a line end before and after each, so that each value can be found as a whole.
    static func key(_ values: [String]) -> String {
        var keys: [String] = []
        for value in values {
            let key = Folding.fold(value)
            if !key.isEmpty, !keys.contains(key) { keys.append(key) }
        }
        return keys.isEmpty ? "" : "\n" + keys.joined(separator: "\n") + "\n"
    }

    /// Removes what was read from a file; returns whether it was an item.
    private func removeContent(_ id: Int64) throws(SQLError) -> Bool {
        try removeList(id)
        return try removeTrack(id)
    }

    /// Returns whether there was a track.
    @discardableResult
    func removeTrack(_ id: Int64) throws(SQLError) -> Bool {
        let old = try db.first(
            "SELECT title, artist_key, album_title, composer_key, genre_key FROM track WHERE id = ?", [.whole(id)]
        ) { row in [row.text(0), row.text(1), row.text(2), row.text(3) + " " + row.text(4)] }
        guard let old else { return false }
        try removeWords(.song, id, old)
        try db.run("DELETE FROM track WHERE id = ?", [.whole(id)])
        try db.run("DELETE FROM track_name WHERE track = ?", [.whole(id)])
        return true
    }

    /// Ends a scan: items that are still missing are removed. Returns them.
    public func finish() throws(SQLError) -> [Int64] {
        formerSounds = [:]
        return try removeGone()
    }

    private func removeGone() throws(SQLError) -> [Int64] {
        let gone = try db.all("SELECT id FROM file WHERE is_gone = 1") { $0.whole(0) }
        var removed: [Int64] = []
        for id in gone where try removeContent(id) { removed.append(id) }
        try db.run("DELETE FROM file WHERE is_gone = 1")
        let albums = try db.all(
            "SELECT id, title, artist FROM album WHERE NOT EXISTS (SELECT 1 FROM track WHERE track.album = album.id)"
        ) { ($0.whole(0), [$0.text(1), $0.text(2)]) }
        for (id, words) in albums {
            try removeWords(.album, id, words)
            try db.run("DELETE FROM album WHERE id = ?", [.whole(id)])
        }
        let names = try db.all(
            """
            SELECT id, name FROM name WHERE NOT EXISTS (
                SELECT 1 FROM track_name t WHERE t.role IN (0, 1, 2, 3) AND t.name = name.id)
            """
        ) { ($0.whole(0), [$0.text(1)]) }
        for (id, words) in names {
            try removeWords(.name, id, words)
            try db.run("DELETE FROM name WHERE id = ?", [.whole(id)])
        }
        return removed
    }

    // MARK: Words

    /// The four columns of the full-text index. A name that is spoken as one word, such as AC/DC, is also stored as one
    /// word.
    private func columns(_ texts: [String]) -> [SQLValue] {
        (0..<4).map { index in
            guard texts.indices.contains(index) else { return .text("") }
            var words = Folding.words(Folding.fold(texts[index]))
            if index == 0, (2...4).contains(words.count) { words.append(words.joined()) }
            if index == 1 {
                for line in texts[1].split(separator: "\n") {
                    let parts = Folding.words(Folding.fold(String(line)))
                    if (2...4).contains(parts.count) { words.append(parts.joined()) }
                }
            }
            return .text(words.joined(separator: " "))
        }
    }

    func addWords(_ kind: Kind, _ id: Int64, _ texts: [String]) throws(SQLError) {
        wordsMerge.changes += 1
        hasBatchChanges = true
        try db.run(
            "INSERT INTO words(rowid, title, artist, album, more) VALUES(?, ?, ?, ?, ?)",
            [.whole(kind.row(id))] + columns(texts))
    }

    /// - Parameter texts: the texts with which it was added.
    func removeWords(_ kind: Kind, _ id: Int64, _ texts: [String]) throws(SQLError) {
        wordsMerge.changes += 1
        hasBatchChanges = true
        try db.run(
            "INSERT INTO words(words, rowid, title, artist, album, more) VALUES('delete', ?, ?, ?, ?, ?)",
            [.whole(kind.row(id))] + columns(texts))
    }
}
