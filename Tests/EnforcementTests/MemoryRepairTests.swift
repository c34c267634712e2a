import PluginAPI
import Testing

@testable import Enforcement

@Suite struct MemoryRepairTests {
    private let base = StreamBase(volume: [65_536], isMuted: false, deviceName: nil)
    private func entry(_ volume: UInt32, device: String? = nil) -> StreamMemory {
        StreamMemory(name: "x", channels: [0], volume: [volume], deviceName: device)
    }

    @Test func loweredVolumeThatWasNotRemembered_isForgotten() {
        let lowered = Level.volume([65_536], lowered: 12)[0]
        #expect(MemoryRepair(original: nil, bases: [base]).verdict(on: entry(lowered)) == .forget)
        #expect(MemoryRepair(original: nil, bases: [base]).verdict(on: nil) == .right)
    }

    @Test func loweredVolume_isWhatItWasBefore() {
        let lowered = Level.volume([65_536], lowered: 12)[0]
        let repair = MemoryRepair(original: entry(65_536), bases: [base])
        #expect(repair.verdict(on: entry(lowered, device: "sessiond.hold")) == .write(entry(65_536)))
        #expect(repair.verdict(on: entry(65_536)) == .right)
    }

    @Test func aPersonsVolume_isKept() {
        let repair = MemoryRepair(original: entry(65_536), bases: [base])
        #expect(repair.verdict(on: entry(50_300)) == .right)
        #expect(repair.verdict(on: entry(50_300, device: "sessiond.hold")) == .write(entry(50_300)))
    }
}
