import DBus
import EventLoop
import PluginAPI
import SessionBus
import TestSupport

/// A daemon with one session, on a private bus and on the loop of the test. It has no rules: the test says what happens.
final class FakeDaemon {
    let bus: PrivateBus
    let loop = EventLoop()
    /// Where the session's client is connected.
    let client: Connection
    private var connection: Connection?
    /// The methods that were called, without the reading of properties.
    private(set) var calls: [String] = []
    /// The number of sessions that were created.
    private(set) var count = 0
    /// The properties of the session; kept while the daemon is away, as in its state file.
    var state = SessionState.inactive
    var isMuted = false
    private var owner = ""
    /// Answers no call that reads properties.
    var isDeaf = false
    private var unanswered: [Invocation] = []

    private static let path = "/org/sessiond1/session/1"

    init() throws {
        bus = try PrivateBus()
        client = try Connection(.custom(bus.address), loop: loop)
        try start()
    }

    func start() throws {
        let connection = try Connection(.custom(bus.address), loop: loop)
        connection.objects.relay(below: "/") { [unowned self] call in heard(call) }
        guard try connection.requestName(BusName.service) == .owner else { throw SupportError("the name is taken") }
        self.connection = connection
    }

    /// Dies; the calls that it did not answer fail.
    func stop() {
        connection?.close()
        connection = nil
        unanswered = []
    }

    var isAsked: Bool { !unanswered.isEmpty }

    /// Runs the loop until the condition is true.
    func comes(timeout: Double = 10, _ condition: () -> Bool) -> Bool {
        loop.iterate(timeout: timeout, until: condition)
    }

    /// Runs the loop for a while, for what must not happen.
    func pass(_ seconds: Double) { _ = loop.iterate(timeout: seconds) { false } }

    func begin(_ reason: InterruptionReason = .default) {
        state = .interrupted
        emit("InterruptionBegan", [.string(reason.rawValue), .properties([])])
    }

    func end(resume: Bool) {
        state = .inactive
        emit("InterruptionEnded", [.bool(resume), .properties([])])
    }

    func mute(_ isOn: Bool) {
        isMuted = isOn
        connection?.objects.propertiesChanged(path: Self.path, interface: BusName.session, [("Muted", .bool(isOn))])
    }

    private func emit(_ member: String, _ arguments: [Value]) {
        connection?.objects.emit(path: Self.path, interface: BusName.session, member: member, arguments)
    }

    private func heard(_ call: Invocation) {
        if call.interface == StandardName.properties {
            if isDeaf { return unanswered.append(call) }
            guard call.member == "GetAll" else {
                return call.fail(name: Failure.Name.unknownMethod, message: call.member)
            }
            guard count > 0, call.path == Self.path else {
                return call.fail(name: "org.sessiond1.Error.ExpiredSession", message: "no such session")
            }
            return call.reply([
                .properties([
                    ("Owner", .string(owner)), ("State", .string(state.rawValue)), ("Muted", .bool(isMuted)),
                ])
            ])
        }
        calls.append(call.member)
        switch call.member {
        case "CreateSession":
            (owner, count, state) = (call.sender, count + 1, .inactive)
            call.reply([.objectPath(Self.path)])
        case "Activate":
            state = .active
            call.reply()
        case "Deactivate", "Close":
            state = .inactive
            call.reply()
        default: call.reply()
        }
    }
}
