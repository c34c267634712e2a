import PluginAPI
import Testing

@testable import Enforcement

/// Adopted sessions while the role of their program changes.
@Suite struct AdoptionTests {
    private typealias Stage = EnforcementTests.Stage

    /// After settings are reloaded, the role of an adopted program is changed if possible; otherwise its session is
    /// closed.
    @Test func changedSettings_changeOrCloseAdoptedSessions() throws {
        var stage = Stage()
        stage.streams = [EnforcementTests.stream(1, of: 70), EnforcementTests.stream(2, of: 70)]
        stage.sessions = [try EnforcementTests.session(1, EnforcementTests.adopted(70), process: 70, .interrupted)]
        #expect(stage.enforcement.steps(stage.facts, at: 0).isEmpty)
        stage.enforcement.settings.adoption.streams = .all
        let full = AdoptedProgram(
            program: .process(70), role: Settings.Role(try Configuration(category: .playback)))
        #expect(stage.enforcement.steps(stage.facts, at: 0) == [.change(SessionID(1), to: full)])
        stage.sessions = [try EnforcementTests.session(1, .adopted(full), process: 70, .interrupted)]
        #expect(stage.enforcement.steps(stage.facts, at: 0).isEmpty)
        stage.enforcement.settings.adoption.never = ["p70"]
        #expect(stage.enforcement.steps(stage.facts, at: 0) == [.close(SessionID(1))])
    }

    /// The daemon does not learn when a sandboxed program ends. A player closes its stream while it is paused, but must
    /// still be resumed.
    @Test func sandboxWithoutAStream_keepsItsSessionWhileItMayResume() throws {
        var stage = Stage()
        let kind = SessionFacts.Kind.adopted(
            AdoptedProgram(
                program: .sandbox("org.example.Music"), role: Settings.Role(try Configuration(category: .playback))))
        for (state, mayResume, isClosed) in [
            (SessionState.interrupted, false, false), (.inactive, true, false), (.inactive, false, true),
            (.active, false, true),
        ] {
            stage.sessions = [try EnforcementTests.session(1, kind, process: 0, state, mayResume: mayResume)]
            #expect(stage.enforcement.steps(stage.facts, at: 0) == (isClosed ? [.close(SessionID(1))] : []))
        }
    }

