import DBus
import Processes

/// Callers outside of sandboxes. A plugin reads and writes files with its own rights: with a path, a program in a sandbox
/// could reach what is outside of it.
struct FreeCallers {
    private static let limit = 64

    /// So that the bus is not asked at each call; no name is ever another's.
    private var known: Set<String> = []

    /// Blocks for a new caller.
    /// - Parameter action: what a program in a sandbox may not do.
    /// - Throws: `AccessDenied` for a program in a sandbox.
    mutating func require(_ caller: String, on connection: Connection, _ action: String) throws(Failure) {
        if known.contains(caller) { return }
        let credentials = try connection.credentialsAndWait(of: caller, timeout: 5)
        // A sandbox has the rights of its user. On the system bus root may call, too (`Connection.servedUsers`), and the
        // kernel shows the plugin nothing of root's processes.
        let isRoot = credentials.userID != PluginHost.userID
        guard let process = credentials.processID, isRoot || Sandbox(of: process) == .none else {
            throw Failure(name: Failure.Name.accessDenied, message: "a program in a sandbox may not \(action)")
        }
        if known.count >= Self.limit { known = [] }
        known.insert(caller)
    }
}
