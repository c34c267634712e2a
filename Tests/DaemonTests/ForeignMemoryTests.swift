import Glibc
import TestSupport
import Testing

/// A program ends while it is ducked or held. Its next stream has the volume and sink that the user gave the last one.
/// The daemon can read the remembered volumes of PulseAudio, but not those of PipeWire.
@Suite struct ForeignMemoryTests {
    typealias House = ForeignCrashTests.House
    typealias Story = ForeignCrashTests.Story

    @Test(arguments: ForeignCrashTests.Scenery.all, [false, true])
    func streamEndsWhileDuckedOrHeld_theNextIsAsTheUserLeftIt(
        _ scenery: ForeignCrashTests.Scenery, alsoTheDaemon: Bool
    ) throws {
        let house = try House(scenery.kind)
        // Twice, because the second time the server already remembers the same values.
        for _ in 0..<2 {
            let story = try Story(scenery.deed, in: house, crash: nil)
            try story.begin()
            if alsoTheDaemon { story.stage.daemon.kill() }
            try house.endProgram()
            if alsoTheDaemon { try story.stage.restart() }
            // Although the program has ended, the daemon makes the server remember the right values, and then deletes
            // the journal.
            #expect(try story.holds(story.isTidy))
            #expect(eventually { house.remembers(House.volume) })
            // The next stream starts without a daemon.
            story.stage.daemon.signal(SIGTERM)
            #expect(story.stage.daemon.wait() == .code(0))
            try house.beginProgram()
            #expect(try eventually { try house.isUntouched() }, "\(house.description)")
        }
    }

    /// The killed daemon has left its hold sink, and nobody corrects anything any more. The session manager writes its file a
    /// second after a change, when the daemon has corrected what it remembers.
    @Test(.enabled(if: ServerKind.pipeWire.isHere, "PipeWire only: PulseAudio does not show when it is done"))
    func daemonIsKilledWhileHeld_theNextStreamIsHeardWithoutADaemon() throws {
        let house = try House(.pipeWire)
        for _ in 0..<3 {
            let story = try Story(.held, in: house, crash: nil)
            // What it writes next has the hold.
            #expect(eventually { house.remembers(House.volume) })
            let before = house.memoryTime
            try story.begin()
            #expect(eventually { house.memoryTime != before })
            #expect(eventually { !house.remembersHold })
            story.stage.daemon.kill()
            try house.endProgram()
            try house.beginProgram()
            #expect(try eventually { try house.isUntouched() }, "\(house.description)")
        }
    }

    /// The user sets the volume while the music is ducked. The next stream starts with that volume; after a step, here of 10
    /// points, with the volume before it that is 10 points louder.
    @Test(arguments: ServerKind.allCases, [false, true])
    func volumeSetWhileDucked_isThatOfTheNextStream(_ kind: ServerKind, isStep: Bool) throws {
        let house = try House(kind)
        let story = try Story(.lowered, in: house, crash: nil)
        try story.begin()
        let wish = isStep ? House.volume + 6_554 : 34_800
        try house.turn(to: isStep ? house.look().volume + 6_554 : wish)
        #expect(try eventually { try story.journal().contains { House.isSame($0, wish) } })
        try story.leave()
        #expect(try eventually(story.isTidy))
        #expect(eventually { house.remembers(wish) })
        try house.endProgram()
        try house.beginProgram()
        #expect(try eventually { try House.isSame(house.look().volume, wish) }, "\(house.description)")
    }
}
