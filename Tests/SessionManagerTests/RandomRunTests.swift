import PluginAPI
import SessionManager
import Testing

@testable import ReferenceModel

/// Long random runs over six sessions. A failure prints its seed, which reproduces it.
@Suite struct RandomRunTests {
    @Test func randomRuns_arbiterAgreesWithTheModel() {
        for seed in 1...200 as ClosedRange<UInt64> {
            var run = RandomRun(seed: seed, isModelled: true)
            if let failure = run.play(steps: 500) {
                Issue.record("seed \(seed): \(failure)")
                return
            }
        }
    }

    @Test func randomRunsWithRoutesAndServers_effectsAreLegal() {
        for seed in 1001...1100 as ClosedRange<UInt64> {
            var run = RandomRun(seed: seed, isModelled: false)
            if let failure = run.play(steps: 300) {
                Issue.record("seed \(seed): \(failure)")
                return
            }
        }
    }
}

/// The ports of the computer in the tests.
enum Hardware {
    static let speaker = Port(type: .speaker, name: "Speaker", uid: "speaker", channels: 2)
    static let headphones = Port(type: .headphones, name: "Headphones", uid: "headphones", channels: 2)
    static let microphone = Port(type: .microphoneBuiltIn, name: "Microphone", uid: "microphone", channels: 1)
    static let headset = Port(type: .microphoneWired, name: "Headset", uid: "headset", channels: 1)

    static let receiver = Port(type: .receiver, name: "Earpiece", uid: "receiver", channels: 1)
    static let music = Port(type: .bluetoothA2DP, name: "Buds", uid: "buds/a2dp", channels: 2)
    static let talk = Port(type: .bluetoothHFP, name: "Buds", uid: "buds/hfp", channels: 1)
    static let talkInput = Port(type: .bluetoothHFP, name: "Buds", uid: "buds/hfp-input", channels: 1)
    static let network = Port(type: .airPlay, name: "Kitchen", uid: "kitchen", channels: 2)

    static let outputs = [speaker, headphones, receiver, music, talk, network]

    static let plugged = Audio(
        route: Route(inputs: [headset], outputs: [headphones]), inputs: [microphone, headset],
        outputs: [speaker, headphones])
    static let unplugged = Audio(
        route: Route(inputs: [microphone], outputs: [speaker]), inputs: [microphone], outputs: [speaker])

    /// A random choice of ports, in random order, and a route through some of them.
    static func random(_ random: inout SplitMix64) -> Audio {
        func some(_ ports: [Port]) -> [Port] {
            ports.shuffled(using: &random).filter { _ in Bool.random(using: &random) }
        }
        let outputs = some(outputs)
        let inputs = some([microphone, headset, talkInput])
        let route = Route(
            inputs: inputs.randomElement(using: &random).map { [$0] } ?? [],
            outputs: outputs.randomElement(using: &random).map { [$0] } ?? [])
        return Audio(route: route, inputs: inputs, outputs: outputs)
    }
}

struct RandomRun {
    private struct Step {
        let event: Event
        let at: Instant
        /// The session that `create` made in the full run. In a shortened run its number may differ.
        var made: SessionID?
    }

    private static let configurations: [Configuration] = [
        .music, .music, .podcast, .mixing, .ambient, .initial, .mixingPodcast, .ducker, .prompt, .navigation,
        .recording, .voice, .mixingVoice, .of(.multiRoute), .of(.multiRoute, .spokenAudio, .duckOthers),
        .of(.ambient, .voicePrompt, .duckOthers), .of(.audioProcessing), .of(.playAndRecord, .spokenAudio),
        .of(.playAndRecord, .videoChat, [.allowAirPlay, .allowBluetoothA2DP]),
        .of(.record, .default, .allowBluetoothHFP),
        .of(.playAndRecord, .default, [.allowBluetoothA2DP, .mixWithOthers]),
    ]

    private let isModelled: Bool
    private let settings: Arbiter.Settings
    private var random: SplitMix64
    private var isPlugged = true

    init(seed: UInt64, isModelled: Bool) {
        random = SplitMix64(seed: seed)
        self.isModelled = isModelled
        var settings = Arbiter.Settings()
        // Odd numbers of microseconds, so that no event happens exactly at a limit.
        settings.grace = 3.000_001
        settings.maxAge = seed.isMultiple(of: 2) ? 20.000_003 : 0
        settings.replug = [0, 10.000_007, 1_000_000][Int(seed % 3)]
        settings.maxSessions = 7
        settings.maxSessionsPerClient = 3
        self.settings = settings
    }

