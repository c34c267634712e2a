import Glibc
import Logging
import State

/// What was changed at the audio server, on disk before it is changed: `$XDG_RUNTIME_DIR/sessiond/streams-<bus>`, and what
/// of it the server may remember beyond the end of the machine's run also in `$XDG_STATE_HOME/sessiond/streams`.
///
/// Written whole, and put in place by one `rename`; gone while nothing is changed. A daemon that follows one that was
/// killed reads how everything was.
final class StreamJournal {
    private static let maximumBytes = 1 << 20

    private let path: String
    /// Nil where there is no place that lasts.
    private let lastingPath: String?
    private let log: Logger
    private var written = StreamRecord()
    /// What is at ``lastingPath``: memories alone.
    private var lasting = StreamRecord()
    private var hasWarned = false

    /// Nil where there is nowhere to keep it.
    init?(bus: String, log: Logger) {
        guard let runtime = environment("XDG_RUNTIME_DIR"), !bus.isEmpty else { return nil }
        path = runtime + "/sessiond/streams-" + bus
        let state = environment("XDG_STATE_HOME") ?? environment("HOME").map { $0 + "/.local/state" }
        lastingPath = state.flatMap { $0.hasPrefix("/") ? $0 + "/sessiond/streams" : nil }
        self.log = log
    }

    /// What the last daemon left; empty where it left nothing, or nothing to be believed.
    func read() -> StreamRecord {
        var contents = read(path) ?? StreamRecord()
        written = contents
        if let lastingPath { lasting.memories = read(lastingPath)?.memories ?? [] }
        for memory in lasting.memories where !contents.memories.contains(where: { $0.name == memory.name }) {
            contents.memories.append(memory)
        }
        return contents
    }

    /// Nil where there is nothing to be believed.
    private func read(_ path: String) -> StreamRecord? {
        let bytes: [UInt8]
        switch OwnFile(path, limit: StreamJournal.maximumBytes) {
        case .absent: return nil
        case .unreadable, .foreign:
            warn(path, "is not a file of this user; earlier changes at the sound server cannot be restored")
            return nil
        case .contents(let read): bytes = read
        }
        guard let contents = StreamRecord(bytes) else {
            warn(path, "is truncated or of another version; earlier changes at the sound server cannot be restored")
            return nil
        }
        return contents
    }

    /// On disk when this returns. False where it cannot be: nothing may be changed then.
    func write(_ contents: StreamRecord) -> Bool {
        guard contents != written else { return true }
        guard put(contents, at: path) else { return false }
        written = contents
        var memories = StreamRecord()
        memories.memories = contents.memories
        if memories != lasting, let lastingPath {
            makeFolders(of: lastingPath)
            // Without it, what is remembered is put right as long as the machine runs.
            if put(memories, at: lastingPath) { lasting = memories }
        }
        CrashPoint.pass("journal-written")
        return true
    }

    private func put(_ contents: StreamRecord, at path: String) -> Bool {
        guard !contents.isEmpty else { return unlink(path) == 0 || errno == ENOENT }
        let bytes = contents.bytes
        // What is longer would not be read back.
        if bytes.count > StreamJournal.maximumBytes { errno = EFBIG }
        guard bytes.count <= StreamJournal.maximumBytes, let file = OwnFile.replace(path, with: bytes) else {
            let reason = String(cString: strerror(errno))
            warn(path, "cannot be written (\(reason)): streams of other programs will not be changed")
            return false
        }
        close(file)
        return true
    }

    /// As far as they are missing; whoever writes there says what is wrong.
    private func makeFolders(of path: String) {
        for place in path.indices.dropFirst() where path[place] == "/" { mkdir(String(path[..<place]), 0o700) }
    }

    private func warn(_ path: String, _ what: String) {
        if !hasWarned { log.warning("\(path) \(what)") }
        hasWarned = true
    }
}
