import Foundation

/// A program on a terminal of its own, as a user would run it.
public final class PseudoTerminal {
    private let master: Int32
    private let child: Child
    private var bytes: [UInt8] = []

    /// Starts `program` as the leader of a session with this controlling terminal.
    public init(
        _ program: String, _ arguments: [String], environment: [String: String], columns: UInt16 = 100
    ) throws {
        // The same as posix_openpt(3), unlockpt(3) and ptsname(3), which Glibc declares only for XSI sources.
        master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)
        var (lock, number): (Int32, Int32) = (0, 0)
        guard master >= 0, ioctl(master, 0x4004_5431 /* TIOCSPTLCK */, &lock) == 0,
            ioctl(master, 0x8004_5430 /* TIOCGPTN */, &number) == 0
        else { throw SupportError("no terminal: \(String(cString: strerror(errno)))") }
        let terminal = "/dev/pts/\(number)"
        var size = winsize(ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
        _ = ioctl(master, UInt(TIOCSWINSZ), &size)
        // The first terminal that the leader of a session opens becomes its controlling terminal.
        child = try Child(
            "setsid", ["-w", "sh", "-c", "exec \"$@\" <\(terminal) >\(terminal) 2>&1", "sh", program] + arguments,
            environment: environment)
    }

    /// Hangs up. That ends the program.
    deinit { close(master) }

    /// The output so far.
    public var text: String {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while case let count = read(master, &buffer, buffer.count), count > 0 { bytes += buffer[..<count] }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The text in the line of the cursor.
    public var line: String { text.split(whereSeparator: { $0 == "\r" || $0.isNewline }).last.map(String.init) ?? "" }

    public func type(_ keys: String) {
        var keys = keys
        keys.withUTF8 { _ = write(master, $0.baseAddress, $0.count) }
    }

    /// Waits until the line of the cursor passes `test`.
    public func shows(timeout: Double = 20, _ test: (String) -> Bool) -> Bool {
        eventually(timeout: timeout) { test(line) }
    }

    public func shows(_ part: String) -> Bool { shows { $0.contains(part) } }

    /// Whether the program gets each key at once and without an echo.
    public var isRaw: Bool {
        var attributes = termios()
        tcgetattr(master, &attributes)
        return attributes.c_lflag & tcflag_t(ICANON | ECHO) == 0
    }

    /// Sends a signal to the foreground process group.
    public func signal(_ number: Int32) {
        let group = tcgetpgrp(master)
        if group > 0 { kill(-group, number) }
    }

    /// Waits for the end of the program and returns how it ended, or nil if it still runs after `timeout` seconds.
    public func wait(timeout: Double = 20) -> Child.Exit? {
        // Read meanwhile, because the program blocks when its output is not read.
        let end = monotonicNow() + timeout
        while monotonicNow() < end {
            _ = text
            if let exit = child.wait(timeout: 0.01) {
                _ = text
                return exit
            }
        }
        return nil
    }
}
