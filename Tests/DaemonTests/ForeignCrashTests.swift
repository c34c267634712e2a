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
    /// What lasts over all the crashes: a sound server, and a program that plays on it at a volume of its person's.
    final class House {
        let pulse: any PrivateServer
        private var program: Child
        private var music: Tone?
        static let volume = 40_000

        init(_ kind: ServerKind) throws {
            pulse = try kind.server(modules: kind == .pulseAudio ? ForeignProgramTests.modules : [])
            program = try House.program()
            music = try House.music(of: program, on: pulse)
            try turn(to: House.volume)
        }

        private static func program() throws -> Child { try Child("sleep", ["infinity"]) }

        /// It plays without end, or until its server does.
        private static func music(of program: Child, on pulse: any PrivateServer) throws -> Tone {
            try Tone(pulse, hertz: 440, name: "Music", processID: program.processID, latency: 0.2)
        }

        func turn(to volume: Int) throws {
            try pulse.pactl(["set-sink-input-volume", "\(try inputs()[0]["index"] ?? 0)", "\(volume)"])
        }

        /// PulseAudio's memory has been asked. PipeWire's session manager writes its own a second later.
        func remembersItsVolume() -> Bool {
            guard pulse is PrivatePipeWire else { return true }
            let file = pulse.folder.path + "/state/wireplumber/restore-stream"
            let lines = (try? String(contentsOfFile: file, encoding: .utf8))?.split(separator: "\n") ?? []
            let volume = pow(Double(House.volume) / 65_536, 3)
            return lines.contains { line in
                guard line.hasPrefix("Output/Audio:application.name:Music:channelVolumes=") else { return false }
                let value = line.split(separator: "=").last?.split(separator: ";").first.flatMap { Double($0) }
                return abs((value ?? 0) - volume) < 0.0001
            }
        }

        func endProgram() throws {
            program.kill()
            music = nil
            guard try eventually({ try pulse.pactl(["list", "short", "sink-inputs"]).isEmpty }) else {
                throw SupportError("the music goes on")
            }
        }

        func beginProgram() throws {
            program = try House.program()
            music = try House.music(of: program, on: pulse)
            guard try eventually({ try inputs().count == 1 }) else { throw SupportError("no music") }
        }

        /// The server is killed, and is back; so is the program, or somebody starts it again.
        func loseServer(isSameProgram: Bool, meanwhile: () throws -> Void = {}) throws {
            pulse.kill()
            if !isSameProgram {
                program.kill()
                program = try House.program()
            }
            try meanwhile()
            try pulse.restart()
            music = try House.music(of: program, on: pulse)
        }

        func inputs() throws -> [[String: Any]] {
            let text = try pulse.pactl(["-f", "json", "list", "sink-inputs"])
            // So pactl says that there is none.
            if text.isEmpty { return [] }
            return try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [[String: Any]] ?? []
        }

        /// For messages.
        var description: String { (try? look()).map { "\($0)" } ?? "no music" }

        /// How the music is now: volume, mute, sink.
        func look(_ place: Int = 0) throws -> (volume: Int, isMuted: Bool, sink: String) {
            guard let input = try inputs().dropFirst(place).first else { throw SupportError("the music has gone") }
            let volume = input["volume"] as? [String: [String: Any]] ?? [:]
            let index = "\(input["sink"] ?? "")"
            let line = try pulse.pactl(["list", "short", "sinks"]).split(separator: "\n").first {
                $0.split(separator: "\t").first.map(String.init) == index
            }
            return (
                volume.values.first?["value"] as? Int ?? -1, input["mute"] as? Bool ?? true,
                line?.split(separator: "\t").dropFirst().first.map(String.init) ?? ""
            )
        }

        func isUntouched() throws -> Bool {
            let (volume, isMuted, sink) = try look()
            return House.isSame(volume, House.volume) && !isMuted && sink == "speaker"
        }

        /// PipeWire keeps a volume as a real number, and gives it back a little off.
        static func isSame(_ one: Int, _ other: Int) -> Bool { abs(one - other) < 3 }

        /// The cube of a decibel's factor is a volume's.
        static func volume(_ volume: Int = volume, lowered decibels: Double) -> Int {
            Int((Double(volume) * pow(10, -decibels / 60)).rounded())
        }

        /// By the twelve decibels of the settings.
        func isLowered(_ place: Int = 0, of volume: Int = House.volume) throws -> Bool {
            let (found, isMuted, sink) = try look(place)
            return House.isSame(found, House.volume(volume, lowered: 12)) && !isMuted && sink == "speaker"
        }

        func isHeld() throws -> Bool {
            let (_, isMuted, sink) = try look()
            return sink == "sessiond.hold" && !isMuted
        }
    }

    /// What happens to the music.
    enum Deed: String, CaseIterable, CustomTestStringConvertible {
        case lowered
        case held
        var testDescription: String { rawValue }
    }

    struct Scenery: CustomTestStringConvertible {
        let kind: ServerKind
        let deed: Deed
        var testDescription: String { "\(deed) on \(kind)" }

        static let all = ServerKind.allCases.flatMap { kind in Deed.allCases.map { Scenery(kind: kind, deed: $0) } }
    }

    /// One run of it, on a daemon that dies at some point and is started again.
    final class Story {
        let house: House
        let stage: DaemonStage
        let deed: Deed
        private let other: Foreigner
        private var session = ""
        private(set) var deaths = 0

        private static let settings = "[ducking]\nattack = 0\nrelease = 0\nhold = 0\n"

        init(_ deed: Deed, in house: House, crash: String?) throws {
            self.deed = deed
            self.house = house
            stage = try DaemonStage(pulse: house.pulse, settings: Story.settings, crash: crash)
            // One that is to die comes up like any other; nothing of the music is changed before somebody asks for it.
            let stage = stage
            guard eventually({ stage.isServing }) else { throw SupportError("no daemon: \(stage.daemon.errors)") }
            other = try stage.foreigner()
        }

        /// As long as the daemon lives, and lived; a dead one is followed by another.
        func holds(_ condition: () throws -> Bool) throws -> Bool {
            try eventually(timeout: 20) {
                try reviveIfDead()
                return try condition()
            }
        }

        private func reviveIfDead() throws {
            guard !stage.daemon.isRunning else { return }
            guard stage.daemon.wait() == .signal(SIGKILL) else {
                throw SupportError("ended by itself: \(stage.daemon.errors)")
            }
            deaths += 1
            try stage.restart()
        }

        private func ask(_ line: String) throws {
            var answer = ""
            guard
                try holds({
                    answer = other.ask(line)
                    return answer.hasPrefix("ok")
                })
            else { throw SupportError("\(line): \(answer)") }
            if line.hasPrefix("create") { session = String(answer.dropFirst(3)) }
        }

        func begin() throws { try begin(until: isDone) }

        func begin(until isBegun: () throws -> Bool) throws {
            // The music counts as a session before anybody takes the sound from it.
            _ = try holds {
                try stage.sessions().values.contains {
                    $0["Name"] == .string("Music") && $0["State"] == .string("active")
                }
            }
            switch deed {
            case .lowered: try ask("create Prompt playback duck-others app")
            case .held: try ask("create Phone play-and-record - call")
            }
            try ask("activate \(session)")
            #expect(try holds(isBegun), "\(house.description)")
        }

        func end() throws {
            try leave()
            try expectUntouched()
        }

        /// The one who lowers, or calls, has done.
        func leave() throws { try ask("deactivate \(session)") }

        /// The volumes that the journal of the streams holds; empty where it is gone.
        func journal() throws -> Set<Int> {
            let file = try FileManager.default.contentsOfDirectory(atPath: stage.stateFolder).first {
                $0.hasPrefix("streams-")
            }
            guard let file, let bytes = FileManager.default.contents(atPath: stage.stateFolder + "/" + file),
                let record = StreamRecord(Array(bytes))
            else { return [] }
            return Set(record.entries.flatMap { $0.base.volume.map(Int.init) })
        }

        /// Ends the daemon by SIGTERM; whatever becomes of it on its way out, the next one goes on.
        func terminate() throws {
            stage.daemon.signal(SIGTERM)
            switch stage.daemon.wait() {
            case .code(0): #expect(try house.isUntouched(), "\(house.description)")
            case .signal(SIGKILL): deaths += 1
            case let exit: throw SupportError("ended with \(String(describing: exit)): \(stage.daemon.errors)")
            }
            try stage.restart()
            #expect(try holds(isDone), "\(house.description)")
        }

        func kill() throws {
            stage.daemon.kill()
            try stage.restart()
            #expect(try holds(isDone), "\(house.description)")
        }

        /// The client is killed, as a phone that crashes.
        func die() throws {
            other.process.kill()
            try expectUntouched()
        }

        func expectDone() throws { #expect(try holds(isDone), "\(house.description)") }

        func isDone() throws -> Bool { try deed == .lowered ? house.isLowered() : house.isHeld() }

        func expectUntouched() throws {
            #expect(try holds { try house.isUntouched() }, "\(house.description)")
            #expect(try holds(isTidy))
        }

        /// Nothing is left to be put back.
        func isTidy() throws -> Bool {
            try !FileManager.default.contentsOfDirectory(atPath: stage.stateFolder).contains {
                $0.hasPrefix("streams-")
            }
        }
    }

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

    /// The volume that a person sets while the music is lowered is theirs, also for a daemon that was not there.
    @Test(arguments: [false, true]) func volumeSetWhileLowered_survivesSIGKILL(whileNobodyIsThere: Bool) throws {
        let house = try House(.pulseAudio)
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
        #expect(try eventually { try house.inputs().count == 2 && house.isLowered(1, of: 65_536) })
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
        #expect(story.stage.daemon.errors.filter { $0.contains("bus is gone") }.count == 1)
    }

    /// What the journal says is believed only where it is a file of ours, whole: one warning, and nothing is touched.
    @Test(arguments: ["garbage", "short", "link", "a FIFO", "a folder"])
    func spoiltJournal_costsOneWarning(state: String) throws {
        let house = try House(.pulseAudio)
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
