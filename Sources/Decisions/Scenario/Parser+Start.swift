import PluginAPI
import SessionManager

/// The arguments of `from`: the state at the beginning of a history.
extension Parser {
    mutating func from(_ words: inout Words, _ scenario: inout Scenario) throws(LineError) {
        if words.take("silent") { scenario.memory.isSilentMode = true; return }
        if words.take("locked") { scenario.memory.isScreenLocked = true; return }
        if words.take("microphone-muted") { scenario.memory.isMicrophoneMuted = true; return }
        if words.take("asleep") { scenario.memory.isAsleep = true; return }
        if words.take("server") { scenario.memory.audio = try audio(words.rest(), scenario); return }
        if words.take("services") {
            let word = try words.word("connected or lost")
            scenario.memory.services = try chosen(word, word.word, "word for what is known of the sound server")
            return
        }
        if words.take("sounding") { return try fromSounding(&words, &scenario) }
        if words.take("session") { return try fromSession(&words, &scenario) }
        for token in words.rest() {
            switch token.word {
            case "sequence": scenario.memory.sequence = try token.count(Self.counts)
            case "last-session": scenario.memory.lastID = try token.count(Self.counts)
            case "clock": scenario.memory.lastOrder = try token.count(Self.counts)
            default:
                throw LineError(
                    token,
                    "unknown word \(quoted(token.word)); use sequence=, last-session=, clock=, silent, locked, "
                        + "microphone-muted, asleep, server, services, sounding or session")
            }
        }
    }

    /// Far from values that could overflow.
    static let counts: ClosedRange<UInt64> = 0...SessionSet.highest

    private func fromSounding(_ words: inout Words, _ scenario: inout Scenario) throws(LineError) {
        var ids: Set<SessionID> = []
        if !words.take("nobody") { ids = Set(try numbers(words.word("sessions or 'nobody'"))) }
        var pausable: Set<SessionID> = []
        if let token = words.takeSetting("pausable") { pausable = Set(try numbers(token, token.required())) }
        var holdable: Set<SessionID> = []
        if let token = words.takeSetting("holdable") { holdable = Set(try numbers(token, token.required())) }
        var exempt: Set<SessionID> = []
        if let token = words.takeSetting("exempt") { exempt = Set(try numbers(token, token.required())) }
        var sounding = Sounding(
            sessions: ids, pausable: pausable, holdable: holdable, exempt: exempt, others: words.take("others"))
        if words.take("on") {
            for token in words.rest() {
                for id in try numbers(token) { sounding.outputs[id, default: []].insert(try token.required()) }
            }
        }
        scenario.memory.sounding = sounding
    }

    private func numbers(_ token: Token, _ text: String? = nil) throws(LineError) -> [SessionID] {
        var ids: [SessionID] = []
        for word in (text ?? token.word).split(separator: ",") {
            guard let number = String(word).numbered else {
                throw LineError(token, "sessions are called s1, s2, … here, not \(quoted(String(word)))")
            }
            ids.append(SessionID(number))
        }
        return ids
    }

    private mutating func fromSession(_ words: inout Words, _ scenario: inout Scenario) throws(LineError) {
        let label = try words.word("the session, such as s1")
        guard let id = try numbers(label).first, scenario.isExact else {
            throw LineError(label, "in an 'exact' scenario, a session that already exists is called s1, s2, …")
        }
        let name = try words.word("its name").word
        let configuration = try self.configuration(&words)
        var sessionClass = SessionClass.app
        var client = ClientID(0)
        var notifiesOnExit = false
        var evidence = ""
        var rest: [Token] = []
        for token in words.rest() {
            switch token.word {
            case "class": sessionClass = try chosen(token, token.required(), "class")
            case "client": client = clientID(try token.required())
            case "notify-on-exit": notifiesOnExit = true
            case "evidence": evidence = try token.required()
            default: rest.append(token)
            }
        }
        var member = Memory.Member(
            id: id,
            new: NewSession(
                name: name, client: client, sessionClass: sessionClass, configuration: configuration,
                notifiesOnExit: notifiesOnExit, evidence: evidence))
        var interruption = Interruption(
            reason: .default, by: nil, byName: "", since: Instant(microseconds: 0), rule: .matrix, order: 0)
        for token in rest
        where try !interruption.read(
            token, by: { token throws(LineError) in try numbers(token, token.required()).first })
        {
            try read(token, &member)
        }
        if member.state == .interrupted { member.interruption = interruption }
        if !evidence.isEmpty {
            scenario.undecided.append(
                Scenario.Undecided(
                    line: lastFrom, what: "the guessed call of \(quoted(name)), made before this file begins"))
        }
        scenario.memory.members.append(member)
    }

    private func read(_ token: Token, _ member: inout Memory.Member) throws(LineError) {
        switch token.word {
        case "active", "inactive", "interrupted": member.state = try chosen(token, token.word, "state")
        case "since": member.since = try token.instant()
        case "activation": member.activation = try token.count(Self.counts)
        case "background": member.isForeground = false
        case "override": member.override = try chosen(token, token.required(), "output override")
        case "preferred-input": member.preferredInput = try token.required()
        case "claim": member.claimExpires = try token.instant()
        case "resumes": member.resumeOrder = try token.count(Self.counts)
        case "waits":
            let owners = try numbers(token, token.required())
            member.waitingFor = SessionSet(owners)
            guard member.waitingFor.elementsEqual(owners) else {
                throw LineError(token, "write each session once, in the order of their numbers")
            }
        case "told-others": member.toldOtherAudioPlaying = true
        case "told-hint": member.toldSilenceHint = true
        case "ignored": member.ignoredSince = try token.instant()
        default: member.preferences.apply(try preference(token))
        }
    }
}

extension Interruption {
    /// Whether the word was known.
    fileprivate mutating func read(
        _ token: Token, by number: (Token) throws(LineError) -> SessionID?
    ) throws(LineError) -> Bool {
        switch token.word {
        case "reason": reason = try chosen(token, token.required(), "reason")
        case "rule": rule = try chosen(token, token.required(), "rule")
        case "order": order = try token.count(Parser.counts)
        case "began": since = try token.instant()
        case "by-name": byName = try token.required()
        case "by": by = try number(token)
        case "microphone": microphoneMuted = true
        case "away": away.append(AwayOutput(uid: try token.required(), name: ""))
        case "named" where !away.isEmpty: away[away.count - 1].name = try token.required()
        case "spoiled": spoiler = Cause(.earlier, .resume, at: since)
        default: return false
        }
        return true
    }
}

extension Preferences {
    mutating func apply(_ wish: Step.Preference) {
        switch wish {
        case .sampleRate(let rate): sampleRate = rate
        case .ioBufferDuration(let duration): ioBufferDuration = duration
        case .interruptsOnRouteDisconnect(let isOn): interruptsOnRouteDisconnect = isOn
        case .noInterruptionsFromAlerts(let isOn): noInterruptionsFromAlerts = isOn
        }
    }
}
