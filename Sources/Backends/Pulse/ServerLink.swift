/// The states of the connection to the server: when to connect, when to try again, and what to report.
///
/// ```
///            connect              connected
///    idle ───────────▶ connecting ─────────▶ ready
///                         ▲  │ failed          │ failed
///       connect, a socket │  ▼                 │
///                        away ◀────────────────┘
/// ```
struct ServerLink: Sendable, Hashable {
    enum State: Sendable, Hashable {
        /// Not started.
        case idle
        /// `failures`: attempts since it was connected last, or since a socket appeared.
        case connecting(failures: Int)
        case ready
        /// The next attempt is after some time, or only when a socket appears.
        case away(failures: Int, untilSocketAppears: Bool)
    }

    enum Input: Sendable, Hashable {
        /// It is started, or the time of ``Effect/retry(after:)`` has come.
        case connect
        /// A socket of the server appeared in the file system.
        case socketAppeared
        case connected
        /// The connection has ended, or was not made. `isRefused`: no server listens. `isWatched`: a new socket is
        /// reported.
        case failed(isRefused: Bool, isWatched: Bool)
        /// The server's state was read for the first time.
        case wasRead
    }

    enum Effect: Sendable, Hashable {
        case connect
        /// Pass ``Input/connect`` after that many seconds.
        case retry(after: Double)
        /// Read everything from the new connection.
        case readEverything
        /// Report that the server is gone, that it is back, or its state at the start.
        case tellLost
        case tellReset
        case tellStart
    }

    private(set) var state = State.idle
    /// Whether it was reported that the server is gone.
    private(set) var isLost = false

    /// Refusals after which it only waits for a new socket, because a new server replaces a socket without a server.
    private static let mostRefusals = 8

    var isReady: Bool { state == .ready }

    var isWaitingForSocketOnly: Bool {
        if case .away(_, let untilSocketAppears) = state { untilSocketAppears } else { false }
    }

    mutating func handle(_ input: Input) -> [Effect] {
        switch (input, state) {
        case (.connect, .idle), (.socketAppeared, .idle), (.socketAppeared, .away):
            state = .connecting(failures: 0)
            return [.connect]
        case (.connect, .away(let failures, _)):
            state = .connecting(failures: failures)
            return [.connect]
        case (.socketAppeared, .connecting):
            state = .connecting(failures: 0)
            return []
        case (.connect, .connecting), (.connect, .ready), (.socketAppeared, .ready): return []
        case (.connected, _):
            state = .ready
            return [.readEverything]
        case (.failed(let isRefused, let isWatched), .connecting(let before)),
            (.failed(let isRefused, let isWatched), .away(let before, _)):
            return failed(before + 1, isRefused: isRefused, isWatched: isWatched)
        case (.failed(let isRefused, let isWatched), .idle), (.failed(let isRefused, let isWatched), .ready):
            return failed(1, isRefused: isRefused, isWatched: isWatched)
        case (.wasRead, _):
            defer { isLost = false }
            return isLost ? [.tellReset] : [.tellStart]
        }
    }

    private mutating func failed(_ failures: Int, isRefused: Bool, isWatched: Bool) -> [Effect] {
        let waits = isRefused && isWatched && failures > ServerLink.mostRefusals
        state = .away(failures: failures, untilSocketAppears: waits)
        var effects: [Effect] = []
        if !waits { effects.append(.retry(after: min(2, 0.05 * Double(1 << min(failures - 1, 6))))) }
        if !isLost { effects.append(.tellLost) }
        isLost = true
        return effects
    }
}
