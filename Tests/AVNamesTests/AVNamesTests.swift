import Foundation
import Testing

@testable import AVNames

/// What AVFoundation has as numbers and dictionaries. Examples/Ported shows the calls, delegates and notifications.
@Suite struct AVNamesTests {
    @Test func recordingSettings_areThoseOfTheKeys() throws {
        let settings = try RecordingSettings([
            AVFormatIDKey: kAudioFormatFLAC, AVSampleRateKey: 44_100, AVNumberOfChannelsKey: 1,
            AVLinearPCMBitDepthKey: 24, AVEncoderAudioQualityKey: AVAudioQuality.high.rawValue, "AVUnknownKey": "x",
        ])
        #expect(
            settings
                == RecordingSettings(format: .flac, sampleRate: 44_100, channels: 1, bitDepth: 24, quality: .high))
        #expect(try RecordingSettings([:]) == RecordingSettings())
        let float = try RecordingSettings([AVFormatIDKey: Int(kAudioFormatLinearPCM), AVLinearPCMIsFloatKey: true])
        #expect(float == RecordingSettings(format: .wav, isFloat: true))
        #expect(try RecordingSettings([AVSampleRateKey: 48_000.0 as Float]).sampleRate == 48_000)
    }

    /// Nothing is recorded otherwise than the app wants.
    @Test(
        arguments: [
            (AVFormatIDKey, 0x6161_6370 as UInt32), (AVNumberOfChannelsKey, 0), (AVNumberOfChannelsKey, 1.5),
            (AVSampleRateKey, "fast"), (AVLinearPCMIsBigEndianKey, true), (AVEncoderAudioQualityKey, 1),
        ] as [(String, any Sendable)])
    func impossibleSetting_isRefusedByItsName(_ key: String, _ value: any Sendable) {
        let error = #expect(throws: SessionError.self) { try RecordingSettings([key: value]) }
        #expect(error?.code == .badParameter)
        #expect(error?.message.hasPrefix(key) == true, "\(error?.message ?? "")")
    }

    @Test func numbers_areThoseOfIOS() {
        for reason in AVAudioSession.InterruptionReason.allCases {
            #expect(AVAudioSession.InterruptionReason(rawValue: reason.number) == reason)
        }
        #expect(AVAudioSession.RouteChangeReason(rawValue: 2 as UInt) == .oldDeviceUnavailable)
        #expect(AVAudioSession.RouteChangeReason(rawValue: UInt.max) == nil)
        #expect(AVAudioSession.InterruptionType(rawValue: 1) == .began)
        #expect(MPMediaType.music.kinds == [.music])
        #expect(MPMediaType([.podcast, .audioBook]).kinds == [.podcast, .audiobook])
        // Empty: all types.
        #expect(MPMediaType.anyAudio.kinds.isEmpty && MPMediaType.any.kinds.isEmpty)
    }

    @Test func sessionWithoutABus_saysWhyAtTheFirstCall() {
        let session = AVAudioSession(failed: SessionError(.mediaServicesFailed, "there is no bus"))
        let error = #expect(throws: SessionError.self) { try session.setActive(true) }
        #expect(error == SessionError(.mediaServicesFailed, "there is no bus"))
        #expect(session.currentRoute.outputs.isEmpty)
    }

    @Test func delegate_isNotKeptAlive() throws {
        final class Listener: AVAudioRecorderDelegate {}
        let recorder = try AVAudioRecorder(
            url: URL(fileURLWithPath: "/nowhere/note.wav"), settings: [AVNumberOfChannelsKey: 1])
        do {
            let listener = Listener()
            recorder.delegate = listener
            #expect(recorder.delegate === listener)
        }
        #expect(recorder.delegate == nil)
        #expect((recorder.url as URL).lastPathComponent == "note.wav")
    }
}
