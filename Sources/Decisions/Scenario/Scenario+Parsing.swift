import PluginAPI
import SessionManager

extension Scenario {
    /// Parses the text of `file`. Throws at the first error.
    public init(_ text: String, file: String) throws(ScenarioError) {
        try self.init(bytes: Array(text.utf8), file: file)
    }

    /// Parses the bytes of `file`: UTF-8, a byte order mark and CRLF line ends allowed. Throws at the first error.
    public init(bytes: [UInt8], file: String) throws(ScenarioError) {
        self.file = file
        guard bytes.count <= Self.maximumBytes else {
            throw ScenarioError(
                file: file, line: 1, column: 1,
                message: "the file is larger than \(Self.maximumBytes >> 20) MB; is it the right one?")
        }
        var parser = Parser()
        var rest = bytes[...]
        if rest.starts(with: [0xEF, 0xBB, 0xBF]) { rest = rest.dropFirst(3) }
        var number = 0
        while !rest.isEmpty {
            number += 1
            let end = rest.firstIndex(of: 10) ?? rest.endIndex
            var line = rest[..<end]
            rest = rest[end...].dropFirst()
            if line.last == 13 { line = line.dropLast() }
            do throws(LineError) {
                guard line.count <= Self.maximumLineBytes else {
                    throw LineError(column: 1, "the line has \(line.count) bytes; is this a scenario?")
                }
                guard let text = String(validating: line, as: UTF8.self) else {
                    throw LineError(column: 1, "this is not UTF-8 text; is it a scenario?")
                }
                try parser.read(text, number, into: &self)
            } catch {
                throw ScenarioError(file: file, line: number, column: error.column, message: error.message)
            }
        }
        guard (try? Arbiter(memory)) != nil else {
            throw ScenarioError(
                file: file, line: parser.lastFrom, column: 1,
                message: "the 'from' lines contradict each other; export the history again")
        }
    }
}

/// Parses line by line. Earlier lines decide what is allowed next.
struct Parser {
    /// The line of each declaration, by label.
    private(set) var sessions: [String: Int] = [:]
    private var clients: Set<String> = []
    /// Programs, and streams that began, by their names.
    var programs: Set<String> = []
    var streams: Set<String> = []
    var players: Set<String> = []
    /// The number of each client, in the order of appearance.
    private(set) var clientNumbers: [String: UInt64] = [:]
    private var hasSteps = false
    private var isExact = false
    private var reader = FactReader()
    private(set) var lastFrom = 1

    mutating func read(_ line: String, _ number: Int, into scenario: inout Scenario) throws(LineError) {
        let text = line.trimmed
        if text.unicodeScalars.first == "=" {
            guard scenario.isExact, hasSteps else {
                throw LineError(column: 1, "a line with '=' needs 'exact' at the beginning, and a step before it")
            }
            scenario.lines.append(Scenario.Line(number: number, text: text, content: .exactly))
            return
        }
        if !hasSteps { scenario.head.append(line) }
        let tokens = try Token.all(of: line)
        guard let first = tokens.first else { return }
        var words = Words(Array(tokens.dropFirst()), end: line.unicodeScalars.count + 1)
        guard first.value == nil, !first.isQuoted else {
            throw LineError(first, "a line starts with a step; use one of \(Self.keywords)")
        }
        if let content = try content(first, number, &words, &scenario) {
            if scenario.head.last == line, scenario.lines.isEmpty { scenario.head.removeLast() }
            if scenario.isExact, let what = content.undecided {
                scenario.undecided.append(Scenario.Undecided(line: number, what: what))
            }
            scenario.lines.append(Scenario.Line(number: number, text: text, content: content))
        }
        try words.finish()
    }

    static let keywords =
        "session, activate, deactivate, set-category, override, prefer-input, prefer, close, ignored, unanswered, hang, vanish, "
        + "foreground, background, silent, lock, microphone, sleep, wake, server, server-lost, route, ports, sounding, program, stream, player, pause, play, volume, move, stop, end, exit, wait, at, expire, reload, "
        + "expect; at the beginning also settings, port, exact, from"

