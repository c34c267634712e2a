import Glibc

/// Writes that fail. For some of them the kernel also sends a signal, which would end the process.
public enum FailedWrites {
    /// Sent if the reader of a pipe or socket is gone, and if a file may not grow (`RLIMIT_FSIZE`).
    static let signals = [SIGPIPE, SIGXFSZ]

    /// From now on these are only errors of `write`, like a full disk. Programs that ``Spawn`` starts get the signals.
    public static func ignoreSignals() { for number in signals { signal(number, SIG_IGN) } }
}
