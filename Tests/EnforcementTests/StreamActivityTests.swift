import PluginAPI
import SessionManager
import Testing

@testable import Enforcement

/// What programs do with their streams, without a server.
@Suite struct StreamActivityTests {
    private var activity = StreamActivity()
    private var streams: [AudioStream] = []
    private let held = EnforcementTests.stream(1, of: 70)

    /// Looks at the streams, and returns how they began.
    private mutating func look(at now: UInt64) -> [UInt32: UsersHand.Beginning] {
        let look = activity.look(facts, at: now)
        activity.note(look) { _ in true }
        return Dictionary(uniqueKeysWithValues: look.beginnings.map { ($0.key.number, $0.value) })
    }

    private var facts: [StreamFacts] {
        streams.map { stream in
            let process = stream.processID ?? 0
            return StreamFacts(
                stream: stream, ancestry: [process], sandbox: nil,
                program: Program(key: .process(process), name: "p", names: ["p"]))
        }
    }

    private func isPaused(at now: UInt64) -> Bool? { activity.look(facts, at: now).streams.first?.stream.isCorked }

    /// A stream that plays since 1 s and is moved to the hold sink at 10 s.
    private mutating func playsAndIsHeld(isPauseInferred: Bool) {
        streams = [held]
        streams[0].isPauseInferred = isPauseInferred
        #expect(look(at: 1_000_000) == [1: .newStream(afterSilence: 0)])
        activity.moved(streams[0].id, at: 10_000_000)
        streams[0].isHeld = true
        #expect(look(at: 10_010_000) == [:])
    }

    @Test(arguments: [false, true]) mutating func heldStreamPausedAndPlayed_beginsAgain(_ isInferred: Bool) {
        playsAndIsHeld(isPauseInferred: isInferred)
        streams[0].isCorked = true
        #expect(look(at: 12_000_000) == [:])
        #expect(isPaused(at: 12_000_000) == true)
        streams[0].isCorked = false
        // Looking twice does not change it.
        #expect(activity.look(facts, at: 12_100_000).beginnings.count == 1)
        #expect(look(at: 12_100_000) == [1: .sameStream(afterMove: 2_090_000)])
        #expect(look(at: 12_100_000) == [:])
    }

    /// The server shows the state of the stream, which is paused while it is moved, on a busy machine for long.
    @Test(arguments: [10_020_000, 10_400_000, 10_900_000] as [UInt64])
    mutating func movedStreamIsShownAsPausedForAMoment_doesNotBegin(_ end: UInt64) {
        playsAndIsHeld(isPauseInferred: true)
        streams[0].isCorked = true
        #expect(look(at: 10_015_000) == [:])
        #expect(isPaused(at: 10_015_000) == false)
        #expect(activity.look(facts, at: 10_015_000).deadline == 11_010_000)
        streams[0].isCorked = false
        #expect(look(at: end) == [:])
    }

    /// A program may pause it just after the move, too.
    @Test mutating func pauseJustAfterAMoveThatLasts_counts() {
        playsAndIsHeld(isPauseInferred: true)
        streams[0].isCorked = true
        #expect(look(at: 10_015_000) == [:])
        #expect(isPaused(at: 11_010_000) == true)
        #expect(activity.look(facts, at: 11_010_000).deadline == nil)
        streams[0].isCorked = false
        #expect(look(at: 12_010_000) == [1: .sameStream(afterMove: 2_000_000)])
    }

    /// The request of the program is not changed by a move.
    @Test mutating func reportedPauseJustAfterAMove_counts() {
        playsAndIsHeld(isPauseInferred: false)
        streams[0].isCorked = true
        #expect(look(at: 10_015_000) == [:])
        #expect(isPaused(at: 10_015_000) == true)
        streams[0].isCorked = false
        #expect(look(at: 10_910_000) == [1: .sameStream(afterMove: 900_000)])
    }

    @Test mutating func pausedStreamIsMovedByTheServer_thenPlayed_saysSinceWhen() {
        playsAndIsHeld(isPauseInferred: false)
        streams[0].isCorked = true
        #expect(look(at: 12_000_000) == [:])
        streams[0].deviceName = "headphones"
        streams[0].isHeld = false
        #expect(look(at: 13_000_000) == [:])
        streams[0].isCorked = false
        #expect(look(at: 13_100_000) == [1: .sameStream(afterMove: 100_000)])
    }

    @Test mutating func nextTrack_followsAtOnce() {
        streams = [held]
        _ = look(at: 1_000_000)
        streams = []
        #expect(look(at: 5_000_000) == [:])
        streams = [EnforcementTests.stream(2, of: 70)]
        // It is created as paused.
        streams[0].isCorked = true
        #expect(look(at: 5_100_000) == [:])
        streams[0].isCorked = false
        #expect(look(at: 5_200_000) == [2: .newStream(afterSilence: 200_000)])
    }

    @Test mutating func newStreamBesideOneThatPlays_isNotAfterASilence() {
        streams = [held]
        _ = look(at: 1_000_000)
        streams.append(EnforcementTests.stream(2, of: 70))
        #expect(look(at: 5_000_000) == [2: .newStream(afterSilence: nil)])
        // One ends and another one begins between two looks.
        streams = [EnforcementTests.stream(3, of: 70)]
        #expect(look(at: 9_000_000) == [3: .newStream(afterSilence: nil)])
    }

    /// For example the sound of a notification in another page of a browser.
    @Test mutating func otherStreamOfAProgramThatIsHeld_doesNotBeginAgain() {
        streams = [held, EnforcementTests.stream(2, of: 70)]
        _ = look(at: 1_000_000)
        streams[0].isHeld = true
        streams[1].isCorked = true
        #expect(look(at: 2_000_000) == [:])
        streams[1].isCorked = false
        #expect(look(at: 5_000_000) == [:])
    }

    /// The streams at the first look played before.
    @Test mutating func serverIsConnectedAgain_nothingWasStartedNow() {
        playsAndIsHeld(isPauseInferred: false)
        activity.forgetStreams()
        #expect(look(at: 20_000_000) == [1: .newStream(afterSilence: 0)])
    }
}
