import PluginAPI
import Testing

@testable import Enforcement

@Suite struct MemoryRepairTests {
    private let base = StreamBase(volume: [65_536], isMuted: false, deviceName: nil)
    private func entry(_ volume: UInt32, device: String? = nil) -> StreamMemory {
        StreamMemory(name: "x", channels: [0], volume: [volume], deviceName: device)
    }

    @Test func duckedVolumeWithoutARememberedOne_isForgotten() {
        let lowered = Level.volume([65_536], lowered: 12)[0]
        #expect(MemoryRepair(name: "x", original: nil, bases: [base]).verdict(on: entry(lowered)) == .forget)
        #expect(MemoryRepair(name: "x", original: nil, bases: [base]).verdict(on: nil) == .right)
    }

    @Test func duckedVolume_isRestored() {
        let lowered = Level.volume([65_536], lowered: 12)[0]
        let repair = MemoryRepair(name: "x", original: entry(65_536), bases: [base])
        #expect(repair.verdict(on: entry(lowered, device: "sessiond.hold")) == .write(entry(65_536)))
        #expect(repair.verdict(on: entry(65_536)) == .right)
    }

    @Test func usersVolume_isKept() {
        let repair = MemoryRepair(name: "x", original: entry(65_536), bases: [base])
        #expect(repair.verdict(on: entry(50_300)) == .right)
        #expect(repair.verdict(on: entry(50_300, device: "sessiond.hold")) == .write(entry(50_300)))
    }

    /// The daemon notices that the user has set another volume while the stream was ducked.
    @Test func usersVolumeOfADuckedStream_isKept() {
        var theirs = StreamBase(volume: [50_300], isMuted: false, deviceName: nil)
        theirs.volumeChange = .absolute
        let later = StreamBase(volume: [50_300], isMuted: false, deviceName: nil)
        let ducked = Level.volume([50_300], lowered: 12)[0]
        for original in [nil, entry(65_536)] {
            for bases in [[base, theirs], [base, theirs, later]] {
                let repair = MemoryRepair(name: "x", original: original, bases: bases)
                #expect(repair.verdict(on: entry(50_300)) == .right)
                #expect(repair.verdict(on: entry(ducked)) == .write(entry(50_300)))
                #expect(repair.base(of: stream(ducked), defaultDevice: "phones") == later)
            }
        }
    }

    private func stream(_ volume: UInt32, isMuted: Bool = false, isHeld: Bool = false) -> AudioStream {
        AudioStream(
            id: AudioStream.ID(.playback, 1), isMuted: isMuted, deviceName: "phones", volume: [volume], isHeld: isHeld)
    }

    @Test func streamStartsWithADuckedVolume_originalIsKnown() {
        let lowered = Level.volume([65_536], lowered: 12)[0]
        let untouched = StreamBase(volume: [65_536], isMuted: false, deviceName: nil)
        for original in [nil, entry(65_536)] {
            let repair = MemoryRepair(name: "x", original: original, bases: [base])
            #expect(repair.base(of: stream(lowered), defaultDevice: "phones") == untouched)
            #expect(repair.base(of: stream(65_536), defaultDevice: "phones") == nil)
            #expect(repair.base(of: stream(50_300), defaultDevice: "phones") == nil)
            #expect(repair.base(of: stream(lowered), defaultDevice: "speaker")?.deviceName == "phones")
        }
        // The volume that the user set before the last one is no level of the daemon, whatever its value.
        let other = StreamBase(volume: [lowered], isMuted: false, deviceName: nil)
        #expect(
            MemoryRepair(name: "x", original: nil, bases: [other, base]).base(of: stream(lowered), defaultDevice: nil)
                == nil)
        #expect(
            MemoryRepair(name: "x", original: entry(lowered), bases: [base]).base(
                of: stream(lowered), defaultDevice: nil) == nil)
    }

    /// The server put the stream on the hold sink, because it remembered that sink of the last stream. Nothing else is
    /// changed.
    @Test func streamStartsHeld_movesToTheChosenDevice() {
        let chosen = StreamBase(volume: [65_536], isMuted: false, deviceName: "phones")
        for repair in [
            MemoryRepair(name: "x", original: entry(65_536), bases: [base, chosen]),
            MemoryRepair(name: "x", original: entry(65_536, device: "phones"), bases: [base]),
        ] {
            #expect(repair.base(of: stream(65_536, isHeld: true), defaultDevice: "speaker") == chosen)
            #expect(repair.base(of: stream(65_536), defaultDevice: "speaker") == nil)
        }
        let repair = MemoryRepair(name: "x", original: entry(65_536), bases: [chosen, base])
        #expect(repair.base(of: stream(65_536, isHeld: true), defaultDevice: "speaker") == nil)
        // If the server does not remember the device, it is moved from any other one.
        let other = StreamBase(volume: [65_536], isMuted: false, deviceName: "other")
        let hidden = MemoryRepair(name: "x", original: entry(65_536), bases: [other])
        #expect(hidden.base(of: stream(65_536), defaultDevice: "phones") == nil)
        #expect(hidden.base(of: stream(65_536), defaultDevice: "phones", remembersDevice: false) == other)
    }

    @Test func streamStartsMuted_countsAsTheDaemonsOnlyIfTheUserMutedNone() {
        let muted = StreamBase(volume: [65_536], isMuted: true, deviceName: nil)
        let started = stream(65_536, isMuted: true, isHeld: true)
        #expect(
            MemoryRepair(name: "x", original: entry(65_536), bases: [base]).base(of: started, defaultDevice: nil)
                == base)
        #expect(
            MemoryRepair(name: "x", original: entry(65_536), bases: [base, muted]).base(of: started, defaultDevice: nil)
                == nil)
        var original = entry(65_536)
        original.isMuted = true
        #expect(MemoryRepair(name: "x", original: original, bases: [base]).base(of: started, defaultDevice: nil) == nil)
    }
}
