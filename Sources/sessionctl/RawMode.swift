import Glibc

/// The terminal's input without lines and echo, for keys; restored on every way out.
enum RawMode {
    // SAFETY: touched by the one thread there is; atexit handlers run on it too.
    private nonisolated(unsafe) static var saved: termios?
    private nonisolated(unsafe) static var isRegistered = false

    /// Whether keys can be read: standard input is a terminal and we are in front of it.
    static var isPossible: Bool { isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp() }

    /// Ctrl-C and ctrl-Z keep their meaning.
    static func enter() {
        var attributes = termios()
        guard saved == nil, tcgetattr(STDIN_FILENO, &attributes) == 0 else { return }
        saved = attributes
        if !isRegistered {
            isRegistered = true
            atexit { RawMode.restore() }
        }
        attributes.c_lflag &= ~tcflag_t(ICANON | ECHO)
        tcsetattr(STDIN_FILENO, TCSANOW, &attributes)
    }

    static func restore() {
        guard var attributes = saved else { return }
        saved = nil
        tcsetattr(STDIN_FILENO, TCSADRAIN, &attributes)
    }
}
