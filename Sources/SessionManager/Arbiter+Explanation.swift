public import PluginAPI

/// One reason for the state of a session.
public struct Explanation: Sendable, Hashable {
    public let rule: Rule
    /// One word for programs: `active`, `interrupted`, `ignored`, `waits-for`, `will-not-resume`, `claim`, `inactive`,
    /// `ducked`, `muted`, `lacks-route`, `stream-silenced`, `player-paused`, `adopted`, `refused`.
    public let cause: String
    /// When it began.
    public let since: Instant
    /// A sentence for the user, without the time and without the name of the session in question.
    public let text: String
    /// The session that this reason is about.
    public let session: SessionID
    /// The session that caused it; nil: none did, or it has gone.
    public let by: SessionID?
    /// The name of the session that interrupted it, also if that has gone; else empty.
    public let byName: String
    /// When it ends automatically; nil: never.
    public let until: Instant?
    /// The refusal.
    public let error: SessionError?

    init(
        _ cause: String, _ rule: Rule, since: Instant, of session: SessionID, by: SessionID? = nil,
        byName: String = "", until: Instant? = nil, error: SessionError? = nil, _ text: String
    ) {
        self.rule = rule
        self.cause = cause
        self.since = since
        self.text = text
        self.session = session
        self.by = by
        self.byName = byName
        self.until = until
        self.error = error
    }
}

/// Built from what was recorded with each change of state; nothing is inferred from the present alone.
extension Arbiter {
    /// The chain of causes, from the current state back to the first cause; empty if the session does not exist.
    ///
    /// `now` decides whether an interruption has already lasted too long; nil leaves that open. `adopted` is the reason
    /// why the daemon adopted the program; nil: the program created the session itself. `streams`: what was done to its
    /// streams at the sound server, and since when; nil: nothing. `player`: how its MPRIS player was changed.
    public func explain(
        _ id: SessionID, at now: Instant? = nil, adopted: String? = nil, streams: (text: String, since: Instant)? = nil,
        player: (text: String, since: Instant)? = nil
    ) -> [Explanation] {
        guard let session = session(id) else { return [] }
        var chain: [Explanation] = []
        var seen: Set<SessionID> = [id]
        switch session.state {
        case .active: explainActive(session, isAdopted: adopted != nil, &chain)
        case .inactive: explainInactive(session, isAdopted: adopted != nil, &chain)
        case .interrupted:
            explainInterrupted(session, isSubject: true, isAdopted: adopted != nil, at: now, &chain, &seen)
        }
        explainOutput(session, &chain)
        explainLack(session, &chain)
        if let streams {
            chain.append(Explanation("stream-silenced", session.cause.rule, since: streams.since, of: id, streams.text))
        }
        if let player {
            chain.append(Explanation("player-paused", session.cause.rule, since: player.since, of: id, player.text))
        }
        if let adopted {
            chain.append(Explanation("adopted", .category, since: session.cause.since, of: id, adopted))
        }
        if let refused = session.refused {
            chain.append(
                Explanation(
                    "refused", refused.cause.rule, since: refused.cause.since, of: id,
                    by: refused.cause.by.flatMap { self.session($0)?.id }, error: refused.error,
                    "its last \(refused.request.rawValue) was refused with \(refused.error.code.rawValue): "
                        + refused.error.message))
        }
        return chain
    }

    private func explainActive(_ session: Session, isAdopted: Bool, _ chain: inout [Explanation]) {
        let text =
            switch session.cause.kind {
            case .tookBack: "it activated itself again while it was interrupted"
            case .earlier: "it was already active when the history begins"
            case .cameBack: "it came back after its interruption"
            default:
                session.isGuessedCall
                    ? "its program records and plays (guessed call)"
                    : isAdopted ? "its program began to play" : "it activated itself"
            }
        chain.append(Explanation("active", session.cause.rule, since: session.cause.since, of: session.id, text))
    }

