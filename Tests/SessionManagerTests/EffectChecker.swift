import PluginAPI
import SessionManager

/// Rejects illegal effects. It compares the states before and after, and knows no rule about which session interrupts
/// which.
struct EffectChecker {
    let before: Arbiter
    let after: Arbiter
    let decision: Decision
    private(set) var faults: [String] = []

    init(before: Arbiter, decision: Decision, after: Arbiter) {
        self.before = before
        self.after = after
        self.decision = decision
        checkSequence()
        checkOrder()
        checkTransitions()
        checkEachEffect()
        checkProperties()
        checkManagerProperties()
        faults += EffectChecker.brokenInvariants(of: after)
    }

    private mutating func fault(_ text: String) { faults.append(text) }

    // MARK: Observable properties of a session

    static func differences(_ a: Session, in arbiterA: Arbiter, _ b: Session, in arbiterB: Arbiter) -> SessionProperties
    {
        var result: SessionProperties = []
        if a.configuration.category != b.configuration.category { result.insert(.category) }
        if a.configuration.mode != b.configuration.mode { result.insert(.mode) }
        if a.configuration.options != b.configuration.options { result.insert(.options) }
        if a.state != b.state { result.insert(.state) }
        if a.interruption?.reason != b.interruption?.reason { result.insert(.interruptionReason) }
        if a.waitingFor != b.waitingFor { result.insert(.waitingFor) }
        if a.isForeground != b.isForeground { result.insert(.foreground) }
        let hasNewGain = arbiterA.settings.duckGain != arbiterB.settings.duckGain
        if a.isDucked != b.isDucked { result.insert(.ducked) }
        if a.isDucked != b.isDucked || a.isDucked && hasNewGain { result.insert(.duckGain) }
        if a.isMuted != b.isMuted { result.insert(.muted) }
        if a.otherAudioPlaying != b.otherAudioPlaying { result.insert(.otherAudioPlaying) }
        if a.shouldSilenceSecondaryAudio != b.shouldSilenceSecondaryAudio { result.insert(.silenceHint) }
        if a.preferredInput != b.preferredInput { result.insert(.preferredInput) }
        if a.preferences != b.preferences { result.insert(.preferences) }
        if (a.ignoredSince == nil) != (b.ignoredSince == nil) { result.insert(.ignored) }
        if arbiterA.audio != arbiterB.audio || a.configuration != b.configuration
            || a.preferredInput != b.preferredInput
            || a.override != b.override
        {
            if arbiterA.route(of: a) != arbiterB.route(of: b) { result.insert(.route) }
            if arbiterA.availableInputs(of: a) != arbiterB.availableInputs(of: b) { result.insert(.availableInputs) }
        }
        return result
    }

    /// Compares everything public that a refused event must not change, except `refusal` itself.
    static func observablyEqual(_ a: Arbiter, _ b: Arbiter, beside ignored: SessionProperties = []) -> Bool {
        guard a.sessions.count == b.sessions.count, a.audio == b.audio, a.isSilentMode == b.isSilentMode,
            a.isScreenLocked == b.isScreenLocked, a.nowPlaying == b.nowPlaying,
            a.nextDeadline == b.nextDeadline
        else { return false }
        return zip(a.sessions, b.sessions).allSatisfy { old, new in
            old.id == new.id && differences(old, in: a, new, in: b).subtracting(ignored).isEmpty
                && old.override == new.override
                && old.claimExpires == new.claimExpires && old.since == new.since
                && old.interruption == new.interruption
        }
    }

    // MARK: The checks

    private mutating func checkSequence() {
        if decision.refusal != nil {
            if !decision.effects.isEmpty { fault("a refused event has effects") }
            if !EffectChecker.observablyEqual(before, after) || before.settings != after.settings {
                fault("a refused event changed something")
            }
        } else if decision.effects.isEmpty, !mayOnlySpoil,
            !EffectChecker.observablyEqual(before, after, beside: [.otherAudioPlaying, .silenceHint])
        {
            fault("something changed without any effect")
        }
        let expected = before.sequence + (decision.isNoteworthy ? 1 : 0)
        if after.sequence != expected || decision.sequence != expected {
            fault("sequence is \(after.sequence) and \(decision.sequence), not \(expected)")
        }
    }

