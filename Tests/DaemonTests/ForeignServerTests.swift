import DBus
import Foundation
import TestSupport
import Testing

/// The sound server is killed while an adopted program is ducked or held (faults.md, D2). The server remembers volumes
/// for the program's next stream. That stream must have the volume that the user set.
@Suite(.serialized) struct ForeignServerTests {
    typealias House = ForeignCrashTests.House
    typealias Story = ForeignCrashTests.Story
    typealias Deed = ForeignCrashTests.Deed

    /// When the server is killed.
    enum Moment: String, CaseIterable, CustomTestStringConvertible {
        /// As soon as the first change is visible.
        case atOnce
        case later
        var testDescription: String { rawValue }
    }

    /// A program that reconnects to the server is still ducked or held.
    @Test(arguments: ForeignCrashTests.Scenery.all, Moment.allCases)
    func serverIsKilled_programIsDuckedOrHeldAgain(
        _ scenery: ForeignCrashTests.Scenery, moment: Moment
    ) throws {
        let house = try House(scenery.kind)
        let story = try Story(scenery.deed, in: house, crash: nil)
        for _ in 0..<amount(1, long: 20) {
            // If the session manager is killed within a second, it forgets the user's volume by itself.
            #expect(eventually { house.remembers(House.volume) })
            try story.begin(until: moment == .later ? story.isDone : { try !house.isUntouched() })
            try house.loseServer(isSameProgram: true)
            try story.expectDone()
            try story.end()
        }
        #expect(story.deaths == 0)
    }

    /// A client makes so many streams that the server may answer the daemon late, or be taken for gone.
    ///
    /// On PipeWire 0.3, WirePlumber alone needs several seconds for 600 streams a second, also without the daemon.
    /// Beside other tests it needs more than 10 s for 150.
    @Test(arguments: ServerKind.allCases) func floodOfStreams_heldProgramStaysSilent(_ kind: ServerKind) throws {
        let house = try House(kind)
        let story = try Story(.held, in: house, crash: nil)
        let ear = try Ear(house.pulse, sink: "speaker")
        try story.begin()
        #expect(ear.waitUntil(440, below: -80, window: 0.1))
        let begun = monotonicNow()
        let script = repository.path + "/Tests/Support/StreamFlood.py"
        let rate = kind == .pulseAudio ? 600 : 60
        let flood = try Child(
            "/usr/bin/python3", [script, "\(rate)", "\(amount(3, long: 20))"], environment: house.pulse.environment)
        #expect(flood.wait(timeout: 60) == .code(0), "\(flood.errors)")
        print("\(kind): \(flood.output.last ?? "no") streams")
        #expect(try story.holds { try story.stage.property("ServerConnected") == .bool(true) })
        let loudest = ear.trace(440, window: 0.05, since: begun).map(\.level).max() ?? 0
        #expect(loudest < -60, "\(loudest) dB")
        try story.expectDone()
        try story.end()
        #expect(story.deaths == 0)
    }

    /// PipeWire's session manager moves them one after another. None of them may be muted for good meanwhile: it would lose
    /// its sound. Beside other tests, PipeWire 0.3 needs more than 20 s for 50 streams.
    @Test(arguments: ServerKind.allCases, [20, 50])
    func manyStreamsAtOnce_areAllHeld_andComeBack(_ kind: ServerKind, count: Int) throws {
        let pulse = try kind.server()
        let stage = try DaemonStage(pulse: pulse)
        #expect(stage.waitForServer())
        let own = try pulse.pactl(["get-default-sink"]).trimmingCharacters(in: .whitespacesAndNewlines)
        let tones = try (0..<count).map {
            try Tone(pulse, hertz: 300 + Double($0), amplitude: 0.002, name: "Crowd", latency: 0.2)
        }
        #expect(try eventually(timeout: 20) { try stage.listedSessions().count == 1 })
        func areAll(on sink: String) throws -> Bool {
            try tones.allSatisfy { $0.sink == sink } && !pulse.pactl(["list", "sink-inputs"]).contains("Mute: yes")
        }
        #expect(try eventually(timeout: 20) { try areAll(on: own) })
        let phone = try stage.foreigner()
        for _ in 0..<2 {
            let call = phone.create("Phone", category: "play-and-record", class: "call")
            #expect(phone.ask("activate \(call)") == "ok")
            #expect(try eventually(timeout: 60) { try areAll(on: "sessiond.hold") })
            #expect(phone.ask("deactivate \(call)") == "ok")
            #expect(try eventually(timeout: 60) { try areAll(on: own) })
        }
    }

    @Test(arguments: ForeignCrashTests.Scenery.all, [false, true])
    func serverIsKilledAndThePromptOrCallEnds_nextStreamIsRestored(
        _ scenery: ForeignCrashTests.Scenery, isSameProgram: Bool
    ) throws {
        let house = try House(scenery.kind)
        let story = try Story(scenery.deed, in: house, crash: nil)
        for _ in 0..<amount(1, long: 20) {
            // If the session manager is killed within a second, it forgets the user's volume by itself.
            #expect(eventually { house.remembers(House.volume) })
            try story.begin(until: { try !house.isUntouched() })
            try house.loseServer(isSameProgram: isSameProgram, meanwhile: story.leave)
            try story.expectUntouched()
        }
        #expect(story.deaths == 0)
    }

    /// What happens to the daemon while the server is killed. At that time the server remembers a ducked volume.
    enum Fate: String, CaseIterable, CustomTestStringConvertible {
        /// It is stopped, so it cannot correct the remembered volume. It continues when the server is back.
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

    /// The server remembers a ducked volume when it is killed, and the next stream starts with that volume. The daemon
    /// finds the right volume in its journal.
    @Test(arguments: Loss.all, [false, true])
    func streamStartsWithADuckedVolume_journalRestoresIt(_ loss: Loss, isReasonGone: Bool) throws {
        let (kind, fate) = (loss.kind, loss.fate)
        let house = try House(kind)
        let story = try Story(.lowered, in: house, crash: nil)
        try story.begin()
        let daemon = story.stage.daemon
        daemon.suspend()
        // A volume in the middle of the ramp.
        let volume = House.volume(lowered: 6)
        try house.turn(to: volume)
        // The server must be killed only after it has stored the volume.
        #expect(eventually { house.remembers(volume) })
        if fate == .killed { daemon.kill() }
        try house.loseServer(isSameProgram: false)
        #expect(
            try eventually { try House.isSame(house.look().volume, volume) },
            "the server forgot the ducked volume: \(house.description)")
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
        // The server remembers the right volume, too.
        #expect(eventually { house.remembers(House.volume) })
        try house.loseServer(isSameProgram: false)
        #expect(try eventually { try house.isUntouched() }, "\(house.description)")
    }
}
