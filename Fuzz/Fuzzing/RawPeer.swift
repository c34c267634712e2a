import CDBus
public import DBus
import EventLoop

/// A connection to a bus without an event loop. The caller decides when it reads and writes, and gets every message.
public final class RawPeer {
    public let uniqueName: String
    private let raw: OpaquePointer

    /// Blocks until the bus has answered Hello.
    public init(_ address: String) throws(Failure) {
        guard let raw = dbus_connection_open_private(address, nil) else {
            throw Failure(name: Failure.Name.disconnected, message: "no bus at \(address)")
        }
        dbus_connection_set_exit_on_disconnect(raw, 0)
        self.raw = raw
        guard dbus_bus_register(raw, nil) != 0, let name = dbus_bus_get_unique_name(raw) else {
            dbus_connection_close(raw)
            dbus_connection_unref(raw)
            throw Failure(name: Failure.Name.disconnected, message: "the bus at \(address) did not answer")
        }
        uniqueName = String(cString: name)
    }

    deinit {
        dbus_connection_close(raw)
        dbus_connection_unref(raw)
    }

    /// Returns the serial, or nil if the message is invalid or the connection is closed.
    @discardableResult
    public func send(_ message: Message) -> UInt32? {
        var serial: dbus_uint32_t = 0
        guard message.failure == nil, dbus_connection_send(raw, message.raw, &serial) != 0 else { return nil }
        return serial
    }

    /// Waits up to `timeout` seconds for the next message. Returns nil if there is none or the connection is closed.
    public func receive(timeout: Double) -> Message? {
        let end = MonotonicClock.now() &+ MonotonicClock.microseconds(timeout)
        while true {
            if let message = dbus_connection_pop_message(raw) { return Message(owning: message) }
            let now = MonotonicClock.now()
            // It also returns after it has written something or read a part of a message.
            guard now < end, dbus_connection_read_write(raw, Int32(clamping: (end - now) / 1_000 + 1)) != 0 else {
                return dbus_connection_pop_message(raw).map { Message(owning: $0) }
            }
        }
    }

    public var isConnected: Bool { dbus_connection_get_is_connected(raw) != 0 }
}
