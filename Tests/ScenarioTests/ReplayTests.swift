import PluginAPI
import Scenario
import SessionManager
import Testing

@testable import ReferenceModel

/// An exported history that is replayed and exported again is identical.
@Suite struct ReplayTests {
    struct Shell {
        var arbiter = Arbiter()
        var history: History
        var now = Instant(microseconds: 7_000_001)

        mutating func send(_ event: Event) {
            if let due = arbiter.nextDeadline, due <= now, event != .timePassed { take(.timePassed) }
            take(event)
        }

        private mutating func take(_ event: Event) {
            if history.wantsCheckpoint { history.keep(arbiter) }
            history.append(arbiter.handle(event, at: now))
        }
    }

    /// A random event of any kind, for sessions of all kinds.
    static func random(_ shell: Shell, using random: inout SplitMix64) -> Event {
        func pick<T>(_ values: [T]) -> T { values.randomElement(using: &random)! }
        func coin() -> Bool { Bool.random(using: &random) }
        let id = SessionID(UInt64.random(in: 1...12, using: &random))
        func configuration() -> Configuration {
            while true {
                let options = Options(rawValue: coin() ? 0 : UInt16.random(in: 0..<256, using: &random) & 0b1000_0111)
                let legal = try? Configuration(
                    category: pick(Category.allCases), mode: coin() ? .default : pick(Mode.allCases), options: options)
                if let legal { return legal }
            }
        }
        func audio() -> Audio {
            let types: [PortType] = [.speaker, .headphones, .microphoneBuiltIn]
            let ports = types.map { type in
                Port(
                    type: type, name: "a \"\(type)\"\u{202E}\n", uid: type.rawValue, channels: 2,
                    sampleRate: pick([44_100, 48_000]), isAvailable: coin())
            }
            return Audio(
                route: Route(inputs: coin() ? [ports[2]] : [], outputs: [ports[coin() ? 0 : 1]]),
                inputs: coin() ? [ports[2]] : [], outputs: Array(ports.prefix(coin() ? 2 : 1)))
        }
        switch Int.random(in: 0..<42, using: &random) {
        case 0..<5:
            return .create(
                NewSession(
                    name: pick(["Music", "a \\ \"b\"", "名前\u{0}\t#", "", "e\u{301}"]),
                    client: ClientID(UInt64.random(in: 1...4, using: &random)),
                    sessionClass: pick([.app, .app, .app, .alert, .call]), configuration: configuration(),
                    notifiesOnExit: coin()))
        case 5..<17: return .activate(id)
        case 17..<22: return .deactivate(id, notifyOthers: coin())
        case 22..<25: return .setCategory(id, configuration())
        case 25: return .close(id)
        case 26: return .setForeground(id, coin())
        case 27: return .setSilentMode(coin())
        case 28: return .setScreenLocked(coin())
        case 29: return .clientVanished(ClientID(UInt64.random(in: 1...4, using: &random)))
        case 30: return .servicesReset(audio())
        case 31: return coin() ? .servicesLost : .portsChanged(audio())
        case 32: return .routeChanged(pick(RouteChangeReason.allCases), audio())
        case 33:
            var sounding = Sounding(sessions: [id, SessionID(2)], pausable: coin() ? [id] : [], others: coin())
            if coin() {
                sounding.outputs[SessionID(3)] = ["Headphones"]
                sounding.outputs[id] = ["Speaker", "a \"b, c"]
            }
            return .soundingChanged(coin() ? nil : sounding)
        case 34: return coin() ? .microphoneMuted(coin()) : .interruptionIgnored(id)
        case 35:
            var settings = Arbiter.Settings()
            settings.grace = pick([0.1, 5, 1.0 / 3])
            settings.maxAge = pick([0, 2.5])
            settings.duckGain = pick([-12, -20.5])
            settings.maxSessions = pick([1024, 6])
            settings.pausesOnUnplug = settings.maxSessions == 6
            settings.replug = settings.maxAge * 3
            settings.resumesAfterSleep = coin()
            settings.pausesForSleep = coin()
            return .settingsChanged(settings)
        case 39: return .asleep(coin())
        case 40: return .clientHangs(id)
        case 36: return .overrideOutput(id, coin() ? .speaker : .none)
        case 37: return .setPreferredInput(id, uid: pick(["", "MicrophoneBuiltIn", "no such \" one"]))
        case 38:
            var preferences = Preferences()
            preferences.sampleRate = coin() ? 44_100.5 : nil
            preferences.ioBufferDuration = coin() ? 0.005 : nil
            preferences.interruptsOnRouteDisconnect = coin()
            preferences.noInterruptionsFromAlerts = coin()
            return .setPreferences(id, preferences)
        default: return .timePassed
        }
    }

    @Test(arguments: [512, 40, 3, 1]) func randomHistory_replayed_isIdentical(capacity: Int) throws {
        for seed in 0..<120 {
            var generator = SplitMix64(seed: UInt64(seed))
            var shell = Shell(history: History(capacity: capacity))
            for _ in 0..<Int.random(in: 1...300, using: &generator) {
                shell.now = shell.now.advanced(bySeconds: Double.random(in: 0...2, using: &generator))
                shell.send(Self.random(shell, using: &generator))
            }
            // The shell keeps a checkpoint whenever the history wants one, so there is always a start, even with room
            // for only one decision.
            let replayable = try #require(shell.history.replayable())
            let text = Transcript.text(of: replayable)
            // The export goes back as far as the history, except for the decisions before its first checkpoint.
            let kept = shell.history.latest(.max).count
            #expect(replayable.entries.count > kept - max(1, capacity / 4) - 1)
            var run = Run(try Scenario(text, file: "seed \(seed)"))
            run.perform()
            #expect(run.failures.prefix(3) == [])
            #expect(run.transcript.utf8.elementsEqual(text.utf8), "seed \(seed)")
        }
    }

