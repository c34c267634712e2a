import Glibc
package import PluginAPI
import Processes

/// A file that a program writes and reads again, with one limit for both: what could not be read back is not written.
///
/// Only the user may read it. It is replaced as a whole.
package struct KeptFile: Sendable {
    package let path: String
    /// The largest size in bytes.
    package let limit: Int

    package init(_ path: String, limit: Int) { (self.path, self.limit) = (path, limit) }

    /// Nil, with errno, if it cannot be read; `EFBIG`: it is larger than the limit.
    package func read() -> [UInt8]? {
        guard let bytes = readFile(path, limit: limit + 1) else { return nil }
        guard bytes.count <= limit else {
            errno = EFBIG
            return nil
        }
        return bytes
    }

    /// Writes all of it to a file that gets the name only by ``WholeFile/keep(replaces:)``, and creates its folder.
    func begin(_ bytes: [UInt8]) throws(SessionError) -> WholeFile {
        guard bytes.count <= limit else {
            throw SessionError(
                .resourceNotAvailable, "\(path) would have \(bytes.count) bytes; the limit is \(limit)")
        }
        if let slash = path.lastIndex(of: "/") { _ = makeFolders(String(path[..<slash])) }
        let file = try WholeFile(path, replaces: true, mode: 0o600)
        try file.write(bytes)
        return file
    }

    /// Replaces the file, or leaves it unchanged.
    package func write(_ bytes: [UInt8]) throws(SessionError) { try begin(bytes).keep(replaces: true) }
}