    @Test func streamWithoutASession_hasAReason() throws {
        func reason(
            _ direction: AudioStream.Direction = .playback, role: String? = nil, isMeter: Bool = false,
            isCorked: Bool = false, program: Program? = Program(key: .process(70), name: "p70", names: ["p70"]),
            _ edit: (inout Settings.Adoption) -> Void = { _ in }
        ) -> Unadopted {
            var settings = Settings()
            edit(&settings.adoption)
            var stream = AudioStream(
                id: AudioStream.ID(direction, 1), processID: 70, isPeakMeter: isMeter, role: role, portUID: "port")
            stream.isCorked = isCorked
            let facts = StreamFacts(stream: stream, ancestry: [70], sandbox: nil, program: program)
            return Enforcement(settings).unadopted(facts)
        }
        let reader = Program(key: .process(70), name: "espeak-ng", names: ["espeak-ng"])
        #expect(reason(program: nil) == .own)
        #expect(reason(program: .server) == .server)
        #expect(reason(.record) == .recording && reason(.record, isMeter: true) == .meter)
        #expect(reason { $0.never = ["p70"] } == .never)
        #expect(reason { ($0.never, $0.always) = (["p70"], ["p70"]) } == .never)
        #expect(reason(program: reader) == .screenReader)
        #expect(reason(program: reader) { $0.always = ["espeak-ng"] } == .soon)
        #expect(reason { $0.streams = .off } == .off)
        #expect(reason { ($0.streams, $0.always) = (.off, ["p70"]) } == .soon)
        #expect(reason(isCorked: true) == .paused && reason() == .soon)
        for reason in Unadopted.allCases { #expect(!reason.text(program: "p70").isEmpty) }
    }

    /// The rules have refused its session, for example because there are too many.
    @Test func streamWhoseSessionIsRefused_hasThatReason() throws {
        var stage = Stage()
        stage.streams = [EnforcementTests.stream(1, of: 70)]
        #expect(stage.enforcement.steps(stage.facts, at: 0).count == 1)
        #expect(stage.enforcement.unadopted(stage.facts.streams[0]) == .refused)
    }

    /// A program that exits leaves the bus first: its streams must not be adopted for the last milliseconds.
    @Test func streamOfAClosedSession_isAdoptedAfterADelay() throws {
        var stage = Stage()
        stage.streams = [EnforcementTests.stream(1, of: 70)]
        stage.sessions = [try EnforcementTests.session(1, .client, process: 70, .active)]
        #expect(stage.enforcement.steps(stage.facts, at: 0).isEmpty)
        stage.sessions = []
        #expect(stage.enforcement.steps(stage.facts, at: 5_000_000).isEmpty)
        let due = try #require(stage.enforcement.commands(stage.facts, at: 5_000_000).deadline)
        #expect(stage.enforcement.steps(stage.facts, at: due - 1).isEmpty)
        #expect(stage.enforcement.steps(stage.facts, at: due).count == 1)
    }

    /// The reason for an adoption names the setting.
    @Test func reason_namesTheRoleAndTheSetting() throws {
        func reason(_ role: String?, mayCall: Bool = true, _ edit: (inout Settings) -> Void = { _ in }) -> String? {
            var settings = Settings()
            edit(&settings)
            var enforcement = Enforcement(settings)
            let program = Program(key: .process(70), name: "p70", names: ["p70"], mayCall: mayCall)
            let facts = Enforcement.Facts(
                sessions: [],
                streams: [
                    StreamFacts(
                        stream: EnforcementTests.stream(1, of: 70, role: role), ancestry: [70], sandbox: nil,
                        program: program)
                ], canHold: true, defaultDevice: "speaker", gone: [])
            guard case .adopt(let adopted, _, _) = enforcement.steps(facts, at: 0).first else { return nil }
            return enforcement.reason(for: adopted, facts)
        }
        let begin = "its program does not use sessiond; adopted as "
        #expect(
            reason(nil) == begin + "playback, mix-with-others: no media.role; [adoption] streams = calls")
        let full = reason(nil) { $0.adoption.streams = .all }
        #expect(full == begin + "playback: no media.role; [adoption] streams = all")
        #expect(
            reason("Phone")?.hasPrefix(begin + "call, play-and-record") == true
                && reason("Phone")?.hasSuffix(": media.role 'Phone'; [adoption] streams = calls") == true)
        #expect(reason("phone", mayCall: false)?.contains("'phone', but it may not take the class call; ") == true)
        #expect(reason("abc")?.contains("media.role 'abc', which is not in [roles]; ") == true)
        let named = reason(nil) { settings in
            settings.adoption.streams = .off
            settings.adoption.always = ["p70"]
        }
        #expect(named == begin + "playback: no media.role; it is listed in [adoption] always")
        let role = Settings.Role(try Configuration(category: .ambient))
        let stage = Stage()
        // A paused player may have no stream.
        let gone = stage.enforcement.reason(for: AdoptedProgram(program: .process(9), role: role), stage.facts)
        #expect(gone == begin + "ambient: see [adoption] and [roles]")
    }

    // MARK: Alarms

    private static func alarm(
        _ number: UInt32, of process: UInt32, role: String? = "event", event: String = "alarm-clock-elapsed"
    ) -> AudioStream {
        var stream = EnforcementTests.stream(number, of: process, role: role)
        stream.properties["event.id"] = event
        return stream
    }

    private static func role(_ stream: AudioStream, mayAlert: Bool = true, key: Program.Key = .process(70))
        -> AdoptedProgram?
    {
        let program = Program(key: key, name: "clock", names: ["clock"], mayAlert: mayAlert)
        return Adoption(settings: Settings()).adopted(
            StreamFacts(stream: stream, ancestry: [70], sandbox: nil, program: program))
    }

    @Test func alarm_isAnAlertOfAllPrograms() throws {
        for stream in [
            Self.alarm(1, of: 70), Self.alarm(1, of: 70, role: nil),
            EnforcementTests.stream(1, of: 70, role: "Alarm"),
        ] {
            let adopted = try #require(Self.role(stream))
            #expect(adopted.program == Program.alarm)
            #expect(adopted.role.sessionClass == .alert)
            #expect(adopted.role.configuration.category == .playback)
        }
        let cached = try #require(Self.role(Self.alarm(1, of: 0), key: Program.eventSounds))
        #expect(cached.program == Program.alarm)
    }

    @Test func alarmThatMayNotAlert_mixes() throws {
        let adopted = try #require(Self.role(Self.alarm(1, of: 70), mayAlert: false))
        #expect(adopted.program == .process(70))
        #expect(adopted.role.sessionClass == .app)
        #expect(adopted.role.configuration.category == .playback && adopted.role.configuration.isMixable)
    }

    @Test func ringing_isAnEventSound() throws {
        for key in [Program.Key.process(70), Program.eventSounds] {
            let adopted = try #require(Self.role(Self.alarm(1, of: 70, event: "phone-incoming-call"), key: key))
            #expect(adopted.program == key)
            #expect(adopted.role.configuration.category == .ambient)
        }
        // What the server plays without a client and without a role is nobody's.
        #expect(Self.role(Self.alarm(1, of: 0, role: nil, event: "tone"), key: Program.eventSounds) == nil)
    }

    @Test func alarm_endsFiveSecondsAfterItsLastSound_byAnyProcess() throws {
        var stage = Stage()
        stage.streams = [Self.alarm(1, of: 70)]
        guard case .adopt(let adopted, _, _)? = stage.enforcement.steps(stage.facts, at: 0).first else {
            Issue.record("it is not adopted")
            return
        }
        stage.sessions = [try EnforcementTests.session(1, .adopted(adopted), process: 0, .active, class: .alert)]
        #expect(stage.enforcement.steps(stage.facts, at: 0).isEmpty)
        stage.streams = []
        #expect(stage.enforcement.steps(stage.facts, at: 1_000_000).isEmpty)
        #expect(stage.enforcement.commands(stage.facts, at: 1_000_000).deadline == 6_000_000)
        // The next ring, by another process.
        stage.streams = [Self.alarm(2, of: 71)]
        #expect(stage.enforcement.steps(stage.facts, at: 5_000_000).isEmpty)
        stage.streams = []
        #expect(stage.enforcement.steps(stage.facts, at: 6_000_000).isEmpty)
        #expect(stage.enforcement.steps(stage.facts, at: 11_000_000) == [.deactivate(SessionID(1))])
        stage.sessions = [try EnforcementTests.session(1, .adopted(adopted), process: 0, .inactive, class: .alert)]
        #expect(stage.enforcement.steps(stage.facts, at: 11_000_000) == [.close(SessionID(1))])
        #expect(stage.enforcement.commands(stage.facts, at: 11_000_000).deadline == nil)
    }
}
