import Enforcement
import Glibc
import Installation
import Logging
import PluginAPI
import Processes
import State

/// The original values of streams, headsets and defaults, written to disk before they are changed:
/// `$XDG_RUNTIME_DIR/sessiond/streams-<bus>`. Values that the server may remember over a restart of the machine are
/// also in `$XDG_STATE_HOME/sessiond/streams`.
///
/// The file is always written completely and replaced by one `rename`. It is deleted while nothing is changed. After a
/// crash, the next daemon reads the original values.
final class StreamJournal {
    private static let maximumBytes = 1 << 20

    private let path: String
    /// Nil if there is no such directory.
    private let lastingPath: String?
    private let log: Logger
    private var written = StreamRecord()
    /// The contents of ``lastingPath``: only what servers remember.
    private var lasting = StreamRecord()
    private var hasWarned = false

    /// Nil if there is no directory for it.
    init?(bus: String, log: Logger) {
        guard let runtime = environment("XDG_RUNTIME_DIR"), !bus.isEmpty else { return nil }
        path = runtime + "/sessiond/streams-" + bus
        let state = environment("XDG_STATE_HOME") ?? environment("HOME").map { $0 + "/.local/state" }
        lastingPath = state.flatMap { $0.hasPrefix("/") ? $0 + "/sessiond/streams" : nil }
        self.log = log
    }

    /// The entries of the last daemon; empty if there is no valid file.
    func read() -> StreamRecord {
        var contents = read(path) ?? StreamRecord()
        written = contents
        if let lastingPath, let kept = read(lastingPath) {
            lasting = StreamRecord(memories: kept.memories, defaults: kept.defaults)
        }
        contents.defaults.output = contents.defaults.output ?? lasting.defaults.output
        contents.defaults.input = contents.defaults.input ?? lasting.defaults.input
        for memory in lasting.memories where !contents.memories.contains(where: { $0.name == memory.name }) {
            contents.memories.append(memory)
        }
        return contents
    }

    /// Nil if there is no valid file.
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

    /// On disk when this returns. False if that fails: then no stream may be changed.
    func write(_ contents: StreamRecord) -> Bool {
        guard contents != written else { return true }
        guard put(contents, at: path) else { return false }
        written = contents
        let remembered = StreamRecord(memories: contents.memories, defaults: contents.defaults)
        if remembered != lasting, let lastingPath {
            // The writer reports what could not be created. Without this file, remembered values can be corrected only
            // while the machine runs.
            _ = makeFolders(String(lastingPath[..<(lastingPath.lastIndex(of: "/") ?? lastingPath.startIndex)]))
            if put(remembered, at: lastingPath) { lasting = remembered }
        }
        CrashPoint.pass("journal-written")
        return true
    }

    private func put(_ contents: StreamRecord, at path: String) -> Bool {
        guard !contents.isEmpty else { return unlink(path) == 0 || errno == ENOENT }
        let bytes = contents.bytes
        guard let file = OwnFile.replace(path, with: bytes, limit: StreamJournal.maximumBytes) else {
            let reason = String(cString: strerror(errno))
            warn(
                path,
                "cannot be written (\(reason)): streams of other programs will not be changed, and a headset may stay "
                    + "hands-free if sessiond is restarted during a call")
            return false
        }
        close(file)
        return true
    }

    private func warn(_ path: String, _ what: String) {
        if !hasWarned { log.warning("\(path) \(what)") }
        hasWarned = true
    }
}
