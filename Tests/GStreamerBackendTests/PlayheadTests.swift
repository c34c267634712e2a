import Testing

@testable import GStreamerBackend
@testable import ReferenceModel

/// Tests the state machine of an item's position, without a pipeline.
@Suite struct PlayheadTests {
    private static func target(_ time: UInt, told: Bool = false) -> Playhead.Target {
        Playhead.Target(time: time, isTold: told)
    }

    private static func made(_ inputs: [Playhead.Input], _ source: SourceTraits = .file) -> Playhead {
        var head = Playhead(source)
        for input in inputs { _ = head.handle(input) }
        return head
    }

    private static let start: [Playhead.Input] = [.done, .goOn(isFirst: true)]
    private static let toNext = Playhead.Crossing(end: 100, place: 1, isEnd: false)
    private static let toEnd = Playhead.Crossing(end: 100, place: 1, isEnd: true)

    /// States: Loading; loading while a seek waits (N); Steady; Waiting, because a seek was refused; seeKing; seeking
    /// while another seek waits (Q); Crossing to the next item; crossing to the End; Repeating.
    private static let states: [(letter: Character, inputs: [Playhead.Input])] = [
        ("L", []), ("N", [.seek(target(5))]), ("S", start),
        ("W", start + [.seek(target(5)), .seek(target(6)), .seekRefused]),
        ("K", start + [.seek(target(5, told: true))]),
        ("Q", start + [.seek(target(5, told: true)), .seek(target(6))]), ("C", start + [.sourceEnded(toNext)]),
        ("E", start + [.sourceEnded(toEnd)]), ("R", [.loops(2)] + start + [.done, .goOn(isFirst: false)]),
    ]

    private static let inputs: [(name: String, input: Playhead.Input)] = [
        ("play", .play(position: 3)), ("pause", .pause), ("seek", .seek(target(7))), ("rate", .rate(2)),
        ("end", .end(9)),
        ("loops", .loops(1)), ("no loops", .loops(0)), ("rewind", .rewind), ("crossed", .crossed), ("done", .done),
        ("go on", .goOn(isFirst: false)), ("go on, first", .goOn(isFirst: true)), ("seek refused", .seekRefused),
        ("end reached", .endReached), ("finish", .finish), ("segment done", .segmentDone),
        ("nothing comes", .nothingComes),
        ("beginning refused", .beginningRefused), ("source ended", .sourceEnded(toNext)),
        ("seek here", .seekHere(position: 3)),
    ]

    /// Each cell has the new state and the effects: seek (s), begin again (b) or at once (B), play out (o), update (u),
    /// look ahead (l); report that the item is ready (r), that the seek is done (k), that the next item is heard (a),
    /// that the item has ended (e); go on (g), go on for the first time (G), seek here (h), finish (f). A dot means
    /// that nothing changes.
    private static let table = """
                           | L     N     S     W     K     Q     C     E     R
        play               | Lu    Nu    Su    Wu    Ku    Qu    Cu    Eu    Ru
        pause              | Lu    Nu    Su    Wu    Ku    Qu    Cu    Eu    Ru
        seek               | N     N     Ks    Qs    Q     Q     Kals  Kes   Ks
        rate               | L     N     Sh    Wh    Kh    Qh    Salh  Seh   Rh
        end                | L     N     Sh    Wh    Kh    Qh    Salh  Seh   Rh
        loops              | Ll    Nl    Rl    Wl    Kl    Ql    Cl    El    Rl
        no loops           | Ll    Nl    Sl    Wl    Kl    Ql    Cl    El    Sl
        rewind             | Nu    Nu    Kus   Qus   Qu    Qu    Kuals Kues  Kus
        crossed            | .     .     .     .     .     .     Sal   Se    .
        done               | SrG   WrG   Sg    Wg    Skg   Wg    Cg    Eg    Rg
        go on              | Lu    Nu    Su    Ksu   Ku    Qu    Cu    Eu    Ru
        go on, first       | Lu    Nu    Su    Ksu   Ku    Qu    Cu    Eu    Ru
        seek refused       | .     .     .     .     Skg   Wg    .     .     .
        end reached        | .     .     Sf    .     .     .     Salf  Sef   Rf
        finish             | Le    Ne    Se    We    Ke    Qe    Ce    Ee    KB
        segment done       | Lo    .     So    .     .     .     Co    Eo    Rb
        nothing comes      | .     .     .     .     .     .     .     .     .
        beginning refused  | Le    Ne    Se    We    Se    We    Ce    Ee    Re
        source ended       | .     .     C     .     .     .     .     .     C
        seek here          | N     .     Ks    Qs    Q     .     Kals  Kes   Ks
        """

