import CLinux
import Glibc

/// The process that started this one.
public enum ParentProcess {
    /// Sends `signal` to this process when its parent ends (`PR_SET_PDEATHSIG`); at once if it has ended already.
    ///
    /// Must be called first in a program: the parent is known only until it ends.
    public static func endWithIt(signal: Int32) {
        let parent = getppid()
        // Fails only for an invalid signal.
        _ = shim_set_parent_death_signal(signal)
        // The parent may have ended before; then this process belongs to the first process, or to a reaper.
        if getppid() != parent || parent == 1 { kill(getpid(), signal) }
    }
}
