import PluginAPI
import Testing

@testable import Enforcement

@Suite struct LevelTests {
    @Test func everyLevel_isRecognizedBelowItsBase() {
        for base: UInt32 in [AudioStream.fullVolume, 30_000, 98_304] {
            for level in 0...40 {
                let volume = Level.volume([base, base / 2], lowered: level)
                #expect(Level.of(volume, below: [base, base / 2]) == level, "\(base) \(level)")
            }
        }
    }

    @Test func usersVolume_isNoLevelOfTheDaemon() {
        let base = [AudioStream.fullVolume]
        #expect(Level.of([50_300], below: base) == nil)
        #expect(Level.of([70_000], below: base) == nil)
        #expect(Level.of([50_300, 50_300], below: base) == nil)
    }

    @Test func twelveDecibels_isAQuarterOfTheAmplitude() {
        // PulseAudio's volumes are cubic: (v / 65536)³.
        let part = Double(Level.volume([AudioStream.fullVolume], lowered: 12)[0]) / 65_536
        #expect(abs(part * part * part - 0.2512) < 0.001)
    }

    /// A stream ends while its volume is restored: the server refuses that, and its old volume is still shown.
    @Test func volumeIsRefused_theShownOneIsNotTheUsers() {
        var stream = AudioStream(id: AudioStream.ID(.playback, 1), deviceName: "speaker", volume: [65_536])
        var base = StreamBase(volume: [65_536], isMuted: false, deviceName: nil)
        var level = StreamLevel()
        var check = StreamCheck(stream, at: 0)
        level.set(30, of: base.volume, &check)
        level.answered(succeeded: true, at: 1)
        stream.volume = Level.volume([65_536], lowered: 30)
        level.shown(stream, of: &base, isSilenced: false, at: 2)
        level.set(0, of: base.volume, &check)
        level.answered(succeeded: false, at: 3)
        for time in 4...5 { level.shown(stream, of: &base, isSilenced: true, at: UInt64(time)) }
        #expect(base == StreamBase(volume: [65_536], isMuted: false, deviceName: nil))
        // This one is the user's.
        stream.volume = [30_000]
        level.shown(stream, of: &base, isSilenced: true, at: 6)
        #expect(base.volume == [30_000])
    }
}
