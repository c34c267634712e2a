import Glibc
import Installation
import Processes

/// A file of this program: checked and read through one descriptor, so that the checked file is the one that is read.
enum OwnFile {
    case absent
    /// A file that cannot be opened or read completely; errno has the reason.
    case unreadable
    /// A link, a device, a folder, a file of another user, with several hard links, or too large.
    case foreign
    case contents([UInt8])

    /// At most `limit` bytes. Follows no link and never blocks.
    init(_ path: String, limit: Int) {
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            switch errno {
            case ENOENT: self = .absent
            case ELOOP: self = .foreign
            default: self = .unreadable
            }
            return
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid(),
            status.st_nlink == 1, status.st_size <= limit
        else {
            self = .foreign
            return
        }
        self = readFile(descriptor, limit: limit).map(OwnFile.contents) ?? .unreadable
    }

    /// Writes a new file next to the existing one, creating the folder if necessary, and replaces it by one `rename`.
    ///
    /// It is not PluginKit's `WholeFile`: the daemon appends to this file afterwards, so it needs the descriptor; what it
    /// logs is errno; and however often it is killed, at most one unfinished file is left, which the next start replaces.
    ///
    /// Returns the new file, open for appending; the caller must close it. On failure nil with errno, and the old file
    /// is unchanged. More than `limit` bytes, the limit of the reader, are not written (`EFBIG`). `beforeRename`: called
    /// when the new file is complete but not yet in place.
    static func replace(
        _ path: String, with bytes: [UInt8], limit: Int, beforeRename: () -> Void = {}
    ) -> Int32? {
        guard bytes.count <= limit else {
            errno = EFBIG
            return nil
        }
        let temporary = path + ".new"
        let folder = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        mkdir(folder, 0o700)
        // In a folder to which others may write, the file could be exchanged.
        guard isPrivate(folder) else { return nil }
        unlink(temporary)
        let file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_APPEND, 0o600)
        guard file >= 0 else { return nil }
        if bytes.withUnsafeBytes({ append($0, to: file, size: 0, limit: limit) }) {
            beforeRename()
            if rename(temporary, path) == 0 { return file }
        }
        let reason = errno
        close(file)
        unlink(temporary)
        errno = reason
        return nil
    }

    /// One `write`, so that concurrent readers see all of it or nothing; false, with errno, if only a part was
    /// written, or if the file would become larger than `limit`, the limit of the reader (`EFBIG`).
    ///
    /// - Parameter size: its present size.
    static func append(_ bytes: UnsafeRawBufferPointer, to file: Int32, size: Int, limit: Int) -> Bool {
        guard size + bytes.count <= limit else {
            errno = EFBIG
            return false
        }
        let count = write(file, bytes.baseAddress, bytes.count)
        // A partial write means a full disk, or a file that may not grow; only the next write returns which.
        if count >= 0, count < bytes.count, write(file, bytes.baseAddress, bytes.count) >= 0 { errno = ENOSPC }
        return count == bytes.count
    }
}