    private static func letter(_ head: Playhead) -> Character {
        switch head.phase {
        case .loading(let next): next == nil ? "L" : "N"
        case .steady(let next): next != nil ? "W" : head.loopsLeft != 0 ? "R" : "S"
        case .seeking(_, let next): next == nil ? "K" : "Q"
        case .crossing(let crossing): crossing.isEnd ? "E" : "C"
        }
    }

    private static func letter(_ effect: Playhead.Effect) -> Character {
        switch effect {
        case .seek: "s"
        case .beginAgain(let isAtOnce): isAtOnce ? "B" : "b"
        case .playOut: "o"
        case .update: "u"
        case .lookAhead: "l"
        case .tellReady: "r"
        case .tellSeeked: "k"
        case .tellAdvanced: "a"
        case .tellEnded: "e"
        case .goOn(let isFirst): isFirst ? "G" : "g"
        case .seekHere: "h"
        case .finish: "f"
        }
    }

    @Test func everyInputInEveryState_agreesWithTheTable() {
        var table = TransitionTable(Self.states.map(\.letter), cellWidth: 6)
        for (name, input) in Self.inputs {
            let cells = Self.states.map { letter, inputs -> String in
                let before = Self.made(inputs)
                #expect(Self.letter(before) == letter)
                var head = before
                let effects = head.handle(input)
                let isNothing = effects.isEmpty && head == before
                return isNothing ? "." : String(Self.letter(head)) + String(effects.map(Self.letter))
            }
            table.add(name, cells)
        }
        #expect(table.text == Self.table, "\(table.text)")
    }

    @Test func newStream_playsOnlyAfterItsFirstSeek() {
        var head = Self.made(Self.start + [.seek(Self.target(0)), .beganAnew])
        #expect(!head.mayPlay)
        _ = head.handle(.done)
        #expect(head.mayPlay)
    }

    @Test func cache_asksAServerTwiceBeforeItFails() throws {
        let token = String(repeating: "0", count: 32)
        let cached = try MediaSource(uri: "http://127.0.0.1:40000/\(token)/song.mp3")
        #expect(cached.traits.patience == 45 && cached.traits.openingTime > 45)
        #expect(cached.description.contains("timeout=45 ") && !cached.traits.canSeek)
        let film = try MediaSource(filmAt: "http://127.0.0.1:40000/\(token)/film.mp4")
        #expect(film.traits.patience == 45 && film.traits.canSeek)
        let other = try MediaSource(uri: "http://127.0.0.1:40000/song.mp3")
        #expect(other.traits == .web && other.description.contains("timeout=15 "))
    }

    @Test func itemAtAnotherRate_isNotHeardBeforeItsFirstSeek() {
        #expect(Self.made([]).mayPlay)
        #expect(!Self.made([], .web).mayPlay)
        // A URL that is in a cache.
        var cached = SourceTraits.web
        (cached.canSeek, cached.needsBuffering) = (true, false)
        #expect(Self.made([], cached).mayPlay)
        var head = Self.made([.rate(2), .done])
        #expect(head.handle(.goOn(isFirst: true)) == [.seek(Self.target(0)), .update])
        #expect(head.manner == Playhead.Manner(rate: 2))
    }

    @Test(arguments: [0, 1, 3]) func loops_areCounted_andTheLastOneEnds(loops: Int) {
        var pipeline = FakePipeline(head: Self.made([.loops(loops)]))
        pipeline.handle(.play(position: 0))
        pipeline.handle(.done)
        for _ in 0..<10 where pipeline.ends == 0 { pipeline.playThrough() }
        #expect(pipeline.begins == loops && pipeline.ends == 1)
        pipeline.handle(.rewind)
        #expect(pipeline.head.loopsLeft == loops)
    }

