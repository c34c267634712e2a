import Scenario
import Testing

@testable import ReferenceModel

/// Random scenarios of programs on several outputs that are unplugged and plugged in again, also during calls. What must
/// happen is written by a second model of rules §7: it knows only where each program was last heard.
@Suite struct RandomUnplugTests {
    @Test func randomRuns_agreeWithTheModel() throws {
        var counts: [String: Int] = [:]
        for seed in UInt64(1)...150 {
            var story = UnplugStory(seed: seed)
            for _ in 0..<40 { story.step() }
            var run = Run(try Scenario(story.text, file: "seed \(seed)"))
            run.perform()
            guard run.failures.isEmpty else {
                let failures = run.failures.prefix(3).map { "line \($0.line): \($0.expected); \($0.seen)" }
                Issue.record("seed \(seed): \(failures.joined(separator: "\n"))\n\(story.text)")
                return
            }
            counts.merge(story.counts, uniquingKeysWith: +)
        }
        for what in ["interrupted", "untouched", "resumed", "kept silent", "back in time"] {
            #expect(counts[what, default: 0] > 20, "\(what)")
        }
    }
}

private struct UnplugStory {
    private enum Status {
        case playing
        /// Nobody but the user starts it again.
        case stopped
        /// Interrupted by the loss of that output, at that time.
        case unplugged(String, at: Double)
        /// Interrupted by the call; its outputs that went since and are not back.
        case inCall(away: Set<String>)
    }

    private struct Player {
        let name: String
        let hasPlayer: Bool
        var chosen: String?
        /// Where it was last heard.
        var heard = ""
        var status = Status.playing
    }

    private var random: SplitMix64
    private var lines = [
        "port speaker Speaker", "port screen HDMI", "port phones Headphones",
        "server out=phones outputs=speaker,screen,phones", "session phone playback class=call",
    ]
    /// The last one is the newest, and the route.
    private var present = ["speaker", "screen", "phones"]
    private var players: [Player] = []
    private var time = 0.0
    private var isCalling = false
    private(set) var counts: [String: Int] = [:]

    var text: String { lines.joined(separator: "\n") }

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        for (name, hasPlayer) in [("a", true), ("b", true), ("c", false)] {
            var player = Player(name: name, hasPlayer: hasPlayer)
            player.chosen = [nil, "speaker", "screen", "phones"].randomElement(using: &random) ?? nil
            lines.append("program \(name)")
            lines.append("stream s\(name) of \(name)" + (player.chosen.map { " on \($0)" } ?? ""))
            if hasPlayer { lines.append("player p\(name) of s\(name)") }
            players.append(player)
        }
        settle()
    }

    mutating func step() {
        switch Int.random(in: 0..<10, using: &random) {
        case 0...3: unplugOrPlug()
        case 4, 5: callBeginsOrEnds()
        case 6, 7: use()
        case 8: move()
        default: pass(Double(Int.random(in: 5...25, using: &random)))
        }
        pass(2)
        settle()
    }

    private mutating func pass(_ seconds: Double) {
        time += seconds
        lines.append("wait \(seconds)")
    }

    private var ports: String { "out=\(present.last ?? "none") outputs=\(present.joined(separator: ","))" }

    private mutating func unplugOrPlug() {
        let port = ["speaker", "screen", "phones"].randomElement(using: &random) ?? "phones"
        if !present.contains(port) {
            present.append(port)
            lines.append("route new-device-available \(ports)")
            for index in players.indices {
                switch players[index].status {
                case .unplugged(port, let since) where time - since <= 30 && !isCalling:
                    players[index].status = .playing
                    counts["resumed", default: 0] += 1
                case .inCall(var away):
                    if away.remove(port) != nil { counts["back in time", default: 0] += 1 }
                    players[index].status = .inCall(away: away)
                case .playing, .stopped, .unplugged: break
                }
            }
        } else if present.count > 1 {
            let isRoute = present.last == port
            present.removeAll { $0 == port }
            lines.append((isRoute ? "route old-device-unavailable " : "ports ") + ports)
            for index in players.indices {
                let isIts = players[index].heard == port
                switch players[index].status {
                case .playing where isIts && players[index].hasPlayer:
                    players[index].status = .unplugged(port, at: time)
                    lines.append("expect \(players[index].name) began route-disconnected")
                    counts["interrupted", default: 0] += 1
                case .playing where !isIts:
                    lines.append("expect \(players[index].name) active")
                    counts["untouched", default: 0] += 1
                case .inCall(let away) where isIts: players[index].status = .inCall(away: away.union([port]))
                case .playing, .stopped, .unplugged, .inCall: break
                }
            }
        }
    }

    private mutating func callBeginsOrEnds() {
        isCalling.toggle()
        lines.append(isCalling ? "activate phone" : "deactivate phone")
        for index in players.indices {
            switch players[index].status {
            case .playing where isCalling: players[index].status = .inCall(away: [])
            case .inCall(let away) where !isCalling:
                lines.append("expect \(players[index].name) ended \(away.isEmpty ? "resume" : "stay")")
                if !away.isEmpty { counts["kept silent", default: 0] += 1 }
                players[index].status = away.isEmpty || !players[index].hasPlayer ? .playing : .stopped
            case .playing, .stopped, .unplugged, .inCall: break
            }
        }
    }

    /// The user pauses or plays a player.
    private mutating func use() {
        let index = Int.random(in: 0...1, using: &random)
        guard !isCalling else { return }
        switch players[index].status {
        case .playing:
            lines.append("pause p\(players[index].name)")
            players[index].status = .stopped
        case .stopped, .unplugged:
            lines.append("play p\(players[index].name)")
            players[index].status = .playing
        case .inCall: break
        }
    }

    private mutating func move() {
        guard let index = players.indices.randomElement(using: &random), case .playing = players[index].status,
            let port = present.randomElement(using: &random)
        else { return }
        players[index].chosen = port
        lines.append("move s\(players[index].name) to \(port)")
    }

    /// What plays is heard where the server puts it.
    private mutating func settle() {
        for index in players.indices {
            let player = players[index]
            if case .playing = player.status {
                players[index].heard =
                    player.chosen.flatMap { present.contains($0) ? $0 : nil } ?? present.last ?? ""
                lines.append("expect \(player.name) active")
                if player.hasPlayer { lines.append("expect player p\(player.name) playing") }
            } else if player.hasPlayer {
                lines.append("expect player p\(player.name) paused")
            } else {
                lines.append("expect stream s\(player.name) held")
            }
        }
    }
}
