import CDBus
public import DBus

/// A connection to a bus without a loop: it reads and writes when told to, and shows every message that came.
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

    /// The serial; nil where the message is none or there is no bus.
    @discardableResult
    public func send(_ message: Message) -> UInt32? {
        var serial: dbus_uint32_t = 0
        guard message.failure == nil, dbus_connection_send(raw, message.raw, &serial) != 0 else { return nil }
        return serial
    }

    /// The next message, waiting up to so many milliseconds for the wire; nil where none came or the bus is gone.
    public func receive(milliseconds: Int32) -> Message? {
        if let message = dbus_connection_pop_message(raw) { return Message(owning: message) }
        guard dbus_connection_read_write(raw, milliseconds) != 0 else { return nil }
        return dbus_connection_pop_message(raw).map { Message(owning: $0) }
    }

    public var isConnected: Bool { dbus_connection_get_is_connected(raw) != 0 }
}
