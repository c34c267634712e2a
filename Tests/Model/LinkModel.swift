/// A second, independent model of the connections of a live stream: it judges the effects. Written from the rules and not from
/// the sources.
public struct LinkModel {
    public enum Effect: Equatable {
        case connect(UInt64)
        case disconnect
        case wait(UInt64)
        case fail
    }

    public struct Objection: Error, CustomStringConvertible {
        public let description: String
    }

    /// When time must be told next.
    public private(set) var alarm: UInt64?
    private let giveUp: UInt64
    private var numbers: Set<UInt64> = []
    /// The connection that exists, since when, and since when it is live.
    private var connection: (number: UInt64, since: UInt64, live: UInt64?)?
    private var isRunning = false
    /// Since when nothing was steady; and since when the server only says no, if it does.
    private var outage: UInt64 = 0
    private var denial: UInt64?
    private var longest: UInt64 = 0
    private var wasLive = false

    /// - Parameter giveUp: in seconds.
    public init(giveUp: UInt64) { self.giveUp = giveUp * 1_000_000 }

    public mutating func judge(_ effects: [Effect], after input: String, state: String, at now: UInt64)
        throws(Objection)
    {
        func object(_ text: String) -> Objection { Objection(description: "\(input) at \(now): \(text), \(effects)") }
        let hadConnection = connection
        switch input {
        case "start" where !isRunning: (isRunning, outage, denial, longest, wasLive) = (true, now, nil, 0, false)
        case "connect":
            if let old = connection, old.live == nil {
                connection?.live = now
                wasLive = true
            }
        case "lose", "vanish":
            if let live = connection?.live {
                longest = max(longest, now - live)
                if now - live >= 10_000_000 { outage = now }
            }
            if connection != nil { denial = input == "lose" ? denial ?? now : nil }
        case "pass" where effects.first == .disconnect: denial = nil
        case "stop": isRunning = false
        default: break
        }
        for effect in effects {
            switch effect {
            case .connect(let number):
                guard isRunning, connection == nil else { throw object("a second connection") }
                guard numbers.insert(number).inserted else { throw object("a number is used again") }
                connection = (number, now, nil)
            case .disconnect:
                guard connection != nil else { throw object("no connection ends") }
                connection = nil
            case .wait(let until):
                guard until > now else { throw object("it waits for the past") }
                if connection == nil {
                    let longest: UInt64 =
                        now - outage < 60_000_000 ? 2_000_000 : now - outage < 120_000_000 ? 5_000_000 : 15_000_000
                    guard until - now >= 500_000, until - now <= longest else { throw object("it waits too long") }
                }
                alarm = until
            case .fail:
                guard connection == nil, isRunning else { throw object("it gives up although it is connected") }
                let isDenied = longest < 3_000_000 && (denial.map { now + 15_000_000 >= $0 + 20_000_000 } ?? false)
                guard now + 15_000_000 >= outage + (wasLive ? giveUp : min(giveUp, 20_000_000)) || isDenied else {
                    throw object("it gives up too early")
                }
                isRunning = false
            }
        }
        if input == "lose" || input == "vanish", hadConnection != nil, connection != nil {
            throw object("the lost connection stays")
        }
        if input == "stop", connection != nil { throw object("it goes on") }
        if !isRunning || connection?.live != nil { alarm = nil }
        if isRunning, connection?.live == nil, alarm == nil { throw object("it waits for ever") }
        let expected: Set<String> =
            connection?.live != nil
            ? ["live"]
            : isRunning ? [wasLive ? "reconnecting" : "connecting"] : ["idle", "failed"]
        guard expected.contains(state) else { throw object("the state is \(state)") }
    }
}
