import Glibc

/// The commands that start the service: the same from every command and from the doctor.
enum ServiceStart {
    private static var hasSystemd: Bool { access("/run/systemd/system", F_OK) == 0 }

    private static func systemctl(_ verb: String, _ isSystem: Bool) -> String {
        "systemctl \(isSystem ? "" : "--user ")\(verb) sessiond"
    }

    /// For a shell.
    static func command(isSystem: Bool) -> String {
        guard hasSystemd else { return isSystem ? "sessiond --system &" : "sessiond &" }
        return systemctl("start", isSystem)
    }

    static func restart(isSystem: Bool) -> String {
        guard hasSystemd else { return isSystem ? "sessiond --system --replace &" : "sessiond --replace &" }
        return systemctl("restart", isSystem)
    }

    /// In a sentence: with systemd, or without it.
    static func words(isSystem: Bool) -> String {
        let direct = isSystem ? "'sessiond --system'" : "'sessiond &'"
        return hasSystemd ? "'\(systemctl("start", isSystem))' or \(direct)" : direct
    }
}
