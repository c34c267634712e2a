import Glibc
import MediaLibrary
import Processes
import Workers

/// Lists a folder and, if requested, all folders below it: parents first, and files in the order of their names.
///
/// ``WalkRules`` decides which folders are entered, when their parent is listed. The list contains exactly the folders
/// that are entered. Only a walk of a whole folder of the library knows which folders were already entered. Other walks
/// report the links that they find, and the folders below a link, but do not enter them.
final class FolderWalk {
    /// The number of files in one message.
    private static let chunk = 1_000
    private static let depthLimit = 48
    /// The bytes of the names of all folders in one folder.
    static let nameLimit = 4 << 20
    /// The number of folders in one folder.
    static let folderLimit = 100_000

    private let process: WorkerProcess
    private let start: [UInt8]
    private let root: [UInt8]
    private let isDeep: Bool
    private var rules = WalkRules()
    private var isWhole: Bool { isDeep && start == root }

    init(_ process: WorkerProcess, _ request: LibraryRequest.Walk) {
        self.process = process
        (start, root, isDeep) = (request.path, request.root, request.isDeep)
    }

    func run() -> WorkerMessage {
        let parent =
            start.lastIndex(of: UInt8(ascii: "/")).map { $0 == 0 ? [UInt8(ascii: "/")] : Array(start[..<$0]) } ?? []
        var above: [WalkRules.Place] = []
        var isThroughLink = false
        // The folders from the root to the start: none of them may be entered again through a link.
        var path = root
        while path.count < start.count {
            if let status = Self.status(path) { above.append(status.place) }
            let next = start[(path.count + 1)...].firstIndex(of: UInt8(ascii: "/")) ?? start.count
            path = Array(start[..<next])
            if Self.isLink(path) { isThroughLink = true }
        }
        rules = WalkRules(above: above)
        if let status = Self.status(start) { rules.begin(status.place) }
        walk(start, Self.status(parent).map { UInt64($0.st_dev) }, above, isThroughLink: isThroughLink)
        if rules.isFull { process.send(WorkerMessage("full", ["path": .bytes(start)])) }
        return WorkerMessage("done")
    }

    private static func isLink(_ path: [UInt8]) -> Bool {
        var status = stat()
        return with(path) { lstat($0, &status) } == 0 && status.st_mode & S_IFMT == S_IFLNK
    }

    private static func status(_ path: [UInt8]) -> stat? {
        var status = stat()
        return with(path) { stat($0, &status) } == 0 ? status : nil
    }

    private static func with<Result>(_ path: [UInt8], _ body: (UnsafePointer<CChar>) -> Result) -> Result {
        (path + [0]).withUnsafeBytes { body($0.baseAddress!.assumingMemoryBound(to: CChar.self)) }
    }

    /// The names in a folder, not sorted.
    static func names(_ folder: [UInt8]) -> [[UInt8]] {
        guard let listing = with(folder, { opendir($0) }) else { return [] }
        defer { closedir(listing) }
        var names: [[UInt8]] = []
        while let entry = readdir(listing) { names.append(name(entry)) }
        return names
    }

    private static func name(_ entry: UnsafeMutablePointer<dirent>) -> [UInt8] {
        withUnsafeBytes(of: &entry.pointee.d_name) { raw in
            Array(raw.prefix(strnlen(raw.baseAddress!.assumingMemoryBound(to: CChar.self), raw.count)))
        }
    }

    /// False, with errno: it cannot be examined.
    private static func status(of entry: UnsafeMutablePointer<dirent>, in folder: Int32, _ status: inout stat) -> Bool {
        withUnsafeBytes(of: &entry.pointee.d_name) { raw in
            fstatat(folder, raw.baseAddress!.assumingMemoryBound(to: CChar.self), &status, 0) == 0
        }
    }

