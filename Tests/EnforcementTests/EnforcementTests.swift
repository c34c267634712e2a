import PluginAPI
import Testing

@testable import Enforcement

/// Tests the changes of streams without a server: facts in, commands out.
@Suite struct EnforcementTests {
    /// Sessions and streams, and a server that carries out all commands.
    struct Stage {
        var enforcement: Enforcement
        var sessions: [SessionFacts] = []
        var streams: [AudioStream] = []
        var now: UInt64 = 1_000_000
        var done: [StreamCommand] = []
        var canHold = true
        var hasHold = true
        var defaultDevice: String? = "speaker"
        /// Whether the server really moves a held stream.
        var moves = true

        init(_ edit: (inout Settings) -> Void = { _ in }) {
            var settings = Settings()
            edit(&settings)
            enforcement = Enforcement(settings)
        }

        var facts: Enforcement.Facts {
            var facts = Enforcement.Facts(
                sessions: sessions,
                streams: streams.map { stream in
                    let process = stream.processID ?? 0
                    return StreamFacts(
                        stream: stream, ancestry: [process, process / 10], sandbox: nil,
                        program: Program(key: .process(process), name: "p\(process)", names: ["p\(process)"]))
                }, canHold: canHold, defaultDevice: defaultDevice, gone: [])
            facts.hasHold = hasHold
            return facts
        }

        /// Carries out all commands until there are none, and sets the clock to each deadline.
        mutating func run(until end: UInt64? = nil) -> Set<SessionID> {
            var ignoring: Set<SessionID> = []
            for _ in 0..<2_000 {
                let outcome = enforcement.commands(facts, at: now)
                ignoring.formUnion(outcome.ignoring)
                for command in outcome.commands {
                    carryOut(command)
                    enforcement.answered(command, succeeded: true, at: now)
                }
                guard outcome.commands.isEmpty else { continue }
                guard let deadline = outcome.deadline, end.map({ deadline <= $0 }) ?? true else { break }
                now = max(now, deadline)
            }
            return ignoring
        }

        private mutating func carryOut(_ command: StreamCommand) {
            done.append(command)
            guard let place = streams.firstIndex(where: { $0.id == command.stream }) else { return }
            switch command {
            case .setVolume(_, let volume): streams[place].volume = volume
            case .setMuted(_, let muted): streams[place].isMuted = muted
            case .hold:
                streams[place].isHeld = moves
                streams[place].isStopping = moves && streams[place].rendering.isInCycles
            case .letGo: streams[place].isHeld = false
            }
        }
    }

    static func stream(_ number: UInt32, of process: UInt32, role: String? = nil) -> AudioStream {
        AudioStream(
            id: AudioStream.ID(.playback, number), processID: process, role: role, deviceName: "speaker",
            portUID: "speaker", volume: [65_536])
    }

    static func session(
        _ number: UInt64, _ kind: SessionFacts.Kind, process: UInt32, _ state: SessionState, since: UInt64 = 0,
        lowered: Double = 0, category: PluginAPI.Category = .playback, isMuted: Bool = false,
        class sessionClass: SessionClass = .app, mayResume: Bool = false, isFree: Bool = false
    ) throws -> SessionFacts {
        SessionFacts(
            id: SessionID(number), kind: kind, process: process, application: "", sessionClass: sessionClass,
            configuration: try Configuration(category: category), state: state, since: since, isMuted: isMuted,
            lowered: lowered, lowersItself: false, mayResume: mayResume, holdsClaim: state != .inactive,
            mayBeTakenBack: isFree, isFreeToActivate: isFree)
    }

    static func adopted(_ process: UInt32) throws -> SessionFacts.Kind {
        let mixing = try Configuration(category: .playback, options: .mixWithOthers)
        return .adopted(AdoptedProgram(program: .process(process), role: Settings.Role(mixing)))
    }