    private mutating func content(
        _ first: Token, _ number: Int, _ words: inout Words, _ scenario: inout Scenario
    ) throws(LineError) -> Scenario.Content? {
        switch first.word {
        case "settings":
            try beforeSteps(first, "to change them later, use 'reload'")
            var tokens = words.rest()
            try adoption(&tokens, &scenario.adoption)
            scenario.memory.settings = try settings(scenario.memory.settings, tokens)
        case "exact":
            try beforeSteps(first, "put it at the top")
            scenario.isExact = true
            isExact = true
            scenario.hasFacts = words.take("facts")
        case "state" where scenario.hasFacts:
            try beforeSteps(first, "put it at the top")
            try reader.state(words.rest())
        case "state-server" where scenario.hasFacts:
            try beforeSteps(first, "put it at the top")
            try reader.server(words.rest())
        case "words" where scenario.hasFacts:
            reader.add(words.rest())
            return hasSteps ? .part : nil
        case "from":
            try beforeSteps(first, "put it at the top")
            lastFrom = number
            try from(&words, &scenario)
        case "port": try port(&words, &scenario)
        case "expect":
            guard hasSteps else { throw LineError(first, "there is no step yet; put a step before it") }
            return .expect(try expectation(&words))
        default:
            if scenario.hasFacts {
                if !hasSteps { try reader.begin(&scenario) }
                hasSteps = true
                return try factContent(first, number, &words, &scenario)
            }
            let step = try step(first, number, &words, &scenario)
            hasSteps = true
            return .step(step)
        }
        return nil
    }

    private mutating func factContent(
        _ first: Token, _ number: Int, _ words: inout Words, _ scenario: inout Scenario
    ) throws(LineError) -> Scenario.Content {
        switch first.word {
        case "member": try reader.member(words.rest())
        case "view": try reader.view(words.word("the number of a look"), words.rest())
        case "fact":
            let kind = try words.next("the kind of fact")
            return .step(.recorded(try reader.fact(kind, words.rest())))
        case "at": return .step(.at(try time(&words)))
        default:
            guard let event = try step(first, number, &words, &scenario).event else {
                throw LineError(
                    first, "'\(first.word)' cannot be in a history with facts; write at, fact, or a request of a client"
                )
            }
            return .step(.recorded(try reader.request(event, first)))
        }
        return .part
    }

    private func beforeSteps(_ token: Token, _ advice: String) throws(LineError) {
        if hasSteps { throw LineError(token, "'\(token.word)' must come before the first step; \(advice)") }
    }

    // MARK: Steps

    private mutating func step(
        _ first: Token, _ number: Int, _ words: inout Words, _ scenario: inout Scenario
    ) throws(LineError) -> Step {
        switch first.word {
        case "session": return try session(number, &words, isExact: scenario.isExact)
        case "activate": return .about(try label(&words, scenario.isExact), .activate)
        case "deactivate":
            let label = try label(&words, scenario.isExact)
            return .about(label, .deactivate(notifyOthers: words.take("notify")))
        case "set-category":
            let label = try label(&words, scenario.isExact)
            return .about(label, .setCategory(try configuration(&words)))
        case "override":
            return .about(try label(&words, scenario.isExact), .override(try words.choice("output override")))
        case "prefer-input":
            return .about(try label(&words, scenario.isExact), .preferInput(try words.word("a port's uid").word))
        case "prefer":
            let label = try label(&words, scenario.isExact)
            var wishes: [Step.Preference] = []
            for token in words.rest() { wishes.append(try preference(token)) }
            return .about(label, .prefer(wishes))
        case "close": return .about(try label(&words, scenario.isExact), .close)
        case "foreground": return .about(try label(&words, scenario.isExact), .foreground(true))
        case "background": return .about(try label(&words, scenario.isExact), .foreground(false))
        case "ignored": return .about(try label(&words, scenario.isExact), .ignored)
        case "unanswered": return .about(try label(&words, scenario.isExact), .unanswered)
        case "vanish": return .vanish(try client(&words, isExact: scenario.isExact))
        case "hang": return .hang(try client(&words, isExact: scenario.isExact))
        case "sleep": return .machine(isAsleep: true)
        case "wake": return .machine(isAsleep: false)
        case "silent": return .fact(.setSilentMode(try words.isOn()))
        case "lock": return .fact(.setScreenLocked(try words.isOn()))
        case "microphone": return .fact(.microphoneMuted(try words.flag(on: "muted", off: "unmuted")))
        case "server": return .fact(.servicesReset(try audio(words.rest(), scenario)))
        case "server-lost": return .fact(.servicesLost)
        case "ports": return .fact(.portsChanged(try audio(words.rest(), scenario)))
        case "route":
            let reason = try RouteChangeReason(words.word("the reason"))
            return .fact(.routeChanged(reason, try audio(words.rest(), scenario)))
        case "sounding": return try sounding(&words, scenario)
        case "reload": return .fact(.settingsChanged(try settings(scenario.memory.settings, words.rest())))
        case "program": return try program(&words)
        case "stream": return try stream(&words, scenario)
        case "player": return try player(&words)
        case "pause", "play":
            let token = try words.word("a stream or a player")
            let isPaused = first.word == "pause"
            if players.contains(token.word) { return .use(token.word, isPaused ? .paused : .playing) }
            return .pause(try streamLabel(token), isPaused)
        case "move":
            let stream = try streamLabel(words.word("a stream"))
            guard words.take("to") else { throw LineError(first, "write 'to' and the output after the stream") }
            return .move(stream, to: try output(words.word("an output"), scenario))
        case "volume":
            let stream = try streamLabel(words.word("a stream"))
            let token = try words.word("a volume")
            guard let change = VolumeChange(token.word) else {
                throw LineError(token, "write a volume from 0 to 150, or a step such as +10, -5, +3dB or -6dB")
            }
            return .volume(stream, change)
        case "stop": return .use(try playerLabel(words.word("a player")), .stopped)
        case "end": return .end(try streamLabel(words.word("a stream")))
        case "exit": return .endProgram(try programLabel(words.word("a program")))
        case "expire": return .expire
        case "wait": return .wait(try time(&words))
        case "at": return .at(try time(&words))
        default:
            throw LineError(first, "unknown step \(quoted(first.word)); use one of \(Self.keywords)")
        }
    }

