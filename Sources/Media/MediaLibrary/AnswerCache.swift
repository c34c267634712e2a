/// Caches the answers to queries that clients ask again, page by page: the number of items, the items, and the
/// collections. An answer is valid while its stamp is the current stamp of its query.
struct AnswerCache {
    struct Key: Hashable {
        var grouping: Query.Grouping
        var query: Query
    }

    /// The words of the library.
    var vocabulary: (stamp: UInt64, words: Vocabulary)?
    /// The items of queries in their order; at most 4 MB.
    var orders = Lists<Query, Int64>(most: 8, elements: 500_000)
    /// The collections of queries; about 10 MB.
    var groups = Lists<Key, Collection>(most: 16, elements: 50_000)
    private var counts: [Query: (stamp: UInt64, count: Int)] = [:]

    private static let countLimit = 64

    func count(_ query: Query, _ stamp: UInt64) -> Int? {
        counts[query].flatMap { $0.stamp == stamp ? $0.count : nil }
    }

    mutating func keep(_ count: Int, _ query: Query, _ stamp: UInt64) {
        if counts.count >= Self.countLimit { counts = [:] }
        counts[query] = (stamp, count)
    }

    /// Lists by their questions. When there are too many, the oldest are removed.
    struct Lists<Question: Equatable, Element> {
        /// The largest number of lists, and the largest number of elements in all lists together.
        private let most: Int
        private let elements: Int
        private var kept: [(question: Question, stamp: UInt64, list: [Element])] = []

        init(most: Int, elements: Int) { (self.most, self.elements) = (most, elements) }

        func list(_ question: Question, _ stamp: UInt64) -> [Element]? {
            kept.first { $0.question == question && $0.stamp == stamp }?.list
        }

        mutating func keep(_ list: [Element], _ question: Question, _ stamp: UInt64) {
            kept.removeAll { $0.question == question }
            guard list.count <= elements else { return }
            kept.append((question, stamp, list))
            while kept.reduce(0, { $0 + $1.list.count }) > elements || kept.count > most { kept.removeFirst() }
        }
    }
}
