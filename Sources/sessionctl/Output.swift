import Glibc

/// Standard output and standard error, unbuffered. The program exits if the reader of its output is gone.
enum Output {
    /// A line, or several. Whatever is in the text, only styles in it control the terminal.
    static func line(_ text: String) { write(text.escapedButStyled + "\n") }

    static func write(_ text: String) {
        let isPlain = !Terminal.isUnicode && Terminal.standard.isTerminal
        guard put(isPlain ? text.inASCII : text, on: STDOUT_FILENO) else {
            let reason = errno
            RawMode.restore()
            // The reader is gone, as after `| head`: exits without a message.
            if reason == EPIPE { exit(0) }
            complain("cannot write to standard output: \(String(cString: strerror(reason)))")
            exit(1)
        }
    }

    /// A line on standard error. Whatever is in the text, nothing in it controls the terminal.
    static func note(_ text: String) { _ = put(text.escapedLines + "\n", on: STDERR_FILENO) }

    /// A line on standard error with the program's name.
    static func complain(_ text: String) { note("sessionctl: " + text) }

    /// Whether the reader of standard output can disappear without a write noticing it.
    static var isPipe: Bool {
        var status = stat()
        guard fstat(STDOUT_FILENO, &status) == 0 else { return false }
        let kind = status.st_mode & S_IFMT
        return kind == S_IFIFO || kind == S_IFSOCK
    }

    /// - Returns: false, with `errno`, if nobody reads it.
    static func put(_ text: String, on descriptor: Int32) -> Bool {
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

    /// Exits from here, while all objects still exist: Swift may release unused objects long before the
    /// end of their scope.
    static func end<Kept>(_ code: Int32, keeping kept: Kept) -> Never {
        withExtendedLifetime(kept) { exit(code) }
    }
}
