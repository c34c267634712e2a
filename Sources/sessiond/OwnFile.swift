import Glibc

/// A file that this program wrote itself, as it is read back: looked at and read through one descriptor, so that what
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
}
