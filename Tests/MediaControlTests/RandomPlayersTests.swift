import MediaControl
import Testing

@testable import ReferenceModel

/// Random players, users and timing. The book never resumes a player wrongly, and resumes it if nothing prevents it.
@Suite struct RandomPlayersTests {
    @Test(arguments: 0..<40) func randomHistory_resumesExactlyThePlayersThatItMay(_ seed: Int) {
        for round in 0..<50 {
            var run = PlayerRun(seed: UInt64(seed * 50 + round))
            run.go(steps: 60)
            #expect(run.faults.isEmpty, "seed \(seed * 50 + round): \(run.faults)\n\(run.log.joined(separator: "\n"))")
            if !run.faults.isEmpty { return }
        }
    }

    @Test func randomHistories_containPausesAndResumes() {
        var resumed = 0
        var paused = 0
        for seed in 0..<200 {
            var run = PlayerRun(seed: UInt64(seed))
            run.go(steps: 60)
            resumed += run.plays
            paused += run.pauses
        }
        #expect(resumed > 10 && paused > 100)
    }
}

/// The book, one player, and a bus between them. The bus delivers messages with delays, in order in each direction.
private struct PlayerRun {
    private enum Parcel {
        case ask, pause, play
        case told(PlayerFacts)
        case answer(PlayerFacts?)
        case paused(Bool), played(Bool)
    }
    private struct Delivery {
        let due: UInt64
        let parcel: Parcel
    }

