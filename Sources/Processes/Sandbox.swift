import Glibc

/// What holds a process, for who needs to know only whether anything does.
public enum Sandbox {
    /// Whether Flatpak or snapd hold that process, or the kernel does not let us look; true for one that is gone.
    public static func holds(_ process: UInt32) -> Bool {
        if access("/proc/\(process)/root/.flatpak-info", F_OK) == 0 { return true }
        guard errno == ENOENT, access("/proc/\(process)/stat", F_OK) == 0 else { return true }
        let label = text("/proc/\(process)/attr/apparmor/current") ?? text("/proc/\(process)/attr/current")
        if label.flatMap(Confinement.snap(label:)) != nil { return true }
        return text("/proc/\(process)/cgroup").flatMap(Confinement.snap(groups:)) != nil
    }

    private static func text(_ path: String) -> String? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = read(file, &bytes, bytes.count)
        return count < 0 ? nil : String(decoding: bytes[..<count], as: UTF8.self)
    }
}
