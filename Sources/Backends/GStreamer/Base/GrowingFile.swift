import Glibc
package import PluginAPI

/// A file into which a recording is written. While it grows it is locked, so no other recording is written into it or put in
/// its place, also by other programs of ours.
package enum GrowingFile {
    /// Takes it for one recording, until the descriptor and its copies are closed or ``release(_:)``.
    /// - Returns: false if it is that of another recording.
    package static func take(_ descriptor: Int32) -> Bool {
        // A file system without locks has no other users either.
        flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK
    }

    package static func release(_ descriptor: Int32) { flock(descriptor, LOCK_UN) }

    /// Makes room for a new file. The old one itself stays as it is: it may be what is recorded, or another link may lead to it.
    /// - Throws: `IsBusy` if another recording is being written into it.
    package static func clear(_ path: String) throws(SessionError) {
        var old = stat()
        guard lstat(path, &old) == 0, [S_IFREG, S_IFLNK].contains(old.st_mode & S_IFMT) else { return }
        if isTaken(path) { throw busy(path) }
        unlink(path)
    }

    /// Whether another recording is being written into the file at that path.
    private static func isTaken(_ path: String) -> Bool {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK
    }

    package static func busy(_ path: String) -> SessionError {
        SessionError(.isBusy, "'\(path)' is being recorded: choose another name, or end that recording first")
    }

    /// What became of the name of a recording; nil: it still leads to the file.
    package static func loss(of path: String, _ descriptor: Int32) -> String? {
        var (named, own) = (stat(), stat())
        guard fstat(descriptor, &own) == 0 else { return nil }
        if stat(path, &named) == 0, named.st_dev == own.st_dev, named.st_ino == own.st_ino { return nil }
        guard own.st_nlink > 0, let now = name(of: descriptor) else {
            return "it was removed while it was recorded, and is lost"
        }
        return "it was moved while it was recorded: it is '\(now)'"
    }

    private static func name(of descriptor: Int32) -> String? {
        var bytes = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/fd/\(descriptor)", &bytes, bytes.count)
        guard count > 0 else { return nil }
        return String(decoding: bytes[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
