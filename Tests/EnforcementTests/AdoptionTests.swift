import PluginAPI
import Testing

@testable import Enforcement

/// Sessions of our making, as what a program counts as changes.
@Suite struct AdoptionTests {
    private typealias Stage = EnforcementTests.Stage

    /// Settings read anew: what a program counts as is changed where it can be, and ended where not.
    @Test func otherSettings_changeOrEndWhatWasAdopted() throws {
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

    /// Nobody says when a sandboxed program ends; a player closes its stream while it is paused, and is resumed.
    @Test func sandboxWithoutAStream_isThereWhileItMayComeBack() throws {
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

    /// Who ends leaves the bus first: its sound need not become a session of our making for the milliseconds in between.
    @Test func streamOfASessionThatWent_isAdoptedAWhileLater() throws {
        var stage = Stage()
        stage.streams = [EnforcementTests.stream(1, of: 70)]
        stage.sessions = [try EnforcementTests.session(1, .told, process: 70, .active)]
        #expect(stage.enforcement.steps(stage.facts, at: 0).isEmpty)
        stage.sessions = []
        #expect(stage.enforcement.steps(stage.facts, at: 5_000_000).isEmpty)
        let due = try #require(stage.enforcement.commands(stage.facts, at: 5_000_000).deadline)
        #expect(stage.enforcement.steps(stage.facts, at: due - 1).isEmpty)
        #expect(stage.enforcement.steps(stage.facts, at: due).count == 1)
    }
}
