import Glibc

/// The sandbox of a process, by what the kernel says of it.
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
        if let info = text("root/.flatpak-info") {
            self = .application(Confinement.flatpak(info) ?? "flatpak")
            return
        }
        // The file of an ended process is missing, too.
        guard errno == ENOENT, text("stat") != nil else {
            self = .hidden
            return
        }
        // Without AppArmor there is no label; if snapd finds no systemd, there is no control group.
        let label = text("attr/apparmor/current") ?? text("attr/current")
        let snap = label.flatMap(Confinement.snap(label:)) ?? text("cgroup").flatMap(Confinement.snap(groups:))
        self = snap.map { .application($0) } ?? .none
    }
}
