public import PluginAPI
public import SessionManager

/// Names in an exported scenario: sessions and clients by number, ports by their position in the list of
/// ports.
public struct Transcript: Sendable {
    private var labels: [Port: String] = [:]
    private var ports: [Port] = []
    /// Whether ports are written by uid, because there is no list of them.
    private var usesUIDs = false
    /// Nil: private texts are written.
    var hidden: Pseudonyms?

    /// Without a list of ports.
    public init() {}

    /// With the ports of a scenario, by their names there.
    init(ports: [String: Port]) {
        for (label, port) in ports.sorted(by: { $0.key < $1.key }) { labels[port] = label }
    }

    /// The event of a decision as a step, without its effects; ports by their uid.
    public static func step(of decision: Decision) -> String {
        var transcript = Transcript()
        transcript.usesUIDs = true
        return transcript.step(decision.event, creating: decision.created)
    }

    /// A whole history: its start, and every decision with its effects.
    public static func text(of history: History.Replayable) -> String { text(of: history, limit: .max) ?? "" }

    /// The same; nil if the decisions alone are more than `limit` bytes.
    public static func text(of history: History.Replayable, limit: Int) -> String? {
        var transcript = Transcript()
        var body: [String] = []
        var size = 0
        for entry in history.entries {
            let lines =
                entry.silent.map { transcript.step($0, creating: nil) }
                + transcript.lines(of: entry.decision, isAdoption: entry.isAdoption)
            size += lines.reduce(0) { $0 + $1.utf8.count + 1 }
            if size > limit { return nil }
            body += lines
        }
        body += history.silent.map { transcript.step($0, creating: nil) }
        let start = transcript.lines(of: history.start.memory)
        var lines = ["# A history of sessiond; run it again with: sessionctl simulate FILE"]
        if !history.isWhole {
            lines.append("# Earlier events are not in this file; 'from' describes the state at its beginning.")
        }
        lines.append("exact")
        lines += transcript.declarations
        return (lines + start + body).joined(separator: "\n") + "\n"
    }

    /// The fixed form of a decision: time, step, and all effects in order.
    public mutating func lines(of decision: Decision, isAdoption: Bool = false) -> [String] {
        var lines = [
            "at \(writtenTime(decision.time.microseconds))",
            step(decision.event, creating: decision.created) + (isAdoption ? " adopted" : ""),
            "= #\(decision.sequence)",
        ]
        if let refusal = decision.refusal {
            lines.append(
                "= refused \(refusal.code.rawValue) \(decision.rule.rawValue) \(written(hidden?.hideNames(in: refusal.message) ?? refusal.message))"
            )
        }
        for effect in decision.effects {
            lines.append("= " + text(of: effect, rule: decision.rule(of: effect)))
        }
        return lines
    }

    // MARK: Steps

    /// The event as a line of a scenario.
    public mutating func step(_ event: Event, creating created: SessionID?) -> String {
        switch event {
        case .create(let new): "session \(created.map(name) ?? "-") \(describe(new))"
        case .setCategory(let id, let configuration): "set-category \(name(id)) \(describe(configuration))"
        case .activate(let id): "activate \(name(id))"
        case .deactivate(let id, let notifyOthers): "deactivate \(name(id))\(notifyOthers ? " notify" : "")"
        case .overrideOutput(let id, let override): "override \(name(id)) \(override.rawValue)"
        case .setPreferredInput(let id, let uid): "prefer-input \(name(id)) \(written(uid))"
        case .setPreferences(let id, let preferences): "prefer \(name(id)) \(describe(preferences))"
        case .close(let id): "close \(name(id))"
        case .setForeground(let id, let isForeground): "\(isForeground ? "foreground" : "background") \(name(id))"
        case .setSilentMode(let isOn): "silent \(isOn ? "on" : "off")"
        case .setScreenLocked(let isOn): "lock \(isOn ? "on" : "off")"
        case .clientVanished(let client): "vanish c\(client.number)"
        case .servicesReset(let audio): "server\(describe(audio))"
        case .servicesLost: "server-lost"
        case .routeChanged(let reason, let audio): "route \(reason.name)\(describe(audio))"
        case .portsChanged(let audio): "ports\(describe(audio))"
        case .soundingChanged(let sounding): "sounding \(describe(sounding))"
        case .microphoneMuted(let isMuted): "microphone \(isMuted ? "muted" : "unmuted")"
        case .settingsChanged(let settings): "reload \(describe(settings))"
        case .interruptionIgnored(let id): "ignored \(name(id))"
        case .asleep(let isAsleep): isAsleep ? "sleep" : "wake"
        case .clientHangs(let id): "unanswered \(name(id))"
        case .timePassed: "expire"
        }
    }