    /// Headphones are unplugged, and plugged in again. In between the server showed the stream on the speaker while another
    /// device was the default: it follows the default all the same. A stream that the user moved goes back there.
    @Test(arguments: [(300_000, nil), (3_000_000, "speaker")] as [(UInt64, String?)])
    func streamHeldWhileTheDefaultChanges_followsTheDefault(after time: UInt64, back: String?) throws {
        var stage = Stage()
        stage.defaultDevice = "phones"
        stage.streams = [Self.stream(1, of: 70)]
        stage.streams[0].deviceName = "phones"
        stage.sessions = [try Self.session(1, .client, process: 70, .active)]
        _ = stage.run()
        stage.defaultDevice = "nowhere"
        stage.streams[0].deviceName = "speaker"
        stage.sessions = [try Self.session(1, .client, process: 70, .interrupted, since: stage.now)]
        _ = stage.run(until: stage.now)
        stage.now += time
        #expect(stage.run(until: stage.now + 500_000) == [SessionID(1)])
        #expect(stage.done.contains { if case .hold = $0 { true } else { false } })
        stage.defaultDevice = "phones"
        stage.sessions = [try Self.session(1, .client, process: 70, .active)]
        _ = stage.run()
        #expect(stage.done.contains(.letGo(AudioStream.ID(.playback, 1), to: back)))
    }

    @Test func unknownProgram_isAdoptedOnce() throws {
        var stage = Stage()
        stage.streams = [Self.stream(1, of: 70), Self.stream(2, of: 70)]
        let steps = stage.enforcement.steps(stage.facts, at: 0)
        #expect(steps.count == 1)
        stage.sessions = [try Self.session(1, Self.adopted(70), process: 70, .inactive)]
        #expect(stage.enforcement.steps(stage.facts, at: 0) == [.activate(SessionID(1))])
        stage.sessions = [try Self.session(1, Self.adopted(70), process: 70, .active)]
        #expect(stage.enforcement.steps(stage.facts, at: 0).isEmpty)
    }

    @Test func programInTheNeverList_isNotChanged() {
        var stage = Stage { $0.adoption.never = ["p70"] }
        stage.streams = [Self.stream(1, of: 70)]
        #expect(stage.enforcement.steps(stage.facts, at: 0).isEmpty)
    }

    @Test func nearestProcess_ownsTheStream() throws {
        var stage = Stage()
        stage.streams = [Self.stream(1, of: 70)]
        stage.sessions = [
            try Self.session(1, .client, process: 7, .active), try Self.session(2, .client, process: 70, .active),
        ]
        #expect(stage.enforcement.owners(stage.facts) == [AudioStream.ID(.playback, 1): [SessionID(2)]])
        stage.sessions.removeLast()
        #expect(stage.enforcement.owners(stage.facts) == [AudioStream.ID(.playback, 1): [SessionID(1)]])
    }

    @Test func interruptedProgram_isHeldAndRestored() throws {
        var stage = Stage()
        stage.streams = [Self.stream(1, of: 70)]
        stage.sessions = [try Self.session(1, Self.adopted(70), process: 70, .interrupted)]
        _ = stage.run(until: stage.now + 20_000)
        #expect(stage.streams[0].isHeld && stage.streams[0].volume == [65_536])
        stage.sessions = [try Self.session(1, Self.adopted(70), process: 70, .active)]
        _ = stage.run()
        #expect(stage.streams[0] == Self.stream(1, of: 70))
        #expect(stage.enforcement.kept.isEmpty)
    }

    @Test func clientsSession_isReportedAfterItsDeadline() throws {
        var stage = Stage()
        stage.streams = [Self.stream(1, of: 70)]
        stage.sessions = [try Self.session(1, .client, process: 70, .interrupted, since: stage.now)]
        #expect(stage.run(until: stage.now + 249_000).isEmpty)
        #expect(stage.done.isEmpty)
        #expect(stage.run() == [SessionID(1)])
        #expect(stage.streams[0].isHeld)
    }

