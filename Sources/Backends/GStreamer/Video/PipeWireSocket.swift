import Glibc

/// The socket of the PipeWire server, as its library finds it.
package enum PipeWireSocket {
    static func path(_ variable: (String) -> String?) -> String? {
        let name = variable("PIPEWIRE_REMOTE") ?? "pipewire-0"
        if name.hasPrefix("/") { return name }
        let folders = ["PIPEWIRE_RUNTIME_DIR", "XDG_RUNTIME_DIR", "USERPROFILE"]
        return folders.lazy.compactMap(variable).first.map { $0 + "/" + name }
    }

    /// Whether a server listens.
    package static var answers: Bool {
        guard let descriptor = connect() else { return false }
        close(descriptor)
        return true
    }

    /// A connection to the server, which the caller closes; nil: none listens.
    ///
    /// Its number is used only once: GStreamer takes elements with the same number for those of one connection, also when that one
    /// is dead, and its own connection cannot be made again in a process that still has the dead one.
    package static func connect() -> Int32? {
        let found = path { name in
            getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
        }
        guard let found else { return nil }
        let kind = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
        let descriptor = socket(AF_UNIX, Int32(kind), 0)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(found.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return nil }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.connect(descriptor, $0, length) }
        }
        return result == 0 ? unique(descriptor) : nil
    }

    /// Whether a connection is dead, because its server has ended.
    package static func hasEnded(_ descriptor: Int32) -> Bool {
        var wait = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&wait, 1, 0) > 0 && wait.revents & Int16(POLLHUP | POLLERR) != 0
    }

    /// The same connection with a number that was not used before, which the caller closes; nil: there are no descriptors left.
    package static func unique(_ descriptor: Int32) -> Int32? {
        let unique = fcntl(descriptor, F_DUPFD_CLOEXEC, next)
        // After a thousand servers it begins again.
        next = unique < 0 ? 100 : unique + 1
        return unique < 0 ? nil : unique
    }

    /// The loop alone uses it.
    private nonisolated(unsafe) static var next: Int32 = 100
}
