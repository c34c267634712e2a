import LiveStreaming
import PluginAPI
import Testing

@testable import ReferenceModel

@Suite struct LiveLinkTests {
    private static let second: UInt64 = 1_000_000

    /// Loses every connection at once, and returns the seconds between the tries.
    private func waits(_ link: inout LiveLink, from start: UInt64, _ count: Int) -> [Double] {
        var (now, waits) = (start, [Double]())
        for _ in 0..<count {
            guard let number = link.connection else { break }
            let effects = link.handle(.lost(number, .unreachable, "x"), at: now)
            guard case .wait(let until) = effects.last else { break }
            waits.append(Double(until - now) / 1e6)
            now = until
            _ = link.handle(.timePassed, at: now)
        }
        return waits
    }

    @Test func serverThatIsAway_isAskedLessAndLess() {
        var link = LiveLink()
        _ = link.handle(.start, at: 0)
        _ = link.handle(.connected(1), at: 0)
        _ = link.handle(.timePassed, at: 0)
        let all = waits(&link, from: 20 * Self.second, 60)
        #expect(all.prefix(4) == [0.5, 1, 2, 2])
        #expect(all.filter { $0 == 2 }.count == 30)
        #expect(all.filter { $0 == 5 }.count == 12)
        #expect(all.drop { $0 < 15 }.allSatisfy { $0 == 15 })
        #expect(link.state == .failed)
        // 300 s after the loss.
        #expect((285...300).contains(all.reduce(0, +)))
    }

    @Test func addressThatWasNeverRight_failsSoon() {
        var link = LiveLink()
        _ = link.handle(.start, at: 0)
        let all = waits(&link, from: 0, 60)
        #expect((15...20).contains(all.reduce(0, +)))
        #expect(link.state == .failed)
    }

    @Test func serverThatTakesAndCloses_isNotAskedMoreOften() {
        var link = LiveLink()
        var now: UInt64 = 0
        var waits: [Double] = []
        _ = link.handle(.start, at: now)
        for number in 1...8 as ClosedRange<UInt64> {
            _ = link.handle(.connected(number), at: now)
            #expect(link.state == .live)
            now += Self.second / 10
            guard case .wait(let until) = link.handle(.lost(number, .closed, "x"), at: now).last else { break }
            waits.append(Double(until - now) / 1e6)
            #expect(link.state == .reconnecting)
            now = until
            _ = link.handle(.timePassed, at: now)
        }
        #expect(waits == [0.5, 1, 2, 2, 2, 2, 2, 2])
        #expect(link.reconnects == 7)
    }

    /// How long a stream is tried: it was live for `held` seconds, and then its server does always the same.
    @Test(arguments: [
        (held: 0.1, then: LiveLink.Trouble.unreachable, seconds: 285.0...300.0),
        (held: 0.1, then: .stalled, seconds: 285...300),
        // It takes every key, and closes the connection if it is wrong.
        (held: 0.1, then: .closed, seconds: 15...20.1),
        (held: 2.9, then: .closed, seconds: 15...20.1),
        (held: 0.1, then: .refused, seconds: 15...20.1),
        // The key was right: the server has the old connection, or restarts again and again.
        (held: 3, then: .closed, seconds: 280...300),
        (held: 3, then: .refused, seconds: 280...300),
        (held: 15, then: .refused, seconds: 285...300),
        (held: 15, then: .insecure, seconds: 285...300),
    ])
    func streamThatWasLive_isTriedFor(_ row: (held: Double, then: LiveLink.Trouble, seconds: ClosedRange<Double>)) {
        var link = LiveLink()
        _ = link.handle(.start, at: 0)
        _ = link.handle(.connected(1), at: 0)
        var now = UInt64(row.held * 1e6)
        let loss = now
        var effects = link.handle(.lost(1, .closed, "x"), at: now)
        while case .wait(let until) = effects.last {
            now = until
            _ = link.handle(.timePassed, at: now)
            effects = link.handle(.lost(link.connection ?? 0, row.then, "x"), at: now)
        }
        #expect(effects.last == .fail(row.then, "x"))
        #expect(row.seconds.contains(Double(now - loss) / 1e6), "\(row): \(Double(now - loss) / 1e6) s")
    }

