/// Whose calls are answered where a bus is shared by several users.
struct CallerCheck {
    /// Callers that are remembered, so that the bus is not asked at each call; no name is ever another's.
    private static let limit = 64

    let users: Set<UInt32>
    private var verdicts: [String: Bool] = [:]

    init(users: Set<UInt32>) { self.users = users }

    /// Waits for the bus where the caller is a new one (`GetConnectionUnixUser`).
    mutating func admits(_ call: Message, on connection: Connection) -> Bool {
        guard let caller = call.sender else { return false }
        if let verdict = verdicts[caller] { return verdict }
        let answer = try? connection.askBusAndWait("GetConnectionUnixUser", [.string(caller)], timeout: 5)
        let verdict = answer?.first?.uint32Value.map(users.contains) ?? false
        if verdicts.count == Self.limit { verdicts.removeAll(keepingCapacity: true) }
        verdicts[caller] = verdict
        return verdict
    }
}