    private func client(_ words: inout Words, isExact: Bool) throws(LineError) -> String {
        let token = try words.word("a client")
        guard clients.contains(token.word) || isExact else {
            throw LineError(
                token,
                sessions[token.word] == nil
                    ? "no session has the client \(quoted(token.word)); a session's own client has the name of the session"
                    : "the session \(quoted(token.word)) has another client; write the name of that client")
        }
        return token.word
    }

    private mutating func session(_ number: Int, _ words: inout Words, isExact: Bool) throws(LineError) -> Step {
        let token = try words.word("a name for the session in this file")
        let label = token.word
        if isExact, label == "-" {
            // Its creation was refused, so it has no number.
        } else {
            guard label.isLabel else {
                throw LineError(token, "use letters, digits, '-' and '_', starting with a letter")
            }
            if let line = sessions[label] {
                throw LineError(token, "\(quoted(label)) is already declared in line \(line); choose another name")
            }
            sessions[label] = number
        }
        let (new, client, isAdopted) = try newSession(label, &words, isExact: isExact)
        return .session(label: label, client: client, new, isAdopted: isAdopted)
    }

    /// The words after the label, without those that only `from` has.
    private mutating func newSession(
        _ label: String, _ words: inout Words, isExact: Bool
    ) throws(LineError) -> (new: NewSession, client: String, isAdopted: Bool) {
        var name = label
        if words.first?.isQuoted == true { name = try words.word("its name").word }
        let configuration = try self.configuration(&words)
        var sessionClass = SessionClass.app
        var client = label
        var notifiesOnExit = false
        var isAdopted = false
        var evidence = ""
        for token in words.rest() {
            switch token.word {
            case "class": sessionClass = try chosen(token, token.required(), "class")
            case "client": client = try token.required()
            case "notify-on-exit" where token.value == nil: notifiesOnExit = true
            case "adopted" where token.value == nil && isExact: isAdopted = true
            case "evidence": evidence = try token.required()
            default:
                throw LineError(
                    token,
                    "unknown word \(quoted(token.word)); use mode=, options=, class=, client=, evidence= or "
                        + "notify-on-exit")
            }
        }
        let new = NewSession(
            name: name, client: clientID(client), sessionClass: sessionClass, configuration: configuration,
            notifiesOnExit: notifiesOnExit, evidence: evidence)
        return (new, client, isAdopted)
    }

    mutating func clientID(_ word: String) -> ClientID {
        clients.insert(word)
        if word.utf8.first == UInt8(ascii: "c"), let number = UInt64(word.dropFirst()) { return ClientID(number) }
        // Above any number in an exported file.
        let number = clientNumbers[word] ?? (1 << 63) + UInt64(clientNumbers.count)
        clientNumbers[word] = number
        return ClientID(number)
    }

    private func label(_ words: inout Words, _ isExact: Bool) throws(LineError) -> String {
        try label(words.word("a session"), isExact: isExact)
    }

