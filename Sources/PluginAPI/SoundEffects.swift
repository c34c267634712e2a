/// A short sound in memory: signed 16-bit little-endian samples, interleaved.
public struct SoundSample: Sendable, Hashable {
    /// Hertz.
    public let sampleRate: Int
    public let channels: Int
    /// Complete frames.
    public let bytes: [UInt8]

    public init(sampleRate: Int, channels: Int, bytes: [UInt8]) {
        self.sampleRate = sampleRate
        self.channels = channels
        self.bytes = bytes
    }

    /// Seconds.
    public var duration: Double { Double(bytes.count / (2 * channels)) / Double(sampleRate) }
}

/// Decodes a file into a ``SoundSample`` (a port behind `org.sessiond1.SoundEffects`). Belongs to the loop.
public protocol SoundDecoder: AnyObject {
    /// Decodes the complete file; answers once, from the loop, never during the call.
    ///
    /// Fails with `BadParameter` if the file is not audio, cannot be read, or is longer than `limit` seconds. Memory is
    /// bounded by that limit, whatever the file states.
    func decode(path: String, limit: Double, _ reply: @escaping (Result<SoundSample, SessionError>) -> Void)
}

/// Stores samples at the sound server and plays them from there, so playing one sends no data and has the shortest
/// latency (a port behind `org.sessiond1.SoundEffects`). Belongs to the loop; connects when needed.
public protocol SampleCache: AnyObject {
    /// A sound has ended: its stream, and whether it was played to its end.
    var onEnded: ((_ stream: UInt32, _ wasWhole: Bool) -> Void)? { get set }
    /// The server is gone, and every sample with it; called before ``onEnded`` of the sounds that played.
    var onLost: (() -> Void)? { get set }

    /// Stores a sample at the server under that name, replacing an existing one.
    func upload(_ sample: SoundSample, as name: String, _ reply: @escaping (Result<Void, SessionError>) -> Void)
    /// Plays the sample; answers with the number of the stream, which is not 0.
    /// - Parameter gain: dB, at most 0.
    func play(_ name: String, gain: Double, _ reply: @escaping (Result<UInt32, SessionError>) -> Void)
    /// Stops a sound; then ``onEnded`` is called.
    func stop(_ stream: UInt32)
    /// Removes the sample of that name, if there is one.
    func remove(_ name: String)
}