    private func explainInactive(_ session: Session, isAdopted: Bool, _ chain: inout [Explanation]) {
        let cause = session.cause
        guard let expiry = session.claimExpires else {
            let text =
                switch cause.kind {
                case .deactivated: isAdopted ? "its program stopped playing" : "it deactivated itself"
                case .earlier: "it was not active when the history begins"
                case .hung: "it kept others quiet for too long without playing, and its program did not answer"
                case .gaveUp: isAdopted ? "it stayed silent after its interruption" : "it gave up its claim"
                case .ranOut: "it did not come back within \(seconds(settings.grace)) after its interruption ended"
                default: "it has not been active yet"
                }
            return chain.append(Explanation("inactive", cause.rule, since: cause.since, of: session.id, text))
        }
        var text = "its interruption ended"
        if let ended = session.ended {
            let who = ended.by == nil ? why(ended) : "by \(label(ended.by, ended.byName))"
            text = "its interruption (\(who)) ended"
            if let left = cause.by, left != ended.by { text += " when \(label(left, cause.byName)) left" }
        }
        let advice = reasonNotToResume(session.ended, at: cause.since)
        text +=
            cause.kind == .earlier
            ? ", already when the history begins"
            : advice == nil ? "; it was asked to resume" : "; it was not asked to resume: \(advice ?? "")"
        chain.append(
            Explanation(
                "claim", cause.rule, since: cause.since, of: session.id, by: cause.by.flatMap { self.session($0)?.id },
                until: expiry, text + "; it may come back within \(seconds(settings.grace))"))
    }

    /// Why an interruption that ends at that time has no should-resume hint; nil: it has.
    private func reasonNotToResume(_ interruption: Interruption?, at time: Instant) -> String? {
        guard let interruption else { return "no session recommended it" }
        if let spoiler = interruption.spoiler { return describe(spoiler) }
        if interruption.lacksOutput { return "\(outputs(interruption.away)) disconnected" }
        guard settings.maxAge > 0, time > interruption.since.advanced(bySeconds: settings.maxAge) else { return nil }
        return "it lasted longer than \(seconds(settings.maxAge)) (max-age)"
    }

    private func describe(_ spoiler: Cause) -> String {
        let who = label(spoiler.by, spoiler.byName)
        switch spoiler.kind {
        case .vanished: return "\(who) disconnected without notify-on-exit"
        case .closed: return "\(who) was closed without notify-on-exit"
        case .earlier: return "a session left without notify-others before the history begins"
        case .ranOut: return "\(who) did not come back in time"
        case .hung: return "\(who) did not answer"
        case .slept: return "the machine slept ([sleep] resume = off)"
        case .dissolved:
            return spoiler.by == nil
                ? "its interruption was changed meanwhile" : "it and \(who) no longer conflict"
        default: return "\(who) left without notify-others"
        }
    }

    private func explainInterrupted(
        _ session: Session, isSubject: Bool, isAdopted: Bool, at now: Instant?, _ chain: inout [Explanation],
        _ seen: inout Set<SessionID>
    ) {
        guard let interruption = session.interruption else { return }
        let by = interruption.by.flatMap { self.session($0)?.id }
        let isWaitedFor = by.map(session.waitingFor.contains) ?? false
        var text = isSubject ? "" : "\(label(session)) was "
        text += interruption.reason == .default ? "interrupted by \(label(interruption.by, interruption.byName))" : ""
        if interruption.reason != .default { text += why(interruption) }
        if interruption.reason == .default, !isWaitedFor { text += ", which has left" }
        if isSubject {
            text += "; " + outlook(interruption, session, at: now)
            let privileged = session.waitingFor.compactMap(self.session).first { $0.sessionClass != .app }
            if isAdopted, session.sessionClass == .app, let privileged {
                text += "; play it again to hear it during the \(privileged.sessionClass.rawValue)"
            }
            let others = session.waitingFor.filter { $0 != by || !isWaitedFor }
            if !others.isEmpty {
                text += "; waits \(isWaitedFor ? "also " : "")for "
                text += others.map { label($0, "") }.joined(separator: ", ")
            }
        }
        chain.append(
            Explanation(
                "interrupted", interruption.rule, since: interruption.since, of: session.id, by: by,
                byName: interruption.reason == .default ? interruption.byName : "", text))
        if let since = session.ignoredSince {
            chain.append(
                Explanation(
                    "ignored", .comesBack, since: since, of: session.id,
                    "\(isSubject ? "it" : label(session)) played on although it was interrupted, and was silenced at the sound "
                        + "server"))
        }
        if let spoiler = interruption.spoiler, interruption.endsByItself {
            chain.append(
                Explanation(
                    "will-not-resume", spoiler.rule, since: spoiler.since, of: session.id,
                    by: spoiler.by.flatMap { self.session($0)?.id },
                    "\(isSubject ? "it" : label(session)) will not be asked to resume: \(describe(spoiler))"))
        }
        for id in session.waitingFor where seen.insert(id).inserted {
            guard let other = self.session(id) else { continue }
            let state = other.claimExpires == nil ? other.state.rawValue : "inactive and may come back"
            chain.append(
                Explanation(
                    "waits-for", id == interruption.by ? interruption.rule : .waitsToo, since: other.cause.since,
                    of: session.id, by: id, until: other.claimExpires,
                    "\(isSubject ? "it" : label(session)) waits for \(label(other)), which is \(state)"))
            if other.state == .interrupted {
                explainInterrupted(other, isSubject: false, isAdopted: false, at: now, &chain, &seen)
            }
        }
    }

