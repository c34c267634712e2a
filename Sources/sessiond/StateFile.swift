import Glibc
import Installation
import Logging
import State

/// The state for a restart: a log of the changes by each event, `$XDG_RUNTIME_DIR/sessiond/state-<bus>`.
///
/// A record is one `write`, so it is complete or ignored. It survives the process, but not the machine, because the
/// sessions end with the machine. A log that has grown is written again to a new file that replaces the old one by one
/// `rename`. Any error causes one warning and the loss of the state, never of the service.
final class StateFile {
    /// A larger file is neither read nor written.
    private static let maximumBytes = 64 << 20

    private let log: Logger
    private let path: String
    private var descriptor: Int32 = -1
    private var size = 0
    /// Its size when it was last written completely.
    private var baseSize = 0
    private var hasWarned = false

    /// `bus`: the id of the bus, so that a state is never used on another bus.
    init?(bus: String, log: Logger) {
        self.log = log
        guard let runtime = environment("XDG_RUNTIME_DIR") else {
            log.warning("XDG_RUNTIME_DIR is not set; sessions will not survive a restart of this daemon")
            return nil
        }
        path = runtime + "/sessiond/state-" + bus
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Reads the file; nil if there is none, or it is invalid.
    func read() -> StateLog.Summary? {
        let bytes: [UInt8]
        switch OwnFile(path, limit: StateFile.maximumBytes) {
        case .absent: return nil
        case .unreadable:
            warn("cannot be read (\(String(cString: strerror(errno)))); starting with an empty state")
            return nil
        case .foreign:
            warn("is not a regular file of this user; starting with an empty state")
            return nil
        case .contents(let contents): bytes = contents
        }
        guard let log = StateLog(bytes) else {
            warn("was not written by this version; starting with an empty state")
            return nil
        }
        if !log.isWhole { warn("is truncated; using the complete records") }
        return log.summary
    }

    /// Writes the complete state in a new file. The first signal of the record counts as sent, unless `isUntold`.
    func replace(with record: StateRecord, isUntold: Bool = false) {
        let bytes = StateLog.magic + StateLog.bytes(of: record) + (isUntold ? StateLog.bytes(ofTold: 0) : [])
        let file = OwnFile.replace(
            path, with: bytes, limit: StateFile.maximumBytes, beforeRename: { CrashPoint.pass("state-rename") })
        guard let file else { return fail() }
        if descriptor >= 0 { close(descriptor) }
        descriptor = file
        size = bytes.count
        baseSize = bytes.count
    }

    /// Appends the changes of one event. Its first signal counts as sent.
    func append(_ record: StateRecord) { StateLog.withBytes(of: record) { append($0) } }

    /// Records how many signals of the last record are sent; called before each is sent, so that none is sent twice.
    func noteTold(_ count: Int) { StateLog.bytes(ofTold: count).withUnsafeBytes { append($0) } }

    /// Whether it has grown enough to be written again.
    var isLong: Bool {
        let most = max(StateFile.maximumBytes / 2, baseSize + (1 << 20))
        return descriptor >= 0 && size > min(max(256 << 10, 8 * baseSize), most)
    }

    private func append(_ bytes: UnsafeRawBufferPointer) {
        guard descriptor >= 0 else { return }
        guard OwnFile.append(bytes, to: descriptor, size: size, limit: StateFile.maximumBytes) else {
            let reason = errno
            // An incomplete state must not be used later.
            ftruncate(descriptor, 0)
            errno = reason
            return fail()
        }
        size += bytes.count
    }

    private func fail() {
        warn(
            "cannot be written (\(String(cString: strerror(errno)))): sessions will not survive a restart of this daemon"
        )
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
    }

    private func warn(_ what: String) {
        if !hasWarned { log.warning("\(path) \(what)") }
        hasWarned = true
    }
}
