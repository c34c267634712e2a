import CDBus

extension Connection {
    /// Asks the bus about a caller and waits for the answer, at most `timeout` seconds, on a connection that is opened for
    /// this question.
    ///
    /// On the connection that serves calls, the answer would come behind all messages that wait there, and not at all while
    /// libdbus reads nothing because a large call is being handled: one such call would stop the service until the timeout.
    func askAboutCaller(_ member: String, _ caller: String, timeout: Double) throws(Failure) -> [Value] {
        guard isOpen else { throw .disconnected }
        let raw = try Connection.open(address)
        defer {
            dbus_connection_close(raw)
            dbus_connection_unref(raw)
        }
        return try Connection.callAndWait(Connection.busCall(member, [.string(caller)]), on: raw, timeout: timeout)
    }
}
