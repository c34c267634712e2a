public import EventLoop

extension EventLoop {
    /// Iterates until `condition` is true, which is also asked while nothing happens on the loop; false if `timeout` seconds have
    /// passed before.
    /// - Parameter seconds: how often it is asked at least.
    @discardableResult
    public func iterate(timeout: Double, askingEvery seconds: Double, until condition: () -> Bool) -> Bool {
        var tick: Timer?
        tick = Timer(on: self) { tick?.arm(after: seconds) }
        tick?.arm(after: seconds)
        defer { tick = nil }
        return iterate(timeout: timeout, until: condition)
    }
}