    /// The export is exact from each start, and not longer than the limit.
    @Test func historyWithALimit_beginsLaterAndIsIdentical() throws {
        var generator = SplitMix64(seed: 7)
        var shell = Shell(history: History(capacity: 64))
        for _ in 0..<400 {
            shell.now = shell.now.advanced(bySeconds: Double.random(in: 0...2, using: &generator))
            shell.send(Self.random(shell, using: &generator))
        }
        #expect(shell.history.starts > 2)
        var sizes: [Int] = []
        for start in 0..<shell.history.starts {
            let part = try #require(shell.history.replayable(from: start))
            let text = Transcript.text(of: part)
            #expect(Transcript.text(of: part, limit: text.utf8.count) == text)
            #expect(part.entries.isEmpty || Transcript.text(of: part, limit: 10) == nil)
            var run = Run(try Scenario(text, file: "from \(start)"))
            run.perform()
            #expect(run.failures.isEmpty && run.transcript == text)
            sizes.append(part.entries.count)
        }
        #expect(sizes == sizes.sorted(by: >))
        #expect(shell.history.replayable(from: shell.history.starts) == nil)
    }

    @Test func changedDecision_isReportedAtItsLine() throws {
        var shell = Shell(history: History(capacity: 8))
        let music = try Configuration(category: .playback)
        for number in 1...2 {
            shell.send(.create(NewSession(name: "A", client: ClientID(UInt64(number)), configuration: music)))
        }
        shell.send(.activate(SessionID(1)))
        shell.send(.activate(SessionID(2)))
        let text = Transcript.text(of: try #require(shell.history.replayable()))
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let place = try #require(lines.firstIndex { $0.contains("began") })
        var changed = lines
        changed[place] = changed[place].replacing("§4", with: "§3")
        var run = Run(try Scenario(changed.joined(separator: "\n"), file: "f"))
        run.perform()
        #expect(run.failures.map(\.line) == [place + 1])
        changed = lines
        changed.remove(at: place)
        run = Run(try Scenario(changed.joined(separator: "\n"), file: "f"))
        run.perform()
        #expect(!run.failures.isEmpty)
    }

    /// What followed from streams, which are not in the file, is not passed off as decided again.
    @Test func adoptedSessionsInAHistory_areNamedAndKept() throws {
        var shell = Shell(history: History(capacity: 8))
        let music = try Configuration(category: .playback)
        let plain = NewSession(name: "Plain", client: ClientID(1), configuration: music)
        let adopted = NewSession(name: "Song", client: ClientID(2), configuration: music, notifiesOnExit: true)
        let guessed = NewSession(
            name: "Talk (call)", client: ClientID(3), sessionClass: .call, configuration: music, evidence: "plays")
        shell.send(.create(plain))
        for new in [adopted, guessed] {
            shell.history.append(shell.arbiter.handle(.create(new), at: shell.now), isAdoption: true)
        }
        shell.send(.activate(SessionID(2)))
        shell.send(.activate(SessionID(3)))
        shell.send(.interruptionIgnored(SessionID(2)))
        let text = Transcript.text(of: try #require(shell.history.replayable()))
        let lines = text.split(separator: "\n").map(String.init)
        #expect(lines.filter { $0.hasSuffix(" adopted") }.count == 2)
        let scenario = try Scenario(text, file: "f")
        #expect(
            scenario.undecided.map(\.what) == [
                "the adoption of 'Song'", "the guessed call of 'Talk (call)'", "that s2 ignored its interruption",
            ])
        #expect(
            scenario.undecided.map(\.line)
                == lines.indices.filter { lines[$0].hasSuffix(" adopted") || lines[$0].hasPrefix("ignored") }
                .map { $0 + 1 })
        var run = Run(scenario)
        run.perform()
        #expect(run.failures == [] && run.transcript == text)
        // An earlier export, without the word.
        let old = try Scenario(text.replacing(" adopted\n", with: "\n"), file: "f")
        #expect(old.undecided.map(\.what) == Array(scenario.undecided.map(\.what).dropFirst()))
        // A copy of the state in the middle of the call.
        shell.history.keep(shell.arbiter)
        let later = try Scenario(
            Transcript.text(of: try #require(shell.history.replayable(from: shell.history.starts - 1))), file: "f")
        #expect(later.undecided.map(\.what) == ["the guessed call of 'Talk (call)', made before this file begins"])
        // Not in an exported file: the author states what is guessed.
        #expect(try Scenario("session a playback class=call evidence=x", file: "f").undecided == [])
    }

    @Test func memoryOfARunningArbiter_makesAnIdenticalArbiter() throws {
        for seed in UInt64(500)..<560 {
            var generator = SplitMix64(seed: seed)
            var shell = Shell(history: History(capacity: 8))
            for _ in 0..<150 {
                shell.now = shell.now.advanced(bySeconds: Double.random(in: 0...2, using: &generator))
                shell.send(Self.random(shell, using: &generator))
            }
            var twin = try Arbiter(shell.arbiter.memory)
            for _ in 0..<150 {
                shell.now = shell.now.advanced(bySeconds: Double.random(in: 0...2, using: &generator))
                let event = Self.random(shell, using: &generator)
                let (a, b) = (shell.arbiter.handle(event, at: shell.now), twin.handle(event, at: shell.now))
                var (first, second) = (Transcript(), Transcript())
                #expect(first.lines(of: a) == second.lines(of: b))
            }
        }
    }
}
