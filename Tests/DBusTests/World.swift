import DBus
import EventLoop
import TestSupport
import Testing

/// A bus, a service and a client, all on one loop.
final class World {
    static let watchdog = 20.0
    static let path = "/org/example/thing"
    static let name = "org.example.Thing"

    let bus: PrivateBus
    let loop = EventLoop()
    let service: Connection
    let client: Connection

    init() throws {
        bus = try PrivateBus()
        service = try Connection(.custom(bus.address), loop: loop)
        client = try Connection(.custom(bus.address), loop: loop)
    }

    func connect() throws -> Connection { try Connection(.custom(bus.address), loop: loop) }

    func wait(until condition: () -> Bool) throws {
        let inTime = loop.iterate(timeout: Self.watchdog, until: condition)
        try #require(inTime, "the watchdog's time is over")
    }

    func message(
        _ member: String, _ arguments: [Value] = [], interface: String = Thing.interfaceName, path: String = World.path
    ) throws -> Message {
        let message = try Message.methodCall(
            destination: service.uniqueName, path: path, interface: interface, member: member)
        message.append(arguments)
        return message
    }

    func busMessage(_ member: String, _ arguments: [Value]) throws -> Message {
        let bus = "org.freedesktop.DBus"
        let message = try Message.methodCall(
            destination: bus, path: "/org/freedesktop/DBus", interface: bus, member: member)
        message.append(arguments)
        return message
    }

    func answer(to message: Message, from connection: Connection? = nil) throws -> Result<[Value], Failure> {
        var answers: [Result<[Value], Failure>] = []
        (connection ?? client).call(message, timeout: Self.watchdog) { answers.append($0) }
        try wait { !answers.isEmpty }
        #expect(answers.count == 1)
        return answers[0]
    }

    func call(
        _ member: String, _ arguments: [Value] = [], interface: String = Thing.interfaceName, path: String = World.path
    ) throws -> [Value] {
        try answer(to: message(member, arguments, interface: interface, path: path)).get()
    }

    func failure(
        _ member: String, _ arguments: [Value] = [], interface: String = Thing.interfaceName, path: String = World.path
    ) throws -> Failure? {
        if case .failure(let failure) = try answer(to: message(member, arguments, interface: interface, path: path)) {
            return failure
        }
        return nil
    }

    /// Waits until both ends have handled all that was sent before.
    func settle() throws {
        for connection in [client, service] {
            let ping = try Message.methodCall(
                destination: service.uniqueName, path: "/", interface: "org.freedesktop.DBus.Peer", member: "Ping")
            _ = try answer(to: ping, from: connection)
        }
    }
}

/// An object with methods of each behaviour and properties of each kind.
final class Thing {
    static let interfaceName = "org.example.Thing"
    var volume = 0.5
    var level: UInt32 = 7
    var kept: [Invocation] = []
    var calls = 0

    static let introspection = """
        <interface name="org.example.Thing">
            <method name="Echo"><arg name="value" type="v" direction="in"/><arg type="v" direction="out"/></method>
            <method name="Keep"/>
            <method name="Drop"/>
            <method name="Twice"/>
            <method name="Add">
              <arg type="u" direction="in"/><arg type="a{sv}" direction="in"/><arg type="u" direction="out"/>
            </method>
            <method name="Bad"/>
            <property name="Volume" type="d" access="readwrite"/>
            <property name="Level" type="u" access="read"/>
            <property name="Silent" type="u" access="readwrite"/>
          </interface>
        """

    static let interface = Interface<Thing>(
        name: interfaceName, introspection: introspection,
        methods: [
            .init("Echo", "v") { $1.reply($1.arguments) },
            .init("Keep", "") { thing, invocation in thing.kept.append(invocation) },
            .init("Drop", "") { _, _ in },
            .init("Twice", "") { _, invocation in
                invocation.reply([.string("first")])
                invocation.reply([.string("second")])
                invocation.fail(.failed("third"))
            },
            .init("Add", "ua{sv}") { thing, invocation in
                thing.calls += 1
                let more = invocation.arguments[1].asProperties?["more"]?.uint32Value ?? 0
                invocation.reply([.uint32((invocation.arguments[0].uint32Value ?? 0) &+ more)])
            },
            .init("Bad", "") { _, invocation in invocation.reply([.objectPath("no path")]) },
        ],
        properties: [
            .init(
                "Volume", "d", get: { .double($0.volume) },
                set: { (thing, value) throws(Failure) in
                    guard let volume = value.doubleValue, volume >= 0, volume <= 1 else {
                        throw .invalidArgs("Volume is from 0 to 1")
                    }
                    thing.volume = volume
                }),
            .init("Level", "u", get: { .uint32($0.level) }),
            .init(
                "Silent", "u", get: { .uint32($0.level) },
                set: { thing, value in thing.level = value.uint32Value ?? 0 },
                emitsChanged: false),
        ])
}