    @Test func clientsSessionThatPausesInTime_isNotChanged() throws {
        var stage = Stage()
        stage.streams = [Self.stream(1, of: 70)]
        stage.sessions = [try Self.session(1, .client, process: 70, .interrupted, since: stage.now)]
        _ = stage.run(until: stage.now + 100_000)
        stage.streams[0].isCorked = true
        #expect(stage.run().isEmpty)
        #expect(stage.done.isEmpty)
    }

    /// PulseAudio plays what it had fetched of a held stream when that is on its device again.
    @Test(arguments: [AudioStream.Rendering.atOnce, .inCycles(seconds: 0.021)], [false, true])
    func programThatWasPausedWhileHeld_isMutedUntilWhatWasFetchedIsOver(
        _ rendering: AudioStream.Rendering, playsAgain: Bool
    ) throws {
        var stage = Stage()
        stage.streams = [Self.stream(1, of: 70)]
        stage.streams[0].rendering = rendering
        let id = stage.streams[0].id
        stage.sessions = [try Self.session(1, Self.adopted(70), process: 70, .active)]
        _ = stage.run()
        stage.sessions = [try Self.session(1, Self.adopted(70), process: 70, .interrupted, since: stage.now)]
        _ = stage.run()
        stage.streams[0].isStopping = false
        #expect(stage.streams[0].isHeld)
        stage.streams[0].isCorked = true
        _ = stage.run()
        #expect(stage.streams[0].isHeld && !stage.streams[0].isMuted)
        stage.done = []
        stage.sessions = [try Self.session(1, Self.adopted(70), process: 70, .inactive)]
        let end = stage.now
        _ = stage.run(until: end + 1_500_000)
        #expect(!stage.streams[0].isHeld)
        let moves = stage.done.filter { $0 == .setMuted(id, true) || $0.isMove }
        switch rendering {
        case .inCycles: #expect(!stage.done.contains(.setMuted(id, true)))
        case .atOnce:
            #expect(moves.first == .setMuted(id, true) && moves.count == 2 && stage.streams[0].isMuted)
            if playsAgain {
                stage.streams[0].isCorked = false
                stage.sessions = [try Self.session(1, Self.adopted(70), process: 70, .active)]
                _ = stage.run(until: end + 1_600_000)
            } else {
                _ = stage.run()
                #expect(stage.now == end + 2_000_000)
            }
        }
        #expect(!stage.streams[0].isMuted && stage.enforcement.kept.isEmpty)
    }

    @Test func ducking_makesNoStepOverTwoDecibelsIn10ms() throws {
        var stage = Stage { $0.ducking.attack = 0 }
        stage.streams = [Self.stream(1, of: 70)]
        stage.sessions = [try Self.session(1, .client, process: 70, .active)]
        _ = stage.run()
        stage.sessions = [try Self.session(1, .client, process: 70, .active, lowered: 12)]
        let begun = stage.now
        _ = stage.run()
        #expect(stage.streams[0].volume == Level.volume([65_536], lowered: 12))
        #expect(stage.done.count == 12)
        #expect(stage.now - begun >= 11 * 5_000)
        stage.sessions = [try Self.session(1, .client, process: 70, .active)]
        _ = stage.run()
        #expect(stage.streams[0].volume == [65_536] && stage.enforcement.kept.isEmpty)
    }

