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
}
