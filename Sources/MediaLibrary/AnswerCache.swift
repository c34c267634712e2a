/// Answers to queries that clients ask again, page by page: how many items and which, and the collections. Each is right as long
/// as its stamp is that of its query now.
struct AnswerCache {
    struct Key: Hashable {
        var grouping: Query.Grouping
        var query: Query
    }

    /// The words of the library.
    var vocabulary: (stamp: UInt64, words: Vocabulary)?
    private var counts: [Query: (stamp: UInt64, count: Int)] = [:]
    private var orders: [(query: Query, stamp: UInt64, ids: [Int64])] = []
    private var groups: [(key: Key, stamp: UInt64, collections: [Collection])] = []

    /// Collections in all answers together: some 10 MB.
    private static let groupLimit = 50_000
    private static let countLimit = 64
    /// Items in all orders together: 4 MB.
    private static let orderLimit = 500_000

    func count(_ query: Query, _ stamp: UInt64) -> Int? {
        counts[query].flatMap { $0.stamp == stamp ? $0.count : nil }
    }

    mutating func keep(_ count: Int, _ query: Query, _ stamp: UInt64) {
        if counts.count >= Self.countLimit { counts = [:] }
        counts[query] = (stamp, count)
    }

    func ids(_ query: Query, _ stamp: UInt64) -> [Int64]? {
        orders.first { $0.query == query && $0.stamp == stamp }?.ids
    }

    mutating func keep(_ ids: [Int64], _ query: Query, _ stamp: UInt64) {
        orders.removeAll { $0.query == query }
        guard ids.count <= Self.orderLimit else { return }
        orders.append((query, stamp, ids))
        while orders.reduce(0, { $0 + $1.ids.count }) > Self.orderLimit || orders.count > 8 { orders.removeFirst() }
    }

    func collections(_ key: Key, _ stamp: UInt64) -> [Collection]? {
        groups.first { $0.key == key && $0.stamp == stamp }?.collections
    }

    /// The oldest answers make room.
    mutating func keep(_ collections: [Collection], _ key: Key, _ stamp: UInt64) {
        groups.removeAll { $0.key == key }
        guard collections.count <= Self.groupLimit else { return }
        groups.append((key, stamp, collections))
        while groups.reduce(0, { $0 + $1.collections.count }) > Self.groupLimit || groups.count > 16 {
            groups.removeFirst()
        }
    }
}
