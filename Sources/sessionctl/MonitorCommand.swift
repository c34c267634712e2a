import ArgumentParser
import DBus
import EventLoop
import Glibc
import PluginAPI
import SessionBus

/// `sessionctl monitor`.
struct MonitorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "monitor", abstract: "Print what happens when it happens, until ctrl-C.")

    @Flag(help: "Print every event, one line each, in the exact words.")
    var verbose = false
    @OptionGroup var output: OutputOptions
    @OptionGroup var bus: BusOptions

    func run() throws {
        let service = try Service(bus)
        let monitor = EventMonitor(service, isJSON: output.json, isVerbose: verbose)
        // Read after subscribing, so that no event is missed.
        try monitor.start()
        let signals = [SIGINT, SIGTERM, SIGHUP].map { number in
            service.loop.watch(signal: number) { service.loop.quit(128 + number) }
        }
        let closed = Output.quitWhenClosed(service.loop)
        let code = service.loop.run()
        Output.end(code, keeping: (service, signals, closed, monitor))
    }
}

/// Prints a line for each signal of the daemon, and when the daemon starts or stops.
final class EventMonitor {
    private let service: Service
    private let isJSON: Bool
    private let isVerbose: Bool
    private var story = MonitorStory()
    private var names = Names()
    private var subscriptions: [Subscription] = []
    /// Signals that wait until the names are known.
    private var early: [Message]? = []

    init(_ service: Service, isJSON: Bool, isVerbose: Bool) {
        self.service = service
        self.isJSON = isJSON
        self.isVerbose = isVerbose
        subscriptions = [
            service.connection.subscribe(sender: BusName.service) { [unowned self] message in heard(message) },
            service.watchOwner { [unowned self] owner in ownerChanged(owner) },
        ]
        service.connection.onDisconnect = { [unowned service] in
            Output.complain("the bus connection was lost")
            service.loop.quit(69)
        }
    }

    func start() throws {
        let sessions: [Value] = try service.wait { service.call("ListSessions", [], $0) }
        for session in (sessions.first?.arrayValue ?? []).compactMap(SessionInfo.init) {
            names.learn(session.path, session.name)
            story.learn(session)
        }
        let waiting = early ?? []
        early = nil
        for message in waiting { heard(message) }
    }

    private func heard(_ message: Message) {
        guard early == nil else {
            early?.append(message)
            return
        }
        guard let path = message.path, let interface = message.interface, let member = message.member,
            let arguments = try? message.arguments()
        else { return }
        let signal = HeardSignal(path: path, interface: interface, member: member, arguments: arguments)
        if member == "InterfacesAdded", let added = signal.addedSession { names.learn(added.path, added.name) }
        if isJSON { return writeJSON(signal) }
        guard !isVerbose else {
            for line in signal.lines(names) { writeLine(line.subject, line.text, line.style) }
            return
        }
        for line in story.lines(signal, names, at: MonotonicClock.now()) { writeSentence(line.text, line.style) }
    }

    private func ownerChanged(_ owner: String) {
        if isJSON {
            return write(
                json: [
                    ("path", .objectPath(StandardName.busPath)), ("interface", .string(StandardName.bus)),
                    ("signal", .string("NameOwnerChanged")),
                    ("arguments", .properties([("name", .string(BusName.service)), ("new_owner", .string(owner))])),
                ])
        }
        let isGone = owner.isEmpty
        if isGone {
            names = Names()
            story.forgetAll()
        }
        guard isVerbose else {
            return writeSentence(isGone ? "sessiond stopped" : "sessiond is running", isGone ? .bad : .good)
        }
        writeLine("sessiond", isGone ? "stopped" : "is running", isGone ? .bad : .good)
    }

    private func writeJSON(_ signal: HeardSignal) {
        var members: [(String, Value)] = [
            ("path", .objectPath(signal.path)), ("interface", .string(signal.interface)),
            ("signal", .string(signal.member)), ("arguments", signal.named),
        ]
        if let name = names.known(signal.path) { members.insert(("Name", .string(name)), at: 1) }
        write(json: members)
    }

    /// Both clocks: the history uses the monotonic one.
    private func write(json members: [(String, Value)]) {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        let wall = UInt64(clamping: now.tv_sec) * 1_000_000 + UInt64(clamping: now.tv_nsec / 1000)
        Output.line(
            JSON.object(
                .monitor,
                [("time-usec", .uint64(MonotonicClock.now())), ("realtime-usec", .uint64(wall))] + members))
    }

    /// The width of the subject column, because the longest name is not known in advance.
    private static let subjectWidth = 16

    private func writeLine(_ subject: String, _ text: String, _ style: Style) {
        let terminal = Terminal.standard
        let name = subject.truncated(to: 32).padded(to: Self.subjectWidth)
        Output.line(
            terminal.styled(Self.time, .dim) + "  " + terminal.styled(name, .strong) + "  "
                + terminal.styled(text, style))
    }

    private func writeSentence(_ text: String, _ style: Style) {
        let terminal = Terminal.standard
        Output.line(terminal.styled(Self.time, .dim) + "  " + terminal.styled(text, style))
    }

    /// The time of day, to the millisecond.
    private static var time: String {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        var local = tm()
        localtime_r(&now.tv_sec, &local)
        let thousandths = String(1000 + now.tv_nsec / 1_000_000).dropFirst()
        return [local.tm_hour, local.tm_min, local.tm_sec].map { Wording.two(Int($0)) }.joined(separator: ":") + "."
            + thousandths
    }
}
