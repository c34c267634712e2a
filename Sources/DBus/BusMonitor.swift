public import EventLoop

/// Hears calls that others make of others (`org.freedesktop.DBus.Monitoring.BecomeMonitor`), on a connection of its own,
/// which sends nothing from then on. Dropping it ends it.
///
/// A bus lets its own user and root do so: on a session bus that is everybody outside a sandbox.
public final class BusMonitor {
    private let connection: Connection

    /// Hears calls of those members of that interface from the loop, each before or after its receiver does.
    ///
    /// Waits for the bus's Hello, not for its leave: where it is refused, nothing is heard, and `refused` is called once.
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
