import CDBus

/// Asks the bus about callers, and waits for the answers, on a connection that is used for nothing else.
///
/// On the connection that serves calls, an answer would come behind all messages that wait there, and not at all while
/// libdbus reads nothing because a large call is being handled: one such call would stop the service until the timeout.
final class BusQuestions {
    private let address: BusAddress
    /// Opened with the first question; nil also after the bus has closed it.
    private var raw: OpaquePointer?

    init(_ address: BusAddress) { self.address = address }

    deinit { close() }

    /// Calls a method of the bus and waits for its answer, at most `timeout` seconds.
    func ask(_ member: String, _ arguments: [Value], timeout: Double) throws(Failure) -> [Value] {
        if let raw, dbus_connection_get_is_connected(raw) == 0 { close() }
        return try Connection.callAndWait(Connection.busCall(member, arguments), on: open(), timeout: timeout)
    }

    private func open() throws(Failure) -> OpaquePointer {
        if let raw { return raw }
        let opened = try Connection.open(address)
        raw = opened
        return opened
    }

    private func close() {
        guard let raw else { return }
        dbus_connection_close(raw)
        dbus_connection_unref(raw)
        self.raw = nil
    }
}
