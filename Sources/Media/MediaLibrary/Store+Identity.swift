// Which item the file at a place is. An item is known by its sound, so a file whose tags and whose place have changed
// at once stays the same item.

extension Store {
    /// What was stored of a file.
    public struct Stored: Sendable, Hashable {
        /// The number of the item. It differs from that of the file if a known item is at this place now.
        public let id: Int64
        public let isNew: Bool
        /// The items that have exchanged their places; the second one is read again at its new place.
        public var exchanged: (known: Int64, other: Int64)? { others.map { (id, $0) } }
        private let others: Int64?

        init(id: Int64, isNew: Bool, exchangedWith other: Int64?) {
            (self.id, self.isNew, others) = (id, isNew, other)
        }
    }

    /// Whether some items are still known by the fingerprint of a former version: by size and both ends of their files.
    public func hasFormerFingerprints() throws(SQLError) -> Bool {
        for table in ["kept.item WHERE", "file WHERE is_gone = 1 AND"] {
            let query = "SELECT 1 FROM \(table) sound IS NULL AND fingerprint IS NOT NULL LIMIT 1"
            if try db.number(query) != nil { return true }
        }
        return false
    }

    /// Stores the tags of a file. A missing item with the same sound is the same item, and so is an item at whose place
    /// there is another sound now.
    /// - Parameters:
    ///   - sound: a fingerprint of the sound.
    ///   - former: the fingerprint of a former version, if there are items that are known by it.
    public func store(
        _ track: Track, for file: Int64, sound: UInt64, former: UInt64? = nil, now: Int64
    ) throws(SQLError) -> Stored {
        let before = try db.first("SELECT sound FROM file WHERE id = ?", [.whole(file)]) { row in
            row.isNull(0) ? nil : row.unsigned(0)
        }
        let isKept = try db.number("SELECT 1 FROM kept.item WHERE id = ?", [.whole(file)]) != nil
        let isTrack = try db.number("SELECT 1 FROM track WHERE id = ?", [.whole(file)]) != nil
        let known = before ?? nil
        var id = file
        var other: Int64?
        if !isKept && !isTrack {
            if let gone = try goneItem(sound, former, like: file) {
                try move(gone, to: file)
                id = gone
            } else if let displaced = try displacedItem(sound, from: file) {
                try exchange(displaced, file, sound)
                (id, other) = (displaced, file)
            } else if let kept = try keptItem(sound, former, like: file) {
                try db.run("UPDATE file SET id = ? WHERE id = ?", [.whole(kept), .whole(file)])
                id = kept
                try keepPath(of: id)
            }
        } else if let known, known != sound {
            var item = try goneItem(sound, nil, like: file)
            if item == nil { item = try displacedItem(sound, from: file) }
            if let item {
                try exchange(item, file, sound)
                (id, other) = (item, file)
            } else {
                // Its own sound may be found at another place.
                formerSounds[known, default: []].insert(file)
            }
        }
        let added = try db.number("SELECT added FROM track WHERE id = ?", [.whole(id)])
        try removeTrack(id)
        try insert(track, id, added: added ?? now)
        try db.run(
            "UPDATE file SET state = 1, error = NULL, fingerprint = ?, sound = ? WHERE id = ?",
            [SQLValue(sound), SQLValue(sound), .whole(id)])
        try db.run(
            """
            UPDATE kept.item SET sound = ?, fingerprint = NULL, size = (SELECT size FROM file f WHERE f.id = item.id)
            WHERE id = ?
            """, [SQLValue(sound), .whole(id)])
        return Stored(id: id, isNew: added == nil, exchangedWith: other)
    }

    /// Of several items with the same sound, the one that has most in common with the file: some songs are silent.
    private static let likeness = """
        ORDER BY f.inode = n.inode DESC, f.size = n.size DESC, f.name = n.name DESC, f.directory = n.directory DESC, f.id
        LIMIT 1
        """

    /// Missing files with a sound. Thousands may have it, so an index of the missing ones alone finds them.
    static let goneWithSound = """
        SELECT f.id FROM file f, file n WHERE f.sound = ?1 AND f.is_gone = 1 AND n.id = ?2 AND f.id != n.id
        \(likeness)
        """

