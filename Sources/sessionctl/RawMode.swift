import Glibc

/// The terminal's input without lines and echo, for keys; restored on every way out.
enum RawMode {
    // SAFETY: touched by the one thread there is; atexit handlers run on it too.
    private nonisolated(unsafe) static var saved: termios?
    private nonisolated(unsafe) static var descriptor = STDIN_FILENO
    /// Written to the terminal when it is restored.
    nonisolated(unsafe) static var farewell: StaticString = ""
    private nonisolated(unsafe) static var isRegistered = false

    /// Whether keys can be read: it is a terminal and this process is in the foreground.
    static func isPossible(on descriptor: Int32) -> Bool {
        isatty(descriptor) == 1 && tcgetpgrp(descriptor) == getpgrp()
    }

    /// Signals of programming errors; Swift's own checks end in one of them.
    private static let crashes = [SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV]

    /// Calls only functions that are allowed in signal handlers (signal-safety(7)).
    private static let restoreAndCrash: @convention(c) (Int32) -> Void = { signal in
        RawMode.restore()
        Glibc.signal(signal, SIG_DFL)
        kill(getpid(), signal)
    }

    /// Ctrl-C and ctrl-Z keep their meaning.
    static func enter(on descriptor: Int32 = STDIN_FILENO) {
        var attributes = termios()
        guard saved == nil, tcgetattr(descriptor, &attributes) == 0 else { return }
        self.descriptor = descriptor
        saved = attributes
        if !isRegistered {
            isRegistered = true
            atexit { RawMode.restore() }
            for signal in crashes { Glibc.signal(signal, restoreAndCrash) }
        }
        attributes.c_lflag &= ~tcflag_t(ICANON | ECHO)
        tcsetattr(descriptor, TCSANOW, &attributes)
    }

    static func restore() {
        guard var attributes = saved else { return }
        saved = nil
        if farewell.utf8CodeUnitCount > 0 { _ = write(descriptor, farewell.utf8Start, farewell.utf8CodeUnitCount) }
        tcsetattr(descriptor, TCSADRAIN, &attributes)
    }
}
