import PluginAPI
import SessionManager
import Testing

@testable import ReferenceModel

/// Every sequence of events up to a certain length over three sessions, with several sets of sessions.
@Suite struct SmallWorldTests {
    struct Role: Sendable {
        let sessionClass: SessionClass
        let configuration: Configuration
        init(_ configuration: Configuration, _ sessionClass: SessionClass = .app) {
            self.configuration = configuration
            self.sessionClass = sessionClass
        }
    }

    struct Cast: Sendable, CustomTestStringConvertible {
        let name: String
        let roles: [Role]
        /// The configuration to which the first session may change, and back.
        var alternative: Configuration?
        /// Whether outputs are unplugged and plugged in; the sessions are heard on different ones.
        var hasOutputs = false
        /// Whether the switches change, the first session goes to the background, and the others close or disconnect.
        var hasSurroundings = false
        /// Whether the machine sleeps and wakes up, and whether the clients hang.
        var sleeps = false
        let length: Int
        var testDescription: String { name }
    }

    static let casts = [
        Cast(name: "three players", roles: [Role(.music), Role(.music), Role(.podcast)], length: 7),
        Cast(name: "players and a call", roles: [Role(.music), Role(.podcast), Role(.voice, .call)], length: 7),
        Cast(
            name: "two calls and a player", roles: [Role(.voice, .call), Role(.voice, .call), Role(.music)], length: 7),
        Cast(
            name: "alert, call, mixable", roles: [Role(.music, .alert), Role(.voice, .call), Role(.mixing)], length: 7),
        Cast(name: "duckers", roles: [Role(.ducker), Role(.navigation), Role(.podcast)], length: 7),
        Cast(name: "prompts over speech", roles: [Role(.prompt), Role(.navigation), Role(.mixingPodcast)], length: 7),
        Cast(name: "microphones", roles: [Role(.recording), Role(.mixingVoice), Role(.voice, .call)], length: 7),
        Cast(
            name: "player to mixing", roles: [Role(.music), Role(.music), Role(.recording)], alternative: .mixing,
            length: 6),
        Cast(
            name: "prompt to ducker", roles: [Role(.prompt), Role(.podcast), Role(.music)], alternative: .ducker,
            length: 6),
        Cast(
            name: "speech to music", roles: [Role(.podcast), Role(.prompt), Role(.music, .alert)], alternative: .music,
            length: 6),
        Cast(
            name: "surroundings of players", roles: [Role(.music), Role(.initial), Role(.voice, .call)],
            hasSurroundings: true, length: 5),
        Cast(
            name: "surroundings of mixing ones", roles: [Role(.mixingVoice), Role(.ambient), Role(.ducker)],
            alternative: .ambient, hasSurroundings: true, length: 5),
        Cast(
            name: "sleep of players", roles: [Role(.music), Role(.music), Role(.voice, .call)], sleeps: true, length: 5),
        Cast(
            name: "sleep of duckers", roles: [Role(.ducker), Role(.podcast), Role(.music, .alert)], sleeps: true,
            length: 5),
        Cast(
            name: "a recorder in the background", roles: [Role(.recording), Role(.music), Role(.voice, .call)],
            alternative: .mixingVoice, hasSurroundings: true, length: 5),
        Cast(
            name: "outputs of players", roles: [Role(.music), Role(.mixing), Role(.voice, .call)], hasOutputs: true,
            length: 6),
    ]

