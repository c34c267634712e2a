import LoopbackHTTP
import MediaCache

/// One request of a player, from its question to the last byte.
final class CacheReader {
    let number: UInt64
    let exchange: LoopbackExchange
    let ask: RangeAsk
    let redirectsLive: Bool
    /// The next byte to send; where it ends, nil: at an unknown end.
    var place: UInt64
    var end: UInt64?
    /// Whether its head was sent.
    var isAnswered = false
    /// Whether it waits for bytes.
    var isWaiting = true
    /// Why nothing more comes.
    var trouble: MediaCache.Trouble?

    init(_ number: UInt64, _ exchange: LoopbackExchange, tag: String?, redirectsLive: Bool) {
        (self.number, self.exchange, self.redirectsLive) = (number, exchange, redirectsLive)
        // A player that has bytes of another version begins anew.
        let isOther = exchange.field("If-Range").map { $0 != tag } ?? false
        ask = isOther ? .whole : RangeAsk(exchange.field("Range"))
        place = ask.likelyStart
    }

    /// The answer before any byte was sent.
    static func answer(to trouble: MediaCache.Trouble) -> LoopbackAnswer {
        switch trouble {
        case .timedOut: LoopbackAnswer(504)
        case .status(let status) where [401, 403, 404, 410, 451].contains(status): LoopbackAnswer(status)
        case .status, .changed, .contradiction, .network: LoopbackAnswer(502)
        }
    }
}
