/// How far the body of a request is: passed to the network, acknowledged by the peer, and reported. It is a value: it gets
/// the times and what the kernel knows.
struct BodyProgress {
    /// The time between two reports, in microseconds.
    static let interval: UInt64 = 100_000
    /// The longest time until bytes that are on their way are looked at again, in microseconds.
    static let longestPause: UInt64 = 1_000_000

    private let length: UInt64
    /// The number of bytes that were passed to the network.
    private(set) var sent: UInt64 = 0
    /// The number of bytes that the peer has acknowledged.
    private(set) var delivered: UInt64 = 0
    /// Whether the last byte was passed to the network. False without a body.
    private(set) var isSent = false
    private var told: UInt64 = 0
    private var toldAt: UInt64 = 0
    private var pause = BodyProgress.interval

    init(length: UInt64) { self.length = length }

    /// Whether more bytes were passed to the network than at the last report.
    var hasSentMore: Bool { sent != told }

    /// Returns whether the last byte was passed to the network just now.
    mutating func passed(_ bytes: UInt64) -> Bool {
        sent = bytes
        guard length > 0, sent >= length, !isSent else { return false }
        isSent = true
        return true
    }

    /// - Parameter waiting: the number of bytes that the peer has not acknowledged.
    /// - Returns: whether it has acknowledged more.
    mutating func acknowledged(waiting: UInt64) -> Bool {
        guard sent > delivered + waiting else { return false }
        delivered = sent - waiting
        return true
    }

    /// When a report is allowed; nil: now.
    func allowed(at now: UInt64) -> UInt64? {
        let due = toldAt &+ Self.interval
        return now >= due ? nil : due
    }

    /// Returns whether there is something new to report. Then it counts as reported.
    mutating func report(at now: UInt64) -> Bool {
        guard delivered != told else { return false }
        (told, toldAt) = (delivered, now)
        return true
    }

    /// When it must be looked at again, because no event says that bytes were acknowledged; nil: none is on its way. Less
    /// often while there is nothing to report.
    mutating func nextLook(hasReported: Bool, at now: UInt64) -> UInt64? {
        guard delivered < sent else { return nil }
        pause = hasReported ? Self.interval : min(2 * pause, Self.longestPause)
        return now &+ pause
    }
}
