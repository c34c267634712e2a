import Glibc
import MediaValues
import PluginAPI
import Processes

/// Cover images as files, for programs that get only a path (`mpris:artUrl`): `$XDG_CACHE_HOME/sessiond/covers`.
///
/// The name of a file is a hash of its contents, so each cover is written once. The oldest ones are deleted.
struct CoverCache {
    private static let limit = 64
    /// Of all covers together. A single larger cover is not written.
    private static let bytes = 16 << 20
    /// Nil if there is no writable directory.
    private let folder: String?

    /// The directory is created for the first cover.
    init() { folder = UserFolder.cache.path.map { $0 + "/sessiond/covers" } }

    /// The URI of the cover; nil if it is not an image format that desktops show, or cannot be written.
    func uri(of cover: Artwork) -> String? {
        guard let folder, cover.bytes.count <= CoverCache.bytes, let ending = CoverCache.ending(cover) else {
            return nil
        }
        let name = CoverCache.name(cover.bytes) + ending
        let path = folder + "/" + name
        guard access(path, R_OK) == 0 || write(cover.bytes, to: path, in: folder) else { return nil }
        // Used again: it is no longer one of the oldest.
        utimensat(AT_FDCWD, path, nil, 0)
        return FileURI.uri(path)
    }

    /// By the contents, not by the type that the item states.
    private static func ending(_ cover: Artwork) -> String? {
        if cover.bytes.starts(with: [0xFF, 0xD8, 0xFF]) { return ".jpg" }
        if cover.bytes.starts(with: [0x89, 0x50, 0x4E, 0x47]) { return ".png" }
        if cover.bytes.starts(with: "GIF8".utf8) { return ".gif" }
        if cover.bytes.starts(with: "RIFF".utf8), cover.bytes.dropFirst(8).starts(with: "WEBP".utf8) { return ".webp" }
        return nil
    }

    /// 128 bits of FNV-1a: only a name, not a secret.
    private static func name(_ bytes: [UInt8]) -> String {
        var halves: [UInt64] = [0xCBF2_9CE4_8422_2325, 0x9AE1_6A3B_2F90_404F]
        for byte in bytes {
            halves[0] = (halves[0] ^ UInt64(byte)) &* 0x100_0000_01B3
            halves[1] = (halves[1] &+ UInt64(byte)) &* 0x9E37_79B9_7F4A_7C15
        }
        return halves.map { half in
            let text = String(half, radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }.joined()
    }

    /// Writes the complete file or nothing.
    private func write(_ bytes: [UInt8], to path: String, in folder: String) -> Bool {
        guard makeFolders(folder) else { return false }
        clean(folder, for: bytes.count)
        return (try? WholeFile.write(bytes, to: path)) != nil
    }

    /// Makes room for one more file of that size.
    private func clean(_ folder: String, for needed: Int) {
        var files: [(path: String, time: Int, bytes: Int)] = []
        for name in namesIn(folder) {
            var status = stat()
            let path = folder + "/" + name
            guard !name.hasPrefix("."), lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
            files.append((path, status.st_mtim.tv_sec, Int(status.st_size)))
        }
        var (count, total) = (files.count + 1, files.reduce(needed) { $0 + $1.bytes })
        for file in files.sorted(by: { $0.time < $1.time }) where count > CoverCache.limit || total > CoverCache.bytes {
            unlink(file.path)
            count -= 1
            total -= file.bytes
        }
    }
}
