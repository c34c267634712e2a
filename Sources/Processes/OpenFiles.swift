import CLinux
import Glibc

/// How many files a process may have open.
public struct OpenFiles: Sendable {
    let limits: rlimit

    /// Lets this process open as many files as it may ever (`RLIMIT_NOFILE`, the soft limit up to the hard one), and
    /// returns what the limits were, for the programs it starts: some of them go through all numbers there may be.
    public static func raise() -> OpenFiles? {
        var before = rlimit()
        return shim_raise_open_files(&before) == 0 ? OpenFiles(limits: before) : nil
    }
}
