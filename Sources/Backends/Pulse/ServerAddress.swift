import Glibc

/// The sockets in the file system at which a sound server may listen.
enum ServerAddress {
    /// The sockets that libpulse tries for that server string; empty if none is in the file system.
    ///
    /// `server` as for `pa_context_connect`: `{machine}unix:/path`, `/path`, a list of such; nil: the environment
    /// decides.
    static func sockets(_ server: String?, environment: (String) -> String?) -> [String] {
        if let server = server ?? environment("PULSE_SERVER"), !server.isEmpty {
            return server.split(separator: " ").compactMap { entry in
                var entry = entry
                if entry.first == "{", let end = entry.firstIndex(of: "}") { entry = entry[entry.index(after: end)...] }
                if entry.hasPrefix("unix:") { entry = entry.dropFirst(5) }
                return entry.first == "/" ? String(entry) : nil
            }
        }
        let folder = environment("PULSE_RUNTIME_PATH") ?? environment("XDG_RUNTIME_DIR").map { $0 + "/pulse" }
        return (folder.map { [$0 + "/native"] } ?? []) + ["/run/pulse/native"]
    }

    static func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
}
