import DBus
import Foundation
import Fuzzing
import PluginAPI
import SessionBus
import State
import TestSupport
import Testing

/// The daemon killed while streams of programs that never heard of us are other than their person left them (faults.md,
/// C1, A1): the next one goes on, and in the end everything is as it was.
@Suite(.serialized) struct ForeignCrashTests {
    /// Kills at the first passing of the point, at the second, and so on, until the story is over before it comes to it.
    private func sweep(_ point: String, _ step: Int, _ story: (String) throws -> Int) throws {
        var count = 1
        while try story("\(point):\(count)") > 0 {
            count += step
            if count > 100 {
                Issue.record("\(point) is passed without end")
                return
            }
        }
        print("\(point): killed up to its passing number \(count - step)")
        #expect(count > 1, "never passed")
    }

    /// SIGKILL at every step of a lowering, of a hold, and of the way back.
    @Test(arguments: Scenery.all, ["journal-written", "stream-changed"])
    func killedAtEveryStep_everyVolumeIsPutBack(_ scenery: Scenery, point: String) throws {
        let (kind, deed) = (scenery.kind, scenery.deed)
        let house = try House(kind)
        try sweep(point, stride(deed, point)) { crash in
            let story = try Story(deed, in: house, crash: crash)
            try story.begin()
            try story.end()
            return story.deaths
        }
        #expect(try house.isUntouched())
    }

    /// SIGTERM puts everything back before the process ends; what is killed on the way out, the next one puts back.
    @Test(arguments: Scenery.all, ["exiting", "journal-written", "stream-changed"])
    func terminatedMeanwhile_everyVolumeIsPutBack(_ scenery: Scenery, point: String) throws {
        let (kind, deed) = (scenery.kind, scenery.deed)
        let house = try House(kind)
        try sweep(point, stride(deed, point)) { crash in
            let story = try Story(deed, in: house, crash: crash)
            try story.begin()
            try story.terminate()
            try story.end()
            return story.deaths
        }
        #expect(try house.isUntouched())
    }

    /// SIGKILL while nothing changes: the music is lowered, or held by a call.
    @Test(arguments: ServerKind.allCases, Deed.allCases) func killedMeanwhile_theNextGoesOn(
        kind: ServerKind, deed: Deed
    ) throws {
        let house = try House(kind)
        let story = try Story(deed, in: house, crash: nil)
        try story.begin()
        for _ in 0..<3 { try story.kill() }
        try story.end()
    }

    /// The device that a person moved the music to is where it goes on, also for a daemon that was not there.
    @Test(arguments: ServerKind.allCases, [false, true])
    func deviceChosenByHand_survivesSIGKILL(_ kind: ServerKind, alsoTheClient: Bool) throws {
        let house = try House(kind, modules: ["module-null-sink sink_name=other rate=48000"])
        try house.move(to: "other")
        let story = try Story(.held, in: house, crash: nil)
        try story.begin()
        story.stage.daemon.kill()
        if alsoTheClient { story.killClient() }
        try story.stage.restart()
        if !alsoTheClient {
            try story.expectDone()
            try story.leave()
        }
        #expect(try eventually { try house.look().sink == "other" }, "\(house.description)")
        #expect(try eventually(story.isTidy))
        #expect(House.isSame(try house.look().volume, House.volume))
    }

    /// Likewise where the daemon ends as it is asked to, while the music is held; also for music that ended before that, whose
    /// next stream begins during the call, or after it and before the next daemon.
    @Test(arguments: ServerKind.allCases, [(false, false), (false, true), (true, false), (true, true)])
    func deviceChosenByHand_survivesSIGTERM(_ kind: ServerKind, _ gone: (program: Bool, client: Bool)) throws {
        let house = try House(kind, modules: ["module-null-sink sink_name=other rate=48000"])
        try house.move(to: "other")
        let story = try Story(.held, in: house, crash: nil)
        try story.begin()
        if gone.program { try house.endProgram() }
        story.stage.daemon.signal(SIGTERM)
        #expect(story.stage.daemon.wait() == .code(0))
        // Nobody of ours is there.
        func isThere() throws -> Bool { try eventually { try house.look().sink == "other" } }
        #expect(try gone.program || isThere(), "\(house.description)")
        if gone.client { story.killClient() }
        if gone.program, gone.client { try house.beginProgram() }
        try story.stage.restart()
        #expect(story.stage.waitForServer())
        if !gone.client {
            if gone.program { try house.beginProgram() } else { try story.expectDone() }
            try story.leave()
        }
        #expect(try isThere(), "\(house.description)")
        #expect(try eventually(story.isTidy))
        #expect(House.isSame(try house.look().volume, House.volume))
        // And the next stream, where nobody of ours is there.
        story.stage.daemon.signal(SIGTERM)
        #expect(story.stage.daemon.wait() == .code(0))
        try house.endProgram()
        try house.beginProgram()
        #expect(try isThere(), "\(house.description)")
    }

