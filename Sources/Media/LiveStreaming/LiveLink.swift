public import PluginAPI

/// When a live stream connects to its server, connects again, and gives up.
///
/// A value without a clock and a network. The owner passes every event (``Input``) to ``handle(_:at:)`` with the time of
/// `MonotonicClock`, and carries out the returned effects in order. Each connection has a number, and what an older one
/// reports changes nothing. Rules for every sequence of inputs:
///
/// - At most one connection exists, and only from ``Effect/connect(_:)`` until ``Effect/disconnect`` or the end.
/// - After a loss it waits: 0.5 s, 1 s, then 2 s during the first minute, 5 s during the second one, then 15 s. Only a
///   connection that has held for ``steady`` begins a new count, so a server that takes the stream and closes it at once
///   is not asked more often.
/// - It gives up when nothing was steady for ``giveUp``. Before the first connection it gives up after ``firstPatience``: an
///   address or a key is probably wrong. This is longer than servers keep a stream whose sender has vanished, and refuse its
///   key, mostly 10 s.
/// - Some servers take every key, and close the connection at once if it is wrong. So as long as no connection was live for
///   ``proof``, a server that does nothing else for ``firstPatience`` but to close and to refuse is left, too. One that is away
///   does not say that.
/// - Without TLS, or with a certificate that is not valid, it gives up at once, unless it was live before.
/// - A connection that is not made within ``answerTime`` counts as lost.
public struct LiveLink: Sendable, Hashable {
    /// Why there is no connection.
    public enum Trouble: String, CaseIterable, Sendable, Hashable {
        /// No server answers at the address.
        case unreachable
        /// The server answered, and refused the stream or its key.
        case refused
        /// The connection ended.
        case closed
        /// The server takes nothing any more, or does not answer.
        case stalled
        /// There is no TLS here, or the certificate of the server is not valid.
        case insecure
    }

    public enum Input: Sendable, Hashable {
        case start
        /// The server takes the stream.
        case connected(UInt64)
        /// The connection failed or ended; in the words of the server or the system.
        case lost(UInt64, Trouble, String)
        /// The time of ``Effect/wait(until:)`` has come.
        case timePassed
        case stop
    }

    public enum Effect: Sendable, Hashable {
        /// Make the connection with that number.
        case connect(UInt64)
        /// End the connection, if it still exists, and free it.
        case disconnect
        /// Pass ``Input/timePassed`` at that time; replaces an earlier time.
        case wait(until: UInt64)
        /// It gave up, for that reason.
        case fail(Trouble, String)
    }

    private enum Phase: Sendable, Hashable {
        case idle
        case connecting(deadline: UInt64)
        case live(since: UInt64)
        case waiting(until: UInt64)
        case failed
    }

    /// In microseconds, as all times here.
    public static let answerTime: UInt64 = 10_000_000
    public static let steady: UInt64 = 10_000_000
    public static let firstPatience: UInt64 = 20_000_000
    /// A server that takes a wrong key has closed the connection by then.
    public static let proof: UInt64 = 3_000_000
    /// How long it tries without a connection that holds.
    public let giveUp: UInt64

    private var phase = Phase.idle
    /// The number of the last connection.
    private var number: UInt64 = 0
    /// How often it has waited since a connection has held.
    private var waits = 0
    /// Since when no connection was steady: the start, or a loss.
    private var outage: UInt64 = 0
    /// Whether a connection was ever live for ``proof``.
    private var isProven = false
    /// Since when the server only closes and refuses; nil: it does not.
    private var denied: UInt64?
    /// Whether the server ever took the stream.
    private var wasLive = false
    /// The connections after the first one that the server took.
    public private(set) var reconnects = 0
    /// The last trouble; nil: none since it is live.
    public private(set) var trouble: Trouble?
    /// In the words of the server or the system; empty: none.
    public private(set) var message = ""

    /// - Parameter giveUp: in seconds, at least 1.
    public init(giveUp: Double = 300) { self.giveUp = UInt64(max(1, min(giveUp, 1e9)) * 1e6) }

    public var state: LiveState {
        switch phase {
        case .idle: .idle
        case .connecting, .waiting: wasLive ? .reconnecting : .connecting
        case .live: .live
        case .failed: .failed
        }
    }

    /// The start of the connection that the server takes now; nil: there is none.
    public var liveSince: UInt64? { if case .live(let since) = phase { since } else { nil } }

    /// The number of the connection that exists; nil: none.
    public var connection: UInt64? {
        switch phase {
        case .connecting, .live: number
        case .idle, .waiting, .failed: nil
        }
    }

    public mutating func handle(_ input: Input, at now: UInt64) -> [Effect] {
        switch input {
        case .start: return start(now)
        case .connected(let other): if other == number { connected(now) }
        case .lost(let other, let trouble, let text):
            if other == number, connection != nil { return [.disconnect] + lost(trouble, text, now) }
        case .timePassed: return timePassed(now)
        case .stop:
            defer { phase = .idle }
            return connection == nil ? [] : [.disconnect]
        }
        return []
    }

    private mutating func start(_ now: UInt64) -> [Effect] {
        switch phase {
        case .connecting, .live, .waiting: return []
        case .idle, .failed: break
        }
        (waits, outage, isProven, denied, wasLive, reconnects) = (0, now, false, nil, false, 0)
        (trouble, message) = (nil, "")
        return connect(now)
    }

    private mutating func connect(_ now: UInt64) -> [Effect] {
        number += 1
        phase = .connecting(deadline: now + Self.answerTime)
        return [.connect(number), .wait(until: now + Self.answerTime)]
    }

    private mutating func connected(_ now: UInt64) {
        guard case .connecting = phase else { return }
        if wasLive { reconnects += 1 }
        wasLive = true
        phase = .live(since: now)
        (trouble, message) = (nil, "")
    }

    private mutating func lost(_ trouble: Trouble, _ text: String, _ now: UInt64) -> [Effect] {
        if case .live(let since) = phase {
            if now >= since + Self.proof { isProven = true }
            if now >= since + Self.steady { (waits, outage) = (0, now) }
        }
        (self.trouble, message) = (trouble, text)
        switch trouble {
        case .closed, .refused: denied = denied ?? now
        case .unreachable, .stalled, .insecure: denied = nil
        }
        let next = now + delay(now)
        guard next < end(trouble, now) else {
            phase = .failed
            return [.fail(trouble, text)]
        }
        waits += 1
        phase = .waiting(until: next)
        return [.wait(until: next)]
    }

    /// Until when it tries.
    private func end(_ trouble: Trouble, _ now: UInt64) -> UInt64 {
        guard wasLive else { return trouble == .insecure ? now : outage + min(giveUp, Self.firstPatience) }
        guard let denied, !isProven else { return outage + giveUp }
        return min(outage + giveUp, denied + Self.firstPatience)
    }

    /// The time to the next try.
    private func delay(_ now: UInt64) -> UInt64 {
        switch now - outage {
        case ..<60_000_000: waits == 0 ? 500_000 : waits == 1 ? 1_000_000 : 2_000_000
        case ..<120_000_000: 5_000_000
        default: 15_000_000
        }
    }

    private mutating func timePassed(_ now: UInt64) -> [Effect] {
        switch phase {
        case .connecting(let deadline) where now >= deadline:
            return [.disconnect] + lost(.stalled, "the server does not answer", now)
        case .waiting(let until) where now >= until: return connect(now)
        case .connecting(let time), .waiting(let time): return [.wait(until: time)]
        case .idle, .live, .failed: return []
        }
    }
}
