import Glibc
package import PluginAPI

/// A file that appears under its name only when it is complete, also if this process is killed meanwhile.
///
/// Before that it has no name, if the file system supports that (`O_TMPFILE`); otherwise it has a name that begins with
/// a dot.
package final class WholeFile {
    let path: String
    /// Open for reading and writing; valid as long as this object exists.
    package let descriptor: Int32
    private let folder: String
    /// Its temporary name; nil: it has none.
    private var draft: String?

    /// - Parameter mode: the permissions, reduced by the umask.
    /// - Throws: `FileAlreadyExists`, `NotFound` if the folder does not exist, `DiskFull`, `ExportFailed`.
    package init(_ path: String, replaces: Bool, mode: UInt32 = 0o666) throws(SessionError) {
        self.path = path
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        folder = parts.count > 2 ? parts.dropLast().joined(separator: "/") : "/"
        guard parts.last?.isEmpty == false else { throw .badParameter("'\(path)' is a folder") }
        try Self.check(path, replaces)
        let nameless = open(folder, Self.withoutName | O_RDWR | O_CLOEXEC, mode)
        if nameless >= 0 {
            descriptor = nameless
            return
        }
        guard [EOPNOTSUPP, EISDIR, EINVAL].contains(errno) else { throw Self.failure(errno, path) }
        let draft = Self.neighbour(of: path, in: folder)
        descriptor = open(draft, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, mode)
        guard descriptor >= 0 else { throw Self.failure(errno, path) }
        self.draft = draft
    }

    deinit {
        if let draft { unlink(draft) }
        close(descriptor)
    }

    /// Writes a complete file that only the user may read, and replaces an existing one.
    /// - Parameter mustSurvive: whether it is on the disk when this returns, so that it survives a loss of power.
    package static func write(_ bytes: [UInt8], to path: String, mustSurvive: Bool = false) throws(SessionError) {
        let file = try WholeFile(path, replaces: true, mode: 0o600)
        try file.write(bytes)
        if mustSurvive, fsync(file.descriptor) != 0 { throw failure(errno, path) }
        try file.keep(replaces: true)
        guard mustSurvive else { return }
        let folder = open(file.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { return }
        fsync(folder)
        close(folder)
    }

    package func write(_ bytes: [UInt8]) throws(SessionError) {
        var done = 0
        while done < bytes.count {
            let count = bytes[done...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 || errno == EINTR else { throw Self.failure(errno, path) }
            done += max(0, count)
        }
    }

    /// Gives the file its name.
    /// - Throws: `FileAlreadyExists` if another file has that name by now.
    package func keep(replaces: Bool) throws(SessionError) {
        if draft == nil {
            if link(path) { return }
            guard errno == EEXIST else { throw Self.failure(errno, path) }
            guard replaces else { throw Self.exists(path) }
            let draft = Self.neighbour(of: path, in: folder)
            guard link(draft) else { throw Self.failure(errno, path) }
            self.draft = draft
        }
        guard let draft else { return }
        if !replaces {
            if Glibc.link(draft, path) == 0 { return }
            // Some file systems have no links, such as those of memory cards.
            guard [EPERM, EOPNOTSUPP, ENOSYS, EMLINK].contains(errno) else {
                throw errno == EEXIST ? Self.exists(path) : Self.failure(errno, path)
            }
        }
        try Self.check(path, replaces)
        guard rename(draft, path) == 0 else { throw Self.failure(errno, path) }
        self.draft = nil
    }

    /// The bytes that an ordinary user may still write to the disk; nil if unknown.
    var space: UInt64? {
        var status = statvfs()
        return fstatvfs(descriptor, &status) == 0 ? UInt64(status.f_bavail) * UInt64(status.f_frsize) : nil
    }

    /// Only files and links are replaced. A device, for example, must not be replaced by mistake.
    private static func check(_ path: String, _ replaces: Bool) throws(SessionError) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        switch status.st_mode & S_IFMT {
        case S_IFDIR: throw .badParameter("'\(path)' is a folder")
        case S_IFREG, S_IFLNK: if !replaces { throw exists(path) }
        default: throw .badParameter("'\(path)' is neither a file nor a link, and is not replaced")
        }
    }

    private func link(_ name: String) -> Bool {
        linkat(AT_FDCWD, "/proc/self/fd/\(descriptor)", AT_FDCWD, name, Int32(AT_SYMLINK_FOLLOW)) == 0
    }

    /// O_TMPFILE; the headers define it only with _GNU_SOURCE.
    private static let withoutName: Int32 = 0o20_000_000 | O_DIRECTORY

    private static func neighbour(of path: String, in folder: String) -> String {
        let name = path.split(separator: "/").last.map(String.init) ?? ""
        let number = String(UInt64.random(in: 0 ... .max), radix: 36)
        return "\(folder == "/" ? "" : folder)/.\(name.prefix(100)).part-\(number)"
    }

    private static func exists(_ path: String) -> SessionError {
        SessionError(.fileAlreadyExists, "'\(path)' exists already")
    }

    private static func failure(_ number: Int32, _ path: String) -> SessionError {
        let text = String(cString: strerror(number))
        switch number {
        case ENOSPC, EDQUOT: return SessionError(.diskFull, "'\(path)': no space is left on the disk")
        case ENOENT, ENOTDIR: return SessionError(.notFound, "'\(path)': there is no such folder")
        default: return SessionError(.exportFailed, "'\(path)' cannot be written: \(text)")
        }
    }
}
