/// The users of the peers that send many calls, on a bus that several users share.
struct CallerUsers {
    /// As many peers as a system bus has at most by default; unique names are never reused.
    private static let limit = 2048

    enum User: Equatable {
        /// The bus was not asked yet.
        case unasked
        case asked
        case known(UInt32)
    }

    private var users: [String: User] = [:]

    init() {}

    subscript(_ peer: String) -> User { users[peer] ?? .unasked }

    mutating func ask(_ peer: String) { set(peer, .asked) }

    mutating func learn(_ user: UInt32, of peer: String) { set(peer, .known(user)) }

    private mutating func set(_ peer: String, _ user: User) {
        if users.count >= Self.limit, users[peer] == nil { users.removeAll(keepingCapacity: true) }
        users[peer] = user
    }
}
