import DBus
import EventLoop
import PluginAPI
import SessionBus

/// The complete current state of the daemon, read at once.
struct Snapshot {
    /// The Manager's properties, unchanged.
    let manager: Value
    let sessions: [SessionInfo]
    /// Latest last.
    let decisions: [PastDecision]
    /// Why sessions are silent or ducked: the answers of Explain, by path.
    let explanations: [String: [[String: Value]]]
    /// Nil if the daemon has no Plugins interface.
    let plugins: [Value]?
    /// Nil if the daemon does not list them.
    let streams: [StreamInfo]?
    /// The capture sessions of the plugin for cameras, if it runs.
    let cameras: [Value]
    /// When it was read, on the daemon's clock, in microseconds.
    let time: UInt64

    private let properties: [String: Value]

    subscript(_ property: String) -> Value? { properties[property] }

    private init(
        manager: Value, sessions: [SessionInfo], history: Value?, plugins: Value?, streams: Value?, cameras: [Value],
        explanations: [String: [[String: Value]]]
    ) {
        self.manager = manager
        properties = manager.asProperties ?? [:]
        self.sessions = sessions
        self.explanations = explanations
        decisions = (history?.arrayValue ?? []).compactMap(PastDecision.init)
        self.plugins = plugins?.arrayValue
        self.streams = streams?.arrayValue?.compactMap(StreamInfo.init)
        self.cameras = cameras
        time = MonotonicClock.now()
    }

    /// Usually enough to know when the route changed, and the names of sessions that have gone.
    private static let historyLength: UInt32 = 256

    /// Reads everything at once; answers once, from the loop. The explanations are read only if they will be shown.
    static func read(
        _ service: Service, isExplained: Bool, _ reply: @escaping (Result<Snapshot, Failure>) -> Void
    ) {
        var answers: [Result<[Value], Failure>?] = [nil, nil, nil, nil, nil]
        func collect(_ index: Int) -> (Result<[Value], Failure>) -> Void {
            { answer in
                answers[index] = answer
                let all = answers.compactMap { $0 }
                guard all.count == answers.count else { return }
                // Only the last two may be missing: older daemons have no plugins, and list no streams.
                for case .failure(let failure) in all.dropLast(2) { return reply(.failure(failure)) }
                let values = all.map { try? $0.get().first }
                let sessions = (values[1]?.arrayValue ?? []).compactMap(SessionInfo.init)
                explain(isExplained ? sessions : [], service) { explanations in
                    readCameras(values[3]?.arrayValue ?? [], service) { cameras in
                        reply(
                            .success(
                                Snapshot(
                                    manager: values[0] ?? .properties([]), sessions: sessions, history: values[2],
                                    plugins: values[3], streams: values[4], cameras: cameras,
                                    explanations: explanations)))
                    }
                }
            }
        }
        service.call(
            "GetAll", [.string(BusName.manager)], interface: StandardName.properties, collect(0))
        service.call("ListSessions", [], collect(1))
        service.call("History", [.uint32(historyLength)], collect(2))
        service.call("List", [], interface: BusName.plugins, collect(3))
        service.call("ListStreams", [], collect(4))
    }

    /// Seconds that the plugin for cameras has to answer.
    private static let patience = 1.0

    /// Asks the plugin for cameras, if it runs, who uses them.
    private static func readCameras(_ plugins: [Value], _ service: Service, _ reply: @escaping ([Value]) -> Void) {
        let running = plugins.compactMap(\.asProperties).first {
            $0["kind"]?.stringValue == PluginKind.capture.word && $0["bus-name"]?.stringValue?.isEmpty == false
        }
        guard let name = running?["bus-name"]?.stringValue else { return reply([]) }
        service.connection.call(
            name, PluginKind.capture.objectPath, PluginKind.capture.interface, "ListSessions", [], timeout: patience
        ) { reply((try? $0.get())?.first?.arrayValue ?? []) }
    }

