import Glibc
import MediaLibrary
import PluginKit
import Processes

/// Stores covers as files in `$XDG_CACHE_HOME/sessiond/artwork`. When there are too many files or bytes, the oldest are
/// removed.
final class ArtworkCache {
    private static let limits = (files: 2_048, bytes: 128 << 20)
    /// The sizes of covers, in pixels. A client that requests every size gets only these few files.
    private static let sizes = [
        16, 24, 32, 48, 64, 100, 128, 150, 200, 256, 300, 400, 512, 600, 800, 1_024, 1_500, 2_048,
    ]

    /// The size in which a cover is made: the largest size that is not larger than the requested one, or the smallest
    /// size; 0: unchanged.
    static func step(_ size: Int) -> Int { size == 0 ? 0 : sizes.last { $0 <= size } ?? sizes[0] }

    let folder: String?
    /// The number of files and bytes in the cache; nil: not counted yet.
    private var stock: (files: Int, bytes: Int)?

    /// Why there is no cover.
    enum Miss {
        case none
        /// Reading it failed.
        case failed
    }

    /// The files without a cover, by the keys of their unscaled covers: reading a cover that cannot be read takes seconds.
    private var misses: [String: Miss] = [:]
    private static let missLimit = 10_000

    func miss(_ path: [UInt8]) -> Miss? { misses[key(of: path, 0)] }

    /// A file that was read has no cover, also if another worker fails to read it at the same time.
    func remember(_ miss: Miss, of path: [UInt8]) {
        if misses.count >= Self.missLimit { misses = [:] }
        let key = key(of: path, 0)
        if misses[key] != Miss.none { misses[key] = miss }
    }

    /// - Parameter folder: nil if the user has no folder for covers.
    init(in folder: String?) { self.folder = folder }

    /// The key of a cover. It changes with the file, the content of the file, the image file in its folder, and the size.
    func key(of path: [UInt8], _ size: Int) -> String {
        var hash = Hash64()
        hash.add(path)
        hash.add(UInt64(bitPattern: Self.status(path).modified))
        hash.add(UInt64(size))
        if let slash = path.lastIndex(of: UInt8(ascii: "/")), let image = image(in: Array(path[..<slash])) {
            let status = Self.status(image)
            hash.add(image)
            hash.add(UInt64(bitPattern: status.modified))
            hash.add(UInt64(bitPattern: Int64(status.st_size)))
        }
        return String(hash.value, radix: 16)
    }

    private static func status(_ path: [UInt8]) -> stat {
        var status = stat()
        _ = (path + [0]).withUnsafeBytes { stat($0.baseAddress!.assumingMemoryBound(to: CChar.self), &status) }
        return status
    }

    /// The image files of folders that were listed, with the times of the last changes of these folders.
    private var images: [[UInt8]: (modified: Int64, path: [UInt8]?)] = [:]
    private static let imageLimit = 1_000
    /// The clock of a file system may be this coarse, in nanoseconds: a folder that has just changed may change again
    /// without another time.
    private static let coarse: Int64 = 2_000_000_000

    private func image(in folder: [UInt8]) -> [UInt8]? {
        let modified = Self.status(folder).modified
        if let known = images[folder], known.modified == modified { return known.path }
        let path = CoverFile.name(in: folder).map { folder + [UInt8(ascii: "/")] + $0 }
        if abs(Int64(time(nil)) * 1_000_000_000 - modified) > Self.coarse {
            if images.count >= Self.imageLimit { images = [:] }
            images[folder] = (modified, path)
        }
        return path
    }

    /// The path of a cover in the cache; nil: it is not there.
    func known(_ key: String) -> String? {
        guard let folder else { return nil }
        for ending in ["jpg", "png", "gif", "webp"] {
            let path = "\(folder)/\(key).\(ending)"
            if access(path, R_OK) == 0 { return path }
        }
        return nil
    }

    /// Writes a complete file or nothing; returns its path.
    /// - Parameter original: the key of the unscaled cover, if these are its bytes. Then one file has both names.
    func keep(_ data: [UInt8], _ key: String, _ ending: String, original: String? = nil) -> String? {
        guard let folder, makeFolders(folder) else { return nil }
        if let original, original != key {
            guard let file = known(original) ?? keep(data, original, ending) else { return nil }
            let path = "\(folder)/\(key).\(file.split(separator: ".").last ?? "")"
            if link(file, path) == 0 || errno == EEXIST {
                stock?.files += 1
                return path
            }
        }
        makeRoom(folder, data.count)
        let path = "\(folder)/\(key).\(ending)"
        guard (try? WholeFile.write(data, to: path)) != nil else { return nil }
        stock?.files += 1
        stock?.bytes += data.count
        return path
    }

    /// Removes half of the cache if `more` bytes would exceed the limits.
    private func makeRoom(_ folder: String, _ more: Int) {
        func isTooMuch(_ files: Int, _ bytes: Int) -> Bool {
            files >= Self.limits.files || bytes + more > Self.limits.bytes
        }
        if let stock, !isTooMuch(stock.files, stock.bytes) { return }
        var files: [(path: String, used: Int, bytes: Int)] = []
        for name in namesIn(folder) where !name.hasPrefix(".") {
            let path = folder + "/" + name
            var status = stat()
            guard lstat(path, &status) == 0 else { continue }
            // A file with several names is counted once.
            files.append((path, status.st_mtim.tv_sec, Int(status.st_size) / max(1, Int(status.st_nlink))))
        }
        var bytes = files.reduce(0) { $0 + $1.bytes }
        var left = files.count
        let mustGo = isTooMuch(left, bytes)
        for file in files.sorted(by: { $0.used < $1.used })
        where mustGo && (left > Self.limits.files / 2 || bytes + more > Self.limits.bytes / 2) {
            unlink(file.path)
            left -= 1
            bytes -= file.bytes
        }
        stock = (left, bytes)
    }
}
