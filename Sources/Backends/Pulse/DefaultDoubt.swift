/// When the defaults are checked with a second connection (docs/adr/0012).
struct DefaultDoubt {
    /// When the next check is due; nil: none is.
    private(set) var due: UInt64?
    /// Something happened since the last check started.
    private(set) var isNew = false
    /// The defaults that the last check confirmed.
    var witnessed: (sink: String, source: String)?

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

    /// Seconds until the next check; nil: none is needed, or one is planned.
    func next(after seconds: Double?, orNew soon: Double) -> Double? {
        guard due == nil else { return nil }
        return isNew ? min(seconds ?? .infinity, soon) : seconds
    }
}