    /// Sessions that wait already learn only later that the machine slept: from the missing hint.
    private var mayOnlySpoil: Bool { decision.event == .asleep(true) }

    /// Losses of sound come before gains, and properties after everything else.
    private mutating func checkOrder() {
        var hasGranted = false
        var hasListed = false
        var listed: Set<SessionID> = []
        for effect in decision.effects {
            switch effect {
            case .interruptionBegan(let id, _), .duckingChanged(let id, ducked: true, _), .mutedChanged(let id, true):
                // The session of the event may be ducked or muted after its activation.
                if hasGranted, id != decision.session { fault("\(effect): a loss after a gain") }
            case .activated, .interruptionEnded, .duckingChanged, .mutedChanged:
                hasGranted = true
            case .propertiesChanged(let id, let properties):
                hasListed = true
                if properties.isEmpty { fault("\(id): an empty list of properties") }
                if !listed.insert(id).inserted { fault("\(id): two lists of properties") }
                continue
            case .waitsChanged(let change):
                hasListed = true
                if change.waiters.isEmpty { fault("no session waits, or stops waiting, for \(change.owner)") }
                continue
            case .managerPropertiesChanged:
                hasListed = true
                continue
            case .created, .deactivated, .closed, .claimDropped, .interruptionIgnored, .silenceSecondaryAudioHint,
                .routeChanged,
                .servicesLost, .servicesReset, .selectOutput, .selectInput:
                break
            }
            if hasListed { fault("\(effect): after the list of properties") }
        }
    }

    private func count(_ matches: (Effect) -> Bool) -> Int { decision.effects.filter(matches).count }

    private func began(_ id: SessionID) -> Int {
        count { if case .interruptionBegan(id, _) = $0 { true } else { false } }
    }

    private func ended(_ id: SessionID) -> Int {
        count { if case .interruptionEnded(id, _, _, _, _) = $0 { true } else { false } }
    }

    private func dropped(_ id: SessionID) -> Int {
        count { if case .claimDropped(id, _) = $0 { true } else { false } }
    }

    /// Every change of state has exactly one effect, and every effect has a change.
    private mutating func checkTransitions() {
        if decision.effects.isEmpty { return }
        for new in after.sessions {
            let old = before.session(new.id)
            let id = new.id
            let was = old?.state ?? .inactive
            let hangs = decision.event == .clientHangs(id) && was == .active
            if began(id) != (was != .interrupted && new.state == .interrupted || hangs ? 1 : 0) {
                fault("\(id): \(began(id)) began from \(was) to \(new.state)")
            }
            let activated = count { $0 == .activated(id) }
            if activated != (was != .active && new.state == .active ? 1 : 0) {
                fault("\(id): \(activated) activated from \(was) to \(new.state)")
            }
            let deactivated = count { $0 == .deactivated(id) }
            if was == .active, new.state == .inactive, deactivated != 1 { fault("\(id): inactive without an effect") }
            if was == .interrupted, new.state == .inactive {
                if ended(id) + dropped(id) + deactivated == 0 { fault("\(id): no effect ended its interruption") }
                if ended(id) > 0, new.claimExpires == nil { fault("\(id): ended, but no claim") }
            } else if ended(id) > 0 {
                fault("\(id): ended from \(was) to \(new.state)")
            }
            if ended(id) > 1 { fault("\(id): ended twice") }
            if ended(id) > 0, deactivated > 0 || dropped(id) > 0 { fault("\(id): ended, and inactive") }
        }
        for old in before.sessions where after.session(old.id) == nil {
            if count({ $0 == .closed(old.id) }) != 1 { fault("\(old.id): removed without an effect") }
            if began(old.id) + ended(old.id) > 0 { fault("\(old.id): an interruption of a removed session") }
        }
    }

