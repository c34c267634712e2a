import TestSupport
import Testing

/// The sound server killed while a program that never heard of us is lowered, or held (faults.md, D2): the server
/// remembers volumes for the next stream of the program, and that one is as its person left the last.
@Suite(.serialized) struct ForeignServerTests {
    typealias House = ForeignCrashTests.House
    typealias Story = ForeignCrashTests.Story
    typealias Deed = ForeignCrashTests.Deed

    /// When the server is killed.
    enum Moment: String, CaseIterable, CustomTestStringConvertible {
        /// While the first of it is seen.
        case atOnce
        case later
        var testDescription: String { rawValue }
    }

    /// A program that comes back to the server is the one it was, and still waits.
    @Test(arguments: ForeignCrashTests.Scenery.all, Moment.allCases)
    func serverKilledMeanwhile_theProgramIsTreatedAsBefore(
        _ scenery: ForeignCrashTests.Scenery, moment: Moment
    ) throws {
        let house = try House(scenery.kind)
        let story = try Story(scenery.deed, in: house, crash: nil)
        for _ in 0..<amount(1, long: 20) {
            // A session manager that is killed within a second forgets a person's volume by itself.
            #expect(eventually { house.remembers(House.volume) })
            try story.begin(until: moment == .later ? story.isDone : { try !house.isUntouched() })
            try house.loseServer(isSameProgram: true)
            try story.expectDone()
            try story.end()
        }
        #expect(story.deaths == 0)
    }

    @Test(arguments: ForeignCrashTests.Scenery.all, [false, true])
    func serverKilledAndTheReasonGoneMeanwhile_theNextStreamIsUntouched(
        _ scenery: ForeignCrashTests.Scenery, isSameProgram: Bool
    ) throws {
        let house = try House(scenery.kind)
        let story = try Story(scenery.deed, in: house, crash: nil)
        for _ in 0..<amount(1, long: 20) {
            // A session manager that is killed within a second forgets a person's volume by itself.
            #expect(eventually { house.remembers(House.volume) })
            try story.begin(until: { try !house.isUntouched() })
            try house.loseServer(isSameProgram: isSameProgram, meanwhile: story.leave)
            try story.expectUntouched()
        }
        #expect(story.deaths == 0)
    }

    /// What happens to the daemon while the server dies with a lowered volume in its memory.
    enum Fate: String, CaseIterable, CustomTestStringConvertible {
        /// It is too slow to put the memory right, and is still there when the server is back.
        case stopped
        case killed
        var testDescription: String { rawValue }
    }

    struct Loss: CustomTestStringConvertible {
        let kind: ServerKind
        let fate: Fate
        var testDescription: String { "\(fate) on \(kind)" }

        static let all = ServerKind.allCases.flatMap { kind in Fate.allCases.map { Loss(kind: kind, fate: $0) } }
    }

    /// The server dies with a volume of ours in its memory, and the next stream starts with it before anybody can put it
    /// right: how it should be is in the journal.
    @Test(arguments: Loss.all, [false, true])
    func streamThatStartsLowered_isKnownByTheJournal(_ loss: Loss, isReasonGone: Bool) throws {
        let (kind, fate) = (loss.kind, loss.fate)
        let house = try House(kind)
        let story = try Story(.lowered, in: house, crash: nil)
        try story.begin()
        let daemon = story.stage.daemon
        daemon.suspend()
        // A step of the way down, or up.
        let volume = House.volume(lowered: 6)
        try house.turn(to: volume)
        // One that is killed earlier need not have it.
        #expect(eventually { house.remembers(volume) })
        if fate == .killed { daemon.kill() }
        try house.loseServer(isSameProgram: false)
        #expect(
            try eventually { try House.isSame(house.look().volume, volume) },
            "the server has not kept what this is about: \(house.description)")
        switch fate {
        case .stopped: daemon.resume()
        case .killed: try story.stage.restart()
        }
        if isReasonGone {
            try story.end()
        } else {
            try story.expectDone()
            try story.end()
        }
        // It is in the server's memory, too.
        #expect(eventually { house.remembers(House.volume) })
        try house.loseServer(isSameProgram: false)
        #expect(try eventually { try house.isUntouched() }, "\(house.description)")
    }
}
