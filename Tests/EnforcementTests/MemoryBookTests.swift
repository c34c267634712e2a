import PluginAPI
import Testing

@testable import Enforcement

@Suite struct MemoryBookTests {
    private static let name = "sink-input-by-application-name:Music"
    private static let own: UInt32 = 1
    private static let program: UInt32 = 2
    private let full = StreamBase(volume: [65_536], isMuted: false, deviceName: nil)
    private let ducked = Level.volume([65_536], lowered: 12)

    private func entry(_ volume: [UInt32]) -> StreamMemory {
        StreamMemory(name: Self.name, channels: [0], volume: volume)
    }

    private func stream(
        _ volume: [UInt32], of process: UInt32 = program, on device: String = "speaker", number: UInt32 = 1
    ) -> AudioStream {
        AudioStream(
            id: AudioStream.ID(.playback, number), processID: process, deviceName: device,
            properties: ["module-stream-restore.id": Self.name], volume: volume)
    }

    private func view(_ access: MemoryAccess, _ streams: [AudioStream] = [], isChanged: Bool = false) -> MemoryBook.View
    {
        MemoryBook.View(
            access: access, streams: streams, ownProcess: Self.own, changed: isChanged ? [Self.name] : [])
    }

    /// A book that knows one name, whose stream was ducked.
    private func book(_ bases: [StreamBase]) -> MemoryBook {
        var book = MemoryBook()
        #expect(book.keep(full, of: Self.name) == false)
        book.add(MemoryRepair(name: Self.name, original: entry([65_536]), bases: bases))
        return book
    }

    // MARK: PulseAudio

    @Test func valuesCanBeRead_areWrittenUntilTheyAreRight() {
        var book = book([full])
        let view = view(.readAndWrite)
        let write = MemoryBook.Correction.write([entry([65_536])], forgetting: [])
        #expect(book.correct([entry(ducked)], view) == write)
        #expect(book.wrote([entry([65_536])], view, at: 0) == true, "they must be read again")
        #expect(book.correct([entry(ducked)], view) == write)
        #expect(book.correct([entry([65_536])], view) == .nothing)
        #expect(book.repairs.isEmpty)
    }

    @Test func streamIsStillDucked_repairIsKept() {
        var book = book([full])
        #expect(book.correct([entry([65_536])], view(.readAndWrite, isChanged: true)) == .nothing)
        #expect(!book.repairs.isEmpty)
        #expect(book.keep(full, of: Self.name) == true, "the name is known")
    }

    /// The values were read while the stream was ducked. It has ended since, and the server may have stored what it had.
    @Test func streamEndsWhileTheValuesAreRead_theyAreReadAgain() {
        var book = book([full])
        book.reads(view(.readAndWrite, [stream(ducked)], isChanged: true))
        let ended = view(.readAndWrite)
        #expect(book.correct([entry([65_536])], ended) == .readAgain)
        #expect(!book.repairs.isEmpty)
        book.reads(ended)
        #expect(book.correct([entry(ducked)], ended) == .write([entry([65_536])], forgetting: []))
        #expect(book.wrote([entry([65_536])], ended, at: 0) == true)
        book.reads(ended)
        #expect(book.correct([entry([65_536])], ended) == .nothing)
        #expect(book.repairs.isEmpty)
    }

    @Test func entryThatOnlyTheDaemonMade_isDeleted() {
        var book = MemoryBook([MemoryRepair(name: Self.name, original: nil, bases: [full])])
        #expect(book.correct([entry(ducked)], view(.readAndWrite)) == .write([], forgetting: [Self.name]))
    }