    private mutating func checkEachEffect() {
        for effect in decision.effects {
            switch effect {
            // Such a session is inactive at once.
            case .interruptionBegan(let id, let interruption) where decision.event == .clientHangs(id):
                if interruption.reason != .appWasSuspended { fault("\(id): hangs for another reason") }
                if before.session(id)?.state != .active { fault("\(id): hangs, but was not active") }
            case .interruptionBegan(let id, let interruption):
                let new = after.session(id)?.interruption
                if new?.reason != interruption.reason || new?.by != interruption.by || new?.since != interruption.since
                    || new?.byName != interruption.byName || new?.rule != interruption.rule
                {
                    fault("\(id): began differs from the state")
                }
                // An adopted player that the daemon itself is resuming may lose its output before it plays.
                let old = before.session(id)
                let isResuming = interruption.reason == .routeDisconnected && old?.mayResume == true
                if old?.state != .active, !isResuming { fault("\(id): began, but was not active") }
                if interruption.since != decision.time { fault("\(id): began at another time") }
            case .interruptionEnded(let id, _, let microseconds, let reason, _):
                guard let old = before.session(id)?.interruption else { continue }
                if old.reason != reason { fault("\(id): ended for another reason than it began") }
                if decision.time.since(old.since) != microseconds { fault("\(id): ended after another time") }
            case .duckingChanged(let id, let ducked, let gain):
                if before.session(id)?.isDucked == ducked, before.settings == after.settings {
                    fault("\(id): ducking announced, but not changed")
                }
                if let new = after.session(id), new.isDucked != ducked { fault("\(id): ducking announced wrongly") }
                if gain != (ducked ? after.settings.duckGain : 0) { fault("\(id): gain \(gain)") }
            case .mutedChanged(let id, let muted):
                if before.session(id)?.isMuted == muted { fault("\(id): muting announced, but not changed") }
                if let new = after.session(id), new.isMuted != muted { fault("\(id): muting announced wrongly") }
            case .silenceSecondaryAudioHint(let id, let begin):
                guard let new = after.session(id) else {
                    fault("\(id): a hint to a removed session")
                    continue
                }
                if new.state != .active || !new.isForeground { fault("\(id): a hint, but \(new.state)") }
                if new.shouldSilenceSecondaryAudio != begin { fault("\(id): the hint differs from the state") }
                if before.session(id)?.shouldSilenceSecondaryAudio == begin { fault("\(id): the hint did not change") }
            case .created, .activated, .deactivated, .closed, .claimDropped, .interruptionIgnored, .routeChanged,
                .servicesLost,
                .servicesReset, .selectOutput, .selectInput, .propertiesChanged, .waitsChanged,
                .managerPropertiesChanged:
                break
            }
        }
        for new in after.sessions {
            guard let old = before.session(new.id) else { continue }
            let id = new.id
            if old.isDucked != new.isDucked,
                count({ if case .duckingChanged(id, _, _) = $0 { true } else { false } }) != 1
            {
                fault("\(id): ducking changed, not announced once")
            }
            if old.isMuted != new.isMuted, count({ $0 == .mutedChanged(id, new.isMuted) }) != 1 {
                fault("\(id): muting changed, not announced once")
            }
        }
    }

    /// Every changed property is announced, and no other. Properties about the sound of others are announced only to
    /// active sessions.
    private mutating func checkProperties() {
        let always: SessionProperties = [.otherAudioPlaying, .silenceHint]
        for new in after.sessions {
            guard let old = before.session(new.id) else { continue }
            var announced: SessionProperties = []
            for case .propertiesChanged(new.id, let properties) in decision.effects { announced.formUnion(properties) }
            if checkWaits(old, new) {
                if !announced.isEmpty { fault("\(new.id): its waits are announced beside a list of properties") }
                announced.insert(.waitingFor)
            }
            var changed = EffectChecker.differences(old, in: before, new, in: after)
            if new.state != .active { changed.subtract(always) }
            var missing = changed.subtracting(announced)
            var excess = announced.subtracting(changed)
            // An inactive session gets no announcement of these two. What it must get now depends on the last
            // announcement, which the world keeps.
            if old.state != .active, new.state == .active {
                missing.subtract(always)
                excess.subtract(always)
            }
            if !missing.isEmpty { fault("\(new.id): changed, not announced: \(missing)") }
            if !excess.isEmpty { fault("\(new.id): announced, not changed: \(excess)") }
        }
    }