    /// Returns the first fault, with the shortest sequence found that still shows it, or nil.
    mutating func play(steps count: Int) -> String? {
        var world = World(settings: settings, checksEffects: !isModelled)
        var steps: [Step] = []
        for number in 0..<count {
            for event in nextEvents(world, number) {
                var faults: [String] = []
                steps.append(Step(event: event, at: world.now))
                let (decision, found) = world.step(event)
                steps[steps.count - 1].made = decision.created
                faults += found
                if !faults.isEmpty { return report(shortened(steps), in: settings) }
            }
            let pause: ClosedRange<Double> = Int.random(in: 0..<12, using: &random) == 0 ? 0...6 : 0...0.5
            let next = world.now.advanced(bySeconds: Double.random(in: pause, using: &random))
            while let deadline = world.arbiter.nextDeadline, deadline <= next {
                world.now = deadline
                steps.append(Step(event: .timePassed, at: deadline))
                let faults = world.step(.timePassed).faults
                if !faults.isEmpty { return report(shortened(steps), in: settings) }
            }
            world.now = next
        }
        return nil
    }

    // MARK: The next events

    private mutating func pick<T>(_ choices: [T]) -> T { choices.randomElement(using: &random)! }

    private mutating func nextEvents(_ world: World, _ number: Int) -> [Event] {
        if number == 0 { return [.servicesReset(Hardware.plugged)] }
        let last = world.arbiter.sessions.last?.id.number ?? 0
        if world.arbiter.sessions.count < 6 { return newcomer(last) }
        // Sometimes a session that no longer exists, or never existed.
        let isStray = Int.random(in: 0..<60, using: &random) == 0
        let id = isStray ? SessionID(UInt64.random(in: 0...last + 3, using: &random)) : pick(world.arbiter.sessions).id
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<36: return [.activate(id)]
        case 36..<54: return [.deactivate(id, notifyOthers: Bool.random(using: &random))]
        case 54..<66: return [.setCategory(id, pick(RandomRun.configurations))]
        case 66..<68: return [.close(id)]
        case 68..<71: return [.clientVanished(ClientID(UInt64.random(in: 1...4, using: &random)))]
        case 71..<76: return [.setForeground(id, Int.random(in: 0..<3, using: &random) > 0)]
        case 76..<79: return [.setSilentMode(Bool.random(using: &random))]
        case 79..<81: return [.setScreenLocked(Bool.random(using: &random))]
        case 81..<86: return [.soundingChanged(sounding(world))]
        case 86: return newcomer(last)
        case 87: return Bool.random(using: &random) ? [.asleep(Bool.random(using: &random))] : [.clientHangs(id)]
        case 88..<95:
            switch Int.random(in: 0..<3, using: &random) {
            case 0: return [.routeChanged(pick(RouteChangeReason.allCases), Hardware.random(&random))]
            case 1: return [.portsChanged(Hardware.random(&random))]
            default: isPlugged.toggle()
            }
            return isPlugged
                ? [.routeChanged(.newDeviceAvailable, Hardware.plugged)]
                : [.routeChanged(.oldDeviceUnavailable, Hardware.unplugged)]
        default: return isModelled ? [.activate(id)] : [beyondTheModel(id)]
        }
    }

    private mutating func beyondTheModel(_ id: SessionID) -> Event {
        switch Int.random(in: 0..<8, using: &random) {
        case 0: return .microphoneMuted(Bool.random(using: &random))
        case 1: return .servicesLost
        case 2: return .servicesReset(isPlugged ? Hardware.plugged : Hardware.unplugged)
        case 3: return .overrideOutput(id, pick(OutputOverride.allCases))
        case 4: return .setPreferredInput(id, uid: pick(["", "microphone", "headset", "none such"]))
        case 5: return .portsChanged(isPlugged ? Hardware.plugged : Hardware.unplugged)
        case 6:
            var settings = settings
            settings.grace = pick([1.000_001, 3.000_001])
            return .settingsChanged(settings)
        default:
            var preferences = Preferences()
            preferences.noInterruptionsFromAlerts = Bool.random(using: &random)
            return .setPreferences(id, preferences)
        }
    }

    private mutating func sounding(_ world: World) -> Sounding? {
        if Int.random(in: 0..<3, using: &random) == 0 { return nil }
        let sessions = world.arbiter.sessions.filter { _ in Int.random(in: 0..<3, using: &random) == 0 }
        let pausable = sessions.filter { _ in Int.random(in: 0..<3, using: &random) == 0 }
        var sounding = Sounding(
            sessions: Set(sessions.map(\.id)), pausable: Set(pausable.map(\.id)),
            others: Int.random(in: 0..<4, using: &random) == 0)
        for session in world.arbiter.sessions where Bool.random(using: &random) {
            let count = Int.random(in: 1...2, using: &random)
            sounding.outputs[session.id] = Set((0..<count).map { _ in pick(Hardware.outputs).uid })
        }
        return sounding
    }

    /// The number of the new session is a guess: it is wrong if sessions with higher numbers were closed. Then the
    /// preferences are refused.
    private mutating func newcomer(_ last: UInt64) -> [Event] {
        let sessionClass: SessionClass =
            switch Int.random(in: 0..<10, using: &random) {
            case 0: .call
            case 1: .alert
            default: .app
            }
        let new = NewSession(
            name: "n", client: ClientID(UInt64.random(in: 1...4, using: &random)), sessionClass: sessionClass,
            configuration: pick(RandomRun.configurations), notifiesOnExit: Bool.random(using: &random))
        var preferences = Preferences()
        preferences.interruptsOnRouteDisconnect = Int.random(in: 0..<4, using: &random) > 0
        preferences.noInterruptionsFromAlerts = Int.random(in: 0..<4, using: &random) == 0
        return [.create(new), .setPreferences(SessionID(last + 1), preferences)]
    }

    // MARK: Shortening a sequence

    private func faults(_ steps: [Step]) -> [String] {
        replay(steps).faults
    }

    private func replay(_ steps: [Step]) -> (faults: [String], told: [String]) {
        var world = World(settings: settings, checksEffects: !isModelled)
        var numbers: [SessionID: SessionID] = [:]
        var told: [String] = []
        for step in steps {
            if case .timePassed = step.event { continue }
            while let deadline = world.arbiter.nextDeadline, deadline <= step.at {
                world.now = deadline
                told.append("  \(Double(deadline.microseconds) / 1_000_000) s: time passed")
                let faults = world.step(.timePassed).faults
                if !faults.isEmpty { return (faults, told) }
            }
            world.now = step.at
            let event = step.event.renumbered { numbers[$0] ?? SessionID(1_000_000 + $0.number) }
            told.append("  \(Double(step.at.microseconds) / 1_000_000) s: \(shortText(event))")
            let (decision, faults) = world.step(event)
            if let made = step.made { numbers[made] = decision.created }
            if !faults.isEmpty { return (faults, told) }
        }
        // A fault may happen at a deadline after the last event.
        while let deadline = world.arbiter.nextDeadline {
            world.now = deadline
            told.append("  \(Double(deadline.microseconds) / 1_000_000) s: time passed")
            let faults = world.step(.timePassed).faults
            if !faults.isEmpty { return (faults, told) }
        }
        return ([], told)
    }

    /// The kind of a fault: its words without the numbers.
    private func kind(_ faults: [String]) -> String { faults.first?.filter { !$0.isNumber } ?? "" }

    /// Removes the steps that the fault does not need, in ever smaller pieces.
    private func shortened(_ steps: [Step]) -> [Step] {
        let wanted = kind(faults(steps))
        var shortest = steps
        var piece = max(1, steps.count / 2)
        while true {
            var start = 0
            var hasShrunk = false
            while start < shortest.count {
                var candidate = shortest
                candidate.removeSubrange(start..<min(start + piece, candidate.count))
                if kind(faults(candidate)) == wanted {
                    shortest = candidate
                    hasShrunk = true
                } else {
                    start += piece
                }
            }
            if piece == 1, !hasShrunk { return shortest }
            piece = max(1, piece / 2)
        }
    }

    private func report(_ steps: [Step], in settings: Arbiter.Settings) -> String {
        let (faults, told) = replay(steps)
        return "\(faults)\nafter (grace \(settings.grace), max-age \(settings.maxAge)):\n"
            + told.joined(separator: "\n")
    }
}

