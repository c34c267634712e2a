import PluginAPI
import Testing

@testable import Enforcement

/// Streams that duck others because of their role, and are judged by their sound.
@Suite struct SilentStreamTests {
    private typealias Stage = EnforcementTests.Stage

    private static let id = AudioStream.ID(.playback, 1)
    private static let span: UInt64 = 2_000_000

    private static func stage(role: String? = "a11y", isOn: Bool = true) -> Stage {
        var stage = Stage { $0.ducking.silentStreams = isOn }
        stage.streams = [EnforcementTests.stream(1, of: 70, role: role)]
        return stage
    }

    private static func session(_ state: SessionState, _ stage: Stage) throws -> SessionFacts {
        let role = try #require(stage.enforcement.settings.roles["a11y"])
        let kind = SessionFacts.Kind.adopted(AdoptedProgram(program: .process(70), role: role))
        return try EnforcementTests.session(1, kind, process: 70, state, isFree: true)
    }

    private static func ask(_ stage: inout Stage) -> [Enforcement.Step] {
        stage.enforcement.steps(stage.facts, at: stage.now)
    }

    @Test func voice_countsFromItsFirstSoundUntilTwoSecondsAfterItsLast() throws {
        var stage = Self.stage()
        #expect(Self.ask(&stage).isEmpty)
        #expect(stage.enforcement.commands(stage.facts, at: stage.now).measured == [Self.id])
        stage.now += 60_000_000
        #expect(Self.ask(&stage).isEmpty)
        stage.streams[0].hasSound = true
        guard case .adopt? = Self.ask(&stage).first else {
            Issue.record("it speaks, and is not adopted")
            return
        }
        stage.sessions = [try Self.session(.inactive, stage)]
        #expect(Self.ask(&stage) == [.activate(SessionID(1))])
        stage.sessions = [try Self.session(.active, stage)]
        #expect(Self.ask(&stage).isEmpty && stage.enforcement.stepDeadline == nil)
        // The backend reports silence half a second after the last sound.
        stage.streams[0].hasSound = false
        #expect(Self.ask(&stage).isEmpty)
        let due = stage.now + Self.span - AudioStream.soundSpan
        #expect(stage.enforcement.stepDeadline == due)
        stage.now = due - 1
        #expect(Self.ask(&stage).isEmpty)
        stage.now = due
        #expect(Self.ask(&stage) == [.deactivate(SessionID(1))])
        stage.sessions = [try Self.session(.inactive, stage)]
        #expect(Self.ask(&stage).isEmpty && stage.enforcement.stepDeadline == nil)
        _ = stage.run()
        #expect(stage.done.isEmpty, "it is not silenced")
        // It speaks again.
        stage.now += 5_000_000
        stage.streams[0].hasSound = true
        #expect(Self.ask(&stage) == [.activate(SessionID(1))])
    }

    @Test func soundWithinTwoSeconds_continues() throws {
        var stage = Self.stage()
        stage.sessions = [try Self.session(.active, stage)]
        for _ in 0..<5 {
            stage.streams[0].hasSound = false
            #expect(Self.ask(&stage).isEmpty)
            stage.now += 1_400_000
            #expect(Self.ask(&stage).isEmpty)
            stage.streams[0].hasSound = true
            #expect(Self.ask(&stage).isEmpty)
        }
    }

    @Test func pausedVoice_endsLikeAnyOther() throws {
        var stage = Self.stage()
        stage.sessions = [try Self.session(.active, stage)]
        stage.streams[0].isCorked = true
        #expect(Self.ask(&stage).isEmpty)
        #expect(stage.enforcement.commands(stage.facts, at: stage.now).measured.isEmpty)
        #expect(stage.enforcement.stepDeadline == stage.now + Enforcement.pause)
    }

    @Test func settingOff_countsAsLongAsItIsNotPaused() {
        var stage = Self.stage(isOn: false)
        #expect(!Self.ask(&stage).isEmpty)
        #expect(stage.enforcement.commands(stage.facts, at: stage.now).measured.isEmpty)
    }

    /// Calls, clients, and what ducks nobody.
    @Test(arguments: ["phone", "music", "event", nil]) func otherStreams_areNotJudged(role: String?) {
        var stage = Self.stage(role: role)
        #expect(!Self.ask(&stage).isEmpty)
        #expect(stage.enforcement.commands(stage.facts, at: stage.now).measured.isEmpty)
    }

    @Test func clientsStream_isNotJudged() throws {
        var stage = Self.stage()
        stage.sessions = [try EnforcementTests.session(1, .client, process: 70, .active)]
        #expect(stage.enforcement.commands(stage.facts, at: stage.now).measured.isEmpty)
    }

    /// Held by us, it makes no sound whatever its program does.
    @Test func heldVoice_isNotJudged() throws {
        var stage = Self.stage()
        stage.sessions = [try Self.session(.active, stage)]
        stage.streams[0].hasSound = true
        #expect(Self.ask(&stage).isEmpty)
        stage.sessions = [try Self.session(.interrupted, stage)]
        (stage.streams[0].isHeld, stage.streams[0].hasSound) = (true, false)
        #expect(Self.ask(&stage).isEmpty)
        #expect(stage.enforcement.commands(stage.facts, at: stage.now).measured.isEmpty)
    }

    /// The silent switch has muted it: it is not heard in the pauses either.
    @Test func mutedVoice_staysMuted() throws {
        // A voice with the role a11y is never silenced.
        var stage = Self.stage(role: "announce")
        stage.enforcement.settings.roles["announce"] = stage.enforcement.settings.roles["a11y"]
        var session = try Self.session(.inactive, stage)
        session = SessionFacts(
            id: session.id, kind: session.kind, process: 70, application: "", sessionClass: .app,
            configuration: session.configuration, state: .inactive, since: 0, isMuted: true, lowered: 0,
            lowersItself: false, mayResume: false, holdsClaim: false, mayBeTakenBack: true, isFreeToActivate: true)
        stage.sessions = [session]
        #expect(Self.ask(&stage).isEmpty)
        _ = stage.run()
        #expect(stage.streams[0].isMuted)
    }
}
