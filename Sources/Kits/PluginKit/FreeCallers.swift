package import DBus
import Processes

/// The callers of a plugin that are not in a sandbox.
///
/// A plugin reads and writes with its own rights: a program in a sandbox could reach files outside of the sandbox by
/// naming a path.
package final class FreeCallers {
    private let connection: Connection
    /// The processes of the callers that were checked, so that the bus is not asked at each call. Unique names are never
    /// reused.
    private var known: [String: UInt32] = [:]

    package init(on connection: Connection) { self.connection = connection }

    /// Returns the process of the caller.
    /// - Parameter deed: the action that a program in a sandbox may not do, for the error.
    @discardableResult
    package func require(_ caller: String, to deed: String) throws(Failure) -> UInt32 {
        if let process = known[caller] { return process }
        let credentials = try connection.credentialsAndWait(of: caller, timeout: 5)
        // A sandbox has the rights of its user. On the system bus root may call, too (`Connection.servedUsers`), and the
        // kernel shows a plugin nothing of root's processes.
        let isRoot = credentials.userID != PluginHost.userID
        guard let process = credentials.processID, isRoot || isFree(Sandbox(of: process)),
            !credentials.hasEnded
        else {
            throw Failure(name: Failure.Name.accessDenied, message: "a program in a sandbox may not \(deed)")
        }
        if known.count >= 64 { known = [:] }
        known[caller] = process
        return process
    }

    /// A plugin of root that the daemon started has no capabilities, so the kernel does not let it inspect other
    /// processes of root.
    private func isFree(_ sandbox: Sandbox) -> Bool {
        switch sandbox {
        case .none: true
        case .application, .gone: false
        case .hidden: PluginHost.userID == 0
        }
    }
}
