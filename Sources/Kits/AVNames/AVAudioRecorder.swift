public import Foundation

/// As on iOS. Called on the main thread. Both methods have defaults that do nothing.
public protocol AVAudioRecorderDelegate: AnyObject {
    /// The file is complete; false: its end is missing.
    func audioRecorderDidFinishRecording(_ recorder: AVAudioRecorder, successfully flag: Bool)
    /// It cannot be recorded on. What was recorded can be played.
    func audioRecorderEncodeErrorDidOccur(_ recorder: AVAudioRecorder, error: (any Error)?)
}

extension AVAudioRecorderDelegate {
    public func audioRecorderDidFinishRecording(_ recorder: AVAudioRecorder, successfully flag: Bool) {}
    public func audioRecorderEncodeErrorDidOccur(_ recorder: AVAudioRecorder, error: (any Error)?) {}
}

/// A format: `kAudioFormatLinearPCM` and so on.
public let AVFormatIDKey = "AVFormatIDKey"
/// A number, hertz.
public let AVSampleRateKey = "AVSampleRateKey"
/// A number, from 1.
public let AVNumberOfChannelsKey = "AVNumberOfChannelsKey"
/// A number: 8, 16, 24 or 32.
public let AVLinearPCMBitDepthKey = "AVLinearPCMBitDepthKey"
/// `Bool`.
public let AVLinearPCMIsFloatKey = "AVLinearPCMIsFloatKey"
/// `Bool`. A WAV file is always little-endian: true is refused.
public let AVLinearPCMIsBigEndianKey = "AVLinearPCMIsBigEndianKey"
/// A number: the raw value of an ``AVAudioQuality``.
public let AVEncoderAudioQualityKey = "AVEncoderAudioQualityKey"

/// A code of four letters.
public typealias AudioFormatID = UInt32
public let kAudioFormatLinearPCM: AudioFormatID = 0x6C70_636D
public let kAudioFormatMPEG4AAC: AudioFormatID = 0x6161_6320
public let kAudioFormatAppleLossless: AudioFormatID = 0x616C_6163
public let kAudioFormatFLAC: AudioFormatID = 0x666C_6163
public let kAudioFormatOpus: AudioFormatID = 0x6F70_7573
public let kAudioFormatMPEGLayer3: AudioFormatID = 0x2E6D_7033

public enum AVAudioQuality: Int, Sendable, Hashable {
    case min = 0
    case low = 0x20
    case medium = 0x40
    case high = 0x60
    case max = 0x7F
}

extension RecordingSettings {
    private static let formats: [AudioFormatID: RecordingFormat] = [
        kAudioFormatLinearPCM: .wav, kAudioFormatMPEG4AAC: .aac, kAudioFormatAppleLossless: .alac,
        kAudioFormatFLAC: .flac, kAudioFormatOpus: .opus, kAudioFormatMPEGLayer3: .mp3,
    ]
    private static let qualities: [AVAudioQuality: RecordingQuality] = [
        .min: .min, .low: .low, .medium: .medium, .high: .high, .max: .max,
    ]

