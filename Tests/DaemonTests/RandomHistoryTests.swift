import DBus
import EventLoop
import PluginAPI
import SessionBus
import SessionManager
import TestSupport
import Testing

@testable import ReferenceModel

/// Long random histories over D-Bus, compared with the second model: errors, the order of events, states, and which
/// session waits for which.
@Suite struct RandomHistoryTests {
    @Test(arguments: [11, 12, 13] as [UInt64]) func daemonAgreesWithTheModel(seed: UInt64) throws {
        var run = try BusRun(seed: seed)
        for number in 0..<400 {
            let faults = try run.step()
            if !faults.isEmpty {
                let trail = run.trail.suffix(25).joined(separator: "\n  ")
                Issue.record("seed \(seed), step \(number):\n  \(trail)\n→ \(faults.joined(separator: "\n→ "))")
                return
            }
        }
    }
}

/// One random history. Every step goes to the daemon and to the model.
private struct BusRun {
    private let stage: DaemonStage
    private let observer: Observer
    private var clients: [Client]
    private var numbers: [ClientID] = []
    private var nextNumber: UInt64 = 0
    private var model: ReferenceModel
    private var random: SplitMix64
    /// The client that owns each session.
    private var owners: [SessionID: Int] = [:]
    private(set) var trail: [String] = []

    private static let configurations: [(String, String, [String])] = [
        ("playback", "default", []), ("playback", "default", []), ("playback", "spoken-audio", []),
        ("playback", "default", ["mix-with-others"]), ("playback", "spoken-audio", ["mix-with-others"]),
        ("playback", "voice-prompt", ["duck-others"]),
        ("playback", "voice-prompt", ["duck-others", "interrupt-spoken-audio-and-mix-with-others"]),
        ("playback", "default", ["interrupt-spoken-audio-and-mix-with-others"]), ("ambient", "default", []),
        ("ambient", "default", ["duck-others"]), ("solo-ambient", "default", []), ("record", "default", []),
        ("play-and-record", "voice-chat", []), ("play-and-record", "default", ["mix-with-others"]),
        ("multi-route", "default", []), ("multi-route", "default", ["duck-others"]),
        ("audio-processing", "default", []),
        ("record", "default", ["mix-with-others"]), ("ambient", "default", ["mix-with-others"]),
    ]

    init(seed: UInt64) throws {
        stage = try DaemonStage(settings: "[interruption]\ngrace = 3600\n")
        observer = Observer(stage)
        random = SplitMix64(seed: seed)
        var settings = Arbiter.Settings()
        settings.grace = 3600
        model = ReferenceModel(settings: settings)
        clients = []
        for _ in 0..<4 { clients.append(try stage.client()) }
        for _ in 0..<4 { numbers.append(number()) }
    }

    private mutating func number() -> ClientID {
        nextNumber += 1
        return ClientID(nextNumber)
    }

