import PluginAPI
import SessionManager
import Testing

@testable import Decider

/// On which outputs a session counts while its streams come, go and are moved.
@Suite struct OutputsHeardTests {
    private struct Stage {
        var outputs = OutputsHeard()
        var arbiter = Arbiter()
        var time = 0.0
        let music: SessionID

        init() throws {
            let new = NewSession(
                name: "music", client: ClientID(1), configuration: try Configuration(category: .playback))
            music = arbiter.handle(.create(new), at: Instant(microseconds: 0)).created ?? SessionID(0)
            _ = arbiter.handle(.activate(music), at: Instant(microseconds: 0))
        }

        mutating func look(_ streams: AudioStream...) -> Set<String>? {
            let now = Instant(microseconds: 1_000_000).advanced(bySeconds: time)
            outputs.look(streams, of: arbiter.sessions, at: now) { [music] _ in [music] }
            return outputs.outputs[music]
        }

        mutating func interrupt() throws {
            let new = NewSession(
                name: "call", client: ClientID(2), sessionClass: .call,
                configuration: try Configuration(category: .playback))
            let call = arbiter.handle(.create(new), at: Instant(microseconds: 0)).created ?? SessionID(0)
            _ = arbiter.handle(.activate(call), at: Instant(microseconds: 0))
        }
    }

    private static func stream(
        _ number: UInt32, on uid: String?, isCorked: Bool = false, isHeld: Bool = false, isMuted: Bool = false
    ) -> AudioStream {
        AudioStream(
            id: AudioStream.ID(.playback, number), isCorked: isCorked, isMuted: isMuted, portUID: uid, isHeld: isHeld)
    }

    @Test func neverAStream_isNotListed() throws {
        var stage = try Stage()
        #expect(stage.look() == nil)
        #expect(stage.look(Self.stream(1, on: nil)) == nil)
    }

    @Test func pausedHeldMutedOrEndedStream_countsWhereItWasHeard() throws {
        var stage = try Stage()
        #expect(stage.look(Self.stream(1, on: "phones")) == ["phones"])
        #expect(stage.look(Self.stream(1, on: "speaker", isCorked: true)) == ["phones"])
        #expect(stage.look(Self.stream(1, on: "speaker", isMuted: true)) == ["phones"])
        #expect(stage.look(Self.stream(1, on: nil, isHeld: true)) == ["phones"])
        #expect(stage.look() == ["phones"])
        // The next track begins paused.
        #expect(stage.look(Self.stream(2, on: "speaker", isCorked: true)) == ["phones"])
        #expect(stage.look(Self.stream(2, on: "speaker")) == ["speaker"])
    }

    @Test func movedStream_countsOnBothForAMoment_andTheMomentEnds() throws {
        var stage = try Stage()
        _ = stage.look(Self.stream(1, on: "phones"))
        #expect(stage.outputs.deadline == nil)
        #expect(stage.look(Self.stream(1, on: "speaker")) == ["phones", "speaker"])
        #expect(stage.outputs.deadline == Instant(microseconds: 1_500_000))
        stage.time = 0.5
        #expect(stage.look(Self.stream(1, on: "speaker")) == ["speaker"])
        #expect(stage.outputs.deadline == nil)
    }

    @Test func streamOnTheGuardWhileItsOutputGoes_countsWhereItWas() throws {
        var stage = try Stage()
        _ = stage.look(Self.stream(1, on: "phones"))
        #expect(stage.look(Self.stream(1, on: nil)) == ["phones"])
    }

    @Test func twoStreams_countOnBothOutputs() throws {
        var stage = try Stage()
        #expect(stage.look(Self.stream(1, on: "phones"), Self.stream(2, on: "screen")) == ["phones", "screen"])
        #expect(stage.look(Self.stream(2, on: "screen")) == ["screen"])
    }

    @Test func interruptedSession_keepsItsOutputs() throws {
        var stage = try Stage()
        _ = stage.look(Self.stream(1, on: "phones"))
        try stage.interrupt()
        #expect(stage.look(Self.stream(1, on: "speaker")) == ["phones"])
        stage.outputs.forgetStreams()
        #expect(stage.look(Self.stream(7, on: "speaker")) == ["phones"])
    }

    @Test func nextDaemon_continuesWithTheStoredOutputs() throws {
        var stage = try Stage()
        stage.outputs = OutputsHeard([stage.music: ["phones"]])
        #expect(stage.look(Self.stream(1, on: nil, isHeld: true)) == ["phones"])
        #expect(stage.look(Self.stream(1, on: "speaker", isCorked: true)) == ["phones"])
        #expect(stage.look(Self.stream(1, on: "speaker")) == ["speaker"])
    }

    @Test func closedSession_isForgotten() throws {
        var stage = try Stage()
        _ = stage.look(Self.stream(1, on: "phones"))
        _ = stage.arbiter.handle(.close(stage.music), at: Instant(microseconds: 0))
        #expect(stage.look() == nil)
    }
}