    @Test func manyStreamsOfAName_theLastEightCount() {
        var book = book([full])
        // Known already: nothing changes.
        book.add(MemoryRepair(name: Self.name, original: nil, bases: []))
        let bases = (1...9 as ClosedRange<UInt32>).map { StreamBase(volume: [$0], isMuted: false, deviceName: nil) }
        for base in bases { #expect(book.keep(base, of: Self.name) == true) }
        #expect(book.repairs.map(\.bases) == [Array(bases.suffix(8))])
        #expect(book.keep(bases[4], of: Self.name) == true)
        #expect(book.repairs[0].bases.count == 8)
        #expect(book.repairs[0].bases.last == bases[4])
    }

    // MARK: WirePlumber 0.4

    @Test func valuesCanOnlyBeWritten_oncePerEndOfTheStreams() {
        var book = book([full])
        #expect(book.correct([], view(.writeOnly, [stream(ducked)], isChanged: true)) == .nothing)
        let ended = view(.writeOnly)
        #expect(book.correct([], ended) == .write([entry([65_536])], forgetting: []))
        #expect(book.wrote([entry([65_536])], ended, at: 0) == false)
        #expect(book.repairs.isEmpty)
        // The server may still use the old values for a second.
        let started = stream(ducked)
        #expect(book.base(of: started, defaultDevice: "speaker", .writeOnly, at: 999_999) == full)
        #expect(book.base(of: started, defaultDevice: "speaker", .writeOnly, at: 1_000_000) == nil)
    }

    @Test func deviceCannotBeWritten_nextStreamIsMovedToTheChosenOne() {
        let onPhones = StreamBase(volume: [65_536], isMuted: false, deviceName: "phones")
        var book = book([onPhones])
        let ended = view(.writeOnly)
        #expect(book.correct([], ended) == .write([entry([65_536])], forgetting: []))
        _ = book.wrote([entry([65_536])], ended, at: 0)
        #expect(book.correct([], ended) == .nothing, "written once")
        #expect(book.repairs.count == 1)
        let started = stream([65_536])
        #expect(book.base(of: started, defaultDevice: "speaker", .writeOnly, at: 9_000_000) == onPhones)
        #expect(book.keep(onPhones, of: Self.name) == true)
        // It was moved, and is as the user left it.
        #expect(book.correct([], view(.writeOnly, [stream([65_536], on: "phones")])) == .nothing)
        #expect(book.repairs.isEmpty)
    }

    @Test func nothingIsKnownToWrite_repairEnds() {
        var book = MemoryBook([MemoryRepair(name: Self.name, original: nil, bases: [full])])
        #expect(book.correct([], view(.writeOnly)) == .nothing)
        #expect(book.repairs.isEmpty)
    }

    @Test func streamIsChangedWhileItsValuesAreWritten_repairIsKept() {
        var book = book([full])
        #expect(book.correct([], view(.writeOnly)) == .write([entry([65_536])], forgetting: []))
        #expect(book.wrote([entry([65_536])], view(.writeOnly, [stream(ducked)], isChanged: true), at: 0) == false)
        #expect(!book.repairs.isEmpty)
        #expect(book.correct([], view(.writeOnly)) == .write([entry([65_536])], forgetting: []))
    }

    // MARK: WirePlumber 0.5

    /// A session manager that stores nothing.
    @Test(arguments: [MemoryAccess.writeOnly, .streamsOnly])
    func streamIsHeldAndNothingIsStored_standInsEnd(_ access: MemoryAccess) {
        var book = book([full])
        var held = stream([65_536])
        held.isHeld = true
        var count: UInt32 = 0
        while book.needsStandIn(view(access, [held], isChanged: true)), count < 100 {
            #expect(book.correct([], view(access, [held], isChanged: true)) == wanted)
            count += 1
            var standIn = stream([65_536], of: Self.own, number: 100 + count)
            for isHeld in [true, false] {
                standIn.isHeld = isHeld
                _ = book.correct([], view(access, [held, standIn], isChanged: true))
            }
        }
        #expect(count == 9)
    }

    private let wanted = MemoryBook.Correction.standIns([StreamMemory(name: name, channels: [0])])

    /// If the daemon is killed then, the program's next stream must not start on the hold sink.
    @Test(arguments: [MemoryAccess.writeOnly, .streamsOnly])
    func streamIsHeld_standInsCorrectItsDeviceMeanwhile(_ access: MemoryAccess) {
        var book = book([full])
        var held = stream([65_536])
        held.isHeld = true
        // As PipeWire 1.4 shows it: the hold sink runs.
        held.isStopping = true
        func look(_ standIn: AudioStream?) -> MemoryBook.View {
            view(access, [held] + [standIn].compactMap { $0 }, isChanged: true)
        }
        let none = access == .streamsOnly ? MemoryBook.Correction.standIns([]) : .nothing
        #expect(book.needsStandIn(look(nil)))
        #expect(book.correct([], look(nil)) == wanted)
        // It starts on the hold sink, too, and is moved.
        var standIn = stream([65_536], of: Self.own)
        standIn.isHeld = true
        #expect(book.correct([], look(standIn)) == wanted)
        standIn.isHeld = false
        #expect(book.correct([], look(standIn)) == none)
        // It was closed, perhaps before the session manager has stored that.
        #expect(book.needsStandIn(look(nil)) && book.correct([], look(nil)) == wanted)
        // The next one starts where the user had the stream.
        let proof = stream([65_536], of: Self.own, number: 2)
        #expect(book.correct([], look(proof)) == none)
        #expect(!book.needsStandIn(look(nil)))
        #expect(book.correct([], look(nil)) == none)
        // Held again after it was let go.
        held.isHeld = false
        #expect(book.correct([], look(nil)) == none)
        held.isHeld = true
        #expect(book.needsStandIn(look(nil)) && book.correct([], look(nil)) == wanted)
    }

    /// The session manager has not stored the values of the first stand-in when that is closed.
    @Test func valuesAreIgnored_standInsFollowUntilOneStartsRight() {
        var book = book([full])
        for stored in [ducked, ducked, [65_536]] {
            #expect(book.correct([], view(.streamsOnly)) == wanted)
            let started = stream(stored, of: Self.own)
            let base = book.base(of: started, defaultDevice: "speaker", .streamsOnly, at: 0)
            if stored == ducked {
                #expect(base == full)
                // It is corrected, and closed at once.
                #expect(book.correct([], view(.streamsOnly, [started], isChanged: true)) == .standIns([]))
                #expect(!book.repairs.isEmpty)
            } else {
                #expect(base == nil)
            }
            let right = stream([65_536], of: Self.own)
            #expect(book.correct([], view(.streamsOnly, [right])) == .standIns([]))
            #expect(book.repairs.isEmpty == (stored != ducked))
        }
    }

    @Test func noStandInStartsRight_theEighthCounts() {
        var book = book([full])
        let right = view(.streamsOnly, [stream([65_536], of: Self.own)])
        for attempt in 1...8 {
            #expect(book.correct([], view(.streamsOnly)) == wanted, "attempt \(attempt)")
            _ = book.base(of: stream(ducked, of: Self.own), defaultDevice: "speaker", .streamsOnly, at: 0)
            // Once or several times while it is being closed.
            for _ in 1...(attempt < 8 ? 3 : 1) { #expect(book.correct([], right) == .standIns([])) }
            #expect(!book.repairs.isEmpty)
        }
        #expect(book.correct([], right) == .standIns([]))
        #expect(book.repairs.isEmpty)
    }

    @Test func programHasAStreamAgain_needsNoStandIn() {
        var book = book([full])
        #expect(book.correct([], view(.streamsOnly)) == wanted)
        #expect(book.correct([], view(.streamsOnly, [stream(ducked)], isChanged: true)) == .standIns([]))
        #expect(!book.repairs.isEmpty)
        #expect(book.correct([], view(.streamsOnly, [stream([65_536])])) == .standIns([]))
        #expect(book.repairs.isEmpty)
    }
}
