public import EventLoop

/// Observes calls between other peers (`org.freedesktop.DBus.Monitoring.BecomeMonitor`), on a separate connection that
/// sends nothing afterwards. Releasing it ends it.
///
/// A bus allows this only to its own user and root. On a session bus, these are all programs outside of sandboxes.
public final class BusMonitor {
    private let connection: Connection

    /// Reports calls of those members of that interface from the loop, each before or after its receiver handles it.
    ///
    /// Waits for the bus's Hello, but not for its permission: if it is refused, nothing is reported, and `refused` is
    /// called once.
    public init(
        _ address: BusAddress, on loop: EventLoop, calls members: [String], of interface: String,
        refused: @escaping (Failure) -> Void, _ heard: @escaping (Message) -> Void
    ) throws(Failure) {
        let connection = try Connection(address, loop: loop)
        self.connection = connection
        connection.overheard = heard
        let rules = members.map { "type='method_call',interface='\(interface)',member='\($0)'" }
        let call = try Message.methodCall(
            destination: StandardName.bus, path: StandardName.busPath, interface: StandardName.bus + ".Monitoring",
            member: "BecomeMonitor")
        call.append([.strings(rules), .uint32(0)])
        connection.call(call) { answer in
            if case .failure(let failure) = answer { refused(failure) }
        }
    }

    deinit { connection.close() }
}
