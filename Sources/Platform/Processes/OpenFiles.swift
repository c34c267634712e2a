import CLinux
import Glibc

/// The limit of open files of a process.
public struct OpenFiles: Sendable {
    let limits: rlimit

    /// Raises the limit of open files to the maximum (`RLIMIT_NOFILE`, the soft limit up to the hard one). Returns the
    /// former limits for the programs that this process starts: some programs try all possible numbers.
    public static func raise() -> OpenFiles? {
        var before = rlimit()
        return shim_raise_open_files(&before) == 0 ? OpenFiles(limits: before) : nil
    }
}
