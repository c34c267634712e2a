/// Which callers are answered on a bus that several users share.
struct CallerCheck {
    /// The number of remembered callers, so that the bus is not asked at each call; unique names are never reused.
    private static let limit = 64

    let users: Set<UInt32>
    private var verdicts: [String: Bool] = [:]

    init(users: Set<UInt32>) { self.users = users }

    /// Blocks for a new caller (`GetConnectionUnixUser`).
    mutating func admits(_ call: Message, on connection: Connection) -> Bool {
        guard let caller = call.sender else { return false }
        if let verdict = verdicts[caller] { return verdict }
        let answer = try? connection.askAboutCaller("GetConnectionUnixUser", caller, timeout: 5)
        let verdict = answer?.first?.uint32Value.map(users.contains) ?? false
        if verdicts.count == Self.limit { verdicts.removeAll(keepingCapacity: true) }
        verdicts[caller] = verdict
        return verdict
    }
}
