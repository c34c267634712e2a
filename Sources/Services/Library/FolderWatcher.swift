import EventLoop
import Glibc

/// Notices changes in folders: by inotify up to the limit of watches, and otherwise by checking the folders every few
/// minutes.
final class FolderWatcher {
    /// Called with the folders to scan, two seconds after the last change, and at most thirty seconds after the first
    /// one.
    var onChanged: ([[UInt8]]) -> Void = { _ in }

    private static let (quiet, latest) = (2.0, 30.0)
    /// The interval at which unwatched folders are checked, in seconds.
    private let interval: Double

    private let loop: EventLoop
    private let descriptor: Int32
    private var watch: IOWatch?
    private var paths: [Int32: [UInt8]] = [:]
    private var watched: [[UInt8]: Int32] = [:]
    private var polled: Set<[UInt8]> = []
    private var dirty: Set<[UInt8]> = []
    private var dirtySince: Double?
    private lazy var settling = Timer(on: loop) { [unowned self] in tell() }
    private lazy var polling = Timer(on: loop) { [unowned self] in poll() }
    /// Half of the user's limit, because other programs need watches too.
    private let limit: Int

    /// Whether a folder must be watched.
    var isWanted: ([UInt8]) -> Bool = { _ in true }

    init(on loop: EventLoop, interval: Double) {
        (self.loop, self.interval) = (loop, interval)
        descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
        limit = FolderWatcher.limit / 2
        guard descriptor >= 0 else { return }
        watch = IOWatch(on: loop, descriptor: descriptor, events: .readable) { [unowned self] _ in read() }
    }

    deinit {
        watch = nil
        if descriptor >= 0 { close(descriptor) }
    }

    var watchedCount: Int { watched.count }
    var polledCount: Int { polled.count }

    private static var limit: Int {
        guard let file = fopen("/proc/sys/fs/inotify/max_user_watches", "r") else { return 8_192 }
        defer { fclose(file) }
        var text = [CChar](repeating: 0, count: 32)
        guard fgets(&text, 32, file) != nil else { return 8_192 }
        return max(0, Int(strtol(text, nil, 10)))
    }

    private static let events = UInt32(
        IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF
            | IN_ONLYDIR
            | IN_ATTRIB)

    /// A scan has listed this folder.
    /// - Parameter modified: the time of its last change when it was listed.
    func saw(_ path: [UInt8], isWatchable: Bool, modified: Int64) {
        guard isWanted(path), watched[path] == nil else { return }
        if isWatchable, descriptor >= 0, watched.count < limit {
            let number = (path + [0]).withUnsafeBytes {
                inotify_add_watch(descriptor, $0.baseAddress!.assumingMemoryBound(to: CChar.self), Self.events)
            }
            if number >= 0 {
                // The kernel has one watch for a folder with several names.
                if let old = paths[number] { watched[old] = nil }
                paths[number] = path
                watched[path] = number
                polled.remove(path)
                // The folder may have changed after it was listed and before it was watched.
                var status = stat()
                let isSame = (path + [0]).withUnsafeBytes {
                    stat($0.baseAddress!.assumingMemoryBound(to: CChar.self), &status) == 0
                }
                if !isSame || status.modified != modified { note(path) }
                return
            }
        }
        if polled.isEmpty { polling.arm(after: interval) }
        polled.insert(path)
    }

    /// A folder was removed from the library.
    func forget(below folder: [UInt8]) {
        for (path, number) in watched where path.isPath(in: folder) {
            inotify_rm_watch(descriptor, number)
            watched[path] = nil
            paths[number] = nil
        }
        polled = polled.filter { !$0.isPath(in: folder) }
    }

    private func read() {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            guard count > 0 else { break }
            buffer.withUnsafeBytes { raw in
                var place = 0
                while place + 16 <= count {
                    let number = raw.loadUnaligned(fromByteOffset: place, as: Int32.self)
                    let mask = raw.loadUnaligned(fromByteOffset: place + 4, as: UInt32.self)
                    place += 16 + Int(raw.loadUnaligned(fromByteOffset: place + 12, as: UInt32.self))
                    heard(number, mask)
                }
            }
        }
        settle()
    }

    private func note(_ path: [UInt8]) {
        dirty.insert(path)
        settle()
    }

    private func settle() {
        guard !dirty.isEmpty else { return }
        let now = MonotonicClock.seconds
        let since = dirtySince ?? now
        dirtySince = since
        settling.arm(after: max(0, min(Self.quiet, since + Self.latest - now)))
    }

    private func heard(_ number: Int32, _ mask: UInt32) {
        if mask & UInt32(IN_Q_OVERFLOW) != 0 {
            // The queue of events has overflowed: all watched folders are scanned.
            dirty.formUnion(watched.keys)
            return
        }
        guard let path = paths[number] else { return }
        dirty.insert(path)
        if mask & UInt32(IN_IGNORED) != 0 {
            paths[number] = nil
            watched[path] = nil
        }
        if mask & UInt32(IN_MOVE_SELF) != 0 { inotify_rm_watch(descriptor, number) }
    }

    private func tell() {
        let paths = dirty
        (dirty, dirtySince) = ([], nil)
        onChanged(paths.sorted { $0.lexicographicallyPrecedes($1) })
    }

    private func poll() {
        guard !polled.isEmpty else { return }
        polling.arm(after: interval)
        onChanged(polled.sorted { $0.lexicographicallyPrecedes($1) })
    }
}
