import ArgumentParser
import DBus
import EventLoop
import SessionBus

/// The connection of a command to the daemon; every call has a deadline.
final class Service {
    /// Seconds that the daemon has to answer.
    static let timeout = 5.0
    /// Seconds that a daemon that was just started has to find the sound server.
    private static let startUpTime = 0.5

    let loop = EventLoop()
    let connection: Connection
    let bus: BusAddress

    init(_ options: BusOptions) throws {
        bus = options.system ? .system : .session
        do throws(Failure) {
            connection = try Connection(bus, loop: loop)
        } catch {
            throw Complaint.unreachable("no \(bus.name) bus: \(error.message.escaped)")
        }
    }

    func complaint(_ failure: Failure) -> Complaint {
        Absence.reason(for: failure, on: connection, system: bus.isSystem) ?? Complaint(failure, system: bus.isSystem)
    }

    /// Calls a method of an object of the daemon; the answer comes from the loop.
    func call(
        _ member: String, _ arguments: [Value] = [], interface: String = BusName.manager,
        path: String = ObjectPath.root, _ reply: @escaping (Result<[Value], Failure>) -> Void
    ) {
        connection.call(BusName.service, path, interface, member, arguments, timeout: Self.timeout, reply)
    }

    /// The same, blocking.
    @discardableResult
    func ask(
        _ member: String, _ arguments: [Value] = [], interface: String = BusName.manager,
        path: String = ObjectPath.root
    ) throws -> [Value] {
        do throws(Failure) {
            return try connection.callAndWait(
                BusName.service, path, interface, member, arguments, timeout: Self.timeout)
        } catch {
            throw complaint(error)
        }
    }

    func sessions() throws -> [SessionInfo] {
        (try ask("ListSessions").first?.arrayValue ?? []).compactMap(SessionInfo.init)
    }

    func streams() throws -> [StreamInfo] {
        (try ask("ListStreams").first?.arrayValue ?? []).compactMap(StreamInfo.init)
    }

    /// Runs the loop until the completion of `body` is called.
    func wait<Success>(_ body: (@escaping (Result<Success, Failure>) -> Void) -> Void) throws -> Success {
        var outcome: Result<Success, Failure>?
        body { outcome = $0 }
        while true {
            if let outcome { return try outcome.mapError(complaint).get() }
            guard loop.iterate() else { throw Complaint.unreachable("the bus connection was lost") }
        }
    }

    /// A daemon that was started by this call does not know the sound server yet: wait for it briefly.
    func awaitSoundServer() throws {
        let answer = try? connection.askBusAndWait(
            "NameHasOwner", [.string(BusName.service)], timeout: Self.timeout)
        guard answer?.first?.boolValue == false else { return }
        var isConnected = false
        let watch = connection.subscribe(
            path: ObjectPath.root, interface: StandardName.properties, member: "PropertiesChanged",
            sender: BusName.service, arg0: BusName.manager
        ) { message in
            let values = try? message.arguments()
            isConnected = isConnected || values?[1].asProperties?["ServerConnected"]?.boolValue == true
        }
        let now = try ask(
            "Get", [.string(BusName.manager), .string("ServerConnected")], interface: StandardName.properties)
        isConnected = isConnected || now.first?.unwrapped.boolValue == true
        _ = withExtendedLifetime(watch) { loop.iterate(timeout: Self.startUpTime) { isConnected } }
    }

    /// Reports when the daemon starts (its unique name) and stops (empty).
    func watchOwner(_ handler: @escaping (String) -> Void) -> Subscription {
        connection.watchOwner(of: BusName.service, handler)
    }
}

/// The daemon that a command uses.
struct BusOptions: ParsableArguments {
    @Flag(help: "Talk to the daemon on the system bus.")
    var system = false
}

/// The output format of a reading command.
struct OutputOptions: ParsableArguments {
    @Flag(help: "Print JSON, with the keys of D-Bus.")
    var json = false
}
