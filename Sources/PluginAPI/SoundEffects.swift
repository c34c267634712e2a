/// A short sound in memory: signed 16-bit little-endian samples, the channels' one after the other.
public struct SoundSample: Sendable, Hashable {
    /// Hertz.
    public let sampleRate: Int
    public let channels: Int
    /// Whole frames.
    public let bytes: [UInt8]

    public init(sampleRate: Int, channels: Int, bytes: [UInt8]) {
        self.sampleRate = sampleRate
        self.channels = channels
        self.bytes = bytes
    }

    /// Seconds.
    public var duration: Double { Double(bytes.count / (2 * channels)) / Double(sampleRate) }
}

/// Makes a ``SoundSample`` of a file (a port behind `org.sessiond1.SoundEffects`). Lives on the loop.
public protocol SoundDecoder: AnyObject {
    /// Decodes the whole file; answers once, from the loop, never from inside the call.
    ///
    /// Fails with `BadParameter` for what is no sound, cannot be read, or is longer than `limit` seconds; memory is
    /// bounded by that limit, whatever the file says.
    func decode(path: String, limit: Double, _ reply: @escaping (Result<SoundSample, SessionError>) -> Void)
}

/// Keeps samples at the sound server and plays them from there: nothing is sent when one is played, and nothing is
/// nearer to the loudspeaker (a port behind `org.sessiond1.SoundEffects`). Lives on the loop; connects when needed.
public protocol SampleCache: AnyObject {
    /// One that was playing is over: its stream, and whether it was heard to its end.
    var onEnded: ((_ stream: UInt32, _ wasWhole: Bool) -> Void)? { get set }
    /// The server has gone, and every sample with it; comes before ``onEnded`` of what was playing.
    var onLost: (() -> Void)? { get set }

    /// Sends a sample to the server under that name, replacing one that is there.
    func upload(_ sample: SoundSample, as name: String, _ reply: @escaping (Result<Void, SessionError>) -> Void)
    /// Plays a copy of it; answers with the stream's number, which is not 0.
    /// - Parameter gain: dB, at most 0.
    func play(_ name: String, gain: Double, _ reply: @escaping (Result<UInt32, SessionError>) -> Void)
    /// Silences one that is playing; ``onEnded`` tells.
    func stop(_ stream: UInt32)
    /// Forgets the sample of that name, where there is one.
    func remove(_ name: String)
}
