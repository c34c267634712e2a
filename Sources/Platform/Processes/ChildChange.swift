import Glibc

/// How the state of a child process has changed.
public enum ChildChange: Equatable, Sendable {
    case exited(code: Int32)
    case killed(signal: Int32)
    case stopped(signal: Int32)
    case continued

    /// The next change of that child since the last call; nil if there is none (`waitpid`). The end of a child is
    /// reported once; then another process may get its number.
    public static func next(of process: Int32) -> ChildChange? {
        var status: Int32 = 0
        guard waitpid(process, &status, WNOHANG | WUNTRACED | 8 /* WCONTINUED */) == process else { return nil }
        if status == 0xFFFF { return .continued }
        if status & 0xFF == 0x7F { return .stopped(signal: status >> 8 & 0xFF) }
        let signal = status & 0x7F
        return signal == 0 ? .exited(code: status >> 8 & 0xFF) : .killed(signal: signal)
    }

    /// Whether the child has ended.
    public var isEnd: Bool {
        switch self {
        case .exited, .killed: true
        case .stopped, .continued: false
        }
    }
}
