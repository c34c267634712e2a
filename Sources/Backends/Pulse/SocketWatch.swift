import EventLoop
import Glibc

/// Reports when a socket appears in the file system, without polling: it uses inotify on the deepest folder that
/// exists.
final class SocketWatch {
    private let descriptor: Int32
    private let paths: [[String]]
    private let handler: () -> Void
    private var watch: IOWatch?
    /// The names that are awaited in each watched folder.
    private var awaited: [Int32: Set<String>] = [:]

    /// Nil if the system has no inotify instance left. Paths are absolute.
    init?(on loop: EventLoop, paths: [String], _ handler: @escaping () -> Void) {
        descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
        self.paths = paths.map { $0.split(separator: "/").map(String.init) }
        self.handler = handler
        guard descriptor >= 0 else { return nil }
        place()
        watch = IOWatch(on: loop, descriptor: descriptor, events: .readable) { [weak self] _ in self?.read() }
    }

    deinit {
        watch = nil
        if descriptor >= 0 { close(descriptor) }
    }

    /// Watches the deepest folder that exists on the path of each socket.
    private func place() {
        var placed: [Int32: Set<String>] = [:]
        for path in paths where !path.isEmpty {
            for depth in stride(from: path.count - 1, through: 0, by: -1) {
                let folder = "/" + path[..<depth].joined(separator: "/")
                let mask = UInt32(IN_CREATE | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)
                let id = inotify_add_watch(descriptor, folder, mask)
                guard id >= 0 else { continue }
                placed[id, default: []].insert(path[depth])
                break
            }
        }
        for id in awaited.keys where placed[id] == nil { inotify_rm_watch(descriptor, id) }
        awaited = placed
    }

    private func read() {
        var isOurs = false
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            guard count > 0 else { break }
            buffer.withUnsafeBytes { bytes in
                var offset = 0
                while offset + 16 <= count {
                    let id = bytes.loadUnaligned(fromByteOffset: offset, as: Int32.self)
                    let mask = bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
                    let length = Int(bytes.loadUnaligned(fromByteOffset: offset + 12, as: UInt32.self))
                    let name = String(
                        decoding: bytes[(offset + 16)...].prefix(length).prefix { $0 != 0 }, as: UTF8.self)
                    // The event for the removal of a watched folder has no name: then its parent must be watched.
                    let went = mask & UInt32(IN_DELETE_SELF | IN_MOVE_SELF | IN_Q_OVERFLOW) != 0
                    if went || awaited[id]?.contains(name) == true { isOurs = true }
                    offset += 16 + length
                }
            }
        }
        guard isOurs else { return }
        // Repeated until nothing changes: a folder that was created before its watch causes no event.
        var before: [Int32: Set<String>] = [:]
        repeat {
            before = awaited
            place()
        } while before != awaited
        if paths.contains(where: { access("/" + $0.joined(separator: "/"), F_OK) == 0 }) { handler() }
    }
}
