// An author of a plugin needs a session's words, and imports no second room for them.
@_exported public import SessionKit

/// What a plugin program runs: it gives everything back before the program ends.
public protocol Plugin: AnyObject {
    /// Silent, the sound given back, what is on the disk whole; then calls `done`, once.
    func end(_ done: @escaping () -> Void)
}
