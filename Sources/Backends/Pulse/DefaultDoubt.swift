/// When the defaults are checked with a second connection (docs/adr/0012).
struct DefaultDoubt {
    /// When the next check is due; nil: none is.
    private(set) var due: UInt64?
    /// Something happened since the last check started.
    private(set) var isNew = false
    /// The defaults that the last check saw.
    var witnessed: (sink: String, source: String)?
    /// Seconds until the next check while there is no default, or while checks fail.
    private var pause = DefaultDoubt.longTime

    /// Seconds that the session manager usually needs to choose, and that a slow one needs.
    static let time = 0.2
    private static let longTime = 1.0
    private static let longestPause = 30.0

    mutating func raise() { isNew = true }

    /// Plans a check; false if an earlier one is due.
    mutating func plan(at time: UInt64) -> Bool {
        if let due, due <= time { return false }
        due = time
        return true
    }

    /// The planned time has come.
    mutating func elapsed() { due = nil }

    /// A check starts.
    /// - Returns: whether it is the first one after something happened.
    mutating func start() -> Bool {
        defer { isNew = false }
        return isNew
    }

    /// Both connections see the same.
    /// - Returns: seconds until the next check; nil: none is needed.
    mutating func confirm(isFirst: Bool, isMissing: Bool) -> Double? {
        // Without a session manager there is no default, and a connection that was made before it came may never learn
        // which one it chooses.
        if isMissing { return again() }
        pause = DefaultDoubt.longTime
        return isFirst ? DefaultDoubt.longTime : nil
    }

    /// Seconds until a check that failed, or found no default, is repeated.
    mutating func again() -> Double {
        defer { pause = min(2 * pause, DefaultDoubt.longestPause) }
        return pause
    }

    /// Seconds until the next check; nil: none is needed, or one is planned.
    func next(after seconds: Double?) -> Double? {
        guard due == nil else { return nil }
        return isNew ? min(seconds ?? .infinity, DefaultDoubt.time) : seconds
    }
}
