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

    /// A line on standard error. Whatever is in the text, nothing in it controls the terminal. A terminal gets lines that end
    /// between words.
    static func note(_ text: String) {
        var lines = text.escapedLines.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        if let columns = Terminal(STDERR_FILENO).size?.columns { lines = lines.flatMap { folded($0, columns) } }
        _ = put(lines.map { $0 + "\n" }.joined(), on: STDERR_FILENO)
    }

    /// A line on standard error with the program's name, without the numbers that are only for programs.
    static func complain(_ text: String) { note("sessionctl: " + Wording.forPeople(text)) }

    /// The line in lines of at most that many columns, the later ones a little to the right.
    private static func folded(_ line: String, _ columns: Int) -> [String] {
        guard line.columns > columns else { return [line] }
        let indent = line.prefix { $0 == " " }
        let room = columns - indent.count - 2
        guard room > 0 else { return [line] }
        let lines = line.dropFirst(indent.count).description.wrapped(to: room)
        return lines.enumerated().map { $0 == 0 ? indent + $1 : indent + "  " + $1 }
    }

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
