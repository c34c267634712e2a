import MediaControl
import Testing

@testable import ReferenceModel

@Suite struct FrontPlayerTests {
    typealias Candidate = FrontPlayer<String>.Candidate

    @Test(
        arguments: [
            ("nobody", [], nil),
            ("alone", [Candidate("a", .stopped, .never, order: 1)], "a"),
            (
                "a headset says that it plays, and is not heard",
                [
                    Candidate("music", .playing, .heard(since: 1), order: 1),
                    Candidate("headset", .playing, .never, order: 2),
                ], "music"
            ),
            (
                "the music is paused: still not the headset",
                [
                    Candidate("music", .paused, .ended(since: 1, end: 2, isSilenced: false), order: 1),
                    Candidate("headset", .playing, .never, order: 2),
                ], "music"
            ),
            (
                "the player of the now-playing session is heard",
                [
                    Candidate("music", .playing, .heard(since: 1), isNowPlaying: true, order: 1),
                    Candidate("video", .playing, .heard(since: 2), order: 2),
                ], "music"
            ),
            (
                "the player of the now-playing session is not heard",
                [
                    Candidate(
                        "music", .paused, .ended(since: 1, end: 3, isSilenced: false), isNowPlaying: true, order: 3),
                    Candidate("video", .playing, .heard(since: 2), order: 2),
                ], "video"
            ),
            (
                "two are heard: the one that started last",
                [
                    Candidate("first", .playing, .heard(since: 1), order: 9),
                    Candidate("second", .playing, .heard(since: 2), order: 1),
                ], "second"
            ),
            (
                "a player that reports nothing is heard",
                [
                    Candidate("silent", .paused, .ended(since: 1, end: 9, isSilenced: false), order: 9),
                    Candidate("mute", .stopped, .heard(since: 2), order: 1),
                ], "mute"
            ),
            (
                "the page was closed after the music was paused",
                [
                    Candidate("music", .paused, .ended(since: 1, end: 2, isSilenced: false), order: 1),
                    Candidate("page", .stopped, .ended(since: 3, end: 4, isSilenced: false), order: 2),
                ], "music"
            ),
            (
                "both were paused: the last one",
                [
                    Candidate("first", .paused, .ended(since: 1, end: 9, isSilenced: false), order: 1),
                    Candidate("second", .paused, .ended(since: 2, end: 8, isSilenced: false), order: 2),
                ], "first"
            ),
            (
                "a call silenced both at once, one of them without a pause: the one that started last",
                [
                    Candidate("first", .paused, .ended(since: 1, end: 9, isSilenced: false), order: 4),
                    Candidate("second", .playing, .ended(since: 2, end: 9, isSilenced: true), order: 3),
                ], "second"
            ),
            (
                "it says that it plays, but its sound ended by itself",
                [
                    Candidate("music", .paused, .ended(since: 1, end: 2, isSilenced: false), order: 1),
                    Candidate("page", .playing, .ended(since: 3, end: 4, isSilenced: false), order: 2),
                ], "music"
            ),
            (
                "none was heard: one that says it plays, before a newer one that is paused",
                [
                    Candidate("stopped", .stopped, .never, order: 3), Candidate("paused", .paused, .never, order: 2),
                    Candidate("playing", .playing, .never, order: 1),
                ], "playing"
            ),
            (
                "none was heard, both play: the newest",
                [Candidate("first", .playing, .never, order: 1), Candidate("second", .playing, .never, order: 2)],
                "second"
            ),
        ] as [(String, [Candidate], String?)])
    func severalPlayers_frontPlayerIsChosen(_ what: String, _ candidates: [Candidate], _ expected: String?) {
        #expect(FrontPlayer.choose(candidates) == expected)
        #expect(FrontPlayer.choose(candidates.reversed()) == expected)
    }

