import DBus
import EventLoop
import MediaLibrary
import PluginAPI
import PluginKit

/// Tells clients what has changed in the library, at most once a second.
final class LibraryNews {
    /// The largest number of ids in each list of a signal; with more, clients only learn that something has changed.
    private static let limit = 256
    /// The shortest time between two signals, in seconds.
    private static let pause = 1.0

    private unowned let library: LibraryPlugin
    private let objects: ObjectTable
    private let properties: Announcement<LibraryPlugin>
    private var toldRevision: UInt64
    private var lastTold = -10.0
    private var added: [Int64] = []
    private var changed: [Int64] = []
    private var removed: [Int64] = []
    private let timer: Timer
    private var isTelling = false

    /// What is there now is not told.
    init(of library: LibraryPlugin, on objects: ObjectTable) {
        (self.library, self.objects) = (library, objects)
        let kind = PluginKind.library
        properties = Announcement(
            library, path: kind.objectPath, interface: kind.interface, LibraryPlugin.properties, on: objects)
        toldRevision = library.database.store.revision
        var tell: () -> Void = {}
        timer = Timer(on: library.loop) { tell() }
        tell = { [unowned self] in self.tell() }
    }

    /// The items that have changed since the last signal.
    func add(added: [Int64] = [], changed: [Int64] = [], removed: [Int64] = []) {
        self.added += added
        self.changed += changed
        self.removed += removed
        tellSoon()
    }

    func tellSoon() {
        guard !isTelling else { return }
        isTelling = true
        timer.arm(after: max(0, lastTold + Self.pause - MonotonicClock.seconds))
    }

    private func tell() {
        isTelling = false
        lastTold = MonotonicClock.seconds
        let (path, interface) = (PluginKind.library.objectPath, PluginKind.library.interface)
        let revision = library.database.store.revision
        if revision != toldRevision {
            toldRevision = revision
            let lists = [added, changed, removed]
            if lists.contains(where: { !$0.isEmpty }), lists.allSatisfy({ $0.count <= Self.limit }) {
                objects.emit(
                    path: path, interface: interface, member: "ItemsChanged",
                    lists.map { .array(of: "t", $0.map { .uint64(UInt64($0)) }) })
            }
            objects.emit(path: path, interface: interface, member: "Changed", [.uint64(revision)])
        }
        (added, changed, removed) = ([], [], [])
        properties.update(library)
    }
}
