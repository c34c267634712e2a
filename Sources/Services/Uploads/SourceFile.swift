import Glibc
import HTTP
import PluginAPI
import Uploading

/// The file of an upload: its identity, and whether it is unchanged.
enum SourceFile {
    /// The identity of the file at that path.
    /// - Throws: `NotFound`, or `InvalidSource` if it is not a regular file.
    static func identity(of path: String) throws(SessionError) -> FileIdentity {
        var status = stat()
        guard stat(path, &status) == 0 else { throw missing(path, errno) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw SessionError(.invalidSource, "\(quoted(path)) is not a regular file")
        }
        return FileIdentity(status)
    }

    /// Opens the file if it has that identity.
    static func open(_ path: String, as identity: FileIdentity) throws(SessionError) -> BodyFile {
        guard try self.identity(of: path) == identity else { throw changed(path) }
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { throw missing(path, errno) }
        let file = BodyFile(owning: descriptor) { descriptor in
            var status = stat()
            return fstat(descriptor, &status) == 0 && FileIdentity(status) == identity
        }
        guard file.isTheSame else { throw changed(path) }
        // Each block is needed once, from front to back.
        posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL)
        return file
    }

    static func changed(_ path: String) -> SessionError {
        SessionError(.invalidSource, "\(quoted(path)) has changed: upload it again when it is complete")
    }

    private static func missing(_ path: String, _ number: Int32) -> SessionError {
        let code: SessionError.Code = number == ENOENT || number == ENOTDIR ? .notFound : .invalidSource
        return SessionError(code, "\(quoted(path)): \(String(cString: strerror(number)))")
    }
}

extension FileIdentity {
    fileprivate init(_ status: stat) {
        self.init(
            inode: UInt64(status.st_ino), size: UInt64(max(0, status.st_size)),
            modified: Int64(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_mtim.tv_nsec))
    }
}
