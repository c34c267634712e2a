import Glibc
import TestSupport
import Testing

/// A program ends while it is lowered or held: its next stream is as its person left the last one, on a server whose
/// memory can be read, and on one whose cannot.
@Suite struct ForeignMemoryTests {
    typealias House = ForeignCrashTests.House
    typealias Story = ForeignCrashTests.Story

    @Test(arguments: ForeignCrashTests.Scenery.all, [false, true])
    func streamEndedWhileChanged_theNextIsAsTheUserLeftTheLast(
        _ scenery: ForeignCrashTests.Scenery, alsoTheDaemon: Bool
    ) throws {
        let house = try House(scenery.kind)
        // The second time the server is told the same again.
        for _ in 0..<2 {
            let story = try Story(scenery.deed, in: house, crash: nil)
            try story.begin()
            if alsoTheDaemon { story.stage.daemon.kill() }
            try house.endProgram()
            if alsoTheDaemon { try story.stage.restart() }
            // Nobody is there whom it concerns: what is right is with the server, and nothing is left to be done.
            #expect(try story.holds(story.isTidy))
            #expect(eventually { house.remembers(House.volume) })
            // Nobody of ours is there, either.
            story.stage.daemon.signal(SIGTERM)
            #expect(story.stage.daemon.wait() == .code(0))
            try house.beginProgram()
            #expect(try eventually { try house.isUntouched() }, "\(house.description)")
        }
    }
}
