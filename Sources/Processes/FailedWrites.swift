import Glibc

/// What the kernel sends a signal for, so that a program that does not look at the results of its writes ends.
public enum FailedWrites {
    /// A reader that has gone, and a file that may not grow (`RLIMIT_FSIZE`).
    static let signals = [SIGPIPE, SIGXFSZ]

    /// From now on they are errors of `write`, like a full disk, and do not end this process. Programs that are started
    /// with ``Spawn`` do not inherit this.
    public static func areErrors() { for number in signals { signal(number, SIG_IGN) } }
}
