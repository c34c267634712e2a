/// The default sink that was requested last and is not the default yet: WirePlumber 0.4 can overlook it if its device has
/// just appeared (seen on a busy machine in 1 of 8 replugs). Then it is requested again, but only while the default is
/// the one from before: any other default shows that the request took effect, or that the user chose another sink.
struct DefaultRequest: Equatable {
    /// The port that was requested, and its sink.
    let output: String
    let sink: String
    /// The default when it was requested.
    let before: String
    /// Distinguishes it from other requests of the same sink.
    let number: UInt64
    /// How often it may be requested again.
    private(set) var attempts = 3

    /// Nil if that sink is the default already.
    init?(output: String, sink: String, before: String, number: UInt64) {
        if sink == before { return nil }
        (self.output, self.sink, self.before, self.number) = (output, sink, before, number)
    }

    /// Whether it is still awaited when the server shows that default.
    func isAwaited(with shown: String) -> Bool { shown == before }

    /// The sinks to make the default, in order: the same value again changes nothing, so the current one is first.
    var repetition: [String] { [before, sink] }

    /// Requested again; nil: that was the last time.
    var next: DefaultRequest? {
        var next = self
        next.attempts -= 1
        return next.attempts > 0 ? next : nil
    }
}