    func name(_ id: SessionID) -> String { "s\(id.number)" }
    func names(_ ids: some Sequence<SessionID>) -> String { ids.map(name).joined(separator: ",") }

    mutating func hideName(_ name: String) -> String { hidden?.hideName(name) ?? name }

    private mutating func describe(_ new: NewSession) -> String {
        var text = "\(written(hideName(new.name))) \(describe(new.configuration))"
        if new.sessionClass != .app { text += " class=\(new.sessionClass.rawValue)" }
        text += " client=c\(new.client.number)"
        if new.notifiesOnExit { text += " notify-on-exit" }
        return text + (new.evidence.isEmpty ? "" : " evidence=" + written(new.evidence))
    }

    private func describe(_ configuration: Configuration) -> String {
        var text = configuration.category.rawValue
        if configuration.mode != .default { text += " mode=\(configuration.mode.rawValue)" }
        var options = configuration.options
        // It always mixes; the option is not allowed there.
        if configuration.category == .ambient { options.remove(.mixWithOthers) }
        return text + (options.isEmpty ? "" : " options=" + options.names.joined(separator: ","))
    }

    private func describe(_ preferences: Preferences) -> String {
        func text(_ number: Double?) -> String { number.map { $0.description } ?? "none" }
        return "sample-rate=\(text(preferences.sampleRate)) "
            + "io-buffer-duration=\(text(preferences.ioBufferDuration)) "
            + "interrupt-on-route-disconnect=\(preferences.interruptsOnRouteDisconnect ? "on" : "off") "
            + "no-interruptions-from-alerts=\(preferences.noInterruptionsFromAlerts ? "on" : "off")"
    }

    private func describe(_ settings: Arbiter.Settings) -> String {
        "grace=\(settings.grace) max-age=\(settings.maxAge) gain=\(settings.duckGain) sessions=\(settings.maxSessions) "
            + "sessions-per-client=\(settings.maxSessionsPerClient) "
            + "unplug=\(settings.pausesOnUnplug ? "on" : "off") replug=\(settings.replug) "
            + "alerts=\(settings.ducksAlerts ? "on" : "off") sleep=\(settings.pausesForSleep ? "on" : "off") wake-resume=\(settings.resumesAfterSleep ? "on" : "off")"
    }

    private func describe(_ sounding: Sounding?) -> String {
        guard let sounding else { return "unknown" }
        let sessions = sounding.sessions.isEmpty ? "nobody" : names(sounding.sessions.sorted())
        let pausable = sounding.pausable.isEmpty ? "" : " pausable=" + names(sounding.pausable.sorted())
        let holdable = sounding.holdable.isEmpty ? "" : " holdable=" + names(sounding.holdable.sorted())
        let exempt = sounding.exempt.isEmpty ? "" : " exempt=" + names(sounding.exempt.sorted())
        let outputs = sounding.outputs.sorted { $0.key < $1.key }.flatMap { id, uids in
            uids.sorted().map { " \(name(id))=\(written($0))" }
        }
        return sessions + pausable + holdable + exempt + (sounding.others ? " others" : "")
            + (outputs.isEmpty ? "" : " on" + outputs.joined())
    }

    private mutating func describe(_ audio: Audio) -> String {
        var text = ""
        for (key, ports) in [
            ("out", audio.route.outputs), ("in", audio.route.inputs), ("outputs", audio.outputs),
            ("inputs", audio.inputs),
        ] { text += " \(key)=\(list(ports))" }
        return text
    }

    mutating func describe(_ route: Route) -> String { "out=\(list(route.outputs)) in=\(list(route.inputs))" }

