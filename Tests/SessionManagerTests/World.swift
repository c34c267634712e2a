import PluginAPI
import SessionManager
import Testing

@testable import ReferenceModel

/// The arbiter and the model. Every event goes to both, and every difference is a fault.
struct World {
    private(set) var arbiter: Arbiter
    private(set) var model: ReferenceModel
    var now = Instant(microseconds: 1_000_000)
    /// False after an event that the model does not implement.
    private(set) var isModelled = true
    /// True after arbiter and model disagreed. Later differences mean nothing.
    private(set) var isBroken = false
    /// The last announcement to each session of the two properties that are announced only to active sessions.
    private var told: [SessionID: (others: Bool, hint: Bool)] = [:]
    /// Whether `EffectChecker` checks every effect.
    private let checksEffects: Bool

    init(settings: Arbiter.Settings = Arbiter.Settings(), checksEffects: Bool = true) {
        self.checksEffects = checksEffects
        arbiter = Arbiter(settings: settings)
        model = ReferenceModel(settings: settings)
    }

    // MARK: One step

    mutating func step(_ event: Event) -> (decision: Decision, faults: [String]) {
        let before = arbiter
        let decision = arbiter.handle(event, at: now)
        var faults: [String] = []
        if checksEffects {
            faults += EffectChecker(before: before, decision: decision, after: arbiter).faults
            faults += checkTold(decision)
        }
        switch event {
        case .overrideOutput, .setPreferredInput, .servicesLost, .microphoneMuted, .settingsChanged: isModelled = false
        default: break
        }
        if isModelled, !isBroken {
            let outcome = model.handle(event, at: now)
            let disagreements = compare(decision, outcome)
            if !disagreements.isEmpty { isBroken = true }
            faults += disagreements
        }
        return (decision, faults)
    }

    /// Checks that the last announcement to each active session about the sound of others is true.
    private mutating func checkTold(_ decision: Decision) -> [String] {
        for case .propertiesChanged(let id, let properties) in decision.effects {
            guard let session = arbiter.session(id) else { continue }
            if properties.contains(.otherAudioPlaying) {
                told[id, default: (false, false)].others = session.otherAudioPlaying
            }
            if properties.contains(.silenceHint) {
                told[id, default: (false, false)].hint = session.shouldSilenceSecondaryAudio
            }
        }
        return arbiter.sessions.filter { $0.state == .active }.compactMap { session in
            let last = told[session.id, default: (false, false)]
            return last == (session.otherAudioPlaying, session.shouldSilenceSecondaryAudio)
                ? nil : "\(session.id): the last announcement about other sound was \(last)"
        }
    }

    private func compare(_ decision: Decision, _ outcome: ReferenceModel.Outcome) -> [String] {
        var faults: [String] = []
        func check<T: Equatable>(_ what: @autoclosure () -> String, core: T, model: T) {
            if core != model { faults.append("\(what()): core \(core), model \(model)") }
        }
        check("refusal", core: decision.refusal?.code, model: outcome.refusal)
        check("interruptions", core: World.interruptions(decision), model: outcome.interruptions)
        check("others", core: World.others(decision), model: outcome.others)
        check("now playing", core: arbiter.nowPlaying, model: model.nowPlaying)
        check("deadline", core: arbiter.nextDeadline, model: model.nextDeadline)
        check("output", core: arbiter.routeChoice.output, model: model.wantedOutput?.uid)
        check("input", core: arbiter.routeChoice.input, model: model.wantedInput?.uid)
        check("sessions", core: arbiter.sessions.count, model: model.sessions.count)
        for (session, expected) in zip(arbiter.sessions, model.sessions) {
            let id = session.id
            check("id", core: id, model: expected.id)
            switch expected.status {
            case .idle, .released: check("\(id) state", core: session.state, model: .inactive)
            case .playing: check("\(id) state", core: session.state, model: .active)
            case .interrupted(let interruption):
                check("\(id) state", core: session.state, model: .interrupted)
                check("\(id) reason", core: session.interruption?.reason, model: interruption.reason)
                check("\(id) by", core: session.interruption?.by, model: interruption.by)
                check("\(id) since", core: session.interruption?.since, model: interruption.since)
            }
            check("\(id) claim", core: session.claimExpires, model: expected.deadline)
            check("\(id) configuration", core: session.configuration, model: expected.configuration)
            check("\(id) foreground", core: session.isForeground, model: expected.isForeground)
            check("\(id) waits", core: Array(session.waitingFor), model: model.waits(of: id))
            check("\(id) ducked", core: session.isDucked, model: model.isDucked(expected))
            check("\(id) muted", core: session.isMuted, model: model.isMuted(expected))
            check("\(id) others", core: session.otherAudioPlaying, model: model.hearsOthers(expected))
            check(
                "\(id) inputs", core: arbiter.availableInputs(of: session), model: model.availableInputs(of: expected))
            check("\(id) hint", core: session.shouldSilenceSecondaryAudio, model: model.hint(expected))
        }
        return faults
    }

    static func interruptions(_ decision: Decision) -> [Told] {
        decision.effects.compactMap { effect in
            switch effect {
            case .interruptionBegan(let id, let interruption):
                .began(id, interruption.reason, by: interruption.by)
            case .interruptionEnded(let id, let shouldResume, let microseconds, let reason, _):
                .ended(id, shouldResume: shouldResume, microseconds: microseconds, reason)
            default: nil
            }
        }
    }

