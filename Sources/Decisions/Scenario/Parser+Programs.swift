import PluginAPI

/// Programs that do not use sessiond, and their streams.
extension Parser {
    mutating func program(_ words: inout Words) throws(LineError) -> Step {
        let token = try words.word("a name for the program in this file")
        try declare(token)
        programs.insert(token.word)
        // Above the process ids of any machine.
        var program = SimulatedServer.App(
            name: token.word, process: (1 << 30) + UInt32(programs.count), executable: "", sandbox: "")
        if words.first?.isQuoted == true { program.name = try words.word("its name").word }
        for token in words.rest() {
            switch token.word {
            case "executable": program.executable = try token.required()
            case "sandbox": program.sandbox = try token.required()
            case "name": program.otherNames.append(try token.required())
            case "no-call" where token.value == nil: program.mayCall = false
            case "no-alert" where token.value == nil: program.mayAlert = false
            case "no-guess" where token.value == nil: program.mayBeGuessed = false
            default:
                throw LineError(
                    token,
                    "unknown word \(quoted(token.word)); use executable=, sandbox=, name=, no-call, no-alert or no-guess"
                )
            }
        }
        return .program(token.word, program)
    }

    mutating func stream(_ words: inout Words, _ scenario: Scenario) throws(LineError) -> Step {
        let token = try words.word("a name for the stream in this file")
        try declare(token)
        guard words.take("of") else { throw LineError(token, "write 'of' and the program after the name") }
        let program = try programLabel(words.word("a program"))
        let isRecording = words.take("record")
        var output: String?
        if !isRecording, words.take("on") { output = try self.output(words.word("an output"), scenario) }
        var role: String?
        var title = ""
        var event = ""
        for token in words.rest() {
            switch token.word {
            case "role": role = try token.required()
            case "title": title = try token.required()
            case "event": event = try token.required()
            default:
                throw LineError(token, "unknown word \(quoted(token.word)); use record, on, role=, title= or event=")
            }
        }
        streams.insert(token.word)
        return .begin(
            token.word,
            SimulatedServer.Beginning(
                program: program, isRecording: isRecording, role: role, title: title, event: event, output: output))
    }

    /// The uid of a port.
    func output(_ token: Token, _ scenario: Scenario) throws(LineError) -> String {
        guard let port = scenario.ports[token.word] else {
            throw LineError(token, "there is no port \(quoted(token.word)); declare it with 'port' above")
        }
        return port.uid
    }

    mutating func player(_ words: inout Words) throws(LineError) -> Step {
        let token = try words.word("a name for the player in this file")
        try declare(token)
        guard words.take("of") else { throw LineError(token, "write 'of' and the stream after the name") }
        let stream = try streamLabel(words.word("a stream"))
        players.insert(token.word)
        return .player(token.word, stream: stream)
    }

    func playerLabel(_ token: Token) throws(LineError) -> String {
        guard players.contains(token.word) else {
            throw LineError(token, "there is no player \(quoted(token.word)); declare it with 'player' above")
        }
        return token.word
    }

    func streamLabel(_ token: Token) throws(LineError) -> String {
        guard streams.contains(token.word) else {
            throw LineError(token, "there is no stream \(quoted(token.word)); begin one with 'stream'")
        }
        return token.word
    }

    func programLabel(_ token: Token) throws(LineError) -> String {
        guard programs.contains(token.word) else {
            throw LineError(token, "there is no program \(quoted(token.word)); declare it with 'program' above")
        }
        return token.word
    }

    private func declare(_ token: Token) throws(LineError) {
        guard token.word.isLabel else {
            throw LineError(token, "use letters, digits, '-' and '_', starting with a letter")
        }
        guard !programs.contains(token.word), !streams.contains(token.word), !players.contains(token.word) else {
            throw LineError(token, "\(quoted(token.word)) already exists; choose another name")
        }
    }

    /// Removes the settings of adoption from the tokens.
    func adoption(_ tokens: inout [Token], _ adoption: inout Settings.Adoption) throws(LineError) {
        for token in tokens {
            switch token.word {
            case "streams": adoption.streams = try chosen(token, token.required(), "way to adopt")
            case "calls": adoption.calls = try chosen(token, token.required(), "kind of calls")
            case "call-program": adoption.callPrograms.append(try token.required())
            case "never": adoption.never.append(try token.required())
            case "always": adoption.always.append(try token.required())
            case "label-alone": adoption.labelAlone = try token.isOn()
            default: break
            }
        }
        let words = ["streams", "calls", "call-program", "never", "always", "label-alone"]
        tokens.removeAll { words.contains($0.word) }
    }
}
