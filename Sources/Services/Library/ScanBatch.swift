import EventLoop
import MediaLibrary

/// The changes of a scan since its last commit, and their transaction.
final class ScanBatch {
    /// The number of rows in a transaction.
    private static let limit = 500
    /// A transaction is committed after this many seconds, even with fewer rows.
    private static let patience = 0.5

    private unowned let plugin: LibraryPlugin
    private let timer: Timer
    /// The number of rows in the transaction.
    private var rows = 0
    private var added: [Int64] = []
    private var changed: [Int64] = []
    private var removed: [Int64] = []

    var store: Store { plugin.database.store }

    /// - Parameter onDue: called when the transaction must be committed.
    init(in plugin: LibraryPlugin, onDue: @escaping () -> Void) {
        self.plugin = plugin
        timer = Timer(on: plugin.loop, onDue)
    }

    /// Whether it has so many rows that it must be committed.
    var isFull: Bool { rows >= Self.limit }

    /// Begins a transaction, unless one is open.
    func open() throws(SQLError) {
        guard !store.isInBatch else { return }
        try store.beginBatch()
        timer.arm(after: Self.patience)
    }

    func count(_ rows: Int) { self.rows += rows }

    func add(_ item: Int64) { added.append(item) }

    func change(_ item: Int64) { changed.append(item) }

    func remove(_ items: some Sequence<Int64>) { removed += items }

    /// Commits the changes so far, and tells the clients.
    func commit() throws(SQLError) {
        guard store.isInBatch else { return }
        timer.disarm()
        rows = 0
        try store.commitBatch()
        plugin.news.add(added: added, changed: changed, removed: removed)
        (added, changed, removed) = ([], [], [])
    }

    /// Drops the changes so far.
    func cancel() {
        timer.disarm()
        store.cancelBatch()
    }
}