    /// The announcements to sessions that existed before the event.
    static func others(_ decision: Decision) -> Set<Told> {
        let created = decision.created
        var result: Set<Told> = []
        for effect in decision.effects {
            switch effect {
            case .duckingChanged(let id, let ducked, _) where id != created: result.insert(.ducked(id, ducked))
            case .mutedChanged(let id, let muted) where id != created: result.insert(.muted(id, muted))
            case .silenceSecondaryAudioHint(let id, let begin): result.insert(.hint(id, begin))
            case .routeChanged(let id, let reason, _, _): result.insert(.routed(id, reason))
            default: break
            }
        }
        return result
    }

    // MARK: Scenarios

    @discardableResult
    mutating func send(_ event: Event, sourceLocation: SourceLocation = #_sourceLocation) -> Decision {
        let (decision, faults) = step(event)
        for fault in faults { Issue.record("\(event.name): \(fault)", sourceLocation: sourceLocation) }
        return decision
    }

    mutating func create(
        _ name: String, _ sessionClass: SessionClass = .app, _ configuration: Configuration = .initial,
        client: UInt64? = nil, notifiesOnExit: Bool = false, sourceLocation: SourceLocation = #_sourceLocation
    ) -> SessionID {
        let client = client ?? UInt64(arbiter.sessions.count) + 100
        let new = NewSession(
            name: name, client: ClientID(client), sessionClass: sessionClass, configuration: configuration,
            notifiesOnExit: notifiesOnExit)
        let decision = send(.create(new), sourceLocation: sourceLocation)
        return decision.created ?? SessionID(0)
    }

    /// Creates an app session and activates it.
    @discardableResult
    mutating func player(_ name: String, _ configuration: Configuration = .music) -> SessionID {
        let id = create(name, .app, configuration)
        activate(id)
        return id
    }

    @discardableResult
    mutating func activate(_ id: SessionID, sourceLocation: SourceLocation = #_sourceLocation) -> Decision {
        send(.activate(id), sourceLocation: sourceLocation)
    }

    @discardableResult
    mutating func leave(
        _ id: SessionID, notify: Bool = true, sourceLocation: SourceLocation = #_sourceLocation
    ) -> Decision {
        send(.deactivate(id, notifyOthers: notify), sourceLocation: sourceLocation)
    }

    mutating func pass(_ seconds: Double) { now = now.advanced(bySeconds: seconds) }

    /// Lets time pass until the next claim expires.
    @discardableResult
    mutating func expire(sourceLocation: SourceLocation = #_sourceLocation) -> Decision? {
        guard let deadline = arbiter.nextDeadline else {
            Issue.record("nothing is due", sourceLocation: sourceLocation)
            return nil
        }
        now = max(now, deadline)
        return send(.timePassed, sourceLocation: sourceLocation)
    }

    func state(_ id: SessionID) -> SessionState? { arbiter.session(id)?.state }
    func waits(_ id: SessionID) -> [SessionID] { Array(arbiter.session(id)?.waitingFor ?? []) }
    func isDucked(_ id: SessionID) -> Bool { arbiter.session(id)?.isDucked ?? false }
    func isMuted(_ id: SessionID) -> Bool { arbiter.session(id)?.isMuted ?? false }
}

extension Decision {
    /// The sessions with the effect `began`, in order.
    var began: [SessionID] { effects.compactMap { if case .interruptionBegan(let id, _) = $0 { id } else { nil } } }

    /// The sessions with the effect `ended`, in order, with the should-resume hint.
    var ended: [Ended] {
        effects.compactMap {
            if case .interruptionEnded(let id, let shouldResume, _, _, _) = $0 {
                Ended(id: id, shouldResume: shouldResume)
            } else {
                nil
            }
        }
    }

    var hints: [Told] {
        effects.compactMap {
            if case .silenceSecondaryAudioHint(let id, let begin) = $0 { .hint(id, begin) } else { nil }
        }
    }

    struct Ended: Hashable {
        let id: SessionID
        let shouldResume: Bool
    }
}

extension Decision.Ended {
    static func resume(_ id: SessionID) -> Self { Self(id: id, shouldResume: true) }
    static func stay(_ id: SessionID) -> Self { Self(id: id, shouldResume: false) }
}

extension Configuration {
    /// A legal configuration. An illegal one is a mistake of the test.
    static func of(_ category: Category, _ mode: Mode = .default, _ options: Options = []) -> Configuration {
        do {
            return try Configuration(category: category, mode: mode, options: options)
        } catch {
            fatalError("\(error)")
        }
    }

    static let music = of(.playback)
    static let mixing = of(.playback, .default, .mixWithOthers)
    static let ambient = of(.ambient)
    static let podcast = of(.playback, .spokenAudio)
    static let mixingPodcast = of(.playback, .spokenAudio, .mixWithOthers)
    static let ducker = of(.playback, .default, .duckOthers)
    static let prompt = of(.playback, .voicePrompt, .interruptSpokenAudioAndMixWithOthers)
    static let navigation = of(.playback, .voicePrompt, [.duckOthers, .interruptSpokenAudioAndMixWithOthers])
    static let recording = of(.record)
    static let voice = of(.playAndRecord, .voiceChat)
    static let mixingVoice = of(.playAndRecord, .default, .mixWithOthers)
}
