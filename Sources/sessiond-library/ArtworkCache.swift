import Glibc
import MediaLibrary
import PluginKit
import Processes

/// Covers as files: `$XDG_CACHE_HOME/sessiond/artwork`. The oldest go when there are too many.
final class ArtworkCache {
    private static let limits = (files: 2_048, bytes: 128 << 20)
    let folder: String?
    private var count: Int?

    init() { folder = UserFolder.cache.path.map { $0 + "/sessiond/artwork" } }

    /// Another one for another file, or the same file with other content, or another size.
    func key(of path: [UInt8], _ size: Int) -> String {
        var status = stat()
        _ = (path + [0]).withUnsafeBytes { stat($0.baseAddress!.assumingMemoryBound(to: CChar.self), &status) }
        var hash = Hash64()
        hash.add(path)
        hash.add(UInt64(bitPattern: status.modified))
        hash.add(UInt64(size))
        return String(hash.value, radix: 16)
    }

    /// The path of the file.
    func known(_ key: String) -> String? {
        guard let folder else { return nil }
        for ending in ["jpg", "png", "gif", "webp"] {
            let path = "\(folder)/\(key).\(ending)"
            if access(path, R_OK) == 0 { return path }
        }
        return nil
    }

    /// Writes the whole file or nothing; returns its path.
    func keep(_ data: [UInt8], _ key: String, _ ending: String) -> String? {
        guard let folder, makeFolders(folder) else { return nil }
        clean(folder)
        let path = "\(folder)/\(key).\(ending)"
        guard (try? WholeFile.write(data, to: path)) != nil else { return nil }
        count = count.map { $0 + 1 }
        return path
    }

    /// Once in a while: half of them go.
    private func clean(_ folder: String) {
        if let count, count < Self.limits.files { return }
        var files: [(path: String, used: Int, bytes: Int)] = []
        for name in namesIn(folder) where !name.hasPrefix(".") {
            let path = folder + "/" + name
            var status = stat()
            guard lstat(path, &status) == 0 else { continue }
            files.append((path, status.st_mtim.tv_sec, Int(status.st_size)))
        }
        var bytes = files.reduce(0) { $0 + $1.bytes }
        var left = files.count
        let isTooMuch = left >= Self.limits.files || bytes > Self.limits.bytes
        for file in files.sorted(by: { $0.used < $1.used })
        where isTooMuch && (left > Self.limits.files / 2 || bytes > Self.limits.bytes / 2) {
            unlink(file.path)
            left -= 1
            bytes -= file.bytes
        }
        count = left
    }
}