    func label(_ token: Token, isExact: Bool = false) throws(LineError) -> String {
        if sessions[token.word] != nil { return token.word }
        if isExact || self.isExact, token.word.numbered != nil { return token.word }
        // The session of a program has the program's name; that of its call has `-call` behind it.
        if programs.contains(where: { token.word == $0 || token.word.hasPrefix($0 + "-") }) { return token.word }
        let known = sessions.sorted { $0.value < $1.value }.prefix(20).map(\.key).joined(separator: ", ")
        throw LineError(
            token,
            "there is no session \(quoted(token.word)); "
                + (known.isEmpty ? "create one with 'session'" : "there are \(known)"))
    }

    /// Category, mode and options, in this order or with the last two swapped.
    func configuration(_ words: inout Words) throws(LineError) -> Configuration {
        let token = try words.word("a category")
        let category: Category = try chosen(token, token.word, "category")
        var mode = Mode.default
        var options: Options = []
        var place = token
        while let next = words.first, next.word == "mode" || next.word == "options" {
            place = try words.next("")
            if next.word == "mode" {
                mode = try chosen(next, next.required(), "mode")
            } else {
                for name in try next.list() {
                    guard let option = Options(name: name) else {
                        throw LineError(
                            next,
                            "unknown option \(quoted(name)); use any of "
                                + Options.table.map(\.name).joined(separator: ", "))
                    }
                    options.insert(option)
                }
            }
        }
        do throws(SessionError) {
            return try Configuration(category: category, mode: mode, options: options)
        } catch {
            throw LineError(place, error.reason)
        }
    }

    func preference(_ token: Token) throws(LineError) -> Step.Preference {
        switch token.word {
        case "sample-rate":
            return .sampleRate(try token.required() == "none" ? nil : try token.number(1000...768_000))
        case "io-buffer-duration":
            return .ioBufferDuration(try token.required() == "none" ? nil : try token.number(0...10))
        case "interrupt-on-route-disconnect": return .interruptsOnRouteDisconnect(try token.isOn())
        case "no-interruptions-from-alerts": return .noInterruptionsFromAlerts(try token.isOn())
        default:
            throw LineError(
                token,
                "unknown preference \(quoted(token.word)); use sample-rate=, io-buffer-duration=, "
                    + "interrupt-on-route-disconnect= or no-interruptions-from-alerts=")
        }
    }

    private func settings(_ base: Arbiter.Settings, _ tokens: [Token]) throws(LineError) -> Arbiter.Settings {
        var settings = base
        for token in tokens {
            switch token.word {
            case "grace": settings.grace = try token.number(0...1e9)
            case "max-age": settings.maxAge = try token.number(0...1e9)
            case "gain": settings.duckGain = try token.number(-200...0)
            case "sessions": settings.maxSessions = Int(try token.count(1...UInt64(Int32.max)))
            case "sessions-per-client": settings.maxSessionsPerClient = Int(try token.count(1...UInt64(Int32.max)))
            case "unplug": settings.pausesOnUnplug = try token.isOn()
            case "replug": settings.replug = try token.number(0...1e9)
            case "alerts": settings.ducksAlerts = try token.isOn()
            case "sleep": settings.pausesForSleep = try token.isOn()
            case "wake-resume": settings.resumesAfterSleep = try token.isOn()
            default:
                throw LineError(
                    token,
                    "unknown setting \(quoted(token.word)); use grace=, max-age=, gain=, sessions=, "
                        + "sessions-per-client=, alerts=, unplug=, replug=, sleep=, wake-resume=, streams=, calls=, call-program=, never=, always= or "
                        + "label-alone=")
            }
        }
        return settings
    }

    private func time(_ words: inout Words) throws(LineError) -> UInt64 {
        let token = try words.word("a time in seconds")
        guard let time = microseconds(token.word) else {
            throw LineError(token, "\(quoted(token.word)) is not a time; write seconds, such as 3 or 0.25")
        }
        return time
    }

    // MARK: The sound server

