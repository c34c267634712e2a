import PluginAPI

/// How a program without a session is adopted: by the settings, by its streams, and by the call it is in.
struct Adoption {
    let settings: Settings
    /// The guessed call of a stream's program; nil: none.
    let call: (Program.Key) -> CallEvidence.Call?
    /// How a program with streams labelled as a call is adopted; nil: it has no such stream that plays.
    let labelledCall: (Program.Key) -> Settings.Role?
    /// Whether the stream is an alarm that began during a call, which refuses alerts.
    let isQuietAlarm: (AudioStream.ID) -> Bool

    init(
        settings: Settings, call: @escaping (Program.Key) -> CallEvidence.Call? = { _ in nil },
        labelledCall: @escaping (Program.Key) -> Settings.Role? = { _ in nil },
        isQuietAlarm: @escaping (AudioStream.ID) -> Bool = { _ in false }
    ) {
        self.settings = settings
        self.call = call
        self.labelledCall = labelledCall
        self.isQuietAlarm = isQuietAlarm
    }

    /// How a stream is adopted, or why it is not.
    enum Verdict: Hashable {
        case adopted(AdoptedProgram)
        case not(Unadopted)
    }

    /// Nil if it is not adopted.
    func adopted(_ facts: StreamFacts) -> AdoptedProgram? {
        switch verdict(on: facts) {
        case .adopted(let program): program
        case .not: nil
        }
    }

    func verdict(on facts: StreamFacts) -> Verdict {
        guard let program = facts.program else { return .not(.own) }
        if let call = call(program.key), isPart(facts.stream, of: call, program) {
            return .adopted(AdoptedProgram(program: program.key, role: Adoption.guessedCall, isGuess: true))
        }
        if let reason = exclusion(of: program) { return .not(reason) }
        if let role = role(of: facts, program) {
            let isAlarm = facts.stream.isAlarm && role.sessionClass == .alert
            return .adopted(AdoptedProgram(program: isAlarm ? Program.alarm : program.key, role: role))
        }
        return .not(program.isServer ? .server : facts.stream.isPeakMeter ? .meter : .recording)
    }

    private func role(of facts: StreamFacts, _ program: Program) -> Settings.Role? {
        guard let ground = ground(for: program) else { return nil }
        // What the server plays from an input never interrupts others.
        if facts.stream.inputName != nil { return Adoption.mixingPlayback }
        let label = labelled(facts.stream)
        let callRole = labelledCall(program.key)
        // Streams of the server itself and recordings are adopted only as calls.
        guard !program.isServer, facts.stream.direction == .playback else {
            return label?.sessionClass == .call ? callRole : nil
        }
        if facts.stream.isAlarm, let role = label, role.sessionClass != .app {
            // Where an alert is refused, it is heard beside the others.
            let mayAlert = may(program, role.sessionClass) && !isQuietAlarm(facts.stream.id)
            return mayAlert ? role : Adoption.mixingPlayback
        }
        // It ducks others, and is never silenced itself.
        if settings.ducking.screenReaders, facts.readsAloud { return Adoption.reader }
        guard let role = label else {
            // What the server plays without a client is adopted only for what it says it is.
            if program.key == Program.eventSounds { return nil }
            // Unlabelled streams belong to the labelled call of their program.
            return facts.stream.role == nil && callRole != nil ? callRole : isolated(Adoption.unlabelled, ground)
        }
        // A program that may not take the class is adopted as an app.
        guard may(program, role.sessionClass) else { return isolated(Adoption.unlabelled, ground) }
        return role.sessionClass == .app ? isolated(role, ground) : role
    }

    /// The call that this stream declares by its label; nil: none, or its program may not. `players`: the programs that
    /// play; the label of a recording alone says only what the microphone is used for.
    func declaredCall(_ facts: StreamFacts, players: Set<Program.Key>) -> Settings.Role? {
        switch facts.stream.direction {
        case .playback: mayDeclareCall(facts)
        case .record:
            settings.adoption.labelAlone || facts.program.map { players.contains($0.key) } ?? false
                ? mayDeclareCall(facts) : nil
        }
    }

    /// As ``declaredCall(_:players:)``, if its program plays.
    func mayDeclareCall(_ facts: StreamFacts) -> Settings.Role? {
        guard let program = facts.program, ground(for: program) != nil, let role = labelled(facts.stream),
            role.sessionClass == .call, may(program, .call)
        else { return nil }
        return role
    }

    /// Whether the stream may be part of a guessed call. Another label has priority over the guess, unless the settings
    /// list the program. `labelled`: programs that label a stream as a call without permission; this makes them known
    /// to make calls.
    func maySuggestCall(_ facts: StreamFacts, labelled: Set<Program.Key>) -> Bool {
        guard let program = facts.program, !program.isServer, program.mayBeGuessed, ground(for: program) != nil else {
            return false
        }
        if isNamed(program) { return settings.adoption.calls == .known || settings.adoption.calls == .any }
        guard facts.stream.role == nil || saysCall(facts) else { return false }
        switch settings.adoption.calls {
        case .off, .labelled: return false
        case .known: return Settings.Adoption.isKnown(program.names) || labelled.contains(program.key)
        case .any: return true
        }
    }

    /// Whether the stream's label declares a call, permitted or not.
    func saysCall(_ facts: StreamFacts) -> Bool { labelled(facts.stream)?.sessionClass == .call }

    private func isNamed(_ program: Program) -> Bool { settings.adoption.namesCallProgram(program.names) }

