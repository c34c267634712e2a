/// The requests for the guard and the second guard, until the server shows their results.
struct GuardState {
    enum Request: Sendable, Hashable {
        case creating
        case removing
    }

    /// The second guard, which ranks before all devices. One that an earlier daemon left is released together with the
    /// streams on it.
    enum Second {
        /// It may exist.
        case allowed
        case coming
        /// It must be removed when it exists; then the closure is called.
        case leaving((Bool) -> Void)
        /// It is removed if it exists.
        case unwanted
    }

    struct Defaults: Sendable, Equatable {
        let sink: String
        let source: String
    }

    /// The request whose result the server must show before the next one; nil: none.
    private(set) var request: Request?
    /// The server has refused to create it.
    private(set) var isRefused = false
    private(set) var second = Second.allowed
    /// Whether the guard was already the default when this connection was made. Then it may be the configured one.
    var isFound = false
    /// How the guard was created; nil: an earlier daemon did it.
    private(set) var rank: GuardPlan.Rank?
    /// The default output whose place, or whose microphone's, a guard has taken. There is none until the output changes.
    private(set) var displaced: String?
    /// Since when the guard is the default although the output that it replaced is still shown; microseconds of
    /// CLOCK_MONOTONIC.
    var intrusion: UInt64?
    /// Seconds after which a server has shown that an output was unplugged.
    static let intrusionTime = 0.3
    /// The defaults for which the guard was checked again after the session manager has written its file.
    private(set) var checked: Defaults?
    /// Whether an unplugged port was made active again, so that the guard ranks before its device.
    var hasMovedPort = false
    /// Until when the guard may become the default after a port of a remaining device was unplugged; nil: not
    /// requested.
    var guardDue: UInt64?

    /// Whether the last request is visible.
    mutating func isSettled(isThere: Bool) -> Bool {
        switch request {
        case .creating where !isThere, .removing where isThere: return false
        case .creating, .removing, nil:
            request = nil
            return true
        }
    }

    mutating func create(_ rank: GuardPlan.Rank) {
        request = .creating
        self.rank = rank
    }

    /// Whether another port must be made active, whichever the server shows.
    mutating func takesPortBack() -> Bool {
        defer { hasMovedPort = false }
        return hasMovedPort
    }

    mutating func displace(_ output: String) { displaced = output }

    /// Whether a guard may be created while this is the default output.
    mutating func mayCreate(for output: String) -> Bool {
        if displaced != output { displaced = nil }
        return displaced == nil && !isRefused
    }

    /// Whether these defaults have not been checked.
    mutating func isNew(_ defaults: Defaults) -> Bool {
        defer { checked = defaults }
        return checked != defaults
    }

    mutating func creatingFailed() {
        isRefused = true
        request = nil
    }

    mutating func remove() { request = .removing }

    mutating func removingFailed() { request = nil }

    /// - Returns: whether the second guard must be created.
    mutating func createSecond() -> Bool {
        switch second {
        case .coming, .leaving: return false
        case .allowed, .unwanted:
            second = .coming
            return true
        }
    }

    /// `end` is called if a second guard that does not exist yet has been removed.
    mutating func removeSecond(_ end: @autoclosure () -> (Bool) -> Void) {
        switch second {
        case .coming, .leaving: second = .leaving(end())
        case .allowed, .unwanted: second = .unwanted
        }
    }

    /// The request to create the second guard is answered.
    /// - Returns: the closure that waits for its removal; nil if it is not to be removed.
    mutating func secondCame(_ isThere: Bool) -> ((Bool) -> Void)? {
        if !isThere { guardDue = nil }
        switch second {
        case .coming: second = .allowed
        case .leaving(let end):
            second = .unwanted
            return end
        case .allowed, .unwanted: break
        }
        return nil
    }

    /// Whether a second guard that appears must be removed.
    var dropsSecond: Bool {
        switch second {
        case .leaving, .unwanted: true
        case .allowed, .coming: false
        }
    }

    /// Another connection is used from now on, so the answers of the old one will not arrive.
    mutating func forgetAnswers() {
        request = nil
        switch second {
        case .coming: second = .allowed
        case .leaving: second = .unwanted
        case .allowed, .unwanted: break
        }
    }
}