    /// One stream of a film may have nothing after the goal of a seek, and the end of a segment tells it nothing.
    @Test func seekOfALoopToItsEnd_goesOnWithTheEndOfTheItem() {
        var head = Self.made([.loops(-1)] + Self.start + [.done, .seek(Self.target(9, told: true))])
        #expect(head.manner.isSegmented && head.handle(.segmentDone) == [])
        #expect(head.handle(.nothingComes) == [.seek(Self.target(9, told: true))])
        #expect(!head.manner.isSegmented && head.handle(.nothingComes) == [])
        #expect(head.handle(.done) == [.tellSeeked, .goOn(isFirst: false)])
        #expect(head.handle(.endReached) == [.finish])
        #expect(head.handle(.finish) == [.beginAgain(isAtOnce: true)] && head.manner.isSegmented)
        // A seek that waits is started instead.
        head = Self.made([.loops(-1)] + Self.start + [.done, .seek(Self.target(9)), .seek(Self.target(2))])
        #expect(head.handle(.nothingComes) == [.seek(Self.target(2))] && head.manner.isSegmented)
    }

    @Test func endlessLoops_endWhenLoopsBecomeZero() {
        var pipeline = FakePipeline(head: Self.made([.loops(-1)]))
        pipeline.handle(.play(position: 0))
        pipeline.handle(.done)
        for _ in 0..<50 { pipeline.playThrough() }
        #expect(pipeline.begins == 50 && pipeline.ends == 0)
        pipeline.handle(.loops(0))
        pipeline.playThrough()
        #expect(pipeline.begins == 50 && pipeline.ends == 1)
    }

    /// A pipeline that carries out all effects at once.
    private struct FakePipeline {
        var head: Playhead
        /// A seek is in progress.
        var isSeeking = false
        var isSegmented = false
        var begins = 0
        var ends = 0
        var told = 0
        var complaints: [String] = []

        mutating func handle(_ input: Playhead.Input) {
            for effect in head.handle(input) {
                switch effect {
                case .seek:
                    if isSeeking { complaints.append("a seek during a seek") }
                    (isSeeking, isSegmented) = (true, head.manner.isSegmented)
                case .beginAgain(let isAtOnce):
                    begins += 1
                    (isSeeking, isSegmented) = (isAtOnce, head.manner.isSegmented)
                case .playOut: ends += 1
                case .tellSeeked: told += 1
                case .tellEnded: ends += 1
                case .goOn(let isFirst): handle(.goOn(isFirst: isFirst))
                case .seekHere: handle(.seekHere(position: 3))
                case .finish: handle(.finish)
                case .update, .lookAhead, .tellReady, .tellAdvanced: break
                }
            }
        }

        mutating func finishSeek(refused: Bool = false) {
            guard isSeeking else { return }
            isSeeking = false
            handle(refused ? .seekRefused : .done)
        }

        mutating func playThrough() {
            finishSeek()
            handle(isSegmented ? .segmentDone : .endReached)
        }
    }

    @Test func randomRequests_neverSeekTwiceAtATime_andAlwaysBecomeSteady() {
        var told = 0
        for seed in 0..<UInt64(2_000) {
            var dice = SplitMix64(seed: seed)
            var pipeline = FakePipeline(head: Playhead(seed % 3 != 0 ? .file : .web))
            pipeline.handle(.play(position: 0))
            for _ in 0..<60 {
                switch Int.random(in: 0..<13, using: &dice) {
                case 0: pipeline.handle(.play(position: 3))
                case 1: pipeline.handle(.pause)
                case 2: pipeline.handle(.rate([0.5, 1, 2].randomElement(using: &dice) ?? 1))
                case 3: pipeline.handle(.loops(Int.random(in: -1...2, using: &dice)))
                case 4: pipeline.handle(.rewind)
                case 5, 6:
                    pipeline.handle(.crossed)
                    pipeline.handle(.seek(Self.target(UInt.random(in: 0..<99, using: &dice), told: true)))
                case 7: if !pipeline.isSeeking { pipeline.handle(.done) }
                case 8: pipeline.finishSeek(refused: Bool.random(using: &dice))
                case 9: if pipeline.head.isSteady { pipeline.playThrough() }
                case 11: pipeline.handle(.end([nil, 50, 70].randomElement(using: &dice) ?? nil))
                case 10: pipeline.handle(.sourceEnded(Bool.random(using: &dice) ? Self.toNext : Self.toEnd))
                default: pipeline.finishSeek()
                }
            }
            for _ in 0..<4 {
                pipeline.finishSeek()
                pipeline.handle(.crossed)
                pipeline.handle(.done)
            }
            told += pipeline.told
            #expect(pipeline.complaints.isEmpty, "seed \(seed): \(pipeline.complaints)")
            #expect(pipeline.head.isSteady, "seed \(seed): \(pipeline.head)")
            #expect(pipeline.head.mayPlay && pipeline.head.target == nil)
        }
        #expect(told > 500, "seeks are hardly ever reported")
    }
}