    /// Whether it will be asked to resume, and on what that depends.
    private func outlook(_ interruption: Interruption, _ session: Session, at now: Instant?) -> String {
        guard interruption.endsByItself else { return "it stays silent until it is played again" }
        // An output that is away may come back until then.
        var present = interruption
        present.away = []
        if let reason = reasonNotToResume(present, at: now ?? interruption.since) {
            return "will not be asked to resume: \(reason)"
        }
        // An app must deactivate with notify-others; calls and alerts need not.
        let apps = session.waitingFor.compactMap(self.session).filter { $0.sessionClass == .app }.map(label)
        var text = session.waitingFor.count > 1 ? "will be asked to resume when they end" : ""
        if text.isEmpty { text = "will be asked to resume when it ends" }
        if interruption.microphoneMuted { text = "will be asked to resume when it is unmuted" }
        if interruption.reason == .appWasSuspended, isAsleep {
            text = "will be asked to resume when the machine wakes up"
        }
        if !apps.isEmpty { text += ", if \(apps.joined(separator: ", ")) then deactivates with notify-others" }
        if settings.maxAge > 0 { text += " and it lasts no longer than \(seconds(settings.maxAge))" }
        if interruption.lacksOutput {
            text += "; \(outputs(interruption.away)) disconnected, and must be connected again before that"
        }
        return text
    }

    private func outputs(_ outputs: [AwayOutput]) -> String {
        let list = outputs.map { plain($0.name) }.joined(separator: " and ")
        return outputs.count == 1 ? "\(list), its output, was" : "\(list), its outputs, were"
    }

    private func explainOutput(_ session: Session, _ chain: inout [Explanation]) {
        if let cause = session.duckCause {
            let duckers = sessions.filter(\.standing.isDucker).map(label).joined(separator: ", ")
            chain.append(
                Explanation(
                    "ducked", cause.rule, since: cause.since, of: session.id,
                    by: cause.by.flatMap { self.session($0)?.id },
                    "ducked by \(number(-settings.duckGain)) dB while \(duckers) plays"
                        + (duckers.isEmpty || cause.by.flatMap { self.session($0) }?.standing.isDucker == true
                            ? "" : "; \(label(cause.by, cause.byName)) ducked it first")))
        }
        if let cause = session.muteCause {
            let switches = [(isSilentMode, "the silent switch is on"), (isScreenLocked, "the screen is locked")]
            let why = switches.filter(\.0).map(\.1).joined(separator: " and ")
            chain.append(
                Explanation(
                    "muted", cause.rule, since: cause.since, of: session.id,
                    "muted: \(why), and '\(session.configuration.category.rawValue)' is affected"))
        }
    }

    private func explainLack(_ session: Session, _ chain: inout [Explanation]) {
        guard let cause = session.lackCause, let audio else { return }
        let lacks = audio.lacks(session.configuration).joined(separator: " and no ")
        chain.append(
            Explanation(
                "lacks-route", cause.rule, since: cause.since, of: session.id,
                "there is no \(lacks) that '\(session.configuration.category.rawValue)' may use; connect one"))
    }

    private func why(_ interruption: Interruption) -> String {
        switch interruption.reason {
        case .default: "by \(label(interruption.by, interruption.byName))"
        case .appWasSuspended: "paused: the machine went to sleep"
        case .builtInMicMuted: "paused: the microphone is muted"
        case .routeDisconnected:
            interruption.byName.isEmpty
                ? "paused: the output it played on was disconnected"
                : "paused: \(plain(interruption.byName)), its output, was disconnected"
        }
    }

    private func label(_ session: Session) -> String {
        if session.sessionClass == .app { return plain(session.name) }
        let certainty = session.isGuessedCall ? ", guessed" : ""
        return "\(plain(session.name)) (\(session.sessionClass.rawValue)\(certainty))"
    }

    /// That session's label, or its former name.
    private func label(_ id: SessionID?, _ name: String) -> String {
        if let session = id.flatMap({ session($0) }) { return label(session) }
        return name.isEmpty ? "somebody" : plain(name)
    }

    /// Without characters that a terminal would interpret.
    private func plain(_ name: String) -> String { String(quoted(name).dropFirst().dropLast()) }

    private func seconds(_ value: Double) -> String { number(value) + " s" }

    private func number(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? String(Int(value)) : String(value)
    }
}
