import Glibc

/// The sandbox of a process, according to the kernel.
public enum Sandbox: Sendable, Hashable {
    case none
    /// The application id from the sandbox.
    case application(String)
    /// The process is gone, or the kernel does not allow to inspect it; a process can cause that itself
    /// (`PR_SET_DUMPABLE`).
    case hidden

    public init(of process: UInt32) {
        func text(_ file: String) -> String? {
            Capabilities.looking { readFile("/proc/\(process)/\(file)", limit: 65_536) }
                .map { String(decoding: $0, as: UTF8.self) }
        }
        // The label is first, because a process cannot set it itself. Without AppArmor there is no label.
        let label = text("attr/apparmor/current") ?? text("attr/current")
        if let snap = label.flatMap(Confinement.snap(label:)) {
            self = .application(snap)
        } else if let info = text("root/.flatpak-info") {
            self = .application(Confinement.flatpak(info) ?? "flatpak")
        } else if errno != ENOENT || text("stat") == nil {
            // The file of an ended process is missing, too.
            self = .hidden
        } else {
            // If snapd finds no systemd, there is no control group.
            self = text("cgroup").flatMap(Confinement.snap(groups:)).map { .application($0) } ?? .none
        }
    }
}
