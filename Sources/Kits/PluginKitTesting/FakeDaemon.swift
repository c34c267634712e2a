public import DBus
public import EventLoop
public import PluginAPI
import SessionBus

/// A daemon with one session, for the tests of plugins and apps. It has no rules: the test says what happens.
///
/// It owns the daemon's name on a bus where no daemon runs, such as that of `dbus-run-session -- swift test`. It and the
/// plugin are on one loop, which ``comes(timeout:_:)`` runs; so a test is on one thread.
///
///     let daemon = try FakeDaemon()
///     let engine = FakePlayer()
///     let player = PlayerPlugin(engine, .init(name: "Test", category: .playback), on: daemon.client, daemon.loop)
///     try player.load(uri: "file:///song")
///     player.play { _ in }
///     #expect(daemon.comes { engine.state == .playing })
///     daemon.begin()
///     #expect(daemon.comes { player.state == .interrupted })
public final class FakeDaemon {
    public let loop = EventLoop()
    /// A connection for the plugin or the app that is tested.
    public let client: Connection
    /// The methods that were called, without the reading of properties.
    public private(set) var calls: [String] = []
    /// The number of sessions that were created.
    public private(set) var count = 0
    /// The state of the session; kept while the daemon is away, as in its state file.
    public var state = SessionState.inactive
    /// Whether the silent switch mutes the session; see ``mute(_:)``.
    public private(set) var isMuted = false
    /// Answers no call that reads properties.
    public var isDeaf = false

    private let bus: BusAddress
    private var connection: Connection?
    private var owner = ""
    private var unanswered: [Invocation] = []

    private static let path = "/org/sessiond1/session/1"

    /// Connects to the bus and starts.
    /// - Throws: if there is no bus, or another daemon on it.
    public init(on bus: BusAddress = .session) throws(Failure) {
        self.bus = bus
        client = try Connection(bus, loop: loop)
        try start()
    }

    /// Starts again after ``stop()``, with the state that it had.
    public func start() throws(Failure) {
        let connection = try Connection(bus, loop: loop)
        connection.objects.relay(below: "/") { [unowned self] call in heard(call) }
        guard try connection.requestName(BusName.service) == .owner else {
            throw .failed("another daemon owns \(BusName.service)")
        }
        self.connection = connection
    }

    /// Dies; the calls that it did not answer fail.
    public func stop() {
        connection?.close()
        connection = nil
        unanswered = []
    }

    /// Whether calls wait for an answer, because it is deaf.
    public var isAsked: Bool { !unanswered.isEmpty }

    /// Runs the loop until the condition is true; false if it is not within that many seconds.
    public func comes(timeout: Double = 10, _ condition: () -> Bool) -> Bool {
        loop.iterate(timeout: timeout, until: condition)
    }

    /// Runs the loop for that many seconds, for what must not happen.
    public func pass(_ seconds: Double) { _ = loop.iterate(timeout: seconds) { false } }

    /// Interrupts the session.
    public func begin(_ reason: InterruptionReason = .default) {
        state = .interrupted
        emit("InterruptionBegan", [.string(reason.rawValue), .properties([])])
    }

    /// Ends the interruption, with or without the should-resume hint.
    public func end(resume: Bool) {
        state = .inactive
        emit("InterruptionEnded", [.bool(resume), .properties([])])
    }

    /// Switches the silent switch.
    public func mute(_ isOn: Bool) {
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
