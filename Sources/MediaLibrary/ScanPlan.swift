/// What a scan makes of a folder: what the disk has against what the database has.
public enum ScanPlan {
    /// A file as the disk has it.
    public struct DiskFile: Sendable, Hashable {
        public var name: [UInt8]
        public var inode: UInt64
        public var size: UInt64
        /// Nanoseconds.
        public var modified: Int64
        /// Not a FIFO, a socket or a device.
        public var isRegular: Bool

        public init(name: [UInt8], inode: UInt64, size: UInt64, modified: Int64, isRegular: Bool = true) {
            (self.name, self.inode, self.size) = (name, inode, size)
            (self.modified, self.isRegular) = (modified, isRegular)
        }
    }

    /// A file as the database has it.
    public struct KnownFile: Sendable, Hashable {
        public var id: Int64
        public var name: [UInt8]
        public var inode: UInt64
        public var size: UInt64
        public var modified: Int64
        /// It was not there at the last look, and may turn up elsewhere.
        public var isGone: Bool

        public init(id: Int64, name: [UInt8], inode: UInt64, size: UInt64, modified: Int64, isGone: Bool = false) {
            (self.id, self.name, self.inode) = (id, name, inode)
            (self.size, self.modified, self.isGone) = (size, modified, isGone)
        }
    }

    public enum Step: Sendable, Hashable {
        /// The file is new: its tags are to be read, unless it is one that is gone elsewhere.
        case add(DiskFile)
        /// Its tags are to be read again.
        case change(Int64, DiskFile)
        /// It is as it was, and back.
        case comeBack(Int64)
        /// It is not there any more. It is removed at the end of the scan, if it is nowhere else.
        case go(Int64)
    }

    /// The steps for one folder. Both lists are sorted by name, without a name twice.
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
            // Not the inode: some file systems number anew at each mount.
            if isFull || old.size != file.size || old.modified != file.modified {
                steps.append(.change(old.id, file))
            } else if old.isGone {
                steps.append(.comeBack(old.id))
            }
        }
        for old in known where !old.isGone { steps.append(.go(old.id)) }
        return steps
    }

    /// Whether a file that is new somewhere is one that is gone elsewhere: `rename` changes none of these.
    public static func isMoved(_ gone: KnownFile, _ new: KnownFile) -> Bool {
        gone.isGone && !new.isGone && gone.id != new.id && gone.inode == new.inode && gone.size == new.size
            && gone.modified == new.modified
    }

    /// What has become of a folder that was known.
    public enum Presence: Sendable, Hashable {
        case present
        /// What was mounted there is not: its items are not available, and are not removed.
        case unavailable
        case removed
    }

    /// - Parameters:
    ///   - wasMount: whether it was where a file system was mounted.
    ///   - isThere: whether there is such a folder.
    ///   - isMount: whether a file system is mounted there now.
    ///   - isRoot: whether it is a folder of the library, which only a user removes.
    public static func presence(wasMount: Bool, isThere: Bool, isMount: Bool, isRoot: Bool) -> Presence {
        if isThere { return wasMount && !isMount ? .unavailable : .present }
        return wasMount || isRoot ? .unavailable : .removed
    }

    /// The number of a listing, by which a folder in which nothing has changed is known at once.
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
        // 0 stands for a listing that is not known.
        return max(1, hash.value)
    }
}

/// A hash of 64 bits, fast and the same in each process. No secret depends on it.
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

/// Which files are looked at, by the endings of their names.
public enum MusicFile {
    private static let endings: Set<String> = [
        "mp3", "mp2", "aac", "m4a", "m4b", "aax", "flac", "ogg", "oga", "opus", "spx", "wav", "wave", "aif", "aiff",
        "aifc", "wma", "wv", "ape", "mpc", "mp+", "tta", "dsf",
    ]
    private static let listEndings: Set<String> = ["m3u", "m3u8", "pls", "xspf"]

    private static func ending(_ name: [UInt8]) -> String? {
        guard let dot = name.lastIndex(of: UInt8(ascii: ".")), name.count - dot <= 5, dot > 0 else { return nil }
        return String(decoding: name[(dot + 1)...], as: UTF8.self).lowercased()
    }

    public static func isMusic(_ name: [UInt8]) -> Bool { ending(name).map { endings.contains($0) } ?? false }
    public static func isList(_ name: [UInt8]) -> Bool { ending(name).map { listEndings.contains($0) } ?? false }
}
