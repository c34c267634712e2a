/// Reads the kernel's data of a process that come from its sandbox and the desktop: its AppArmor label, its control
/// groups, and the file that Flatpak puts into every sandbox.
public enum Confinement {
    /// The application in `/.flatpak-info`; nil: none.
    public static func flatpak(_ info: String) -> String? {
        var isInside = false
        for line in info.split(separator: "\n") {
            if line.hasPrefix("[") {
                isInside = line == "[Application]" || line == "[Runtime]"
            } else if isInside, line.hasPrefix("name=") {
                return String(line.dropFirst("name=".count))
            }
        }
        return nil
    }

    /// The snap, with its instance's key, of an AppArmor label (`/proc/PID/attr/current`), such as
    /// `snap.spotify.spotify (enforce)`; nil: of none.
    public static func snap(label: String) -> String? {
        // The mode follows the label; a part of the program follows `//`.
        let profile = label.prefix { $0 != " " && $0 != "/" && $0 != "\n" && $0 != "\0" }
        let parts = profile.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count >= 3 && parts[0] == "snap" ? name(of: parts[1]) : nil
    }

    /// The snap of a process's control groups (`/proc/PID/cgroup`): that of the unit `snap.<snap>.<app>.service` or
    /// `snap.<snap>.<app>-<uuid>.scope`, or of the freezer that snapd has under version 1; nil: of none. `\x2b` is a
    /// component's plus (snapd, `sandbox/cgroup/scanning.go`).
    public static func snap(groups: String) -> String? {
        for (controllers, path) in hierarchies(groups) {
            // A process in a container belongs to another system.
            if let first = path.first, first == "machine.slice" || first == "docker" || first.hasPrefix("lxc.payload") {
                continue
            }
            for part in path.reversed() where part.hasPrefix("snap.") {
                let parts = part.split(separator: ".", omittingEmptySubsequences: false)
                let isUnit = parts.count >= 4 && (parts.last == "scope" || parts.last == "service")
                if isUnit || controllers == "freezer" && parts.count == 2, let name = name(of: parts[1]) { return name }
            }
        }
        return nil
    }

    /// The unit that the desktop, snapd or a terminal created for a program: `app-*` or `snap.*`. If that is a slice,
    /// the unit in it is added. Nil: none.
    public static func applicationUnit(groups: String) -> String? {
        for (controllers, path) in hierarchies(groups) where controllers.isEmpty || controllers == "name=systemd" {
            guard let place = path.lastIndex(where: { $0.hasPrefix("app-") || $0.hasPrefix("snap.") }) else { continue }
            let end = path[place].hasSuffix(".slice") ? min(place + 2, path.endIndex) : place + 1
            return path[place..<end].joined(separator: "/")
        }
        return nil
    }

    /// Lines such as `0::/user.slice/…`: the controllers (none in version 2), and the path.
    private static func hierarchies(_ groups: String) -> [(controllers: Substring, path: [Substring])] {
        groups.split(separator: "\n").compactMap { line in
            let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard fields.count == 3 else { return nil }
            // The kernel adds this if the group was removed before its process ended.
            let path = fields[2].hasSuffix(" (deleted)") ? fields[2].dropLast(" (deleted)".count) : fields[2]
            return (fields[1], path.split(separator: "/"))
        }
    }

    /// A snap's name and, behind `_`, its instance's key; without its component.
    private static func name(of part: Substring) -> String? {
        let name = part.prefix { $0 != "+" && $0 != "\\" }
        let isName = name.utf8.allSatisfy { byte in
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || byte == UInt8(ascii: "-")
                || byte == UInt8(ascii: "_")
        }
        return name.isEmpty || !isName ? nil : String(name)
    }
}