extension Event {
    /// The same event about other sessions.
    fileprivate func renumbered(_ number: (SessionID) -> SessionID) -> Event {
        switch self {
        case .setCategory(let id, let configuration): .setCategory(number(id), configuration)
        case .activate(let id): .activate(number(id))
        case .deactivate(let id, let notifyOthers): .deactivate(number(id), notifyOthers: notifyOthers)
        case .overrideOutput(let id, let override): .overrideOutput(number(id), override)
        case .setPreferredInput(let id, let uid): .setPreferredInput(number(id), uid: uid)
        case .setPreferences(let id, let preferences): .setPreferences(number(id), preferences)
        case .close(let id): .close(number(id))
        case .setForeground(let id, let isForeground): .setForeground(number(id), isForeground)
        case .interruptionIgnored(let id): .interruptionIgnored(number(id))
        case .clientHangs(let id): .clientHangs(number(id))
        case .soundingChanged(let sounding):
            .soundingChanged(
                sounding.map {
                    Sounding(
                        sessions: Set($0.sessions.map(number)), pausable: Set($0.pausable.map(number)),
                        outputs: Dictionary(uniqueKeysWithValues: $0.outputs.map { (number($0), $1) }),
                        others: $0.others)
                })
        case .create, .setSilentMode, .setScreenLocked, .clientVanished, .servicesReset, .servicesLost, .routeChanged,
            .portsChanged, .microphoneMuted, .settingsChanged, .asleep, .timePassed:
            self
        }
    }
}