    /// It was live for a moment, and then its server was away: what it says afterwards counts from then on.
    @Test func serverThatWasAway_isAskedAgainLongEnough() {
        var link = LiveLink()
        _ = link.handle(.start, at: 0)
        _ = link.handle(.connected(1), at: 0)
        var now = Self.second
        guard case .wait(var until) = link.handle(.lost(1, .closed, "x"), at: now).last else { return }
        while now < 40 * Self.second {
            now = until
            _ = link.handle(.timePassed, at: now)
            guard case .wait(let next) = link.handle(.lost(link.connection ?? 0, .unreachable, "x"), at: now).last
            else { break }
            until = next
        }
        now = until
        _ = link.handle(.timePassed, at: now)
        // It still has the old connection.
        _ = link.handle(.lost(link.connection ?? 0, .refused, "x"), at: now)
        #expect(link.state == .reconnecting)
    }

    @Test func certificateThatIsNotValid_failsAtOnce() {
        var link = LiveLink()
        _ = link.handle(.start, at: 0)
        #expect(link.handle(.lost(1, .insecure, "x"), at: Self.second) == [.disconnect, .fail(.insecure, "x")])
    }

    @Test func serverThatDoesNotAnswer_isLeftAfterTenSeconds() {
        var link = LiveLink()
        #expect(link.handle(.start, at: 0) == [.connect(1), .wait(until: LiveLink.answerTime)])
        #expect(link.handle(.timePassed, at: 5 * Self.second) == [.wait(until: LiveLink.answerTime)])
        #expect(link.handle(.timePassed, at: LiveLink.answerTime).first == .disconnect)
        #expect(link.trouble == .stalled)
    }

    @Test func olderConnection_changesNothing() {
        var link = LiveLink()
        _ = link.handle(.start, at: 0)
        _ = link.handle(.lost(1, .refused, "no"), at: 1)
        _ = link.handle(.timePassed, at: 2 * Self.second)
        let before = link
        #expect(link.handle(.lost(1, .closed, "late"), at: 3 * Self.second).isEmpty)
        #expect(link.handle(.connected(1), at: 3 * Self.second).isEmpty)
        #expect(link == before)
    }

    @Test func connectionThatHeld_beginsANewCount() {
        var link = LiveLink()
        _ = link.handle(.start, at: 0)
        _ = link.handle(.lost(1, .unreachable, "x"), at: 0)
        _ = link.handle(.timePassed, at: Self.second)
        _ = link.handle(.connected(2), at: Self.second)
        let lost = Self.second + LiveLink.steady
        #expect(link.handle(.lost(2, .closed, "x"), at: lost) == [.disconnect, .wait(until: lost + Self.second / 2)])
    }

    @Test func stop_endsTheConnection() {
        var link = LiveLink()
        _ = link.handle(.start, at: 0)
        #expect(link.handle(.stop, at: 1) == [.disconnect])
        #expect(link.state == .idle)
        #expect(link.handle(.timePassed, at: 100 * Self.second).isEmpty)
    }

    /// Every order of inputs in a small world, and long random runs, judged by the second model.
    @Test func everyOrder_isAllowedByTheModel() throws {
        var count = 0
        try explore(LinkWorld(), depth: 7, &count)
        #expect(count > 10_000)
    }

    private func explore(_ world: LinkWorld, depth: Int, _ count: inout Int) throws {
        for act in LinkWorld.acts {
            var next = world
            try next.perform(act)
            count += 1
            if depth > 1 { try explore(next, depth: depth - 1, &count) }
        }
    }

    @Test(arguments: 0..<8) func longRandomRuns(_ seed: Int) throws {
        var random = SplitMix64(seed: UInt64(seed))
        var world = LinkWorld()
        for _ in 0..<20_000 {
            try world.perform(LinkWorld.acts.randomElement(using: &random) ?? .start)
        }
    }
}

/// A link with its model and a clock.
private struct LinkWorld {
    enum Act: CaseIterable {
        case start, connect, lose, vanish, pass, stop
    }
    static let acts = Act.allCases

    var link = LiveLink(giveUp: 60)
    var model = LinkModel(giveUp: 60)
    var now: UInt64 = 1_000_000

    mutating func perform(_ act: Act) throws {
        let input: LiveLink.Input
        switch act {
        case .start: input = .start
        case .connect: input = .connected(link.connection ?? 0)
        case .lose: input = .lost(link.connection ?? 0, .closed, "x")
        case .vanish: input = .lost(link.connection ?? 0, .unreachable, "x")
        case .pass:
            now = model.alarm.map { max(now, $0) } ?? now + 12_000_000
            input = .timePassed
        case .stop: input = .stop
        }
        now += 100_000
        let effects = link.handle(input, at: now)
        try model.judge(
            effects.map { effect in
                switch effect {
                case .connect(let number): .connect(number)
                case .disconnect: .disconnect
                case .wait(let until): .wait(until)
                case .fail: .fail
                }
            }, after: "\(act)", state: link.state.rawValue, at: now)
    }
}