    @Test(arguments: casts)
    func everySequence_arbiterAgreesWithTheModel(_ cast: Cast) {
        var world = World()
        let ids = cast.roles.enumerated().map {
            world.create("s\($0.offset)", $0.element.sessionClass, $0.element.configuration)
        }
        var events: [Event] = [.timePassed]
        for id in ids {
            events += [.activate(id), .deactivate(id, notifyOthers: true), .deactivate(id, notifyOthers: false)]
        }
        if let alternative = cast.alternative {
            events += [.setCategory(ids[0], alternative), .setCategory(ids[0], cast.roles[0].configuration)]
        }
        if cast.hasSurroundings {
            events += [.setSilentMode(true), .setSilentMode(false), .setScreenLocked(true)]
            events += [.setForeground(ids[0], false), .setForeground(ids[0], true)]
            events += [.clientVanished(ClientID(101)), .close(ids[2])]
        }
        if cast.hasOutputs {
            world.send(.servicesReset(UnplugRuleTests.desk))
            let sounding = Sounding(
                sessions: [], pausable: [ids[1]], outputs: [ids[1]: [UnplugRuleTests.screen.uid]], others: false)
            let phones = UnplugRuleTests.desk(without: Hardware.headphones, route: Hardware.speaker)
            events += [
                .soundingChanged(sounding), .portsChanged(UnplugRuleTests.desk(without: UnplugRuleTests.screen)),
                .portsChanged(UnplugRuleTests.desk), .routeChanged(.oldDeviceUnavailable, phones),
                .routeChanged(.newDeviceAvailable, UnplugRuleTests.desk),
            ]
        }
        if cast.sleeps { events += [.asleep(true), .asleep(false), .clientHangs(ids[0]), .clientHangs(ids[2])] }
        var explorer = Explorer(events: events)
        explorer.explore(world, length: cast.length)
        for failure in explorer.failures.values.sorted() { Issue.record("\(failure)") }
        #expect(explorer.steps > 1000)
    }
}

/// Explores all sequences depth first, with a copy of the world for each event. It does not follow an event without
/// effects, because the shorter sequence without it leads to the same. It keeps the shortest sequence for each kind of
/// fault.
struct Explorer {
    let events: [Event]
    private(set) var steps = 0
    private(set) var failures: [String: String] = [:]
    private var path: [Event] = []

    init(events: [Event]) { self.events = events }

    mutating func explore(_ world: World, length: Int) {
        if length == 0 { return }
        for event in events {
            var next = world
            if case .timePassed = event {
                guard let deadline = next.arbiter.nextDeadline else { continue }
                next.now = deadline
            } else {
                next.now = next.now.advanced(bySeconds: 0.001)
            }
            path.append(event)
            defer { path.removeLast() }
            steps += 1
            let (decision, faults) = next.step(event)
            for fault in faults {
                let kind = fault.filter { !$0.isNumber }
                let text = "\(fault)\nafter \(path.map(shortText))"
                if text.count < failures[kind]?.count ?? .max { failures[kind] = text }
            }
            if next.isBroken { continue }
            if !decision.effects.isEmpty { explore(next, length: length - 1) }
        }
    }
}

/// A short text for an event.
func shortText(_ event: Event) -> String {
    switch event {
    case .create(let new): "create(\(new.sessionClass), \(shortText(new.configuration)), client \(new.client.number))"
    case .setCategory(let id, let configuration): "\(id) set \(shortText(configuration))"
    case .activate(let id): "\(id) activate"
    case .deactivate(let id, let notifyOthers): "\(id) deactivate(\(notifyOthers))"
    case .close(let id): "\(id) close"
    case .setForeground(let id, let isForeground): "\(id) foreground(\(isForeground))"
    case .interruptionIgnored(let id): "\(id) ignored"
    case .clientHangs(let id): "\(id) hangs"
    case .asleep(let isAsleep): isAsleep ? "sleep" : "wake"
    case .clientVanished(let client): "client \(client.number) vanished"
    case .setSilentMode(let isOn): "silent(\(isOn))"
    case .setScreenLocked(let isOn): "locked(\(isOn))"
    case .microphoneMuted(let isOn): "microphone muted(\(isOn))"
    case .routeChanged(let reason, _): "route \(reason.name)"
    case .soundingChanged(let sounding):
        "sounding \(sounding.map { "\($0.sessions.sorted()) \($0.others)" } ?? "unknown")"
    case .setPreferences(let id, let preferences): "\(id) prefers \(preferences)"
    case .setPreferredInput(let id, let uid): "\(id) input \(uid)"
    case .overrideOutput(let id, let override): "\(id) override \(override)"
    case .servicesReset, .servicesLost, .portsChanged, .settingsChanged, .timePassed: event.name
    }
}

private func shortText(_ configuration: Configuration) -> String {
    ([configuration.category.rawValue, configuration.mode.rawValue] + configuration.options.names).joined(
        separator: " ")
}
