// Authors of plugins need the types of a session too, and import only this module.
@_exported public import SessionKit

/// The main object of a plugin program. It cleans up before the program exits.
public protocol Plugin: AnyObject {
    /// Stops, deactivates the session and completes files; then calls `done`, once.
    func end(_ done: @escaping () -> Void)
}