    /// The settings of AVAudioRecorder. Keys that are not in the list above are ignored, as on iOS.
    /// - Throws: `BadParameter` with the key whose value has another type or is not supported.
    public init(_ settings: [String: Any]) throws(SessionError) {
        func number(_ key: String) throws(SessionError) -> Double? {
            guard let value = settings[key] else { return nil }
            switch value {
            case let number as any BinaryInteger: return Double(number)
            case let number as any BinaryFloatingPoint: return Double(number)
            case let number as NSNumber: return number.doubleValue
            case let isSet as Bool: return isSet ? 1 : 0
            case _: throw .badParameter("\(key): '\(value)' is not a number")
            }
        }
        func whole(_ key: String, _ range: ClosedRange<Double>) throws(SessionError) -> Int? {
            guard let value = try number(key) else { return nil }
            guard range.contains(value), value.rounded() == value else {
                throw .badParameter("\(key): \(value) is not possible")
            }
            return Int(value)
        }
        self.init()
        if let id = try whole(AVFormatIDKey, 0...Double(UInt32.max)) {
            guard let format = Self.formats[AudioFormatID(id)] else {
                throw .badParameter("\(AVFormatIDKey): there is no encoder of that format here")
            }
            self.format = format
        }
        sampleRate = try number(AVSampleRateKey)
        channels = try whole(AVNumberOfChannelsKey, 1...255)
        bitDepth = try whole(AVLinearPCMBitDepthKey, 8...32)
        isFloat = try number(AVLinearPCMIsFloatKey) ?? 0 != 0
        if try number(AVLinearPCMIsBigEndianKey) ?? 0 != 0 {
            throw .badParameter("\(AVLinearPCMIsBigEndianKey): a WAV file is little-endian")
        }
        if let value = try whole(AVEncoderAudioQualityKey, 0...127) {
            guard let quality = AVAudioQuality(rawValue: value).flatMap({ Self.qualities[$0] }) else {
                throw .badParameter("\(AVEncoderAudioQualityKey): \(value) is no AVAudioQuality")
            }
            self.quality = quality
        }
    }
}

extension AudioRecorder {
    /// - Throws: `BadParameter` if it is not a file, or for a setting that is not possible.
    public convenience init(url: URL, settings: [String: Any]) throws(SessionError) {
        try self.init(url: url, settings: RecordingSettings(settings))
    }

    /// Weak.
    public var delegate: (any AVAudioRecorderDelegate)? {
        get { Delegates.all.delegate(of: self) as? any AVAudioRecorderDelegate }
        set { if Delegates.all.set(newValue, of: self) { tellDelegate() } }
    }

    private func tellDelegate() {
        let (finishes, errors) = (self.finishes, encodeErrors)
        Task { [weak self] in
            for await isWhole in finishes {
                await self?.tell { $0.audioRecorderDidFinishRecording($1, successfully: isWhole) }
            }
        }
        Task { [weak self] in
            for await error in errors { await self?.tell { $0.audioRecorderEncodeErrorDidOccur($1, error: error) } }
        }
    }

    @MainActor
    private func tell(_ event: (any AVAudioRecorderDelegate, AVAudioRecorder) -> Void) {
        if let delegate { event(delegate, self) }
    }

    @discardableResult
    public func prepareToRecord() -> Bool {
        (try? waiting { () async throws(SessionError) in await self.prepareToRecord() }) ?? false
    }

    /// - Returns: false if the session may not record, or the file cannot be written; the reason is logged.
    @discardableResult
    public func record() -> Bool {
        trying("record") { () async throws(SessionError) in try await self.record() } != nil
    }

    @discardableResult
    public func record(atTime time: TimeInterval) -> Bool {
        trying("record(atTime:)") { () async throws(SessionError) in try await self.record(atTime: time) } != nil
    }

    @discardableResult
    public func record(forDuration duration: TimeInterval) -> Bool {
        trying("record(forDuration:)") { () async throws(SessionError) in try await self.record(forDuration: duration) }
            != nil
    }

    public func pause() { trying("pause") { () async throws(SessionError) in await self.pause() } }
    public func stop() { trying("stop") { () async throws(SessionError) in await self.stop() } }

    @discardableResult
    public func deleteRecording() -> Bool {
        trying("deleteRecording") { () async throws(SessionError) in await self.deleteRecording() } ?? false
    }

    public func updateMeters() { trying("updateMeters") { () async throws(SessionError) in await self.updateMeters() } }

    // What is a number of another type, or a URL, on iOS.

    @_disfavoredOverload public var url: URL { URL(string: address) ?? URL(fileURLWithPath: address) }

    @_disfavoredOverload public func averagePower(forChannel channel: Int) -> Float {
        Float(averagePower(forChannel: channel) as Double)
    }

    @_disfavoredOverload public func peakPower(forChannel channel: Int) -> Float {
        Float(peakPower(forChannel: channel) as Double)
    }
}