    /// A server that applies volumes only at certain moments: at each of them, the volume changes by at most two
    /// decibels, even if the steps are a little early or late.
    @Test(arguments: [0.0213, 0.0427]) func duckingInCycles_makesNoStepOverTwoDecibelsInACycle(cycle: Double) throws {
        var stage = Stage { $0.ducking.attack = 0 }
        var stream = Self.stream(1, of: 70)
        stream.rendering = .inCycles(seconds: cycle)
        stage.streams = [stream]
        stage.sessions = [try Self.session(1, .client, process: 70, .active)]
        _ = stage.run()
        stage.sessions = [try Self.session(1, .client, process: 70, .active, lowered: 12)]
        var times: [UInt64] = []
        let end = stage.now + 1_000_000
        while stage.now < end {
            let count = stage.done.count
            _ = stage.run(until: stage.now)
            times += Array(repeating: stage.now, count: stage.done.count - count)
            stage.now += 500
        }
        #expect(times.count == 12)
        let length = UInt64(cycle * 1_000_000)
        for begin in times { #expect(times.filter { (begin...begin + length * 6 / 5).contains($0) }.count <= 2) }
    }

    /// Each step of a fade is counted from when the last one was due, not from when it was carried out; and no step
    /// waits for a ramp.
    @Test func fadeWithLateSteps_takesItsUsualTime() throws {
        var stage = Stage()
        stage.streams = [Self.stream(1, of: 70)]
        stage.sessions = [try Self.session(1, Self.adopted(70), process: 70, .active)]
        _ = stage.run()
        stage.sessions = [try Self.session(1, Self.adopted(70), process: 70, .active, lowered: 12)]
        _ = stage.run(until: stage.now)
        #expect(stage.done.count == 1)
        stage.sessions = [try Self.session(1, Self.adopted(70), process: 70, .interrupted)]
        for (late, level) in [(0, 8), (3_900, 18), (0, 30)] as [(UInt64, Int)] {
            stage.now += late
            let outcome = stage.enforcement.commands(stage.facts, at: stage.now)
            let volume = Level.volume([65_536], lowered: level)
            #expect(outcome.commands == [.setVolume(stage.streams[0].id, volume)])
            stage.streams[0].volume = volume
            for command in outcome.commands { stage.enforcement.answered(command, succeeded: true, at: stage.now) }
            stage.now = try #require(outcome.deadline)
        }
        // One step was 3.9 ms late, but the fade ended after 12 ms.
        #expect(stage.now == 1_000_000 + 12_000)
        #expect(stage.enforcement.commands(stage.facts, at: stage.now).commands == [.hold(stage.streams[0].id)])
    }

    @Test func slowServer_neverGetsTwoStepsAtOnce() throws {
        var stage = Stage()
        stage.streams = [Self.stream(1, of: 70)]
        stage.sessions = [try Self.session(1, .client, process: 70, .active)]
        _ = stage.run()
        stage.sessions = [try Self.session(1, .client, process: 70, .active, lowered: 12)]
        #expect(stage.enforcement.commands(stage.facts, at: stage.now).commands.count == 1)
        // Even after a long time. Several steps that wait in the server would be heard as one large step.
        stage.now += 1_000_000
        let meanwhile = stage.enforcement.commands(stage.facts, at: stage.now)
        #expect(meanwhile.commands.isEmpty && meanwhile.deadline == nil)
        let first = StreamCommand.setVolume(stage.streams[0].id, Level.volume([65_536], lowered: 1))
        stage.streams[0].volume = Level.volume([65_536], lowered: 1)
        stage.enforcement.answered(first, succeeded: true, at: stage.now)
        let answered = stage.enforcement.commands(stage.facts, at: stage.now)
        #expect(answered.commands.isEmpty)
        // At most two steps in 10 ms.
        let attack = StreamControl.Pace(Settings().ducking, .atOnce).attack
        #expect(attack.step + attack.rest >= 10_000 && (answered.deadline ?? 0) == stage.now + attack.rest)
    }

    @Test func userChangesTheVolumeOfADuckedStream_itIsKept() throws {
        var stage = Stage()
        stage.streams = [Self.stream(1, of: 70)]
        stage.sessions = [try Self.session(1, .client, process: 70, .active)]
        _ = stage.run()
        stage.sessions = [try Self.session(1, .client, process: 70, .active, lowered: 12)]
        _ = stage.run()
        stage.now += 1_000_000
        stage.streams[0].volume = [50_300]
        _ = stage.run()
        stage.sessions = [try Self.session(1, .client, process: 70, .active)]
        _ = stage.run()
        #expect(stage.streams[0].volume == [50_300])
    }

    @Test func recordingSession_cannotPlay() throws {
        var stage = Stage()
        stage.streams = [Self.stream(1, of: 70)]
        stage.sessions = [try Self.session(1, .client, process: 70, .active, category: .record)]
        _ = stage.run()
        #expect(stage.streams[0].isMuted)
    }

    @Test func silentSwitch_mutesAndRestores() throws {
        var stage = Stage()
        stage.streams = [Self.stream(1, of: 70)]
        stage.sessions = [try Self.session(1, .client, process: 70, .active, category: .ambient, isMuted: true)]
        _ = stage.run()
        #expect(stage.streams[0].isMuted)
        stage.sessions = [try Self.session(1, .client, process: 70, .active, category: .ambient)]
        _ = stage.run()
        #expect(stage.streams[0] == Self.stream(1, of: 70))
    }

    @Test(arguments: [Settings.Enforcement.Mode.off, .cooperative]) func milderMode_doesNotChangeAdoptedPrograms(
        mode: Settings.Enforcement.Mode
    ) throws {
        var stage = Stage { $0.enforcement.mode = mode }
        stage.streams = [Self.stream(1, of: 70)]
        stage.sessions = [try Self.session(1, Self.adopted(70), process: 70, .interrupted)]
        _ = stage.run()
        #expect(stage.done.isEmpty)
    }

    @Test func streamFoundDucked_isRestoredFromTheJournal() throws {
        var stage = Stage()
        stage.streams = [Self.stream(1, of: 70)]
        stage.streams[0].volume = Level.volume([65_536], lowered: 7)
        stage.streams[0].isHeld = true
        let base = StreamBase(volume: [65_536], isMuted: false, deviceName: nil)
        stage.enforcement.takeOver(stage.streams[0], KeptStream(base: base), isNew: false)
        _ = stage.run()
        #expect(stage.streams[0] == Self.stream(1, of: 70))
    }

    @Test func refusedMoveBack_isRequestedAgainLater() throws {
        var stage = Stage()
        stage.streams = [Self.stream(1, of: 70)]
        stage.sessions = [try Self.session(1, Self.adopted(70), process: 70, .interrupted)]
        _ = stage.run()
        #expect(stage.streams[0].isHeld)
        stage.sessions = [try Self.session(1, Self.adopted(70), process: 70, .active)]
        let begun = stage.now
        var refused = 0
        while stage.now < begun + 1_000_000 {
            let outcome = stage.enforcement.commands(stage.facts, at: stage.now)
            for command in outcome.commands {
                guard case .letGo = command else { continue }
                refused += 1
                stage.enforcement.answered(command, succeeded: false, at: stage.now)
            }
            stage.now = max(stage.now, outcome.deadline ?? stage.now)
        }
        #expect(refused == 4)
        _ = stage.run()
        #expect(stage.streams[0] == Self.stream(1, of: 70) && stage.enforcement.kept.isEmpty)
    }

    @Test func streamThatIsNotMoved_isMutedInTime() throws {
        var stage = Stage()
        stage.moves = false
        stage.streams = [Self.stream(1, of: 70)]
        stage.sessions = [try Self.session(1, Self.adopted(70), process: 70, .interrupted)]
        let begun = stage.now
        _ = stage.run(until: begun + 200_000)
        // The stream is faded, and does not get louder again before it is moved.
        #expect(stage.streams[0].volume == Level.volume([65_536], lowered: 30) && !stage.streams[0].isMuted)
        _ = stage.run()
        #expect(stage.streams[0].isMuted && stage.now - begun < 300_000)
        #expect(stage.enforcement.isMuted(stage.streams[0].id))
        stage.sessions = [try Self.session(1, Self.adopted(70), process: 70, .active)]
        _ = stage.run()
        #expect(stage.streams[0] == Self.stream(1, of: 70) && stage.enforcement.kept.isEmpty)
    }

    /// Sound for a receiver, such as AC-3: a stream that is moved to a device without its format ends.
    @Test func encodedStream_isMutedAndNeverMoved() throws {
        var stage = Stage()
        var stream = Self.stream(1, of: 70)
        (stream.isEncoded, stream.volume) = (true, [])
        stage.streams = [stream]
        stage.sessions = [try Self.session(1, Self.adopted(70), process: 70, .interrupted)]
        let change = stage.enforcement.commands(stage.facts, at: stage.now)
        #expect(change.changes.map(\.treatment) == [.muted] && change.commands == [.setMuted(stream.id, true)])
        stage.enforcement.answered(change.commands[0], succeeded: true, at: stage.now)
        stage.streams[0].isMuted = true
        _ = stage.run()
        #expect(stage.done.isEmpty)
        stage.sessions = [try Self.session(1, Self.adopted(70), process: 70, .active)]
        _ = stage.run()
        #expect(stage.done == [.setMuted(stream.id, false)] && stage.enforcement.kept.isEmpty)
    }

    /// Without it, a blind user can do nothing, not even end the call.
    @Test func streamThatReadsAloud_isNeverSilenced() throws {
        for state in [SessionState.active, .inactive, .interrupted] {
            for (isMuted, lowered) in [(false, 12.0), (true, 0.0)] {
                for kind in [try Self.adopted(70), .client] {
                    var stage = Stage()
                    stage.streams = [Self.stream(1, of: 70, role: "a11y"), Self.stream(2, of: 70)]
                    stage.sessions = [
                        try Self.session(1, kind, process: 70, state, lowered: lowered, isMuted: isMuted),
                        try Self.session(2, .client, process: 80, .active, class: .call),
                    ]
                    stage.now = 10_000_000
                    _ = stage.run()
                    #expect(!stage.done.contains { $0.stream.number == 1 }, "\(state) \(kind)")
                }
            }
        }
    }

    /// PipeWire may show the new place, the old one, and the new one again.
    @Test func moveWithAlternatingReports_isNotTakenForTheUsers() throws {
        var stage = Stage()
        stage.streams = [Self.stream(1, of: 70)]
        stage.sessions = [try Self.session(1, Self.adopted(70), process: 70, .interrupted)]
        let begun = stage.now
        _ = stage.run(until: begun + 50_000)
        for isHeld in [false, true, false, true] {
            stage.streams[0].isHeld = isHeld
            _ = stage.run(until: stage.now)
        }
        _ = stage.run()
        #expect(stage.streams[0].isHeld && !stage.streams[0].isMuted)
        #expect(stage.done.filter { if case .setMuted = $0 { true } else { false } }.isEmpty)
    }

    @Test func heldStreamWithoutAnotherSink_staysHeldUntilThereIsOne() throws {
        var stage = Stage()
        stage.streams = [Self.stream(1, of: 70)]
        stage.sessions = [try Self.session(1, Self.adopted(70), process: 70, .interrupted)]
        _ = stage.run()
        stage.canHold = false
        // The server puts a new stream on the only sink.
        stage.streams.append(Self.stream(2, of: 80))
        stage.streams[1].isHeld = true
        stage.sessions = [try Self.session(1, Self.adopted(70), process: 70, .active)]
        _ = stage.run()
        #expect(stage.streams.map(\.isHeld) == [true, true])
        stage.canHold = true
        _ = stage.run()
        #expect(stage.streams == [Self.stream(1, of: 70), Self.stream(2, of: 80)])
    }

    /// The end of the interruption alone does not restore the stream (R2).
    @Test func silencedSession_isHeardAgainIfItResumesOrTheUserPlays() throws {
        for end in ["resume", "activate", "pause"] {
            var stage = Stage()
            stage.streams = [Self.stream(1, of: 70)]
            stage.sessions = [try Self.session(1, .client, process: 70, .interrupted, since: 0)]
            #expect(stage.run() == [SessionID(1)])
            stage.sessions = [try Self.session(1, .client, process: 70, .inactive, mayResume: end == "resume")]
            _ = stage.run()
            #expect(stage.streams[0].isHeld == (end != "resume"))
            if end == "activate" { stage.sessions = [try Self.session(1, .client, process: 70, .active)] }
            if end == "pause" {
                stage.streams[0].isCorked = true
                _ = stage.run()
                stage.streams[0].isCorked = false
            }
            _ = stage.run()
            #expect(stage.streams[0] == Self.stream(1, of: 70), "\(end)")
        }
    }

    /// A stream that is silent after the interruption (R2) stays silent when the next daemon starts.
    @Test func silencedSession_isStillSilentWithTheNextDaemon() throws {
        var stage = Stage()
        stage.streams = [Self.stream(1, of: 70)]
        stage.sessions = [try Self.session(1, .client, process: 70, .interrupted, since: 0)]
        _ = stage.run()
        stage.sessions = [try Self.session(1, .client, process: 70, .inactive)]
        _ = stage.run()
        let kept = try #require(stage.enforcement.kept[stage.streams[0].id])
        #expect(kept.ignoresInterruption)
        stage.enforcement = Enforcement(Settings())
        stage.enforcement.takeOver(stage.streams[0], kept, isNew: false)
        _ = stage.run()
        #expect(stage.streams[0].isHeld)
        stage.streams[0].isCorked = true
        _ = stage.run()
        #expect(!stage.streams[0].isHeld && stage.enforcement.kept.isEmpty)
    }

    /// An adopted program that an earlier daemon has silenced was not started by the user now. After the call, one that
    /// played before it is heard again; one that began during it only if it interrupts no other session.
    @Test(arguments: [5, 10] as [UInt64], [false, true])
    func silencedProgram_isNotStartedByTheNextDaemon(began: UInt64, isFree: Bool) throws {
        for state in [SessionState.inactive, .interrupted] {
            var stage = Stage()
            // The other stream is a sound of the same program, from the time without a daemon.
            stage.streams = [Self.stream(1, of: 70)] + (state == .interrupted ? [Self.stream(2, of: 70)] : [])
            stage.streams[0].isHeld = true
            stage.sessions = [
                try Self.session(1, Self.adopted(70), process: 70, state, isFree: state == .interrupted),
                try Self.session(2, .client, process: 80, .active, since: 9, class: .call),
            ]
            let base = StreamBase(volume: [65_536], isMuted: false, deviceName: nil)
            stage.enforcement.takeOver(stage.streams[0], KeptStream(base: base, began: began), isNew: false)
            #expect(stage.enforcement.steps(stage.facts, at: stage.now).isEmpty, "\(state)")
            stage.sessions[1] = try Self.session(2, .client, process: 80, .inactive, class: .call)
            stage.sessions[0] = try Self.session(1, Self.adopted(70), process: 70, state, isFree: isFree)
            let isActivated = stage.enforcement.steps(stage.facts, at: stage.now) == [.activate(SessionID(1))]
            #expect(isActivated == (state == .inactive && (isFree || began < 9)), "\(state)")
        }
    }

    @Test func appThatDidNotActivate_isSilentDuringACall() throws {
        var stage = Stage()
        stage.streams = [Self.stream(1, of: 70), Self.stream(2, of: 80)]
        stage.sessions = [
            try Self.session(1, .client, process: 70, .inactive),
            try Self.session(2, .client, process: 80, .active, class: .call),
        ]
        _ = stage.run()
        #expect(stage.streams.map(\.isHeld) == [true, false])
        stage.sessions[1] = try Self.session(2, .client, process: 80, .inactive, class: .call)
        _ = stage.run()
        #expect(stage.streams.map(\.isHeld) == [false, false])
    }
}
