/// The folders that a scan has still to list, each once, in the order in which they were added.
struct ScanTargets {
    /// A folder to scan.
    struct Target: Hashable {
        let path: [UInt8]
        /// Whether the folders in it are listed, too.
        let isDeep: Bool
    }

    /// If more folders than this wait, the whole folders of the library are listed instead.
    static let limit = 1_000

    private var order: [Target] = []
    /// The same folders as a set, for searching.
    private var known: Set<Target> = []

    var isEmpty: Bool { order.isEmpty }

    /// - Parameter whole: the folders of the library.
    mutating func add(_ more: some Sequence<Target>, whole: @autoclosure () -> [Target]) {
        for target in more where known.insert(target).inserted { order.append(target) }
        guard order.count > Self.limit else { return }
        order = whole()
        known = Set(order)
    }

    /// Removes and returns the first; nil: there is none.
    mutating func next() -> Target? {
        guard !order.isEmpty else { return nil }
        let first = order.removeFirst()
        known.remove(first)
        return first
    }
}
