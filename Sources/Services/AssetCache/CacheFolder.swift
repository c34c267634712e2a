import EventLoop
import Glibc
import MediaCache
import MediaValues
import Processes

/// The folder of the cached resources: `$XDG_CACHE_HOME/sessiond/media`. Only the user may read it.
final class CacheFolder {
    /// One resource in it.
    struct Entry {
        let name: String
        let record: CacheRecord
        let isComplete: Bool
        /// The bytes on the disk.
        let bytes: UInt64
        /// Milliseconds since 1970.
        let used: Int
    }

    let path: String
    private let lock: Int32
    let boot: String
    /// The share of the disk that stays free.
    private static let reserve = 0.05

    /// Nil if the folder cannot be used, or another process uses it; then nothing is kept.
    /// - Parameter home: the folder for caches of the user.
    init?(in home: String? = UserFolder.cache.path, complain: (String) -> Void) {
        guard let cache = home else {
            complain("neither XDG_CACHE_HOME nor HOME is set: nothing is kept")
            return nil
        }
        path = cache + "/sessiond/media"
        guard makeFolders(path), isPrivate(path) else {
            complain("\(path): \(String(cString: strerror(errno))): nothing is kept")
            return nil
        }
        lock = open(path + "/lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard lock >= 0, flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            complain("\(path) is in use by another process: nothing is kept")
            if lock >= 0 { close(lock) }
            return nil
        }
        let bytes = readFile("/proc/sys/kernel/random/boot_id", limit: 64) ?? []
        boot = String(decoding: bytes.prefix { $0 > 0x20 }, as: UTF8.self)
        removeStrays()
    }

    deinit { close(lock) }

    /// It may have been removed meanwhile.
    func make() { _ = makeFolders(path) }

    func base(_ name: String) -> String { path + "/" + name }

    /// Files of resources without a record: the process ended before their first bytes counted.
    private func removeStrays() {
        let names = Set(namesIn(path))
        for name in names {
            let parts = name.split(separator: ".")
            guard parts.count >= 2, let ending = parts.last else { continue }
            let isStray = ["part", "media", "named"].contains(ending) && !names.contains("\(parts[0]).map")
            guard isStray || ending == "new" else { continue }
            if ending == "named" { Self.removeNames(base(String(parts[0]))) } else { unlink(base(name)) }
        }
    }

    /// What is recorded under that name; nil: nothing, or it is damaged.
    func entry(_ name: String) -> Entry? {
        guard let bytes = readFile(base(name) + ".map", limit: CacheRecord.limit),
            let record = CacheRecord(text: String(decoding: bytes, as: UTF8.self), boot: boot)
        else { return nil }
        var map = stat()
        stat(base(name) + ".map", &map)
        var file = stat()
        let isComplete = stat(base(name) + ".media", &file) == 0
        if !isComplete { guard stat(base(name) + ".part", &file) == 0 else { return nil } }
        let highest = record.ranges.ranges.last?.upperBound ?? 0
        // Somebody has cut or replaced the file.
        guard isComplete ? UInt64(file.st_size) == record.size : UInt64(file.st_size) >= highest else { return nil }
        return Entry(
            name: name, record: record, isComplete: isComplete, bytes: UInt64(max(0, file.st_blocks)) * 512,
            used: map.st_mtim.tv_sec * 1_000 + map.st_mtim.tv_nsec / 1_000_000)
    }

    /// All that is recorded, the least recently used first.
    var entries: [Entry] {
        namesIn(path).filter { $0.hasSuffix(".map") }.compactMap { entry(String($0.dropLast(4))) }
            .sorted { ($0.used, $0.name) < ($1.used, $1.name) }
    }

    /// `UTIME_NOW`, a macro with a cast.
    private static let now = (1 << 30) - 1

    /// Now it is used.
    func touch(_ name: String) {
        var times = [
            timespec(tv_sec: 0, tv_nsec: CacheFolder.now), timespec(tv_sec: 0, tv_nsec: CacheFolder.now),
        ]
        utimensat(AT_FDCWD, base(name) + ".map", &times, 0)
    }

    func remove(_ name: String) { Self.remove(base(name)) }

    /// Removes the files of a resource.
    /// - Parameter base: its path without an extension.
    static func remove(_ base: String) {
        for ending in [".map", ".part", ".media"] { unlink(base + ending) }
        removeNames(base)
    }

    // MARK: Names for people

    /// The path of a whole resource, under the name that it has in its address: players show it as the title, and recognize
    /// formats by its ending. Without such a name on this disk, the path of the file itself.
    /// - Parameter base: its path without an extension.
    static func named(_ base: String, _ shown: String) -> String {
        let file = base.split(separator: "/").last.map(String.init) ?? base
        let path = base + ".named/" + name(in: shown)
        mkdir(base + ".named", 0o700)
        symlink("../" + file + ".media", path)
        return access(path, R_OK) == 0 ? path : base + ".media"
    }

    private static func removeNames(_ base: String) {
        let folder = base + ".named"
        for name in namesIn(folder) { unlink(folder + "/" + name) }
        rmdir(folder)
    }

    /// The path of a resource that is whole.
    func path(of entry: Entry) -> String { Self.named(base(entry.name), entry.record.shown) }

    /// The most bytes of a name; file systems allow 255.
    private static let nameLimit = 200

    /// A name for a file, from the last part of an address, with its escapes resolved.
    private static func name(in shown: String) -> String {
        var name = (FileURI.title(shown) ?? "").unicodeScalars.reduce(into: "") { text, scalar in
            text.unicodeScalars.append(scalar.value < 0x20 || scalar.value == 0x7F || scalar == "/" ? "_" : scalar)
        }
        // The ending stays.
        while name.utf8.count > nameLimit { name.removeFirst() }
        return ["", ".", ".."].contains(name) ? "media" : name
    }

    /// Removes what was not used for longest until all together have at most `limit` bytes, and the disk has its reserve.
    /// - Parameters:
    ///   - more: bytes that will be stored.
    ///   - used: what must stay.
    /// - Returns: whether there is room now.
    func makeRoom(for more: UInt64, limit: UInt64, besides used: Set<String>) -> Bool {
        var all = entries
        var total = all.reduce(0) { $0 + $1.bytes }
        all.removeAll { used.contains($0.name) }
        while total + more > limit || !hasSpace(for: more), let oldest = all.first {
            all.removeFirst()
            remove(oldest.name)
            total -= min(total, oldest.bytes)
        }
        return hasSpace(for: more)
    }

    private func hasSpace(for more: UInt64) -> Bool {
        var disk = statvfs()
        guard statvfs(path, &disk) == 0 else { return false }
        let free = Double(disk.f_bavail) * Double(disk.f_frsize) - Double(more)
        return free >= Double(disk.f_blocks) * Double(disk.f_frsize) * CacheFolder.reserve
    }

    /// The bytes of all that is recorded.
    var size: UInt64 { entries.reduce(0) { $0 + $1.bytes } }
}
