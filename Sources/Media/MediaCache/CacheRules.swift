/// How strictly the rules of a cache are followed.
public struct CacheRules: Sendable, Hashable {
    /// Whether missing parts are fetched while nobody waits for others.
    public var fills = true
    /// Whether a request ends where the next part begins that is here, or that another request fetches.
    public var isBounded = true
    /// Whether the answers are kept. False: they are only passed on.
    public var keeps = true
    /// The largest resource that is kept, in bytes.
    public var limit: UInt64 = .max

    public init() {}

    /// The seven rules to the letter: one request at a time, each to the end, and nothing is kept that was asked for in
    /// several requests.
    public static let letter: CacheRules = {
        var rules = CacheRules()
        (rules.fills, rules.isBounded) = (false, false)
        return rules
    }()

    var isLetter: Bool { !fills && !isBounded }
    /// The most requests at the same time.
    var requests: Int { isBounded ? 4 : 1 }
    /// A reader that is at most this far ahead of a request waits for it, in bytes.
    var reach: UInt64 { isBounded ? 64 << 10 : 0 }
    /// What is held of an answer that is only passed on, ahead of its reader, in bytes.
    static let window: UInt64 = 4 << 20
}