    /// Carries out the next step. Returns the differences between daemon and model.
    mutating func step() throws -> [String] {
        if model.sessions.count < 6 { return try create() }
        guard let expected = model.sessions.randomElement(using: &random), let owner = owners[expected.id] else {
            return []
        }
        let path = ObjectPath.session(expected.id)
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<40: return try compare(.activate(expected.id), clients[owner].activate(path))
        case 40..<60:
            let notify = Bool.random(using: &random)
            return try compare(
                .deactivate(expected.id, notifyOthers: notify), clients[owner].deactivate(path, notify: notify))
        case 60..<76:
            let (category, mode, options) = pick(BusRun.configurations)
            let error = clients[owner].call(
                path, "SetCategory", [.string(category), .string(mode), .strings(options)])
            guard let configuration = try? Configuration(category: category, mode: mode, options: options) else {
                trail.append("\(expected.id) set \(category) \(options), which is illegal")
                return error == "org.sessiond1.Error.BadParameter" ? try state() : ["illegal: \(error ?? "accepted")"]
            }
            return try compare(.setCategory(expected.id, configuration), error)
        case 76..<79: return try close(expected.id, clients[owner].call(path, "Close"))
        case 79..<83: return try vanish(owner)
        case 83..<90:
            let inFront = Int.random(in: 0..<3, using: &random) > 0
            try stage.manager("SetForeground", [.objectPath(path), .bool(inFront)])
            return try compare(.setForeground(expected.id, inFront), nil)
        case 90..<95:
            let on = Bool.random(using: &random)
            try stage.manager("SetSilentMode", [.bool(on)])
            return try compare(.setSilentMode(on), nil)
        case 95..<97:
            let locked = Bool.random(using: &random)
            try stage.manager("SetScreenLocked", [.bool(locked)])
            return try compare(.setScreenLocked(locked), nil)
        default:
            // A client activates a session of another client. It is refused.
            trail.append("a stranger activates \(expected.id)")
            let error = clients[(owner + 1) % clients.count].activate(path)
            return error == "org.sessiond1.Error.NotOwner" ? try state() : ["stranger: \(error ?? "accepted")"]
        }
    }

    private mutating func create() throws -> [String] {
        let owner = Int.random(in: 0..<clients.count, using: &random)
        let (category, mode, options) = pick(BusRun.configurations.filter { !$0.2.contains("mix-with-others") })
        let sessionClass = pick([SessionClass.app, .app, .app, .app, .app, .alert, .call])
        let notifies = Bool.random(using: &random)
        let path = try clients[owner].session(
            "n", category: category, mode: mode, options: options, class: sessionClass.rawValue,
            more: [("notify-on-exit", .bool(notifies))], hears: false)
        let new = NewSession(
            name: "n", client: numbers[owner], sessionClass: sessionClass,
            configuration: try Configuration(category: category, mode: mode, options: options),
            notifiesOnExit: notifies)
        let faults = try compare(.create(new), nil)
        guard let id = ObjectPath.sessionID(path), model.session(id) != nil else {
            return ["\(path) is a wrong number"]
        }
        owners[id] = owner
        return faults
    }

    private mutating func close(_ id: SessionID, _ error: String?) throws -> [String] {
        owners[id] = nil
        return try compare(.close(id), error)
    }

    private mutating func vanish(_ owner: Int) throws -> [String] {
        let (gone, own) = (numbers[owner], owners.filter { $0.value == owner }.map(\.key))
        clients[owner].connection.close()
        let left = eventually {
            let paths = (try? stage.sessions()).map { Set($0.keys) } ?? []
            return own.allSatisfy { !paths.contains(ObjectPath.session($0)) }
        }
        for id in own { owners[id] = nil }
        clients[owner] = try stage.client()
        numbers[owner] = number()
        return try compare(.clientVanished(gone), nil) + (left ? [] : ["sessions of a disconnected client remain"])
    }

    private mutating func pick<T>(_ choices: [T]) -> T {
        choices[Int.random(in: 0..<choices.count, using: &random)]
    }

    /// Gives the same event to the model, and returns every difference.
    private mutating func compare(_ event: Event, _ error: String?) throws -> [String] {
        let outcome = model.handle(event, at: Instant(microseconds: MonotonicClock.now()))
        trail.append("\(event) → \(error ?? "done")")
        var faults: [String] = []
        let wanted = outcome.refusal.map { "org.sessiond1.Error." + $0.rawValue }
        if error != wanted { faults.append("error \(error ?? "none"), model \(wanted ?? "none")") }
        let heard = try observer.heard()
        let told = heard.filter { $0.contains(" began ") || $0.contains(" ended ") }
        let expected = outcome.interruptions.map(describe)
        if told != expected { faults.append("signals \(told), model \(expected)") }
        let others = Set(heard).subtracting(told)
        let expectedOthers = Set(outcome.others.compactMap(describeOther))
        if others != expectedOthers { faults.append("other signals \(others), model \(expectedOthers)") }
        return faults + (try state())
    }

    private func state() throws -> [String] {
        let sessions = try stage.sessions()
        var faults: [String] = []
        if sessions.count != model.sessions.count {
            faults.append("\(sessions.count) sessions, model \(model.sessions.count)")
        }
        for expected in model.sessions {
            let fields = sessions[ObjectPath.session(expected.id)] ?? [:]
            func check(_ name: String, _ wanted: Value) {
                if fields[name] != wanted {
                    faults.append("\(expected.id) \(name) \(String(describing: fields[name])), model \(wanted)")
                }
            }
            let state: SessionState =
                switch expected.status {
                case .idle, .released: .inactive
                case .playing: .active
                case .interrupted: .interrupted
                }
            check("State", .string(state.rawValue))
            check("WaitingFor", .objectPaths(model.waits(of: expected.id).map(ObjectPath.session)))
            check("Ducked", .bool(model.isDucked(expected)))
            check("Muted", .bool(model.isMuted(expected)))
            check("OtherAudioPlaying", .bool(model.hearsOthers(expected)))
            check("SecondaryAudioShouldBeSilencedHint", .bool(model.hint(expected)))
            check("Category", .string(expected.configuration.category.rawValue))
            check("Options", .strings(expected.configuration.options.names))
            check("InterruptionReason", .string(expected.interruption?.reason.rawValue ?? ""))
        }
        return faults
    }

    private func describe(_ told: Told) -> String {
        switch told {
        case .began(let id, let reason, let by):
            "\(id) began \(reason.rawValue) by \(by.map(ObjectPath.session) ?? ObjectPath.none)"
        case .ended(let id, let shouldResume, _, _): "\(id) ended \(shouldResume)"
        case .ducked, .muted, .hint, .routed: describeOther(told) ?? ""
        }
    }

    private func describeOther(_ told: Told) -> String? {
        switch told {
        case .ducked(let id, let ducked): "\(id) ducked \(ducked)"
        case .hint(let id, let begin): "\(id) hint \(begin)"
        case .muted, .began, .ended, .routed: nil
        }
    }
}

/// Receives the signals of all sessions, in the daemon's order.
private final class Observer {
    private let stage: DaemonStage
    private var events: [String] = []
    private var subscription: Subscription?

    init(_ stage: DaemonStage) {
        self.stage = stage
        subscription = stage.observer.subscribe(interface: BusName.session, sender: BusName.service) {
            [weak self] message in
            self?.hear(message)
        }
    }

    /// The signals since the last call, complete up to now.
    func heard() throws -> [String] {
        try stage.manager("History", [.uint32(0)])
        stage.handleWhatWasRead(by: stage.observer)
        defer { events = [] }
        return events
    }

    private func hear(_ message: Message) {
        guard let id = message.path.flatMap(ObjectPath.sessionID), let event = SessionEvent(message) else { return }
        switch event {
        case .interruptionBegan(let reason, let by, _, _): events.append("\(id) began \(reason.rawValue) by \(by)")
        case .interruptionEnded(let shouldResume, _, _): events.append("\(id) ended \(shouldResume)")
        case .duckingChanged(let isDucked, _): events.append("\(id) ducked \(isDucked)")
        case .silenceSecondaryAudioHint(let begin): events.append("\(id) hint \(begin)")
        case .routeChanged, .mutedChanged: break
        }
    }
}
