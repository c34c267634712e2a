// Authors of plugins need the types of a session too, and import only this module.
@_exported public import SessionKit

/// The main object of a plugin program. It cleans up before the program exits.
public protocol Plugin: AnyObject {
    /// Serves its objects on the bus, if it does not do so from its initializer on. Called before its bus name is
    /// requested, and again when it runs: the second call does nothing.
    func serve()
    /// Stops, deactivates the session and completes files; then calls `done`, once.
    func end(_ done: @escaping () -> Void)
}

extension Plugin {
    public func serve() {}
}