    /// A playing stream with another title than the recording is another page of the same browser, if titles are known.
    private func isPart(_ stream: AudioStream, of call: CallEvidence.Call, _ program: Program) -> Bool {
        guard isNamed(program) || stream.role == nil || labelled(stream)?.sessionClass == .call else { return false }
        return stream.direction == .record || call.pages.isEmpty
            || call.pages.contains(stream.properties["media.name"] ?? "")
    }

    /// How the program was adopted and why, for display. `facts`: of one of its streams; nil if it has none now.
    func reason(for adopted: AdoptedProgram, evidence: String, of facts: StreamFacts?) -> String {
        guard !adopted.isGuess else {
            var text =
                "its program does not use sessiond; guessed call: it \(evidence)"
            guard let program = facts?.program else { return text + "; [adoption] calls" }
            let calls = settings.adoption.calls.rawValue
            let name = program.name.isEmpty ? "the program" : quoted(program.name)
            if isNamed(program) {
                text += "; \(name) is listed in [adoption] call-programs"
            } else if Settings.Adoption.isKnown(program.names) {
                text += "; [adoption] calls = \(calls), and \(name) is known to make calls"
            } else {
                text += "; [adoption] calls = \(calls)"
            }
            return text
        }
        let why = facts.flatMap(label(of:)) ?? "see [adoption] and [roles]"
        return "its program does not use sessiond; adopted as \(adopted.role.words): \(why)"
    }

    private func label(of facts: StreamFacts) -> String? {
        guard let program = facts.program, let ground = ground(for: program) else { return nil }
        var label = facts.stream.role.map { "media.role \(quoted($0))" } ?? "no media.role"
        if facts.stream.isAlarm, let event = facts.stream.eventID { label = "event.id \(quoted(event))" }
        if let role = labelled(facts.stream) {
            let isRefused = !may(program, role.sessionClass)
            if isRefused { label += ", but it may not take the class \(role.sessionClass.rawValue)" }
            if isQuietAlarm(facts.stream.id) { label += ", which began during a call" }
        } else if facts.stream.role != nil {
            label += ", which is not in [roles]"
        }
        switch ground {
        case .named: return "\(label); it is listed in [adoption] always"
        case .everybody(let streams): return "\(label); [adoption] streams = \(streams.rawValue)"
        }
    }

    private func labelled(_ stream: AudioStream) -> Settings.Role? {
        // An empty row for alarms leaves an event sound what its role says.
        if stream.isAlarm, let alarm = settings.roles["alarm"] { return alarm }
        return stream.role.flatMap { settings.roles[$0.lowercased()] }
    }

    private func may(_ program: Program, _ sessionClass: SessionClass) -> Bool {
        switch sessionClass {
        case .app: true
        case .alert: program.mayAlert
        case .call: settings.adoption.calls != .off && (program.mayCall || program.isServer)
        }
    }

    /// The setting by which a program is adopted.
    private enum Ground {
        /// In `always`.
        case named
        case everybody(Settings.Adoption.Streams)

        var isGentle: Bool {
            switch self {
            case .named, .everybody(.all), .everybody(.off): false
            case .everybody(.calls): true
            }
        }
    }

    /// Why no stream of the program is adopted; nil: the settings allow it.
    private func exclusion(of program: Program) -> Unadopted? {
        if settings.adoption.never.contains(where: program.names.contains) { return .never }
        if isAlways(program) { return nil }
        if program.isScreenReader, !settings.ducking.screenReaders { return .screenReader }
        return settings.adoption.streams == .off ? .off : nil
    }

    private func isAlways(_ program: Program) -> Bool {
        settings.adoption.always.contains(where: program.names.contains)
    }

    private func ground(for program: Program) -> Ground? {
        if exclusion(of: program) != nil { return nil }
        return isAlways(program) ? .named : .everybody(settings.adoption.streams)
    }

    /// With `streams = calls`, adopted apps mix: only calls and alerts interrupt them.
    private func isolated(_ role: Settings.Role, _ ground: Ground) -> Settings.Role {
        let configuration = role.configuration
        guard ground.isGentle, !configuration.isMixable else { return role }
        let mixing = try? Configuration(
            category: configuration.category, mode: configuration.mode,
            options: configuration.requestedOptions.union(.mixWithOthers))
        // A category that never mixes is replaced by that of an unlabelled program.
        return mixing.map { Settings.Role($0) } ?? Adoption.mixingPlayback
    }

    /// A guessed call: it changes no route, and does not switch a headset to hands-free.
    private static let guessedCall = Settings.Role(known(.playback, []), sessionClass: .call)
    /// A program that plays without a label.
    private static let unlabelled = Settings.Role(known(.playback, []))
    /// A program that reads the screen aloud.
    private static let reader = Settings.Role(known(.playback, .duckOthers, .voicePrompt))
    private static let mixingPlayback = Settings.Role(known(.playback, .mixWithOthers))

    private static func known(
        _ category: Category, _ options: Options, _ mode: Mode = .default
    ) -> Configuration {
        guard let configuration = try? Configuration(category: category, mode: mode, options: options) else {
            preconditionFailure("playback may mix")
        }
        return configuration
    }
}

extension Settings.Role {
    /// For display: class, category, mode and options, without defaults.
    fileprivate var words: String {
        let parts =
            [sessionClass == .app ? "" : sessionClass.rawValue, configuration.category.rawValue]
            + [configuration.mode == .default ? "" : configuration.mode.rawValue] + configuration.requestedOptions.names
        return parts.filter { !$0.isEmpty }.joined(separator: ", ")
    }
}
