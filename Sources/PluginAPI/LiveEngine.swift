/// How a live stream ended without a fault. The raw value is the word on the wire.
public enum LiveEnd: String, CaseIterable, Sendable, Hashable {
    /// Its film is over.
    case ended
    /// It was stopped.
    case stopped
}

/// An engine that sends a live stream (the port behind `org.sessiond1.LiveStream`).
///
/// Called on the thread of the loop alone; callbacks come there, never from within a call except ``start(_:)``'s.
public protocol LiveEngine: AnyObject {
    var state: LiveState { get }
    /// Seconds since the server takes the stream without a break; 0: it does not.
    var uptime: Double { get }
    /// Bytes that were sent, over all connections.
    var bytesSent: UInt64 { get }
    /// Bits per second that the pictures are encoded with now.
    var bitrate: Int { get }
    /// Seconds to the server and back; 0: unknown.
    var roundTrip: Double { get }
    /// Pictures that a connected server did not get, because the network or the encoder was too slow.
    var droppedFrames: UInt64 { get }
    var reconnects: Int { get }
    /// Why it is not live; empty: no reason.
    var message: String { get }
    /// Whether a file gets the stream.
    var isRecording: Bool { get }
    /// Whether the microphone is heard; nothing happens without a microphone.
    var microphoneIsOn: Bool { get set }
    /// Whether another session interrupts the microphone, which the pictures may tell (``LiveFilter/interruptionText(_:)``).
    var isInterrupted: Bool { get set }

    /// Opens the source, and connects; fails if the source cannot be opened, and is called once.
    func start(_ reply: @escaping (Result<Void, SessionError>) -> Void)
    /// Ends it, and completes the file; reports ``LiveEvent/finished(_:)``.
    func stop()
    /// Ends everything now. What was recorded can be played.
    func close()
    /// In bits per second; at once.
    func want(bitrate: Int)

    var onEvent: ((LiveEvent) -> Void)? { get set }
}

public enum LiveEvent: Sendable, Hashable {
    /// Its state or a figure has changed.
    case changed
    /// The file cannot be written any more; the stream goes on. What was recorded can be played.
    case recordingFailed(SessionError)
    /// The microphone cannot be read; the stream goes on without its sound.
    case microphoneLost(String)
    /// It gave up, or its source failed. The file is complete up to there.
    case failed(SessionError)
    case finished(LiveEnd)
}
