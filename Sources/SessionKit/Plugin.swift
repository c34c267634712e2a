/// What a plugin program runs; it cleans up before the program exits.
public protocol Plugin: AnyObject {
    /// Stops, deactivates the session and completes files; then calls `done`, once.
    func end(_ done: @escaping () -> Void)
}