    /// A missing item.
    private func goneItem(_ sound: UInt64, _ former: UInt64?, like file: Int64) throws(SQLError) -> Int64? {
        if let item = try db.number(Self.goneWithSound, [SQLValue(sound), .whole(file)]) {
            return item
        }
        guard let former else { return nil }
        return try db.number(
            """
            SELECT f.id FROM file f, file n WHERE f.is_gone = 1 AND f.size = n.size AND f.fingerprint = ?1
                AND f.sound IS NULL AND n.id = ?2 AND f.id != n.id
            \(Self.likeness)
            """, [SQLValue(former), .whole(file)])
    }

    /// Files that had a sound, have changed, and were not read since; likewise by an index of their own.
    static let changedWithSound = """
        SELECT f.id FROM file f, file n WHERE f.sound = ?1 AND f.state = 0 AND f.fingerprint IS NULL
            AND f.is_gone = 0 AND n.id = ?2 AND f.id != n.id
        \(likeness)
        """

    /// An item at whose place there is, or may be, another sound: the file there has changed and was not read yet, or it
    /// was read in this scan.
    private func displacedItem(_ sound: UInt64, from file: Int64) throws(SQLError) -> Int64? {
        if let item = try db.number(Self.changedWithSound, [SQLValue(sound), .whole(file)]) {
            return item
        }
        guard let item = formerSounds[sound]?.min(), item != file else { return nil }
        return try db.number("SELECT id FROM file WHERE id = ?", [.whole(item)])
    }

    /// An item that was removed, of which something is kept.
    private func keptItem(_ sound: UInt64, _ former: UInt64?, like file: Int64) throws(SQLError) -> Int64? {
        if let item = try db.number(
            """
            SELECT k.id FROM kept.item k, file n WHERE k.sound = ?1 AND n.id = ?2 AND k.id NOT IN (SELECT id FROM file)
            ORDER BY k.size = n.size DESC, k.id LIMIT 1
            """, [SQLValue(sound), .whole(file)])
        {
            return item
        }
        guard let former else { return nil }
        return try db.number(
            """
            SELECT k.id FROM kept.item k, file n WHERE k.fingerprint = ?1 AND k.sound IS NULL
                AND k.size = n.size AND n.id = ?2 AND k.id NOT IN (SELECT id FROM file) LIMIT 1
            """, [SQLValue(former), .whole(file)])
    }

    /// The item `known` is at the place of `file` now, and `file` at its former place, where it is read again.
    private func exchange(_ known: Int64, _ file: Int64, _ sound: UInt64) throws(SQLError) {
        func place(_ id: Int64) throws(SQLError) -> [SQLValue] {
            try db.first(
                "SELECT directory, name, inode, size, modified, is_gone FROM file WHERE id = ?", [.whole(id)]
            ) { row in (0..<6).map { row.value($0) } } ?? []
        }
        func put(_ id: Int64, _ place: [SQLValue]) throws(SQLError) {
            try db.run(
                """
                UPDATE file SET directory = ?, name = ?, inode = ?, size = ?, modified = ?, is_gone = ?, state = 0,
                    fingerprint = NULL
                WHERE id = ?
                """, place + [.whole(id)])
        }
        let (old, new) = (try place(known), try place(file))
        // Two files cannot be at one place, not even for a moment.
        try db.run("UPDATE file SET directory = ? WHERE id = ?", [.whole(-(1 << 50) - known), .whole(known)])
        try put(file, old)
        try put(known, new)
        formerSounds[sound]?.remove(known)
        for id in [known, file] { try keepPath(of: id) }
        hasBatchChanges = true
    }

    /// Where an item is found again after its file was removed.
    func keepPath(of id: Int64) throws(SQLError) {
        guard try db.number("SELECT 1 FROM kept.item WHERE id = ?", [.whole(id)]) != nil, let path = try path(of: id)
        else { return }
        try db.run("UPDATE kept.item SET path = ? WHERE id = ?", [.blob(path), .whole(id)])
    }
}
