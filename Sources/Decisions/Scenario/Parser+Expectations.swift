import PluginAPI
import SessionManager

/// The arguments of `expect`.
extension Parser {
    static let claims =
        "active, inactive, interrupted [by SESSION] [REASON], gone, waits for SESSION,… or nobody, [not] lowered, "
        + "[not] muted, may [not] return, hears nothing, began [by SESSION] [REASON], ended resume or stay, created, "
        + "activated, deactivated, closed, claim-dropped, hint begin or end, routed [REASON]"

    func expectation(_ words: inout Words) throws(LineError) -> Expectation {
        if words.take("nothing") { return .nothing }
        if words.take("refused") {
            return .refused(words.isEmpty ? nil : try words.choice("error", SessionError.Code.self))
        }
        if words.take("now-playing") {
            return .nowPlaying(words.take("nobody") ? nil : try label(words.word("a session or 'nobody'")))
        }
        if !isSession("stream"), words.take("stream") {
            let label = try streamLabel(words.word("a stream"))
            if words.take("volume") {
                let token = try words.word("its volume")
                guard let points = Int(token.word), (0...150).contains(points) else {
                    throw LineError(token, "write a volume from 0 to 150")
                }
                return .volume(label, points)
            }
            return .stream(label, try words.choice("state of a stream"))
        }
        if !isSession("player"), words.take("player") {
            let label = try playerLabel(words.word("a player"))
            return .player(label, try words.choice("state of a player"))
        }
        if !isSession("output"), words.take("output") { return .output(try words.word("a port's uid").word) }
        let label = try label(
            words.word("a session, 'stream', 'player', 'output', 'nothing', 'refused' or 'now-playing'"))
        return .session(label, try claim(&words))
    }

    private func isSession(_ name: String) -> Bool { sessions[name] != nil || programs.contains(name) }

    private func claim(_ words: inout Words) throws(LineError) -> Expectation.Claim {
        let token = try words.word("what is expected of it: \(Self.claims)")
        switch token.word {
        case "active", "inactive": return .state(try chosen(token, token.word, "state"))
        case "interrupted":
            let by = try by(&words)
            return .interrupted(by: by, try reason(&words))
        case "gone": return .gone
        case "waits":
            guard words.take("for") else { throw LineError(token, "write 'waits for' and who") }
            return .waitsFor(words.take("nobody") ? [] : try labels(&words))
        case "not":
            if words.take("lowered") { return .lowered(false) }
            if words.take("muted") { return .muted(false) }
            throw LineError(token, "write 'not lowered' or 'not muted'")
        case "lowered": return .lowered(true)
        case "muted": return .muted(true)
        case "may":
            let isNot = words.take("not")
            guard words.take("return") else { throw LineError(token, "write 'may return' or 'may not return'") }
            return .mayReturn(!isNot)
        case "hears":
            guard words.take("nothing") else { throw LineError(token, "write 'hears nothing'") }
            return .hearsNothing
        case "began":
            let by = try by(&words)
            return .began(by: by, try reason(&words), try rule(&words))
        case "ended":
            let resume = try words.flag(on: "resume", off: "stay")
            return .ended(resume: resume, try rule(&words))
        case "hint": return .hint(begin: try words.flag(on: "begin", off: "end"))
        case "routed": return .routed(words.isEmpty ? nil : try RouteChangeReason(words.word("a reason")))
        default:
            guard let happening = Expectation.Happening(rawValue: token.word) else {
                throw LineError(token, "\(quoted(token.word)) is not an expectation; use \(Self.claims)")
            }
            return .happened(happening, try rule(&words))
        }
    }

    private func by(_ words: inout Words) throws(LineError) -> String? {
        words.take("by") ? try label(words.word("a session")) : nil
    }

    private func reason(_ words: inout Words) throws(LineError) -> InterruptionReason? {
        guard let token = words.first, !token.word.isRule else { return nil }
        return try words.choice("reason", InterruptionReason.self)
    }

    private func rule(_ words: inout Words) throws(LineError) -> Rule? {
        guard let token = words.first, token.word.isRule else { return nil }
        return try words.choice("rule", Rule.self)
    }

    private func labels(_ words: inout Words) throws(LineError) -> [String] {
        var labels: [String] = []
        repeat {
            let token = try words.word("a session or 'nobody'")
            for word in token.word.split(separator: ",") where word != "and" {
                labels.append(
                    try label(Token(column: token.column, word: String(word), value: nil, isQuoted: false)))
            }
        } while !words.isEmpty
        return labels
    }
}

extension String {
    fileprivate var isRule: Bool { unicodeScalars.first == "§" || unicodeScalars.first == "R" }
}