    /// The limit of explained sessions, because a user cannot read more on a screen.
    private static let mostExplained = 100

    /// Asks why sessions are silent or ducked, for those that are.
    private static func explain(
        _ sessions: [SessionInfo], _ service: Service, _ reply: @escaping ([String: [[String: Value]]]) -> Void
    ) {
        let paths = sessions.filter { $0.state != .active || $0.isDucked }.prefix(mostExplained).map(\.path)
        guard !paths.isEmpty else { return reply([:]) }
        var explanations: [String: [[String: Value]]] = [:]
        var left = paths.count
        for path in paths {
            service.call("Explain", [.objectPath(path)]) { answer in
                // It may have been closed in the meantime.
                let causes = (try? answer.get())?.first?.arrayValue ?? []
                explanations[path] = causes.compactMap(\.asProperties)
                left -= 1
                if left == 0 { reply(explanations) }
            }
        }
    }

    /// The part of the answer that has this cause and is about the session itself.
    func explanation(of path: String, _ cause: String) -> [String: Value]? {
        explanations[path]?.first { $0["cause"]?.stringValue == cause && $0["session"]?.objectPathValue == path }
    }

    func name(of path: String) -> String { Names(self)[path] }

    /// One object: the Manager's properties, with the sessions, streams and plugins.
    var json: String {
        var members = (manager.dictionaryValue ?? []).map { ($0.key.stringValue ?? "", $0.value) }
        members.append(("Sessions", .array(of: "a{sv}", sessions.map(\.raw))))
        members.append(("Streams", .array(of: "a{sv}", (streams ?? []).map(\.raw))))
        members.append(("Plugins", .array(of: "a{sv}", plugins ?? [])))
        members.append(("Cameras", .array(of: "a{sv}", cameras)))
        return JSON.object(.status, members)
    }
}

/// One decision of the history, with its effects.
struct PastDecision {
    /// The unchanged value, for JSON.
    let raw: Value
    let sequence: UInt64
    /// Monotonic, in microseconds.
    let time: UInt64
    let event: String
    /// The same as a scenario's step, such as `silent on`.
    let step: String
    /// `/` for none.
    let session: String
    let name: String
    let effects: [[String: Value]]
    /// The requests to the sound server after it and before the next decision.
    let requests: [[String: Value]]
    /// The name and message of the refusal, if it was refused.
    let error: String?
    let message: String

    init?(_ value: Value) {
        guard let fields = value.asProperties, let sequence = fields["sequence"]?.uint64Value,
            let event = fields["event"]?.stringValue
        else { return nil }
        raw = value
        self.sequence = sequence
        self.event = event
        step = fields["step"]?.stringValue ?? ""
        time = fields["time-usec"]?.uint64Value ?? 0
        session = fields["session"]?.objectPathValue ?? ObjectPath.none
        name = fields["name"]?.stringValue ?? ""
        effects = (fields["effects"]?.arrayValue ?? []).compactMap(\.asProperties)
        requests = (fields["requests"]?.arrayValue ?? []).compactMap(\.asProperties)
        error = fields["error"]?.stringValue
        message = fields["message"]?.stringValue ?? ""
    }
}

/// The names of sessions, also of closed ones.
struct Names {
    fileprivate var names: [String: String] = [:]

    init() {}

    init(_ snapshot: Snapshot) {
        for decision in snapshot.decisions where !decision.name.isEmpty { names[decision.session] = decision.name }
        for session in snapshot.sessions { names[session.path] = session.name }
    }

    /// The name, safe to print.
    subscript(_ path: String) -> String {
        if let name = names[path] { return name.escaped }
        return ObjectPath.sessionID(path).map { "session \($0.number)" } ?? path.escaped
    }

    mutating func learn(_ path: String, _ name: String) { names[path] = name }
}

extension Names {
    /// The unchanged name, if known.
    func known(_ path: String) -> String? { names[path] }
}
