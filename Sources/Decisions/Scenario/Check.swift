import MediaControl
import PluginAPI
import SessionManager

/// Compares one expectation with the state, and with the effects of the last step.
struct Check {
    /// The actual state or effect; nil if the expectation is met.
    private(set) var contradiction: String?
    private let core: Arbiter
    private let decisions: [Decision]
    private let run: Run
    private var effects: [(Decision, Effect)] {
        decisions.flatMap { decision in decision.effects.map { (decision, $0) } }
    }

    init(_ core: Arbiter, _ decisions: [Decision], _ run: Run, _ expectation: Expectation) {
        self.core = core
        self.decisions = decisions
        self.run = run
        switch expectation {
        case .nothing:
            let told = decisions.flatMap { decision in
                decision.effects.compactMap { Story.told($0, of: decision, run) }
            }
            let refusals = decisions.compactMap { $0.refusal.map { "refused: \($0)" } }
            contradict(unless: told.isEmpty && refusals.isEmpty, (refusals + told).joined(separator: "; "))
        case .refused(let code):
            let refusal = decisions.compactMap(\.refusal).last
            contradict(
                unless: refusal != nil && (code == nil || refusal?.code == code),
                refusal.map { "refused with \($0)" } ?? "not refused")
        case .nowPlaying(let label):
            let id = label.flatMap(run.id)
            contradict(unless: core.nowPlaying == id, "now playing is \(core.nowPlaying.map(run.label) ?? "nobody")")
        case .stream(let label, let condition):
            let seen = run.server.stream(label)?.condition
            contradict(unless: seen == condition, "\(label) is \(seen?.rawValue ?? "ended")")
        case .volume(let label, let points):
            let seen = run.server.stream(label)?.points
            contradict(unless: seen == points, "\(label) \(seen.map { "has the volume \($0)" } ?? "is ended")")
        case .player(let label, let condition):
            let seen = run.players.player(label)?.facts.status
            contradict(
                unless: seen == condition.status, "\(label) is \(seen.map { $0.rawValue.lowercased() } ?? "gone")")
        case .output(let uid):
            let seen = run.outputs.isEmpty ? "no output was" : run.outputs.joined(separator: ", ") + " was"
            contradict(unless: run.outputs.last == uid, "\(seen) requested in this step")
        case .session(let label, let claim): check(label, claim)
        }
    }

    private mutating func contradict(unless holds: Bool, _ seen: String) {
        if !holds { contradiction = seen }
    }

    private mutating func check(_ label: String, _ claim: Expectation.Claim) {
        let run = self.run
        let id = run.id(label)
        let session = id.flatMap(core.session)
        let state = session.map { Story.state(of: $0, run) } ?? "gone"
        let seen = "\(label) is \(state)"
        switch claim {
        case .state(let expected): contradict(unless: session?.state == expected, seen)
        case .gone: contradict(unless: session == nil, seen)
        case .lowered(let expected): contradict(unless: session?.isDucked == expected, seen)
        case .muted(let expected): contradict(unless: session?.isMuted == expected, seen)
        case .mayReturn(let expected): contradict(unless: (session?.claimExpires != nil) == expected, seen)
        case .waitsFor(let labels):
            contradict(unless: Set(labels.compactMap(run.id)) == Set(session?.waitingFor ?? []), seen)
        case .interrupted(let by, let reason):
            let interruption = session?.interruption
            let isHere =
                interruption != nil && (by == nil || interruption?.by == by.flatMap(run.id))
                && (reason == nil || interruption?.reason == reason)
            contradict(unless: isHere, seen)
        case .hearsNothing:
            let heard = story(of: id)
            contradict(unless: heard.isEmpty, heard.joined(separator: "; "))
        case .began(let by, let reason, let rule):
            expect(id) { decision, effect in
                guard case .interruptionBegan(id, let interruption) = effect else { return false }
                return (by == nil || interruption.by == by.flatMap(run.id))
                    && (reason == nil || interruption.reason == reason)
                    && (rule == nil || decision.rule(of: effect) == rule)
            }
        case .ended(let resume, let rule):
            expect(id) { decision, effect in
                guard case .interruptionEnded(id, resume, _, _, _) = effect else { return false }
                return rule == nil || decision.rule(of: effect) == rule
            }
        case .happened(let happening, let rule):
            expect(id) { decision, effect in
                guard happening.isSame(as: effect, of: id) else { return false }
                return rule == nil || decision.rule(of: effect) == rule
            }
        case .hint(let begin):
            expect(id) { _, effect in
                if case .silenceSecondaryAudioHint(id, begin) = effect { return true }
                return false
            }
        case .routed(let reason):
            expect(id) { _, effect in
                guard case .routeChanged(let who?, let seen, _, _) = effect, who == id else { return false }
                return reason == nil || seen == reason
            }
        }
    }

    private mutating func expect(_ id: SessionID?, _ matches: (Decision, Effect) -> Bool) {
        let holds = effects.contains { matches($0.0, $0.1) }
        guard !holds else { return }
        let heard = story(of: id)
        contradiction =
            heard.isEmpty ? "\(id.map(run.label) ?? "it") hears nothing in this step" : heard.joined(separator: "; ")
    }

    private func story(of id: SessionID?) -> [String] {
        effects.filter { $0.1.session == id }.compactMap { Story.event($0.1, of: $0.0, run) }
    }
}

extension Expectation.Happening {
    fileprivate func isSame(as effect: Effect, of id: SessionID?) -> Bool {
        effect.kind.rawValue == rawValue && effect.session == id
    }
}
