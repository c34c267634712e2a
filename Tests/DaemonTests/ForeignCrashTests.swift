import DBus
import Foundation
import Fuzzing
import PluginAPI
import SessionBus
import State
import TestSupport
import Testing

/// The daemon is killed while it ducks or holds the streams of adopted programs (faults.md, C1, A1). The next daemon
/// continues, and in the end every stream is restored.
@Suite(.serialized) struct ForeignCrashTests {
    /// Runs the story again and again. The daemon is killed when it passes the crash point for the first time, in the
    /// next run for the second time, and so on, until a story ends before that.
    private func sweep(_ point: String, _ step: Int, _ story: (String) throws -> Int) throws {
        var count = 1
        while try story("\(point):\(count)") > 0 {
            count += step
            if count > 100 {
                Issue.record("\(point) is passed more than 100 times")
                return
            }
        }
        print("\(point): killed up to its passing number \(count - step)")
        #expect(count > 1, "the daemon never passed \(point)")
    }

    /// SIGKILL at every step of ducking, of holding, and of restoring.
    @Test(arguments: Scenery.all, ["journal-written", "stream-changed"])
    func daemonIsKilledAtEveryStep_everyVolumeIsRestored(_ scenery: Scenery, point: String) throws {
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

    /// On SIGTERM the daemon restores every stream before it ends. If it is killed while it ends, the next daemon
    /// restores them.
    @Test(arguments: Scenery.all, ["exiting", "journal-written", "stream-changed"])
    func daemonIsTerminatedAndKilled_everyVolumeIsRestored(_ scenery: Scenery, point: String) throws {
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

    /// SIGTERM while the music is just being ducked or held, at different moments: nothing may reach it after what restores
    /// it.
    @Test(arguments: Scenery.all) func daemonIsTerminatedWhileItBegins_everyVolumeIsRestored(
        _ scenery: Scenery
    ) throws {
        let house = try House(scenery.kind)
        for moment in Swift.stride(from: 0, to: amount(60, long: 120), by: amount(12, long: 2)) {
            let story = try Story(scenery.deed, in: house, crash: nil)
            try story.begin { true }
            usleep(UInt32(moment) * 1_000)
            story.stage.daemon.signal(SIGTERM)
            #expect(story.stage.daemon.wait() == .code(0))
            // No daemon is running now, and the session manager may still be at work.
            #expect(try eventually(house.isUntouched), "after \(moment) ms: \(house.description)")
            usleep(200_000)
            #expect(try house.isUntouched(), "later, after \(moment) ms: \(house.description)")
            #expect(try story.isTidy())
        }
    }

    /// SIGTERM before the next daemon has heard of the sound server: the changes of the killed daemon are restored.
    @Test(arguments: Scenery.all) func nextDaemonIsTerminatedAtItsStart_everyVolumeIsRestored(
        _ scenery: Scenery
    ) throws {
        let house = try House(scenery.kind)
        for _ in 0..<amount(2, long: 20) {
            let story = try Story(scenery.deed, in: house, crash: nil)
            try story.begin()
            story.stage.daemon.kill()
            try story.stage.restart()
            story.stage.daemon.signal(SIGTERM)
            #expect(story.stage.daemon.wait() == .code(0))
            #expect(try house.isLeftUntouched(), "\(house.description)")
            #expect(try story.isTidy())
        }
    }

    /// SIGKILL while nothing changes: a prompt ducks the music, or a call holds it.
    @Test(arguments: ServerKind.allCases, Deed.allCases) func daemonIsKilledWhileItDucksOrHolds_theNextContinues(
        kind: ServerKind, deed: Deed
    ) throws {
        let house = try House(kind)
        let story = try Story(deed, in: house, crash: nil)
        try story.begin()
        for _ in 0..<3 { try story.kill() }
        try story.end()
    }

    /// The daemon is replaced while a prompt ducks the music, or a call holds it: both use the same journal.
    @Test(arguments: Scenery.all) func daemonIsReplaced_theNextContinuesAndRestores(_ scenery: Scenery) throws {
        let house = try House(scenery.kind)
        for _ in 0..<amount(2, long: 20) {
            let story = try Story(scenery.deed, in: house, crash: nil)
            try story.begin()
            try story.stage.replace()
            #expect(try story.holds(story.isDone), "\(house.description)")
            #expect(try !story.journal().isEmpty)
            try story.kill()
            try story.end()
        }
    }

    /// The user moved the music to another device. It plays on there, also after a new daemon restored it.
    @Test(arguments: ServerKind.allCases, [false, true])
    func deviceChosenByTheUser_survivesSIGKILL(_ kind: ServerKind, alsoTheClient: Bool) throws {
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

    /// The same with a daemon that ends by SIGTERM while the music is held. Also with a program that ended before, and
    /// whose next stream begins during the call, or after the call and before the next daemon.
    @Test(arguments: ServerKind.allCases, [(false, false), (false, true), (true, false), (true, true)])
    func deviceChosenByTheUser_survivesSIGTERM(_ kind: ServerKind, _ gone: (program: Bool, client: Bool)) throws {
        let house = try House(kind, modules: ["module-null-sink sink_name=other rate=48000"])
        try house.move(to: "other")
        let story = try Story(.held, in: house, crash: nil)
        try story.begin()
        if gone.program { try house.endProgram() }
        story.stage.daemon.signal(SIGTERM)
        #expect(story.stage.daemon.wait() == .code(0))
        // No daemon is running now.
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
        // The next stream starts without a daemon.
        story.stage.daemon.signal(SIGTERM)
        #expect(story.stage.daemon.wait() == .code(0))
        try house.endProgram()
        try house.beginProgram()
        #expect(try isThere(), "\(house.description)")
    }

    /// The user sets the volume while the music is ducked. That volume stays, also with a new daemon.
    @Test(arguments: ServerKind.allCases, [false, true])
    func volumeSetWhileDucked_survivesSIGKILL(_ kind: ServerKind, whileNobodyIsThere: Bool) throws {
        let house = try House(kind)
        let story = try Story(.lowered, in: house, crash: nil)
        try story.begin()
        if whileNobodyIsThere { story.stage.daemon.kill() }
        let wish = 50_300
        try house.turn(to: wish)
        if !whileNobodyIsThere {
            // Kill the daemon only after it has written the user's volume to the journal.
            #expect(try eventually { try story.journal().contains { House.isSame($0, wish) } })
            story.stage.daemon.kill()
        }
        try story.stage.restart()
        #expect(story.stage.waitForServer())
        // When the other music is ducked, the new daemon has looked at all streams.
        let other = try Tone.program(house.pulse, hertz: 440, name: "Beside")
        #expect(
            try eventually { try house.pulse.control.streams().count == 2 && house.isLowered(1, of: 65_536) },
            "\(house.description)")
        #expect(House.isSame(try house.look().volume, wish))
        try story.leave()
        #expect(try eventually { try story.journal().isEmpty })
        #expect(House.isSame(try house.look().volume, wish))
        withExtendedLifetime(other) {}
    }

    /// The client that ducks or calls is killed (R11). The daemon notices it at once; if it was killed too, the next
    /// one does.
    @Test(arguments: Scenery.all, [false, true]) func clientIsKilled_everyVolumeIsRestored(
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

    @Test(arguments: ServerKind.allCases, Deed.allCases) func daemonIsTerminatedUnderLoad_everyVolumeIsRestored(
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

    @Test(arguments: ServerKind.allCases, Deed.allCases) func busIsKilled_everyVolumeIsRestored(
        kind: ServerKind, deed: Deed
    ) throws {
        let house = try House(kind)
        let story = try Story(deed, in: house, crash: nil)
        try story.begin()
        story.stage.bus.kill()
        #expect(story.stage.daemon.wait() == .code(69))
        #expect(try house.isLeftUntouched(), "\(house.description)")
        #expect(story.stage.daemon.errors.filter { $0.contains("bus connection was lost") }.count == 1)
    }

    /// The daemon reads the journal only if it is a complete regular file of its own. Otherwise it logs one warning and
    /// changes nothing.
    @Test(arguments: ServerKind.allCases, ["garbage", "short", "link", "a FIFO", "a folder"])
    func damagedJournal_isReportedByOneWarning(_ kind: ServerKind, state: String) throws {
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

    /// A ramp has two dozen similar steps, so the short form of the test skips some.
    private func stride(_ deed: Deed, _ point: String) -> Int {
        deed == .lowered && point == "stream-changed" ? amount(3, long: 1) : 1
    }
}
