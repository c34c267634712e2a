/// The state of a recorder. The raw value is the name on the wire.
public enum RecorderState: String, CaseIterable, Sendable, Hashable {
    /// Nothing is prepared, a file is prepared but recording has not begun, or recording has finished.
    case idle
    case recording
    case paused
    /// Paused because the session is interrupted. Engines never report it; the layer above does.
    case interrupted
    /// Recording ended early or could not begin; preparing another file ends this state.
    case failed
}

/// The file format of a recording. The raw value is the name on the wire.
public enum RecordingFormat: String, CaseIterable, Sendable, Hashable {
    case wav, flac, vorbis, opus, mp3, aac, alac

    /// The usual format for a file of that name; nil if its extension is unknown.
    public init?(path: String) {
        guard let name = path.split(separator: "/").last, let dot = name.lastIndex(of: ".") else { return nil }
        switch name[name.index(after: dot)...].lowercased() {
        case "wav", "wave": self = .wav
        case "flac": self = .flac
        case "ogg", "oga": self = .vorbis
        case "opus": self = .opus
        case "mp3": self = .mp3
        case "aac", "m4a", "mp4": self = .aac
        default: return nil
        }
    }
}

/// The quality of an encoder (AVAudioQuality). The raw value is the name on the wire.
public enum RecordingQuality: String, CaseIterable, Sendable, Hashable {
    case min, low, medium, high, max
}

/// How to record; nil values have defaults: 44.1 kHz (Opus 48 kHz), two channels, 16 bit.
public struct RecordingSettings: Sendable, Hashable {
    /// nil: by the extension of the file.
    public var format: RecordingFormat?
    /// Hertz.
    public var sampleRate: Double?
    /// From 1, as many as the format supports.
    public var channels: Int?
    /// 8, 16, 24 or 32 for WAV, 8, 16 or 24 for FLAC, 16, 24 or 32 for ALAC; for no other format.
    public var bitDepth: Int?
    /// 32 bit floating point; WAV only.
    public var isFloat: Bool
    /// For encoders with a quality setting; ignored by others.
    public var quality: RecordingQuality

    public init(
        format: RecordingFormat? = nil, sampleRate: Double? = nil, channels: Int? = nil, bitDepth: Int? = nil,
        isFloat: Bool = false, quality: RecordingQuality = .medium
    ) {
        self.format = format
        self.sampleRate = sampleRate
        self.channels = channels
        self.bitDepth = bitDepth
        self.isFloat = isFloat
        self.quality = quality
    }
}

/// Records one file at a time from the sound server (the port behind `org.sessiond1.Recorder`).
///
/// Belongs to the loop, like ``PlayerEngine``. The recorded part is on the disk and can be played at any time: while
/// paused, after a failure, and after the process is killed.
public protocol RecorderEngine: AnyObject {
    /// Never ``RecorderState/interrupted``.
    var state: RecorderState { get }
    /// The file; nil before ``prepare(path:settings:)``, after ``delete()``, and after a failure that left an empty
    /// file.
    var path: String? { get }
    /// Seconds recorded, without pauses; after a failure, the seconds that can be played.
    var position: Double { get }
    /// Off, metering costs nothing.
    var meteringEnabled: Bool { get set }
    /// The name of a source at the server; nil: the default. Read when a file is prepared.
    var device: String? { get set }

    /// After every change of ``state``, with the new one.
    var onStateChanged: ((RecorderState) -> Void)? { get set }
    /// The file is complete and closed, after ``stop()`` or the end of ``record(for:)``; false if its end is missing.
    var onFinished: ((Bool) -> Void)? { get set }
    /// Recording ended early; the message gives the reason. The recorded part can be played; an empty file is removed.
    var onFailed: ((String) -> Void)? { get set }

    /// Creates the file (and replaces an existing one) and prepares the source.
    /// - Throws: `BadParameter` for settings that do not fit together, `CannotStartRecording` if the file or the
    ///   encoder is not available, `IsBusy` while recording.
    func prepare(path: String, settings: RecordingSettings) throws(SessionError)
    /// Records; after a pause, appends.
    /// - Throws: `CannotStartRecording` if nothing is prepared.
    func record() throws(SessionError)
    /// Like ``record()``, but stops when that many more seconds are recorded, exact to the sample.
    /// - Throws: the same, and `BadParameter` for a value that is not above 0.
    func record(for seconds: Double) throws(SessionError)
    /// Releases the source; the file can be played as it is.
    func pause()
    /// Ends the file; ``onFinished`` is called when it is complete.
    func stop()
    /// Removes the file.
    /// - Throws: `IsBusy` while recording, paused or ending, `BadParameter` if there is no file.
    func delete() throws(SessionError)
    /// The levels being recorded now, one for each channel; empty while ``meteringEnabled`` is off or not recording.
    func meters() -> [ChannelLevel]
}
