import CLinux
import Glibc

/// The privileges of this process beyond those of its user (capabilities(7)). For the main thread only.
public enum Capabilities {
    /// Whether reading other users' processes is permitted, but not in effect.
    // SAFETY: written once, at the process's start, before there is another thread.
    nonisolated(unsafe) private static var mayLook = false

    /// Must be called first in a service. From then on, the programs that it starts have no capability, and the service
    /// itself keeps only the one for reading other users' processes (`CAP_SYS_PTRACE`), which is in effect only in
    /// ``looking(_:)``.
    ///
    /// Root keeps its privileges.
    public static func setAside() {
        shim_clear_inherited_capabilities()
        if geteuid() != 0 { mayLook = shim_set_aside_capability(UInt32(CAP_SYS_PTRACE)) != 0 }
    }

    /// Calls `body` with the capability to read other users' processes, if permitted; `errno` stays as `body` left it.
    public static func looking<Result>(_ body: () -> Result) -> Result {
        guard mayLook else { return body() }
        shim_use_capability(UInt32(CAP_SYS_PTRACE), 1)
        defer { shim_use_capability(UInt32(CAP_SYS_PTRACE), 0) }
        return body()
    }
}
