import Glibc
import Installation

/// Places where a debug build can be made to die, for the tests of restarting: `SESSIOND_CRASH=NAME[:COUNT]` kills the
/// process as it passes that point for the COUNTth time (default 1). A release build has none.
enum CrashPoint {
    #if DEBUG
        nonisolated(unsafe) private static var armed: (name: String, count: Int)? = {
            guard let text = environment("SESSIOND_CRASH") else { return nil }
            let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
            return (parts[0], parts.count == 2 ? Int(parts[1]) ?? 1 : 1)
        }()
    #endif

    /// All names. A test uses each of them.
    static let names = [
        "name-taken", "restored", "before-state", "state-written", "told-noted", "told", "before-reply", "replied",
        "state-rename", "exiting", "journal-written", "stream-changed", "pause-noted",
    ]

    @inline(__always)
    static func pass(_ name: StaticString) {
        #if DEBUG
            guard let point = armed, point.name == "\(name)" else { return }
            armed?.count -= 1
            if point.count <= 1 { kill(getpid(), SIGKILL) }
        #endif
    }
}