    @Test func randomPlayers_agreeWithTheSecondModel() {
        var random = SplitMix64(seed: 35)
        for _ in 0..<20_000 {
            let count = UInt64.random(in: 0...4, using: &random)
            let nowPlaying = UInt64.random(in: 0...4, using: &random)
            let candidates = (0..<count).shuffled(using: &random).map { order in
                let begin = UInt64.random(in: 1...3, using: &random)
                let sounds: [FrontPlayer<UInt64>.Sound] = [
                    .never, .heard(since: begin),
                    .ended(
                        since: begin, end: begin + .random(in: 1...2, using: &random),
                        isSilenced: .random(using: &random)),
                ]
                return FrontPlayer<UInt64>.Candidate(
                    order, PlaybackStatus.allCases.randomElement(using: &random) ?? .stopped,
                    sounds.randomElement(using: &random) ?? .never, isNowPlaying: order == nowPlaying, order: order)
            }
            #expect(FrontPlayer.choose(candidates) == second(candidates), "\(candidates)")
        }
    }

    /// The rules, one sentence after the other.
    private func second(_ all: [FrontPlayer<UInt64>.Candidate]) -> UInt64? {
        var heard: [(player: UInt64, began: UInt64, isNowPlaying: Bool)] = []
        var paused: [(player: UInt64, end: UInt64, began: UInt64)] = []
        for one in all {
            switch (one.sound, one.status) {
            case (.heard(let began), _): heard.append((one.player, began, one.isNowPlaying))
            case (.ended(let began, let end, _), .paused), (.ended(let began, let end, isSilenced: true), .playing):
                paused.append((one.player, end, began))
            default: break
            }
        }
        if let one = heard.first(where: \.isNowPlaying) { return one.player }
        if let one = heard.sorted(by: { ($0.began, $0.player) > ($1.began, $1.player) }).first { return one.player }
        if let one = paused.sorted(by: { ($0.end, $0.began, $0.player) > ($1.end, $1.began, $1.player) }).first {
            return one.player
        }
        for status in [PlaybackStatus.playing, .paused, .stopped] {
            if let newest = all.filter({ $0.status == status }).map(\.player).max() { return newest }
        }
        return nil
    }
}

@Suite struct PlayerSoundTests {
    private typealias Sound = FrontPlayer<Int>.Sound
    private var sound = PlayerSound()
    private let second: UInt64 = 1_000_000

    @Test mutating func neverHeard_waitsForNothing() {
        sound.observe(isHeard: false, isSilenced: false, at: second)
        #expect(sound.sound(at: 2 * second) == Sound.never)
        #expect(sound.deadline(at: 2 * second) == nil)
    }

    @Test mutating func soundEnds_countsForTwoSeconds_andOnlyOnce() {
        sound.observe(isHeard: true, isSilenced: false, at: second)
        #expect(sound.sound(at: 5 * second) == Sound.heard(since: second))
        #expect(sound.deadline(at: 5 * second) == nil)
        sound.observe(isHeard: false, isSilenced: false, at: 6 * second)
        #expect(sound.sound(at: 8 * second - 1) == Sound.heard(since: second))
        #expect(sound.deadline(at: 8 * second - 1) == 8 * second)
        #expect(sound.sound(at: 8 * second) == Sound.ended(since: second, end: 6 * second, isSilenced: false))
        #expect(sound.deadline(at: 8 * second) == nil)
    }

    @Test mutating func nextTrack_didNotStartNow() {
        sound.observe(isHeard: true, isSilenced: false, at: second)
        sound.observe(isHeard: false, isSilenced: false, at: 6 * second)
        sound.observe(isHeard: true, isSilenced: false, at: 7 * second)
        #expect(sound.sound(at: 9 * second) == Sound.heard(since: second))
    }

    @Test mutating func pausedAndPlayedWithinTwoSeconds_startedNow() {
        sound.observe(isHeard: true, isSilenced: false, at: second)
        sound.observe(isHeard: false, isSilenced: false, at: 6 * second)
        sound.started(at: 7 * second)
        sound.observe(isHeard: true, isSilenced: false, at: 7 * second + 10)
        #expect(sound.sound(at: 9 * second) == Sound.heard(since: 7 * second))
    }

    @Test mutating func heldByTheDaemon_isSilenced() {
        sound.observe(isHeard: true, isSilenced: false, at: second)
        sound.observe(isHeard: false, isSilenced: true, at: 6 * second)
        #expect(sound.sound(at: 9 * second) == Sound.ended(since: second, end: 6 * second, isSilenced: true))
        // Its player paused it.
        sound.observe(isHeard: false, isSilenced: false, at: 10 * second)
        #expect(sound.sound(at: 10 * second) == Sound.ended(since: second, end: 6 * second, isSilenced: false))
    }
}
