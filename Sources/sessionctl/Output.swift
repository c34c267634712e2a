import Glibc

/// Standard output and standard error, unbuffered: what is written is there, and who stopped reading ends us.
enum Output {
    static func line(_ text: String) { write(text + "\n") }

    static func write(_ text: String) {
        guard put(text, on: STDOUT_FILENO) else {
            let reason = errno
            RawMode.restore()
            // Nobody reads any more, as after `| head`: nothing to complain about, and nobody to complain to.
            if reason == EPIPE { exit(0) }
            complain("cannot write to standard output: \(String(cString: strerror(reason)))")
            exit(1)
        }
    }

    /// A line on standard error.
    static func note(_ text: String) { _ = put(text + "\n", on: STDERR_FILENO) }

    /// A line on standard error that says whose it is.
    static func complain(_ text: String) { note("sessionctl: " + text) }

    /// Whether the reader at the other end of standard output may go away without our writing anything.
    static var isPipe: Bool {
        var status = stat()
        guard fstat(STDOUT_FILENO, &status) == 0 else { return false }
        let kind = status.st_mode & S_IFMT
        return kind == S_IFIFO || kind == S_IFSOCK
    }

    private static func put(_ text: String, on descriptor: Int32) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = Glibc.write(descriptor, UnsafeBufferPointer(rebasing: rest).baseAddress, rest.count)
                if count >= 0 {
                    rest = rest.dropFirst(count)
                } else if errno == EAGAIN {
                    var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    poll(&wanted, 1, -1)
                } else if errno != EINTR {
                    return false
                }
            }
            return true
        }
    }

    /// Ends the program from where everything it listens with still lives: what nobody names any more may be released
    /// long before the end.
    static func end<Kept>(_ code: Int32, keeping kept: Kept) -> Never {
        withExtendedLifetime(kept) { exit(code) }
    }
}
