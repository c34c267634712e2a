import PluginAPI
import Testing

@testable import Enforcement

/// A server that says it has moved a stream before it has, as PipeWire does.
@Suite struct SlowServerTests {
    private typealias Stage = EnforcementTests.Stage

    private static func stage() throws -> Stage {
        var stage = Stage()
        var stream = EnforcementTests.stream(1, of: 70)
        stream.volumeInterval = 0.021
        stage.streams = [stream]
        stage.sessions = [
            try EnforcementTests.session(1, EnforcementTests.adopted(70), process: 70, .interrupted)
        ]
        return stage
    }

    @Test func onItsWay_isFadedMeanwhile_thenSilent_andNotLoudBeforeItHasStopped() throws {
        var stage = try Self.stage()
        let (id, start) = (AudioStream.ID(.playback, 1), stage.now)
        _ = stage.run(until: start + 11_000)
        let levels = [8, 18, 30].map { StreamCommand.setVolume(id, Level.volume([65_536], lowered: $0)) }
        #expect(stage.done == [levels[0], .hold(id)] + levels[1...])
        _ = stage.run(until: start + 100_000)
        #expect(stage.done.dropFirst(4) == [.setVolume(id, Level.volume([65_536], lowered: Level.lowest))])
        stage.streams[0].isStopping = false
        _ = stage.run(until: start + 100_000)
        #expect(stage.done.dropFirst(5) == [.setVolume(id, [65_536])])
        #expect(stage.streams[0].isHeld)
    }

    @Test func shownAtItsOldPlaceAgain_isNotLoudYet() throws {
        var stage = try Self.stage()
        let start = stage.now
        _ = stage.run(until: start + 20_000)
        stage.streams[0].isHeld = false
        stage.streams[0].isStopping = false
        _ = stage.run(until: start + 100_000)
        #expect(stage.streams[0].volume == Level.volume([65_536], lowered: Level.lowest))
        stage.streams[0].isHeld = true
        _ = stage.run(until: start + 100_000)
        #expect(stage.streams[0].volume == [65_536])
    }

    /// Somebody has woken up the sink where it is held: silent it is there, too.
    @Test func neverStops_isAsItsPersonLeftItAllTheSame() throws {
        var stage = try Self.stage()
        _ = stage.run()
        #expect(stage.streams[0].volume == [65_536])
        #expect(stage.streams[0].isHeld && !stage.streams[0].isMuted)
    }

    @Test func theCallEndsBeforeItHasStopped_isBackAsItWas() throws {
        var stage = try Self.stage()
        _ = stage.run(until: stage.now + 20_000)
        stage.sessions = [try EnforcementTests.session(1, EnforcementTests.adopted(70), process: 70, .active)]
        _ = stage.run(until: stage.now + 20_000)
        #expect(stage.streams[0].volume == [65_536] && !stage.streams[0].isHeld)
        #expect(stage.enforcement.kept.isEmpty)
    }
}
