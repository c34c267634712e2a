import CLinux
import Glibc

/// The process that started this one.
public enum ParentProcess {
    /// Sends `signal` to this process when its parent ends (`PR_SET_PDEATHSIG`); at once where it has ended already.
    ///
    /// To be called first in a program: who its parent was is known only until that one ends.
    public static func endWithIt(signal: Int32) {
        let parent = getppid()
        // Fails for no valid signal.
        _ = shim_set_parent_death_signal(signal)
        // It may have gone before the kernel was asked; its children are then the first process's, or a reaper's.
        if getppid() != parent || parent == 1 { kill(getpid(), signal) }
    }
}
