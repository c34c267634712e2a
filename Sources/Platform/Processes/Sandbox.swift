import Glibc

/// The sandbox of a process, according to the kernel.
public enum Sandbox: Sendable, Hashable {
    case none
    /// The application id from the sandbox.
    case application(String, Evidence)
    /// The kernel does not allow to inspect the process; a process can cause that itself (`PR_SET_DUMPABLE`).
    case hidden
    /// The process has ended. Its connection may still be open in another process, which is unknown.
    case gone

    /// Where the application id is from. Every evidence shows that a program is in a sandbox, and takes rights away. Not
    /// every evidence shows in which one.
    public enum Evidence: Sendable, Hashable {
        /// The AppArmor label, which only a privileged program sets.
        case label
        /// The file that Flatpak puts into every sandbox. A program can make such a file in namespaces of its own.
        case file
        /// A control group, whose name a program may choose for itself.
        case controlGroup
    }

    /// Whether the process is known to be in a sandbox.
    public var isOfApplication: Bool { if case .application = self { true } else { false } }

    /// O_PATH; the headers define it only with _GNU_SOURCE.
    private static let pathOnly: Int32 = 0o10_000_000

    public init(of process: UInt32) {
        self = Capabilities.looking {
            func text(_ file: String) -> String? {
                readFile("/proc/\(process)/\(file)", limit: 65_536).map { String(decoding: $0, as: UTF8.self) }
            }
            // A process that has ended has a label and a control group until its parent has reaped it, but no root
            // folder. The folder is kept open, so it can be read even if the process ends meanwhile.
            let root = open("/proc/\(process)/root", Sandbox.pathOnly | O_DIRECTORY | O_CLOEXEC)
            guard root >= 0 else { return errno == ENOENT ? .gone : .hidden }
            defer { close(root) }
            // The label is first, because a process cannot set it itself. Without AppArmor there is no label.
            let label = text("attr/apparmor/current") ?? text("attr/current")
            if let snap = label.flatMap(Confinement.snap(label:)) { return .application(snap, .label) }
            switch Sandbox.flatpak(in: root) {
            case .none: break
            case let sandbox: return sandbox
            }
            if let snap = text("cgroup").flatMap(Confinement.snap(groups:)) { return .application(snap, .controlGroup) }
            // The process has ended meanwhile. If snapd finds no systemd, there is no control group.
            return text("stat") == nil ? .gone : .none
        }
    }

    /// The application in the file that Flatpak puts into the root folder of a sandbox.
    private static func flatpak(in root: Int32) -> Sandbox {
        let file = openat(root, ".flatpak-info", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard file >= 0 else { return errno == ENOENT ? .none : .hidden }
        defer { close(file) }
        let info = readFile(file, limit: 65_536).map { String(decoding: $0, as: UTF8.self) }
        return .application(info.flatMap(Confinement.flatpak) ?? "flatpak", .file)
    }
}
