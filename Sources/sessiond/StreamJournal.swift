import Glibc
import Logging
import State

/// What was changed at the audio server, on disk before it is changed: `$XDG_RUNTIME_DIR/sessiond/streams-<bus>`.
///
/// Written whole, and put in place by one `rename`; gone while nothing is changed. A daemon that follows one that was
/// killed reads how everything was.
final class StreamJournal {
    private static let maximumBytes = 1 << 20

    private let path: String
    private let log: Logger
    private var written = StreamRecord()
    private var hasWarned = false

    /// Nil where there is nowhere to keep it.
    init?(bus: String, log: Logger) {
        guard let runtime = environment("XDG_RUNTIME_DIR"), !bus.isEmpty else { return nil }
        path = runtime + "/sessiond/streams-" + bus
        self.log = log
    }

    /// What the last daemon left; empty where it left nothing, or nothing to be believed.
    func read() -> StreamRecord {
        let bytes: [UInt8]
        switch OwnFile(path, limit: StreamJournal.maximumBytes) {
        case .absent: return StreamRecord()
        case .unreadable, .foreign:
            warn("is not ours; what was changed at the audio server before is not known")
            return StreamRecord()
        case .contents(let read): bytes = read
        }
        guard let contents = StreamRecord(bytes) else {
            warn("is cut short, or of another version; what was changed at the audio server before is not known")
            return StreamRecord()
        }
        written = contents
        return contents
    }

    /// On disk when this returns. False where it cannot be: nothing may be changed then.
    func write(_ contents: StreamRecord) -> Bool {
        guard contents != written else { return true }
        if contents.isEmpty {
            unlink(path)
            written = contents
            return true
        }
        guard let file = OwnFile.replace(path, with: contents.bytes) else { return fail() }
        close(file)
        written = contents
        CrashPoint.pass("journal-written")
        return true
    }

    private func fail() -> Bool {
        warn("cannot be written (\(String(cString: strerror(errno)))): streams of other programs are left as they are")
        return false
    }

    private func warn(_ what: String) {
        if !hasWarned { log.warning("\(path) \(what)") }
        hasWarned = true
    }
}
