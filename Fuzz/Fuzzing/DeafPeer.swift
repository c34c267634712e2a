import CDBus
public import DBus
import Glibc

/// A client that writes to the bus and never reads. It cannot use libdbus, which reads whenever it writes.
public final class DeafPeer {
    private let descriptor: Int32
    private var serial: UInt32 = 1

    /// Connects, sends Hello, waits for the first bytes of the answer, and then stops reading.
    ///
    /// - Parameter path: the socket of the bus.
    public init(socket path: String) throws(Failure) {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | 0o2000000, 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
        let connected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard connected == 0 else { throw Failure(name: Failure.Name.disconnected, message: "no bus at \(path)") }
        // The user's number in decimal, each digit in hexadecimal.
        let user = String(getuid()).utf8.map { String($0, radix: 16) }.joined()
        put(Array("\0AUTH EXTERNAL \(user)\r\n".utf8))
        var answer = [UInt8](repeating: 0, count: 512)
        guard read(descriptor, &answer, answer.count) > 2, answer.starts(with: Array("OK".utf8)) else {
            throw Failure(name: Failure.Name.disconnected, message: "the bus refused us")
        }
        put(Array("BEGIN\r\n".utf8))
        send(
            try Message.methodCall(
                destination: "org.freedesktop.DBus", path: "/org/freedesktop/DBus",
                interface: "org.freedesktop.DBus", member: "Hello"))
        _ = read(descriptor, &answer, answer.count)
    }

    deinit { close(descriptor) }

    /// Blocks until the bus has received it all.
    public func send(_ message: Message) {
        dbus_message_set_serial(message.raw, serial)
        serial += 1
        var pointer: UnsafeMutablePointer<CChar>?
        var count: Int32 = 0
        if dbus_message_marshal(message.raw, &pointer, &count) != 0, let pointer {
            put(Array(UnsafeRawBufferPointer(start: pointer, count: Int(count))))
            dbus_free(pointer)
        }
        // libdbus locks a marshalled message: its serial can no longer change, so it cannot be sent again.
    }

    private func put(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}