    private func walk(
        _ path: [UInt8], _ parentDevice: UInt64?, _ above: [WalkRules.Place], isThroughLink: Bool
    ) {
        guard let status = Self.status(path) else {
            let error = errno
            return report(Self.isMissing(error) ? "gone" : "lost", path, String(cString: strerror(error)))
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { return report("gone", path, "it is not a folder") }
        guard WalkRules.mayHoldMusic(type(of: status)) else {
            return report("closed", path, "a file system of the kernel")
        }
        guard let listing = Self.with(path, { opendir($0) }) else {
            return report("closed", path, String(cString: strerror(errno)))
        }
        var files: [ScanPlan.DiskFile] = []
        var found: [Folder] = []
        // Entries that exist and cannot be examined, for example on a disk that fails.
        var unknown: [[UInt8]] = []
        let place = status.place
        do {
            defer { closedir(listing) }
            let descriptor = dirfd(listing)
            while true {
                errno = 0
                guard let entry = readdir(listing) else { break }
                let name = Self.name(entry)
                guard name.first != UInt8(ascii: ".") else { continue }
                let kind = entry.pointee.d_type
                let mayBeFolder = kind == 4 || kind == 10 || kind == 0
                let isMusic = MusicFile.isMusic(name) || MusicFile.isList(name)
                guard isMusic && kind != 4 || mayBeFolder else { continue }
                var status = stat()
                guard Self.status(of: entry, in: descriptor, &status) else {
                    if !Self.isMissing(errno) { unknown.append(name) }
                    continue
                }
                if status.st_mode & S_IFMT == S_IFDIR {
                    let isLink = kind == 10 || kind == 0 && Self.isLink(path + [UInt8(ascii: "/")] + name)
                    found.append(Folder(name: name, status: status, isLink: isLink))
                } else if isMusic {
                    files.append(
                        ScanPlan.DiskFile(
                            name: name, inode: UInt64(status.st_ino), size: UInt64(max(0, status.st_size)),
                            modified: status.modified,
                            isRegular: status.st_mode & S_IFMT == S_IFREG))
                }
            }
            // A part of a listing would remove the rest.
            if errno != 0 { return report("closed", path, String(cString: strerror(errno))) }
        }
        let names = found.map(\.name) + unknown
        guard names.count <= Self.folderLimit, names.reduce(0, { $0 + 2 * ($1.count + 1) }) <= Self.nameLimit else {
            return report("closed", path, "it has too many folders")
        }
        files.sort { $0.name.lexicographicallyPrecedes($1.name) }
        found.sort { $0.name.lexicographicallyPrecedes($1.name) }
        let isTooDeep = above.count >= Self.depthLimit
        let folders = found.filter { folder in
            guard !isTooDeep, mayEnter(path, folder, above + [place]) else { return false }
            let isLinked = isThroughLink || folder.isLink
            return isLinked && !isWhole || rules.enters(folder.status.place, isThroughLink: isLinked)
        }
        let links = isWhole ? [] : folders.filter { isThroughLink || $0.isLink }.map(\.name)
        send(path, status, parentDevice, files, folders.map(\.name), links, unknown)
        guard isDeep else { return }
        for folder in folders where isWhole || !isThroughLink && !folder.isLink {
            walk(
                path + [UInt8(ascii: "/")] + folder.name, UInt64(status.st_dev), above + [place],
                isThroughLink: isThroughLink || folder.isLink)
        }
    }

    /// Whether an error says that a file does not exist. Other errors are those of a disk that fails or that is lost, or of
    /// missing rights.
    private static func isMissing(_ error: Int32) -> Bool { [ENOENT, ENOTDIR, ELOOP].contains(error) }

    private func report(_ what: String, _ path: [UInt8], _ reason: String) {
        process.send(WorkerMessage(what, ["path": .bytes(path), "reason": .text(reason)]))
    }

    private struct Folder {
        let name: [UInt8]
        let status: stat
        let isLink: Bool
    }

    /// Whether a folder may be entered: not a folder that contains this one, and not a link to a folder that is in the
    /// library anyway.
    private func mayEnter(_ path: [UInt8], _ folder: Folder, _ above: [WalkRules.Place]) -> Bool {
        guard !above.contains(folder.status.place), WalkRules.mayHoldMusic(type(of: folder.status)) else {
            return false
        }
        guard folder.isLink else { return true }
        guard let target = Self.real(path + [UInt8(ascii: "/")] + folder.name), let realRoot else { return false }
        return WalkRules.mayFollow(to: target, from: realRoot)
    }

    private lazy var realRoot = Self.real(root)

    private static func real(_ path: [UInt8]) -> String? {
        guard let real = with(path, { realpath($0, nil) }) else { return nil }
        defer { free(real) }
        return String(cString: real)
    }

    private func send(
        _ path: [UInt8], _ status: stat, _ parentDevice: UInt64?, _ files: [ScanPlan.DiskFile], _ folders: [[UInt8]],
        _ links: [[UInt8]], _ unknown: [[UInt8]]
    ) {
        var fields: [String: WorkerMessage.Field] = [
            "path": .bytes(path), "modified": .whole(status.modified),
            "digest": .whole(Int64(bitPattern: ScanPlan.digest(files, folders: folders))),
        ]
        // What is usual is left out: a library has thousands of folders.
        if let parentDevice, parentDevice != UInt64(status.st_dev) { fields["mount"] = .flag(true) }
        if !isWatchable(status) { fields["watchable"] = .flag(false) }
        if files.count > Self.chunk || !unknown.isEmpty { fields["whole"] = .flag(false) }
        for (key, names) in [("folders", folders), ("links", links), ("unknown", unknown)] where !names.isEmpty {
            fields[key] = .bytes(Array(names.joined(separator: [0])))
        }
        var start = 0
        repeat {
            let end = min(files.count, start + Self.chunk)
            var bytes: [UInt8] = []
            for file in files[start..<end] { file.append(to: &bytes) }
            fields["files"] = .bytes(bytes)
            fields["after"] = start > 0 ? .bytes(files[start - 1].name) : nil
            fields["last"] = end < files.count ? .bytes(files[end - 1].name) : nil
            process.send(WorkerMessage("folder", fields))
            fields["first"] = .flag(false)
            start = end
        } while start < files.count
    }

    /// Whether the kernel reports changes: not on a network file system, and not on FUSE, where other machines or
    /// programs change files.
    private func isWatchable(_ status: stat) -> Bool {
        let type = type(of: status)
        return !type.hasPrefix("fuse") && !["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs"].contains(type)
    }

    /// The type of the file system of a file; empty if unknown.
    private func type(of status: stat) -> String {
        let device = UInt64(status.st_dev)
        let (major, minor) = ((device >> 8) & 0xFFF, (device & 0xFF) | ((device >> 12) & 0xFFF00))
        return mounts["\(major):\(minor)"] ?? ""
    }

    /// The types of the file systems by their device numbers.
    private lazy var mounts: [Substring: String] = {
        var types: [Substring: String] = [:]
        let text = String(decoding: readFile("/proc/self/mountinfo", limit: 1 << 20) ?? [], as: UTF8.self)
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count > 6, let dash = words.firstIndex(of: "-"), dash + 1 < words.count else { continue }
            types[words[2]] = String(words[dash + 1])
        }
        return types
    }()
}

