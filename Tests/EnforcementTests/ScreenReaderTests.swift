import PluginAPI
import Testing

@testable import Enforcement

/// Screen readers: whether they duck others is a setting; they are never silenced.
@Suite struct ScreenReaderTests {
    private static func facts(_ name: String, role: String? = nil) -> StreamFacts {
        StreamFacts(
            stream: AudioStream(id: AudioStream.ID(.playback, 1), processID: 70, role: role, portUID: "port"),
            ancestry: [70], sandbox: nil, program: Program(key: .process(70), name: name, names: [name]))
    }

    private static func role(_ facts: StreamFacts, _ edit: (inout Settings) -> Void = { _ in }) -> Settings.Role? {
        var settings = Settings()
        settings.ducking.screenReaders = true
        edit(&settings)
        return Adoption(settings: settings).adopted(facts)?.role
    }

    @Test(arguments: [("espeak-ng", nil), ("speech-dispatcher-dummy", nil), ("orca", nil), ("reader", "a11y")])
    func reader_isAPromptThatDucksOthers(name: String, label: String?) throws {
        let role = try #require(Self.role(Self.facts(name, role: label)))
        #expect(role.configuration.mode == .voicePrompt && role.configuration.options.contains(.duckOthers))
        #expect(role.sessionClass == .app)
        #expect(Self.facts(name, role: label).readsAloud)
    }

    @Test func reader_isNotAdoptedIfTheSettingsExcludeIt() {
        #expect(Self.role(Self.facts("espeak-ng")) { $0.ducking.screenReaders = false } == nil)
        #expect(Self.role(Self.facts("espeak-ng")) { $0.adoption.never = ["espeak-ng"] } == nil)
        #expect(Self.role(Self.facts("espeak-ng")) { $0.adoption.streams = .off } == nil)
    }

    /// It keeps its stream open between two texts.
    @Test func reader_isJudgedByItsSound() {
        var stage = EnforcementTests.Stage { $0.ducking.screenReaders = true }
        stage.streams = [
            EnforcementTests.stream(1, of: 70, role: "a11y"), EnforcementTests.stream(2, of: 71, role: "announce"),
        ]
        stage.enforcement.settings.roles["announce"] = stage.enforcement.settings.roles["a11y"]
        #expect(stage.enforcement.commands(stage.facts, at: stage.now).measured == [AudioStream.ID(.playback, 1)])
        let steps = stage.enforcement.steps(stage.facts, at: stage.now)
        #expect(steps.count == 1, "only the other one counts as long as it is open: \(steps)")
    }
}
