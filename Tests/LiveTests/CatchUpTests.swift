import LiveStreaming
import Testing

@Suite struct CatchUpTests {
    private typealias Seen = CatchUp.Observation

    /// Each tenth of a second one observation: the delay for that many seconds.
    private func run(
        _ catchUp: inout CatchUp, _ parts: [(seconds: Double, behind: Double)], from start: UInt64 = 0
    ) -> [(time: Double, action: CatchUp.Action)] {
        var now = start
        var actions: [(Double, CatchUp.Action)] = []
        for part in parts {
            for _ in 0..<Int(part.seconds * 10) {
                now += 100_000
                if let action = catchUp.observe(Seen(behind: part.behind, silence: 0), at: now) {
                    actions.append((Double(now) / 1e6, action))
                }
            }
        }
        return actions
    }

    @Test(
        arguments: [
            // The target, what was seen, and what follows.
            (0.2, [(5.0, 0.2)], []),
            (0.2, [(5.0, 0.29)], []),
            (0.2, [(5.0, 0.31)], [1.1]),
            (0.06, [(5.0, 0.08), (2, 0.1), (1, 0.06)], [1.1, 1]),
            (0.2, [(0.9, 1.0), (3, 0.3)], []),
            (0.2, [(2.0, 1.0), (1, 0.3), (1, 0.2)], [1.1, 1]),
            (0.2, [(1.5, 1.0), (30, 0.5)], [1.1]),
            (0.2, [(0.1, 5.1)], [0]),
            (4.0, [(9.0, 5.9)], []),
            (4.0, [(0.1, 7.9), (0.1, 8.1)], [0]),
        ] as [(Double, [(Double, Double)], [Double])])
    func delay_isCaughtUp(_ target: Double, _ parts: [(Double, Double)], _ expected: [Double]) {
        var catchUp = CatchUp(target: target)
        let actions = run(&catchUp, parts.map { (seconds: $0.0, behind: $0.1) })
        let rates = actions.map { (_, action) -> Double in
            switch action {
            case .play(let rate): rate
            case .skip: 0
            }
        }
        #expect(rates == expected, "\(actions)")
    }

    @Test func longDelay_isCaughtUpAfterASecond() {
        var catchUp = CatchUp(target: 0.2)
        let actions = run(&catchUp, [(3, 1)])
        #expect(actions.count == 1 && actions.first?.time == 1.1)
        #expect(catchUp.rate == CatchUp.fast)
    }

    @Test func piecesOfAServer_areNoDelay() {
        // Segments of 2 s: the newest jumps, and then nothing comes.
        var catchUp = CatchUp(target: 4)
        for tick in 0..<200 {
            let silence = Double(tick % 20) / 10
            let action = catchUp.observe(Seen(behind: 4.5 - silence, silence: silence), at: UInt64(tick) * 100_000)
            #expect(action == nil && !catchUp.isStalled)
        }
    }

    @Test func nothingArrives_isStalled_andNothingIsSkipped() {
        var catchUp = CatchUp(target: 0.2)
        for tick in 0..<200 {
            let silence = Double(tick) / 10
            let action = catchUp.observe(
                Seen(behind: max(0, 0.2 - silence), silence: silence), at: UInt64(tick) * 100_000)
            #expect(action == nil)
            #expect(catchUp.isStalled == (silence >= 0.5), "\(silence)")
        }
        #expect(catchUp.observe(Seen(behind: 0.2, silence: 0), at: 20_000_000) == nil)
        #expect(!catchUp.isStalled)
    }

    @Test func clockThatStands_isStalled() {
        var catchUp = CatchUp(target: 0.2)
        for tick in 0..<10 as Range<UInt64> {
            _ = catchUp.observe(Seen(behind: 0.4, silence: 0.1 * Double(tick)), at: tick * 100_000)
        }
        #expect(catchUp.isStalled)
        _ = catchUp.observe(Seen(behind: 0.5, silence: 0), at: 1_000_000)
        #expect(!catchUp.isStalled)
    }

    @Test func networkThatNeedsMore_getsIt_andLaterLess() {
        var catchUp = CatchUp(target: 0.2)
        _ = catchUp.observe(Seen(behind: 1, silence: 0, late: 1), at: 1_000_000)
        #expect(catchUp.aim(at: 1_000_000) == 1 && catchUp.aim(at: 11_000_000) == 1)
        #expect(abs(catchUp.aim(at: 61_000_000) - 0.5) < 0.001)
        #expect(catchUp.aim(at: 60 * 60_000_000) == 0.2)
        // It came too late again when it had been shortened: it is kept for twice as long, and so on up to some minutes.
        var (now, late) = (UInt64(1_000_000), 1)
        for hold in [20, 40, 80, 160, 320, 320] as [UInt64] {
            now += hold * 1_000_000
            late += 1
            _ = catchUp.observe(Seen(behind: 1, silence: 0, late: late), at: now)
            #expect(catchUp.aim(at: now + hold * 1_000_000) == 1, "\(hold)")
            #expect(abs(catchUp.aim(at: now + 6 * hold * 1_000_000) - 0.5) < 0.001, "\(hold)")
        }
        // Long after that, it begins anew.
        now += 12 * 320_000_000
        _ = catchUp.observe(Seen(behind: 1, silence: 0, late: late + 1), at: now)
        #expect(catchUp.aim(at: now + 20_000_000) < 1)
    }

    /// A machine that stumbles each second, so that the delay grows by a twentieth of the time.
    @Test func slowMachine_doesNotMakeTheStreamLaterAndLater() {
        var (catchUp, behind, rate, skips) = (CatchUp(target: 0.06), 0.06, 1.0, 0)
        for tick in 1...6_000 as ClosedRange<UInt64> {
            behind -= (rate - 1) * 0.1
            if tick % 10 == 0 { behind += 0.05 }
            switch catchUp.observe(Seen(behind: behind, silence: 0, slow: Int(tick / 10)), at: tick * 100_000) {
            case .play(let other): rate = other
            case .skip: skips += 1
            case nil: break
            }
            #expect(behind < 0.6, "\(behind) s after \(tick / 10) s")
        }
        #expect(skips == 0)
    }

    @Test func delayThatIsNeeded_isNotTooLong() {
        var catchUp = CatchUp(target: 0.2)
        _ = catchUp.observe(Seen(behind: 1, silence: 0, late: 1), at: 1_000_000)
        for tick in 0..<100 as Range<UInt64> {
            #expect(catchUp.observe(Seen(behind: 1, silence: 0, late: 1), at: 1_000_000 + tick * 100_000) == nil)
        }
    }
}