    /// Whether the waits of a session are announced separately. Then they contain everything that the state file needs
    /// about it.
    private mutating func checkWaits(_ old: Session, _ new: Session) -> Bool {
        var isConcerned = false
        guard var member = before.member(old.id) else { return false }
        for case .waitsChanged(let change) in decision.effects where change.waiters.contains(new.id) {
            isConcerned = true
            if member.waitingFor.contains(change.owner) != change.isOver { fault("\(new.id): waits announced wrongly") }
            member.apply(change)
        }
        if isConcerned, new.id != decision.session, member != after.member(new.id) {
            fault("\(new.id): more than its waits changed")
        }
        return isConcerned
    }

    private mutating func checkManagerProperties() {
        var changed: ManagerProperties = []
        if before.isSilentMode != after.isSilentMode { changed.insert(.silentMode) }
        if before.isScreenLocked != after.isScreenLocked { changed.insert(.screenLocked) }
        if before.nowPlaying != after.nowPlaying { changed.insert(.nowPlaying) }
        if before.audio?.route ?? .none != after.audio?.route ?? .none { changed.insert(.route) }
        if before.audio?.inputs ?? [] != after.audio?.inputs ?? [] { changed.insert(.inputs) }
        if before.audio?.outputs ?? [] != after.audio?.outputs ?? [] { changed.insert(.outputs) }
        if (before.audio == nil) != (after.audio == nil) { changed.insert(.server) }
        var announced: ManagerProperties = []
        for case .managerPropertiesChanged(let properties) in decision.effects { announced.formUnion(properties) }
        if announced != changed {
            fault("manager: announced \(announced.rawValue), changed \(changed.rawValue)")
        }
    }

    // MARK: Invariants

    static func brokenInvariants(of arbiter: Arbiter) -> [String] {
        var faults: [String] = []
        let sessions = arbiter.sessions
        let owners = sessions.filter {
            $0.state == .active && $0.sessionClass == .app && !$0.configuration.isMixable
        }
        if owners.count > 1 { faults.append("several sessions have the sound: \(owners.map(\.id))") }
        for session in sessions {
            let id = session.id
            if (session.state == .interrupted) != (session.interruption != nil) {
                faults.append("\(id): \(session.state), interruption: \(session.interruption != nil)")
            }
            if session.claimExpires != nil, session.state != .inactive {
                faults.append("\(id): a claim, but not inactive")
            }
            if session.state != .interrupted, !session.waitingFor.isEmpty {
                faults.append("\(id): waits, but not interrupted")
            }
            if let interruption = session.interruption, interruption.reason == .default, session.waitingFor.isEmpty {
                faults.append("\(id): interrupted, but waits for no session")
            }
            if SessionSet(runs: session.waitingFor.runs) != session.waitingFor {
                faults.append("\(id): waits out of order")
            }
            for owner in session.waitingFor where arbiter.session(owner)?.holdsClaim != true || owner == id {
                faults.append("\(id): waits for \(owner), which has no claim")
            }
            if session.isDucked {
                let duckers = sessions.filter { $0.state == .active && $0.configuration.ducksOthers && $0.id != id }
                if duckers.isEmpty { faults.append("\(id): ducked without a ducker") }
                if session.sessionClass != .app, !(arbiter.settings.ducksAlerts && session.sessionClass == .alert) {
                    faults.append("\(id): a call or alert is ducked")
                }
                if session.state != .active { faults.append("\(id): ducked, but \(session.state)") }
            }
        }
        if let cycle = firstInCycle(of: arbiter) { faults.append("\(cycle): waits for itself in a cycle") }
        if arbiter.nextDeadline != sessions.compactMap(\.claimExpires).min() { faults.append("wrong next deadline") }
        return faults
    }

    private static func firstInCycle(of arbiter: Arbiter) -> SessionID? {
        var settled: Set<SessionID> = []
        // A session that waits only for settled ones is settled. The remaining ones are in a cycle, or wait for one.
        var rest = arbiter.sessions
        while true {
            let (waiting, free) = rest.reduce(into: ([Session](), [Session]())) { parts, session in
                if session.waitingFor.allSatisfy(settled.contains) {
                    parts.1.append(session)
                } else {
                    parts.0.append(session)
                }
            }
            if free.isEmpty { return waiting.first?.id }
            settled.formUnion(free.map(\.id))
            rest = waiting
            if rest.isEmpty { return nil }
        }
    }
}
