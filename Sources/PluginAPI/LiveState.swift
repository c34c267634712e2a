/// The state of a live stream. The raw value is the word on the wire.
public enum LiveState: String, CaseIterable, Sendable, Hashable {
    /// Not started, or over.
    case idle
    /// On the way to the server for the first time.
    case connecting
    /// Viewers see it.
    case live
    /// The connection was lost, and is made again; the encoder and a recording continue.
    case reconnecting
    /// It gave up, or its source failed.
    case failed
}

/// What a live stream does while another session interrupts its microphone. The raw value is the word on the wire.
public enum LiveInterruption: String, CaseIterable, Sendable, Hashable {
    /// The pictures go on, without sound.
    case silence
    /// The stream ends.
    case stop
}