extension stat {
    fileprivate var place: WalkRules.Place { WalkRules.Place(device: UInt64(st_dev), inode: UInt64(st_ino)) }
    /// The time of the last change, in nanoseconds since 1970.
    var modified: Int64 { Int64(st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(st_mtim.tv_nsec) }
}

extension ScanPlan.DiskFile {
    fileprivate func append(to bytes: inout [UInt8]) {
        for number in [inode, size, UInt64(bitPattern: modified), UInt64(name.count) << 1 | (isRegular ? 1 : 0)] {
            withUnsafeBytes(of: number.littleEndian) { bytes += $0 }
        }
        bytes += name
    }

    /// Decodes the files of a message; nil: the message is damaged.
    static func list(_ bytes: [UInt8]) -> [ScanPlan.DiskFile]? {
        bytes.withUnsafeBytes { raw in
            var files: [ScanPlan.DiskFile] = []
            var place = 0
            while place < raw.count {
                guard raw.count - place >= 32 else { return nil }
                func number(_ index: Int) -> UInt64 {
                    UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: place + 8 * index, as: UInt64.self))
                }
                let length = number(3) >> 1
                guard length > 0, length <= UInt64(raw.count - place - 32) else { return nil }
                let name = Array(raw[(place + 32)..<(place + 32 + Int(length))])
                files.append(
                    ScanPlan.DiskFile(
                        name: name, inode: number(0), size: number(1), modified: Int64(bitPattern: number(2)),
                        isRegular: number(3) & 1 != 0))
                place += 32 + Int(length)
            }
            return files
        }
    }
}
