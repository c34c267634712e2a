/// What a plugin program runs: it gives everything back before the program ends.
public protocol Plugin: AnyObject {
    /// Silent, the sound given back, what is on the disk whole; then calls `done`, once.
    func end(_ done: @escaping () -> Void)
}
