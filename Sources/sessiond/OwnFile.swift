import Glibc

/// A file that this program writes itself, as it is read back: looked at and read through one descriptor, so that what
/// was looked at is what is read.
enum OwnFile {
    case absent
    /// A file that cannot be opened, or read to its end; errno says why.
    case unreadable
    /// A link, a device, a folder, somebody else's, of two names, or larger than we ever write.
    case foreign
    case contents([UInt8])

    /// At most `limit` bytes. Follows no link and waits for nobody.
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

    /// Writes it anew beside what is there, with its folder where there is none, and puts it in place by one `rename`.
    ///
    /// Returns what it is open as, to append to, and the caller's to close; nil with errno, and what was there is as it
    /// was. `beforeRename`: when it is whole, and not yet in place.
    static func replace(_ path: String, with bytes: [UInt8], beforeRename: () -> Void = {}) -> Int32? {
        let temporary = path + ".new"
        let folder = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        mkdir(folder, 0o700)
        // In a folder of somebody else's, or that others may write to, nothing that is read back stays what it was.
        var status = stat()
        guard lstat(folder, &status) == 0 else { return nil }
        guard status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid(), status.st_mode & 0o022 == 0 else {
            errno = EACCES
            return nil
        }
        unlink(temporary)
        let file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_APPEND, 0o600)
        guard file >= 0 else { return nil }
        if bytes.withUnsafeBytes({ append($0, to: file) }) {
            beforeRename()
            if rename(temporary, path) == 0 { return file }
        }
        let reason = errno
        close(file)
        unlink(temporary)
        errno = reason
        return nil
    }

    /// In one `write`, so that it is there whole or not at all to whoever reads meanwhile; false, with errno, where
    /// only a part of it was.
    static func append(_ bytes: UnsafeRawBufferPointer, to file: Int32) -> Bool {
        let count = write(file, bytes.baseAddress, bytes.count)
        // Less than all is a disk that is full, of which only the next write would say so.
        if count >= 0, count < bytes.count { errno = ENOSPC }
        return count == bytes.count
    }
}