    private var random: SplitMix64
    private var book = PauseBook<Int>()
    private var player: MockPlayer
    private var now: UInt64 = 1_000_000
    private var toPlayer: [Delivery] = []
    private var toBook: [Delivery] = []
    private var lastReply: UInt64 = 0
    private var demand = Demand.free
    /// Whether a daemon runs that has the book.
    private var isKept = true
    /// The real state of the player when it last answered a question.
    private var answered: (player: MockPlayer, at: UInt64)?
    /// When the last demand for silence began, and whether the player played then.
    private var stretch: (since: UInt64, played: Bool) = (0, false)
    /// The time while the daemon's last pause, or the player's reaction to it, was on its way.
    private var pauseWindow: ClosedRange<UInt64> = 0...0
    /// When the daemon last resumed it.
    private var playedByUs: UInt64 = 0
    private var isRestarted = false
    /// How often it was paused in this interruption.
    private var pausesNow = 0
    private(set) var faults: [String] = []
    private(set) var log: [String] = []
    private(set) var plays = 0
    private(set) var pauses = 0

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        player = MockPlayer(manner: Manner.allCases.randomElement(using: &random) ?? .correct)
        log.append("\(player.manner)")
        carryOut(book.demand(.free, of: 1, at: now))
        if Bool.random(using: &random) { act(.play) }
    }

    mutating func go(steps: Int) {
        for _ in 0..<steps {
            switch Int.random(in: 0..<10, using: &random) {
            case 0: act(MockPlayer.Deed.allCases.randomElement(using: &random) ?? .play)
            case 1...3:
                want(
                    [.free, .silent(since: now), .silent(since: now), .resume, .either].randomElement(using: &random)
                        ?? .free)
            case 4:
                if Int.random(in: 0..<4, using: &random) == 0 {
                    restart()
                } else {
                    pass(.random(in: 0...40_000, using: &random))
                }
            // All messages have arrived long ago.
            case 5...6:
                settle()
                judgeRest()
            default: pass(.random(in: 0...3_000_000, using: &random))
            }
            if !faults.isEmpty { return }
        }
    }

    private mutating func note(_ text: String) { log.append("\(now / 1_000) ms \(text)") }

    private mutating func act(_ deed: MockPlayer.Deed) {
        guard player.person(deed, at: now) else { return }
        note("person \(deed)")
        tell()
    }

    private mutating func want(_ wanted: Demand) {
        // Only an interruption can lead to a demand to resume, whatever another session does meanwhile.
        let follows = wanted == .resume && demand == .either || demand.isSilent
        guard wanted != demand, follows || wanted == .free || wanted.isSilent else { return }
        note("demand \(wanted)")
        if wanted.isSilent, demand != .either { stretch = (now, player.status == .playing) }
        if wanted.isSilent { pausesNow = 0 }
        demand = wanted
        carryOut(book.demand(wanted, of: 1, at: now))
    }

    /// Lets time pass, and delivers everything that is due meanwhile.
    private mutating func pass(_ span: UInt64) {
        let end = now + span
        func next() -> UInt64? {
            [toPlayer.first?.due, toBook.first?.due, isKept ? book.nextDeadline : nil].compactMap(\.self).min()
        }
        while let due = next(), due <= end {
            now = max(now, due)
            if toPlayer.first?.due == due {
                handle(toPlayer.removeFirst().parcel)
            } else if toBook.first?.due == due {
                hear()
            } else {
                carryOut(book.timePassed(at: now))
            }
        }
        now = end
    }

    /// The daemon is killed, perhaps before it sent what it had written down. The next daemon continues from the kept
    /// pauses. It asks every player for its state, and gets no reply to questions of the last daemon.
    private mutating func restart() {
        let kept = book.kept(at: now)
        note("restart, \(kept)")
        isKept = false
        // Messages on their way arrive before the next question.
        pass(player.manner == .late ? 9_000_000 : 60_000)
        toBook = []
        isKept = true
        book = PauseBook()
        isRestarted = true
        // It does not know of a second pause.
        pausesNow = 0
        for pause in kept { book.keep(pause) }
        if player.manner == .deaf { return }
        answered = (player, now)
        carryOut(book.told(player.facts, by: 1, at: now))
        carryOut(book.demand(demand, of: 1, at: now))
        pauseWindow = pauseWindow.lowerBound...min(pauseWindow.upperBound, max(now, pauseWindow.lowerBound))
    }

    private mutating func settle() {
        for _ in 0..<20 { pass(1_000_000) }
    }

    /// With no message on its way, checks that everything has happened that must.
    private mutating func judgeRest() {
        guard [.correct, .late, .quiet].contains(player.manner), stretch.since > 0 else { return }
        guard player.personActed < stretch.since, stretch.played else { return }
        switch demand {
        case .silent where player.manner == .quiet && player.personActed > 0: break
        case .silent: if player.status == .playing { faults.append("plays on, although it should be silent") }
        case .resume: if player.status != .playing { faults.append("was not resumed, although nothing prevents it") }
        case .free, .either: break
        }
    }

    // MARK: The bus

    private mutating func send(_ parcel: Parcel) {
        let isLate = player.manner == .late
        let delay: UInt64 = .random(in: 100...(isLate ? 4_000_000 : 20_000), using: &random)
        toPlayer.append(Delivery(due: max(now + delay, toPlayer.last?.due ?? 0), parcel: parcel))
    }

    private mutating func reply(_ parcel: Parcel) {
        lastReply = max(now + .random(in: 100...5_000, using: &random), lastReply)
        toBook.insert(
            Delivery(due: lastReply, parcel: parcel), at: toBook.firstIndex { $0.due > lastReply } ?? toBook.count)
    }

    /// The result of the caller's own timeout, without the player.
    private mutating func giveUp(_ parcel: Parcel) {
        let due = now + 5_000_000
        toBook.insert(Delivery(due: due, parcel: parcel), at: toBook.firstIndex { $0.due > due } ?? toBook.count)
    }

    private mutating func tell() { if player.manner != .quiet { reply(.told(player.facts)) } }

    private mutating func carryOut(_ commands: [PauseBook<Int>.Command]) {
        for command in commands {
            note("\(command)")
            switch command {
            case .ask: send(.ask)
            case .pause:
                pauses += 1
                pausesNow += 1
                if pausesNow > 2 { faults.append("paused for the third time in an interruption") }
                if !demand.isSilent { faults.append("paused without a demand for silence") }
                if answered?.player.status != .playing { faults.append("paused a player that did not play") }
                pauseWindow = (answered?.at ?? now)...UInt64.max
                send(.pause)
            case .play:
                plays += 1
                if demand != .resume { faults.append("resumed without a demand") }
                judgePlay()
                send(.play)
            case .takeBack:
                if !demand.isSilent { faults.append("took the sound back without an interruption") }
                // The book notices the user of a quiet player later.
                // A daemon that was killed may have resumed it.
                let isResumed = playedByUs > player.personPlayed && isRestarted
                if player.manner != .quiet, player.personPlayed + 10_000 < stretch.since, !isResumed {
                    faults.append("took another change for the user's")
                }
            }
        }
    }

    /// Judges a resume by the state that the player last reported. The book cannot know what the user did later.
    private mutating func judgePlay() {
        guard let (player, _) = answered else { return faults.append("resumed without asking") }
        guard player.status == .paused else { return faults.append("resumed a player that is \(player.status)") }
        guard player.pausedByUs == nil else { return }
        // No message shows who paused if the user and the daemon pause at the same time, or what the user of a quiet
        // player did.
        if player.manner == .quiet || pauseWindow.contains(player.personActed) { return }
        faults.append("resumed a player that the user had paused")
    }

    private mutating func handle(_ parcel: Parcel) {
        let before = player.facts
        switch parcel {
        case .ask:
            // The caller gives up after some seconds. The player does not change.
            if player.manner == .deaf { return giveUp(.answer(nil)) }
            answered = (player, now)
            reply(.answer(player.facts))
        case .pause:
            let succeeded = player.pause(at: now)
            if player.facts != before { tell() }
            if player.manner == .deaf { giveUp(.paused(false)) } else { reply(.paused(succeeded)) }
        case .play:
            let succeeded = player.play(at: now)
            playedByUs = now
            if player.facts != before { tell() }
            if player.manner == .deaf { giveUp(.played(false)) } else { reply(.played(succeeded)) }
        case .told, .answer, .paused, .played: break
        }
    }

    private mutating func hear() {
        guard isKept else {
            toBook.removeFirst()
            return
        }
        switch toBook.removeFirst().parcel {
        case .told(let facts):
            note("told \(facts.status) \(facts.track.id)")
            carryOut(book.told(facts, by: 1, at: now))
        case .answer(let facts):
            note("answer \(facts.map { "\($0.status) \($0.track.id)" } ?? "none")")
            carryOut(book.answered(1, facts, at: now))
        case .paused(let succeeded):
            note("pause ended \(succeeded)")
            pauseWindow = pauseWindow.lowerBound...(now + PauseBook<Int>.echoTime)
            carryOut(book.pauseEnded(1, succeeded: succeeded, at: now))
        case .played(let succeeded):
            note("play ended \(succeeded)")
            carryOut(book.playEnded(1, succeeded: succeeded, at: now))
        case .ask, .pause, .play: break
        }
    }
}