    private mutating func list(_ ports: [Port]) -> String {
        ports.isEmpty ? "none" : ports.map { label($0) }.joined(separator: ",")
    }

    private mutating func label(_ port: Port) -> String {
        if usesUIDs { return written(port.uid) }
        if let label = labels[port] { return label }
        ports.append(port)
        let label = "p\(ports.count)"
        labels[port] = label
        return label
    }

    /// The ports that were written by their labels so far.
    var declarations: [String] { ports.map(declaration) }

    private func declaration(of port: Port) -> String {
        "port \(labels[port] ?? "") \(port.type.rawValue) \(written(port.name)) uid=\(written(port.uid)) "
            + "channels=\(port.channels) rate=\(port.sampleRate)\(port.isAvailable ? "" : " unavailable")"
    }

    // MARK: The start

    mutating func lines(of memory: Memory) -> [String] {
        var lines = ["settings \(describe(memory.settings))"]
        if memory.sequence > 0 || memory.lastID > 0 || memory.lastOrder > 0 {
            lines.append("from sequence=\(memory.sequence) last-session=\(memory.lastID) clock=\(memory.lastOrder)")
        }
        if memory.isSilentMode { lines.append("from silent") }
        if memory.isScreenLocked { lines.append("from locked") }
        if memory.isMicrophoneMuted { lines.append("from microphone-muted") }
        if memory.isAsleep { lines.append("from asleep") }
        if let audio = memory.audio { lines.append("from server\(describe(audio))") }
        if memory.services != (memory.audio == nil ? .unknown : .there) {
            lines.append("from services \(memory.services.rawValue)")
        }
        if let sounding = memory.sounding { lines.append("from sounding \(describe(sounding))") }
        return lines + memory.members.map { line(of: $0) }
    }

    private mutating func line(of member: Memory.Member) -> String {
        var words = ["from session \(name(member.id))", describe(member.new), member.state.rawValue]
        words.append("since=\(writtenTime(member.since.microseconds))")
        words.append("activation=\(member.activation)")
        if member.preferences != Preferences() { words.append(describe(member.preferences)) }
        if !member.isForeground { words.append("background") }
        if member.override != .none { words.append("override=\(member.override.rawValue)") }
        if !member.preferredInput.isEmpty { words.append("preferred-input=\(written(member.preferredInput))") }
        if let claim = member.claimExpires { words.append("claim=\(writtenTime(claim.microseconds))") }
        if let order = member.resumeOrder { words.append("resumes=\(order)") }
        if !member.waitingFor.isEmpty { words.append("waits=\(names(member.waitingFor))") }
        if member.toldOtherAudioPlaying { words.append("told-others") }
        if member.toldSilenceHint { words.append("told-hint") }
        if let ignored = member.ignoredSince { words.append("ignored=\(writtenTime(ignored.microseconds))") }
        if let interruption = member.interruption {
            words.append(
                "reason=\(interruption.reason.rawValue) rule=\(interruption.rule.rawValue) order=\(interruption.order)")
            words.append(
                "began=\(writtenTime(interruption.since.microseconds)) by-name=\(written(hideName(interruption.byName)))"
            )
            if let by = interruption.by { words.append("by=\(name(by))") }
            if interruption.microphoneMuted { words.append("microphone") }
            words += interruption.away.map { "away=\(written($0.uid)) named=\(written($0.name))" }
            if !interruption.recommendsResume { words.append("spoiled") }
        }
        return words.joined(separator: " ")
    }
}

extension SessionProperties {
    /// By name, in the order of their bits.
    var words: [String] {
        let names = [
            "category", "mode", "options", "state", "interruption-reason", "waiting-for", "foreground", "ducked",
            "duck-gain", "muted", "other-audio-playing", "silence-hint", "route", "available-inputs", "preferred-input",
            "preferences", "ignored",
        ]
        return names.indices.filter { rawValue & 1 << $0 != 0 }.map { names[$0] }
    }
}

extension ManagerProperties {
    var words: [String] {
        let names = ["silent-mode", "screen-locked", "now-playing", "route", "inputs", "outputs", "server"]
        return names.indices.filter { rawValue & 1 << $0 != 0 }.map { names[$0] }
    }
}
