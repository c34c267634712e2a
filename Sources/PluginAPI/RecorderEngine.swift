/// What a recorder is doing. The raw value is the name on the wire.
public enum RecorderState: String, CaseIterable, Sendable, Hashable {
    /// Nothing prepared, prepared and not begun, or finished.
    case idle
    case recording
    case paused
    /// Paused by the session; no engine reports it, the layer above does.
    case interrupted
    /// Recording ended early or could not begin; preparing another file leaves this state.
    case failed
}

/// How a recording is stored. The raw value is the name on the wire.
public enum RecordingFormat: String, CaseIterable, Sendable, Hashable {
    case wav, flac, vorbis, opus, mp3, aac, alac

    /// The format usual for a file of that name; nil where its ending says nothing.
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

/// How much care and space an encoder spends (AVAudioQuality). The raw value is the name on the wire.
public enum RecordingQuality: String, CaseIterable, Sendable, Hashable {
    case min, low, medium, high, max
}

/// What to record; what is nil is chosen: 44.1 kHz (Opus 48 kHz), two channels, 16 bit.
public struct RecordingSettings: Sendable, Hashable {
    /// nil: from the file's ending.
    public var format: RecordingFormat?
    /// Hertz.
    public var sampleRate: Double?
    /// From 1, as many as the format holds.
    public var channels: Int?
    /// 8, 16, 24 or 32 for WAV, 8, 16 or 24 for FLAC, 16, 24 or 32 for ALAC; for no other format.
    public var bitDepth: Int?
    /// 32 bit floating point; WAV only.
    public var isFloat: Bool
    /// For encoders that have a choice; nothing to the others.
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
/// Lives on the loop, as ``PlayerEngine``. What was recorded is on the disk and plays at any time: while paused, after
/// a failure, and when the process is killed.
public protocol RecorderEngine: AnyObject {
    /// Never ``RecorderState/interrupted``.
    var state: RecorderState { get }
    /// The file; nil before ``prepare(path:settings:)``, after ``delete()``, and after a failure that left nothing in it.
    var path: String? { get }
    /// Seconds recorded, pauses left out; after a failure, those that play.
    var position: Double { get }
    /// Off, metering costs nothing.
    var meteringEnabled: Bool { get set }
    /// A source's name at the server; nil follows the server's choice. Read when a file is prepared.
    var device: String? { get set }

    /// After every change of ``state``, with the new one.
    var onStateChanged: ((RecorderState) -> Void)? { get set }
    /// The file is whole and closed, after ``stop()`` or the end of ``record(for:)``; false where its end is missing.
    var onFinished: ((Bool) -> Void)? { get set }
    /// Recording ended early; the message says why. What was recorded stays and plays; an empty file does not stay.
    var onFailed: ((String) -> Void)? { get set }

    /// Creates the file (replacing one that is there) and gets the source ready.
    /// - Throws: `BadParameter` for settings that do not go together, `CannotStartRecording` for a file or an encoder
    ///   that cannot be had, `IsBusy` while recording.
    func prepare(path: String, settings: RecordingSettings) throws(SessionError)
    /// Records, or goes on after a pause, appending.
    /// - Throws: `CannotStartRecording` where nothing is prepared.
    func record() throws(SessionError)
    /// As ``record()``, and stops when that many more seconds are recorded, exact to the sample.
    /// - Throws: as it does, and `BadParameter` for what is not above 0.
    func record(for seconds: Double) throws(SessionError)
    /// Lets go of the source; the file plays as it is.
    func pause()
    /// Ends the file; ``onFinished`` tells when it is whole.
    func stop()
    /// Removes the file.
    /// - Throws: `IsBusy` while recording, paused or ending, `BadParameter` where there is none.
    func delete() throws(SessionError)
    /// The levels being recorded now, one for each channel; empty while ``meteringEnabled`` is off or not recording.
    func meters() -> [ChannelLevel]
}
