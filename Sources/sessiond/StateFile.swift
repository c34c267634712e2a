import Glibc
import Logging
import State

/// The state for a restart: a log of what each event changed, `$XDG_RUNTIME_DIR/sessiond/state-<bus>`.
///
/// A record is one `write`, so it is there whole or it does not count; what was written outlives the process, and with
/// the folder not the machine, whose sessions end with it. A log that has grown is written anew beside the old one and
/// takes its place in one `rename`. Whatever goes wrong costs one warning, and then the state, never the service.
final class StateFile {
    /// Larger is not ours.
    private static let maximumBytes = 64 << 20

    private let log: Logger
    private let path: String
    private var descriptor: Int32 = -1
    private var size = 0
    /// How large it was when it was last written anew.
    private var baseSize = 0
    private var hasWarned = false

    /// `bus`: the bus's own id, so that a state is never read back on another bus.
    init?(bus: String, log: Logger) {
        self.log = log
        guard let runtime = environment("XDG_RUNTIME_DIR") else {
            log.warning("XDG_RUNTIME_DIR is not set; sessions will not survive a restart of this daemon")
            return nil
        }
        path = runtime + "/sessiond/state-" + bus
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Reads what is there; nil where there is nothing, or nothing to be believed.
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

    /// Writes the whole state anew, in place of what was there.
    func replace(with record: StateRecord) {
        let bytes = StateLog.magic + StateLog.bytes(of: record)
        guard let file = OwnFile.replace(path, with: bytes, beforeRename: { CrashPoint.pass("state-rename") }) else {
            return fail()
        }
        if descriptor >= 0 { close(descriptor) }
        descriptor = file
        size = bytes.count
        baseSize = bytes.count
    }

    /// Adds what one event changed. The first of its notices counts as told from here on.
    func append(_ record: StateRecord) { StateLog.withBytes(of: record) { append($0) } }

    /// Notes that so many notices of the last record are told: before each is sent, so that none is sent twice.
    func noteTold(_ count: Int) { StateLog.bytes(ofTold: count).withUnsafeBytes { append($0) } }

    /// Whether it has grown enough to be worth writing anew.
    var isLong: Bool { descriptor >= 0 && size > max(256 << 10, 8 * baseSize) }

    private func append(_ bytes: UnsafeRawBufferPointer) {
        guard descriptor >= 0 else { return }
        guard OwnFile.append(bytes, to: descriptor) else {
            let reason = errno
            // Half a story is worse than none: what is there must not be believed later.
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
