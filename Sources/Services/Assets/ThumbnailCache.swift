import FileFormats
import Glibc
import MediaValues
import PluginAPI
import PluginKit
import Processes

/// The thumbnail cache that all programs of a user share (Thumbnail Managing Standard): `$XDG_CACHE_HOME/thumbnails`.
struct ThumbnailCache {
    /// The cached result for a file.
    enum Entry: Equatable {
        /// A thumbnail of the file with this time of change, in seconds since 1970.
        case picture(modified: Int)
        /// No thumbnail could be made of the file with this time of change.
        case failure(modified: Int)
    }

    /// The largest file of a thumbnail, in bytes; real ones are smaller.
    private static let limit = 16 << 20

    /// Nil if the user has no cache folder.
    private let folder: String?
    private let md5: (String) -> String

    /// - Parameters:
    ///   - folder: the folder of all thumbnails; nil if the user has none.
    ///   - md5: the MD5 of a text, in hexadecimal.
    init(in folder: String?, md5: @escaping (String) -> String) { (self.folder, self.md5) = (folder, md5) }

    /// The path at which the thumbnail of a file is stored.
    func path(of uri: String, _ flavor: ThumbnailFlavor) -> String? { path(of: uri, in: flavor.rawValue) }

    private func path(of uri: String, in part: String) -> String? {
        folder.map { "\($0)/\(part)/\(md5(uri)).png" }
    }

    private var failures: String { "fail/sessiond-\(version)" }

    func entry(of uri: String, _ flavor: ThumbnailFlavor) -> Entry? {
        if let modified = modified(uri, flavor.rawValue) { return .picture(modified: modified) }
        return modified(uri, failures).map { .failure(modified: $0) }
    }

    private func modified(_ uri: String, _ part: String) -> Int? {
        guard let path = path(of: uri, in: part), let texts = Self.texts(path), texts["Thumb::URI"] == uri else {
            return nil
        }
        return texts["Thumb::MTime"].flatMap { Int($0) }
    }

    private static func texts(_ path: String) -> [String: String]? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size <= limit else { return nil }
        return readFile(file, limit: limit).flatMap(PNGText.read)
    }

    /// Writes a thumbnail; `details` are more texts in it. Returns its path.
    func add(
        _ picture: [UInt8], of uri: String, _ flavor: ThumbnailFlavor, modified: Int, _ details: [(String, String)]
    ) throws(SessionError) -> String {
        guard let path = path(of: uri, flavor) else { throw Self.homeless }
        try write(picture, to: path, uri, modified, details)
        if let failure = self.path(of: uri, in: failures) { unlink(failure) }
        return path
    }

    /// Stores that no thumbnail could be made.
    func addFailure(of uri: String, modified: Int) {
        guard let path = path(of: uri, in: failures) else { return }
        // The smallest picture: programs only check whether it exists.
        try? write(Self.empty, to: path, uri, modified, [])
    }

    private func write(
        _ picture: [UInt8], to path: String, _ uri: String, _ modified: Int, _ details: [(String, String)]
    ) throws(SessionError) {
        let texts = [("Thumb::URI", uri), ("Thumb::MTime", String(modified))] + details + [("Software", "sessiond")]
        guard let bytes = PNGText.adding(texts, to: picture) else {
            throw SessionError(.decodeFailed, "the worker made no picture")
        }
        try KeptFile(path, limit: Self.limit).write(bytes)
    }

    private static let homeless = SessionError(
        .notSupported, "the service has no folder for thumbnails: HOME is not set")

    /// A picture of one transparent pixel.
    private static let empty: [UInt8] = [
        0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52, 0, 0, 0, 1, 0, 0, 0, 1, 8,
        6, 0,
        0, 0, 0x1F, 0x15, 0xC4, 0x89, 0, 0, 0, 10, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9C, 0x63, 0, 1, 0, 0, 5, 0, 1, 0x0D,
        0x0A,
        0x2D, 0xB4, 0, 0, 0, 0, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82,
    ]
}
