import CLinux
import Glibc

/// What this process may do beyond its user (capabilities(7)). For one thread: the one that everything happens on.
public enum Capabilities {
    /// Whether looking at other users' processes is permitted, and not in effect.
    // SAFETY: written once, at the process's start, before there is another thread.
    nonisolated(unsafe) private static var mayLook = false

    /// To be called first thing in a service. From then on no program that it starts has any capability, and its own are
    /// gone but for looking at other users' processes (`CAP_SYS_PTRACE`), which is in effect in ``looking(_:)`` alone.
    ///
    /// Root keeps what root may do.
    public static func setAside() {
        shim_clear_inherited_capabilities()
        if geteuid() != 0 { mayLook = shim_set_aside_capability(UInt32(CAP_SYS_PTRACE)) != 0 }
    }

    /// Does that with what is permitted of looking at other users' processes; `errno` is as `body` left it.
    public static func looking<Result>(_ body: () -> Result) -> Result {
        guard mayLook else { return body() }
        shim_use_capability(UInt32(CAP_SYS_PTRACE), 1)
        defer { shim_use_capability(UInt32(CAP_SYS_PTRACE), 0) }
        return body()
    }
}
