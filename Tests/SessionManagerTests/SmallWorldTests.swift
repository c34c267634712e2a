import PluginAPI
import SessionManager
import Testing

/// Every sequence of events up to a length over three sessions, in several casts.
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
        /// What the first one may change to, and back.
        var alternative: Configuration?
        let length: Int
        var testDescription: String { name }
    }

    static let casts = [
        Cast(name: "three players", roles: [Role(.music), Role(.music), Role(.podcast)], length: 6),
        Cast(name: "players and a call", roles: [Role(.music), Role(.podcast), Role(.voice, .call)], length: 6),
        Cast(
            name: "two calls and a player", roles: [Role(.voice, .call), Role(.voice, .call), Role(.music)], length: 6),
        Cast(
            name: "alert, call, mixable", roles: [Role(.music, .alert), Role(.voice, .call), Role(.mixing)], length: 6),
        Cast(name: "duckers", roles: [Role(.ducker), Role(.navigation), Role(.podcast)], length: 6),
        Cast(name: "prompts over speech", roles: [Role(.prompt), Role(.navigation), Role(.mixingPodcast)], length: 6),
        Cast(name: "microphones", roles: [Role(.recording), Role(.mixingVoice), Role(.voice, .call)], length: 6),
        Cast(
            name: "player to mixing", roles: [Role(.music), Role(.music), Role(.recording)], alternative: .mixing,
            length: 5),
        Cast(
            name: "prompt to ducker", roles: [Role(.prompt), Role(.podcast), Role(.music)], alternative: .ducker,
            length: 5),
        Cast(
            name: "speech to music", roles: [Role(.podcast), Role(.prompt), Role(.music, .alert)], alternative: .music,
            length: 5),
    ]

    @Test(arguments: casts)
    func everySequence_coreAgreesWithTheModel(_ cast: Cast) {
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
        var explorer = Explorer(events: events)
        explorer.explore(world, length: cast.length)
        #expect(explorer.failure == nil)
        #expect(explorer.steps > 100)
        print("\(cast.name): \(explorer.steps) steps")
    }
}

/// Depth first, the world copied at every fork; what changed nothing is not followed further, for what comes after
/// it comes after the shorter sequence, too.
struct Explorer {
    let events: [Event]
    private(set) var steps = 0
    private(set) var failure: String?
    private var path: [Event] = []

    init(events: [Event]) { self.events = events }

    mutating func explore(_ world: World, length: Int) {
        if length == 0 { return }
        for event in events where failure == nil {
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
            if !faults.isEmpty {
                failure = "\(faults) after \(path.map(shortText))"
                return
            }
            if !decision.effects.isEmpty { explore(next, length: length - 1) }
        }
    }
}

/// An event as short as it is still understood.
func shortText(_ event: Event) -> String {
    switch event {
    case .create(let new): "create(\(new.sessionClass), \(shortText(new.configuration)), client \(new.client.number))"
    case .setCategory(let id, let configuration): "\(id) set \(shortText(configuration))"
    case .activate(let id): "\(id) activate"
    case .deactivate(let id, let notifyOthers): "\(id) deactivate(\(notifyOthers))"
    case .close(let id): "\(id) close"
    case .setForeground(let id, let isForeground): "\(id) foreground(\(isForeground))"
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