    private func port(_ words: inout Words, _ scenario: inout Scenario) throws(LineError) {
        let token = try words.word("a name for the port in this file")
        guard token.word.isLabel, token.word != "none" else {
            throw LineError(token, "use letters, digits, '-' and '_', starting with a letter")
        }
        guard scenario.ports[token.word] == nil else {
            throw LineError(token, "port \(quoted(token.word)) already exists; choose another name")
        }
        let type: PortType = try words.choice("type of port")
        var name = token.word
        if words.first?.isQuoted == true { name = try words.word("its name").word }
        var (uid, channels, rate, isAvailable) = (token.word, UInt32(2), UInt32(48_000), true)
        for token in words.rest() {
            switch token.word {
            case "uid": uid = try token.required()
            case "channels": channels = UInt32(try token.count(0...UInt64(UInt32.max)))
            case "rate": rate = UInt32(clamping: try token.count(0...10_000_000))
            case "unavailable" where token.value == nil: isAvailable = false
            default:
                throw LineError(token, "unknown word \(quoted(token.word)); use uid=, channels=, rate= or unavailable")
            }
        }
        scenario.ports[token.word] = Port(
            type: type, name: name, uid: uid, channels: channels, sampleRate: rate, isAvailable: isAvailable)
    }

    func audio(_ tokens: [Token], _ scenario: Scenario) throws(LineError) -> Audio {
        var lists: [String: [Port]] = [:]
        for token in tokens {
            guard ["out", "in", "outputs", "inputs"].contains(token.word) else {
                throw LineError(
                    token,
                    "unknown word \(quoted(token.word)); use out= and in= for the route, outputs= and inputs= for all")
            }
            var ports: [Port] = []
            for label in try token.list() {
                guard let port = scenario.ports[label] else {
                    throw LineError(token, "there is no port \(quoted(label)); declare it with 'port' above")
                }
                ports.append(port)
            }
            lists[token.word] = ports
        }
        let route = Route(inputs: lists["in"] ?? [], outputs: lists["out"] ?? [])
        return Audio(
            route: route, inputs: lists["inputs"] ?? route.inputs, outputs: lists["outputs"] ?? route.outputs)
    }

    private func sounding(_ words: inout Words, _ scenario: Scenario) throws(LineError) -> Step {
        if words.take("unknown") { return .fact(.soundingChanged(nil)) }
        var labels: [String] = []
        if !words.take("nobody") {
            let token = try words.word("sessions, or 'nobody', or 'unknown'")
            labels = try list(token, token.word, isExact: scenario.isExact)
        }
        var pausable: [String] = []
        if let token = words.takeSetting("pausable") {
            pausable = try list(token, try token.required(), isExact: scenario.isExact)
        }
        var holdable: [String] = []
        if let token = words.takeSetting("holdable") {
            holdable = try list(token, try token.required(), isExact: scenario.isExact)
        }
        var exempt: [String] = []
        if let token = words.takeSetting("exempt") {
            exempt = try list(token, try token.required(), isExact: scenario.isExact)
        }
        let others = words.take("others")
        var outputs: [(session: String, uid: String)] = []
        if words.take("on") {
            for token in words.rest() {
                outputs.append((try label(token, isExact: scenario.isExact), try token.required()))
            }
        }
        return .sounding(
            sessions: labels, pausable: pausable, holdable: holdable, exempt: exempt, outputs: outputs, others: others)
    }

    private func list(_ token: Token, _ text: String, isExact: Bool) throws(LineError) -> [String] {
        var labels: [String] = []
        for word in text.split(separator: ",") {
            let part = Token(column: token.column, word: String(word), value: nil, isQuoted: false)
            labels.append(try label(part, isExact: isExact))
        }
        return labels
    }
}

extension Step {
    /// The request of a client; nil: it is none, or it does not say everything about it.
    fileprivate var event: Event? {
        switch self {
        case .session(_, _, let new, isAdopted: false): .create(new)
        case .about(let label, let request): label.numbered.flatMap { request.event(SessionID($0), Preferences()) }
        case .fact(let event):
            switch event {
            case .setSilentMode, .setScreenLocked: event
            default: nil
            }
        default: nil
        }
    }
}

extension Step.Request {
    /// `preferences`: those of the session.
    func event(_ id: SessionID, _ preferences: @autoclosure () -> Preferences) -> Event {
        switch self {
        case .activate: return .activate(id)
        case .deactivate(let notifyOthers): return .deactivate(id, notifyOthers: notifyOthers)
        case .setCategory(let configuration): return .setCategory(id, configuration)
        case .override(let override): return .overrideOutput(id, override)
        case .preferInput(let uid): return .setPreferredInput(id, uid: uid)
        case .prefer(let wishes):
            var preferences = preferences()
            for wish in wishes { preferences.apply(wish) }
            return .setPreferences(id, preferences)
        case .close: return .close(id)
        case .foreground(let isForeground): return .setForeground(id, isForeground)
        case .ignored: return .interruptionIgnored(id)
        case .unanswered: return .clientHangs(id)
        }
    }
}