    /// The volume that a person sets while the music is lowered is theirs, also for a daemon that was not there.
    @Test(arguments: ServerKind.allCases, [false, true])
    func volumeSetWhileLowered_survivesSIGKILL(_ kind: ServerKind, whileNobodyIsThere: Bool) throws {
        let house = try House(kind)
        let story = try Story(.lowered, in: house, crash: nil)
        try story.begin()
        if whileNobodyIsThere { story.stage.daemon.kill() }
        let wish = 50_300
        try house.turn(to: wish)
        if !whileNobodyIsThere {
            // On disk once the next answer is there: the server tells of the volume before that of the switch.
            #expect(try eventually { try story.journal().contains { House.isSame($0, wish) } })
            story.stage.daemon.kill()
        }
        try story.stage.restart()
        #expect(story.stage.waitForServer())
        // What one daemon would lower in turn, the music beside it shows.
        let other = try Tone.program(house.pulse, hertz: 440, name: "Beside")
        #expect(
            try eventually { try house.inputs().count == 2 && house.isLowered(1, of: 65_536) },
            "\(house.description)")
        #expect(House.isSame(try house.look().volume, wish))
        try story.leave()
        #expect(try eventually { try story.journal().isEmpty })
        #expect(House.isSame(try house.look().volume, wish))
        withExtendedLifetime(other) {}
    }

    /// The one who lowers, or calls, goes meanwhile (R11): found by the next daemon, or by this one at once.
    @Test(arguments: Scenery.all, [false, true]) func clientKilled_everyVolumeIsPutBack(
        _ scenery: Scenery, alsoTheDaemon: Bool
    ) throws {
        let (kind, deed) = (scenery.kind, scenery.deed)
        let house = try House(kind)
        let story = try Story(deed, in: house, crash: nil)
        try story.begin()
        if alsoTheDaemon { story.stage.daemon.kill() }
        let begun = monotonicNow()
        try story.die()
        print("\(deed) by a client that was killed: back after \(Int((monotonicNow() - begun) * 1_000)) ms")
    }

    @Test(arguments: ServerKind.allCases, Deed.allCases) func terminatedUnderLoad_everyVolumeIsPutBack(
        kind: ServerKind, deed: Deed
    ) throws {
        let house = try House(kind)
        let story = try Story(deed, in: house, crash: nil)
        try story.begin()
        let peers = try (0..<4).map { _ in try DeafPeer(socket: story.stage.bus.folder.path + "/bus") }
        for index in 0..<2_000 {
            let call = try Message.methodCall(
                destination: BusName.service, path: ObjectPath.root, interface: BusName.manager,
                member: "ListSessions")
            peers[index % 4].send(call)
        }
        try story.terminate()
        try story.end()
        #expect(story.deaths == 0)
        withExtendedLifetime(peers) {}
    }

    @Test(arguments: ServerKind.allCases, Deed.allCases) func busKilled_everyVolumeIsPutBack(
        kind: ServerKind, deed: Deed
    ) throws {
        let house = try House(kind)
        let story = try Story(deed, in: house, crash: nil)
        try story.begin()
        story.stage.bus.kill()
        #expect(story.stage.daemon.wait() == .code(69))
        #expect(try house.isUntouched(), "\(house.description)")
        #expect(story.stage.daemon.errors.filter { $0.contains("bus connection was lost") }.count == 1)
    }

    /// What the journal says is believed only where it is a file of ours, whole: one warning, and nothing is touched.
    @Test(arguments: ServerKind.allCases, ["garbage", "short", "link", "a FIFO", "a folder"])
    func spoiltJournal_costsOneWarning(_ kind: ServerKind, state: String) throws {
        let house = try House(kind)
        let story = try Story(.lowered, in: house, crash: nil)
        try story.begin()
        story.stage.daemon.kill()
        let manager = FileManager.default
        let file = try #require(
            try manager.contentsOfDirectory(atPath: story.stage.stateFolder).first { $0.hasPrefix("streams-") })
        let path = story.stage.stateFolder + "/" + file
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        try manager.removeItem(atPath: path)
        switch state {
        case "garbage": try Data(bytes.map { ~$0 }).write(to: URL(fileURLWithPath: path))
        case "short": try bytes.dropLast(3).write(to: URL(fileURLWithPath: path))
        case "link":
            try bytes.write(to: URL(fileURLWithPath: path + ".real"))
            try manager.createSymbolicLink(atPath: path, withDestinationPath: path + ".real")
        case "a FIFO": #expect(mkfifo(path, 0o600) == 0)
        default: try manager.createDirectory(atPath: path, withIntermediateDirectories: false)
        }
        try story.stage.restart()
        #expect(
            eventually {
                story.stage.daemon.isRunning && story.stage.daemon.errors.contains { $0.contains("streams-") }
            })
        #expect(story.stage.daemon.errors.filter { $0.contains("streams-") }.count == 1)
        #expect(story.stage.waitForServer() && story.stage.isServing)
    }

    /// A ramp has two dozen steps that are alike.
    private func stride(_ deed: Deed, _ point: String) -> Int {
        deed == .lowered && point == "stream-changed" ? amount(3, long: 1) : 1
    }
}
