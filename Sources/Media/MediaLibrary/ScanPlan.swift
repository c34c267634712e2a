/// Compares a folder on the disk with the database, and decides what a scan must change.
public enum ScanPlan {
    /// A file on the disk.
    public struct DiskFile: Sendable, Hashable {
        public var name: [UInt8]
        public var inode: UInt64
        public var size: UInt64
        /// The time of the last change, in nanoseconds since 1970.
        public var modified: Int64
        /// Whether it is a regular file, not a FIFO, a socket or a device.
        public var isRegular: Bool

        public init(name: [UInt8], inode: UInt64, size: UInt64, modified: Int64, isRegular: Bool = true) {
            (self.name, self.inode, self.size) = (name, inode, size)
            (self.modified, self.isRegular) = (modified, isRegular)
        }
    }

    /// A file in the database.
    public struct KnownFile: Sendable, Hashable {
        public var id: Int64
        public var name: [UInt8]
        public var inode: UInt64
        public var size: UInt64
        public var modified: Int64
        /// It was missing in the last scan, and may appear at another place.
        public var isGone: Bool

        public init(id: Int64, name: [UInt8], inode: UInt64, size: UInt64, modified: Int64, isGone: Bool = false) {
            (self.id, self.name, self.inode) = (id, name, inode)
            (self.size, self.modified, self.isGone) = (size, modified, isGone)
        }
    }

    public enum Step: Sendable, Hashable {
        /// The file is new. Its tags must be read, unless it is a missing file that was moved.
        case add(DiskFile)
        /// The tags of the file must be read again.
        case change(Int64, DiskFile)
        /// The file is back, and unchanged.
        case comeBack(Int64)
        /// The file is missing. It is removed at the end of the scan, unless it is found at another place.
        case go(Int64)
    }

    /// The steps for one folder. Both lists must be sorted by name, without duplicates.
    public static func steps(disk: [DiskFile], known: [KnownFile], isFull: Bool = false) -> [Step] {
        var steps: [Step] = []
        var known = known[...]
        for file in disk {
            while let old = known.first, old.name.lexicographicallyPrecedes(file.name) {
                if !old.isGone { steps.append(.go(old.id)) }
                known.removeFirst()
            }
            guard let old = known.first, old.name == file.name else {
                steps.append(.add(file))
                continue
            }
            known.removeFirst()
            // The inode is not compared: some file systems number their files anew at each mount.
            if isFull || old.size != file.size || old.modified != file.modified {
                steps.append(.change(old.id, file))
            } else if old.isGone {
                steps.append(.comeBack(old.id))
            }
        }
        for old in known where !old.isGone { steps.append(.go(old.id)) }
        return steps
    }

    /// Whether a new file is a missing file that was moved: `rename` changes none of these values.
    public static func isMoved(_ gone: KnownFile, _ new: KnownFile) -> Bool {
        gone.isGone && !new.isGone && gone.id != new.id && gone.inode == new.inode && gone.size == new.size
            && gone.modified == new.modified
    }

    /// The state of a known folder.
    public enum Presence: Sendable, Hashable {
        case present
        /// The file system that was mounted there is not mounted. Its items are not available, and are not removed.
        case unavailable
        case removed
    }

    /// - Parameters:
    ///   - wasMount: whether a file system was mounted there before.
    ///   - isThere: whether the folder exists.
    ///   - isMount: whether a file system is mounted there now.
    ///   - isRoot: whether it is a folder of the library, which only a user removes.
    public static func presence(wasMount: Bool, isThere: Bool, isMount: Bool, isRoot: Bool) -> Presence {
        if isThere { return wasMount && !isMount ? .unavailable : .present }
        return wasMount || isRoot ? .unavailable : .removed
    }

    /// A hash of a listing. If it is the same as before, nothing in the folder has changed.
    public static func digest(_ files: [DiskFile], folders: [[UInt8]]) -> UInt64 {
        var hash = Hash64()
        for file in files {
            hash.add(file.name)
            hash.add(file.inode)
            hash.add(file.size)
            hash.add(UInt64(bitPattern: file.modified))
            hash.add(file.isRegular ? 1 : 0)
        }
        hash.add(1)
        for name in folders { hash.add(name) }
        // 0 means that the listing is unknown.
        return max(1, hash.value)
    }
}

/// A hash of 64 bits, fast and the same in each process. It is not used for security.
public struct Hash64: Sendable {
    public private(set) var value: UInt64 = 0x9E37_79B9_7F4A_7C15

    public init() {}

    public mutating func add(_ word: UInt64) {
        value = (value ^ word) &* 0xFF51_AFD7_ED55_8CCD
        value ^= value >> 32
    }

    public mutating func add(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { raw in
            var place = 0
            while place + 8 <= raw.count {
                add(raw.loadUnaligned(fromByteOffset: place, as: UInt64.self))
                place += 8
            }
            var rest: UInt64 = 0
            while place < raw.count {
                rest = rest << 8 | UInt64(raw[place])
                place += 1
            }
            add(rest)
            add(UInt64(raw.count))
        }
    }
}

/// Selects the files that are read, by the extensions of their names.
public enum MusicFile {
    private static let endings: Set<UInt64> = keys([
        "mp3", "mp2", "aac", "m4a", "m4b", "aax", "flac", "ogg", "oga", "opus", "spx", "wav", "wave", "aif", "aiff",
        "aifc", "wma", "wv", "ape", "mpc", "mp+", "tta", "dsf", "dff", "oggflac", "au", "snd", "caf",
        // The library does not know these formats. A scan says that it did not read such a file.
        "ac3", "amr", "dts", "eac3", "mka", "ofr", "shn", "tak",
    ])
    private static let listEndings: Set<UInt64> = keys(["m3u", "m3u8", "pls", "xspf"])

    private static func keys(_ endings: [String]) -> Set<UInt64> { Set(endings.map { key($0.utf8) }) }

    /// The bytes of an ending as a number, in small letters: a scan asks for each file.
    private static func key(_ ending: some Sequence<UInt8>) -> UInt64 {
        ending.reduce(0) { $0 << 8 | UInt64((UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($1) ? $1 | 0x20 : $1) }
    }

    private static func ending(_ name: [UInt8]) -> UInt64? {
        guard let dot = name.lastIndex(of: UInt8(ascii: ".")), name.count - dot <= 8, dot > 0 else { return nil }
        return key(name[(dot + 1)...])
    }

    public static func isMusic(_ name: [UInt8]) -> Bool { ending(name).map { endings.contains($0) } ?? false }
    public static func isList(_ name: [UInt8]) -> Bool { ending(name).map { listEndings.contains($0) } ?? false }
}
