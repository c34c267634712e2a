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
}
