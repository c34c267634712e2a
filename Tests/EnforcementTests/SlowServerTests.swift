import PluginAPI
import Testing

@testable import Enforcement

/// A server that confirms a move before it is done, as PipeWire does.
@Suite struct SlowServerTests {
    private typealias Stage = EnforcementTests.Stage

    private static func stage() throws -> Stage {
        var stage = Stage()
        var stream = EnforcementTests.stream(1, of: 70)
        stream.rendering = .inCycles(seconds: 0.021)
        stage.streams = [stream]
        stage.sessions = [
            try EnforcementTests.session(1, EnforcementTests.adopted(70), process: 70, .interrupted)
        ]
        return stage
    }

    @Test func movingStream_isFadedUntilItHasStopped() throws {
        var stage = try Self.stage()
        let (id, start) = (AudioStream.ID(.playback, 1), stage.now)
        _ = stage.run(until: start + 11_000)
        let levels = [8, 18, 30].map { StreamCommand.setVolume(id, Level.volume([65_536], lowered: $0)) }
        #expect(stage.done == [levels[0], .hold(id)] + levels[1...])
        _ = stage.run(until: start + 100_000)
        #expect(stage.done.dropFirst(4) == [.setVolume(id, Level.volume([65_536], lowered: Level.lowest))])
        stage.streams[0].isStopping = false
        _ = stage.run(until: start + 100_000)
        #expect(stage.done.dropFirst(5) == [.setVolume(id, [65_536])])
        #expect(stage.streams[0].isHeld)
    }

    /// The fade waits for the hold sink, because the sound between the end of the fade and the move is lost.
    @Test(arguments: [5_000, 100_000] as [UInt64])
    func holdSinkAppearsLater_fadeWaitsForItForAWhile(comesAfter: UInt64) throws {
        var stage = try Self.stage()
        stage.hasHold = false
        let (id, start) = (AudioStream.ID(.playback, 1), stage.now)
        _ = stage.run(until: start + min(comesAfter, 11_000))
        // The move is requested at once.
        #expect(stage.done == [.hold(id)])
        stage.now = start + min(comesAfter, 12_000)
        stage.hasHold = comesAfter <= 12_000
        let begins = stage.now
        _ = stage.run(until: begins + 11_000)
        #expect(
            stage.done.dropFirst()
                == [8, 18, 30].map { .setVolume(id, Level.volume([65_536], lowered: $0)) }[...])
    }

    @Test func streamShownAtItsOldSinkAgain_staysFaded() throws {
        var stage = try Self.stage()
        let start = stage.now
        _ = stage.run(until: start + 20_000)
        stage.streams[0].isHeld = false
        stage.streams[0].isStopping = false
        _ = stage.run(until: start + 100_000)
        #expect(stage.streams[0].volume == Level.volume([65_536], lowered: Level.lowest))
        stage.streams[0].isHeld = true
        _ = stage.run(until: start + 100_000)
        #expect(stage.streams[0].volume == [65_536])
    }

    /// Another program may make the hold sink run. The stream is silent there all the same.
    @Test func heldStreamThatNeverStops_hasTheUsersVolume() throws {
        var stage = try Self.stage()
        _ = stage.run()
        #expect(stage.streams[0].volume == [65_536])
        #expect(stage.streams[0].isHeld && !stage.streams[0].isMuted)
    }

    /// Its answers come late. What was faded out for a call is back soon all the same.
    @Test func answersAreLate_fadedStreamIsRestoredInFewSteps() throws {
        var stream = EnforcementTests.stream(1, of: 70)
        stream.volume = Level.volume([65_536], lowered: Level.lowest)
        var control = StreamControl(
            stream, found: StreamBase(volume: [65_536], isMuted: false, deviceName: nil), isNew: false)
        let pace = StreamControl.Pace(Settings().ducking, stream.rendering)
        var (now, levels, deadline) = (UInt64(1_000_000), [Level.lowest], nil as UInt64?)
        while !control.isSettled, levels.count < 50 {
            deadline = nil
            control.observe(stream, at: now)
            let commands = control.advance(
                to: .free(lowered: 0), stream, at: now, pace, canHold: true, hasHold: true, mayHold: true,
                progress: 0, &deadline)
            for command in commands {
                guard case .setVolume(_, let volume) = command else { continue }
                now += 400_000
                stream.volume = volume
                levels.append(try #require(Level.of(volume, below: [65_536])))
                control.answered(command, succeeded: true, at: now)
            }
            if commands.isEmpty { now = max(now, deadline ?? now) }
        }
        #expect(levels == [Level.lowest, 12, 10, 8, 6, 4, 2, 0])
    }

    @Test func callEndsBeforeTheStreamHasStopped_streamIsRestored() throws {
        var stage = try Self.stage()
        _ = stage.run(until: stage.now + 20_000)
        stage.sessions = [try EnforcementTests.session(1, EnforcementTests.adopted(70), process: 70, .active)]
        _ = stage.run(until: stage.now + 20_000)
        #expect(stage.streams[0].volume == [65_536] && !stage.streams[0].isHeld)
        #expect(stage.enforcement.kept.isEmpty)
    }

    /// PipeWire's server may lose the move of a stream that has only just begun, and says that it was done.
    @Test(arguments: [1, 2, 3, 4]) func streamStartsOnAWrongSink_moveIsRepeatedUntilItArrives(arrival: Int) throws {
        var stage = Stage()
        stage.streams = [EnforcementTests.stream(1, of: 70)]
        stage.streams[0].rendering = .inCycles(seconds: 0.02)
        stage.sessions = [try EnforcementTests.session(1, EnforcementTests.adopted(70), process: 70, .active)]
        let base = StreamBase(volume: [65_536], isMuted: false, deviceName: "other")
        stage.enforcement.takeOver(stage.streams[0], KeptStream(base: base), isNew: true)
        var sent = 0
        var now: UInt64? = 1_000_000
        while let time = now {
            let outcome = stage.enforcement.commands(stage.facts, at: time)
            for command in outcome.commands {
                #expect(command == .letGo(stage.streams[0].id, to: "other"))
                sent += 1
                if sent == arrival { stage.streams[0].deviceName = "other" }
                stage.enforcement.answered(command, succeeded: true, at: time)
            }
            now = outcome.deadline
            if let now { #expect(now >= time + 250_000) }
        }
        // After three requests the daemon accepts the other sink.
        #expect(sent == min(arrival, 3))
        _ = stage.enforcement.commands(stage.facts, at: 9_000_000)
        #expect(stage.enforcement.kept.isEmpty)
    }

    /// Otherwise the stream would stay silent.
    @Test func lostMoveBack_isRequestedAgain() throws {
        var stage = EnforcementTests.Stage()
        stage.streams = [EnforcementTests.stream(1, of: 70)]
        stage.streams[0].rendering = .inCycles(seconds: 0.02)
        stage.sessions = [try EnforcementTests.session(1, EnforcementTests.adopted(70), process: 70, .interrupted)]
        _ = stage.run()
        #expect(stage.streams[0].isHeld)
        stage.sessions = [try EnforcementTests.session(1, EnforcementTests.adopted(70), process: 70, .active)]
        let id = stage.streams[0].id
        var sent: [UInt64] = []
        var now: UInt64? = stage.now + 5_000_000
        while let time = now {
            let outcome = stage.enforcement.commands(stage.facts, at: time)
            for command in outcome.commands {
                if command == .letGo(id, to: nil) { sent.append(time) }
                if sent.count == 6 { stage.streams[0].isHeld = false }
                stage.enforcement.answered(command, succeeded: true, at: time)
            }
            now = outcome.deadline
        }
        #expect(sent.count == 6)
        #expect(zip(sent, sent.dropFirst()).allSatisfy { $1 >= $0 + 250_000 })
        #expect(stage.enforcement.kept.isEmpty)
    }

    /// A busy session manager. The stream must be silent meanwhile, and nothing more is lost after it has arrived.
    @Test func moveThatTakesLong_isMutedUntilItIsDone() throws {
        var stage = try Self.stage()
        stage.moves = false
        let id = stage.streams[0].id
        _ = stage.run(until: stage.now + 3_000_000)
        #expect(stage.streams[0].isMuted && !stage.streams[0].isHeld)
        stage.now += 3_000_000
        stage.streams[0].isHeld = true
        _ = stage.run()
        #expect(stage.streams[0].isHeld && !stage.streams[0].isMuted && stage.streams[0].volume == [65_536])
        #expect(!stage.done.contains(.letGo(id, to: nil)))
        #expect(stage.done.count { $0 == .hold(id) } == 1)
        // It is shown at its old place for a moment again.
        stage.streams[0].isHeld = false
        _ = stage.run(until: stage.now + 100_000)
        stage.streams[0].isHeld = true
        _ = stage.run()
        #expect(!stage.enforcement.isMuted(id))
        stage.sessions = [try EnforcementTests.session(1, EnforcementTests.adopted(70), process: 70, .active)]
        _ = stage.run()
        #expect(!stage.streams[0].isHeld && stage.enforcement.kept.isEmpty)
    }

    @Test func callEndsBeforeALateMoveIsDone_streamIsRestored() throws {
        var stage = try Self.stage()
        stage.moves = false
        _ = stage.run()
        #expect(stage.streams[0].isMuted)
        stage.sessions = [try EnforcementTests.session(1, EnforcementTests.adopted(70), process: 70, .active)]
        _ = stage.run()
        #expect(!stage.streams[0].isMuted && stage.streams[0].volume == [65_536])
        #expect(stage.done.contains(.letGo(stage.streams[0].id, to: nil)) && stage.enforcement.kept.isEmpty)
    }

    /// The session manager moves many streams one after another: none is given up while others arrive.
    @Test func manyStreams_areAllHeld() throws {
        var stage = Stage()
        stage.moves = false
        let numbers = (1...50).map { UInt32($0) }
        stage.streams = numbers.map { EnforcementTests.stream($0, of: 70) }
        for place in stage.streams.indices { stage.streams[place].rendering = .inCycles(seconds: 0.021) }
        stage.sessions = [try EnforcementTests.session(1, EnforcementTests.adopted(70), process: 70, .interrupted)]
        for place in stage.streams.indices {
            let arrival = stage.now + 60_000
            _ = stage.run(until: arrival)
            #expect(!stage.streams.contains { $0.isMuted }, "\(place) have arrived")
            stage.now = arrival
            stage.streams[place].isHeld = true
        }
        _ = stage.run()
        #expect(stage.streams.allSatisfy { $0.isHeld && !$0.isMuted && $0.volume == [65_536] })
        #expect(stage.done.count { if case .hold = $0 { true } else { false } } == numbers.count)
        #expect(!stage.done.contains { if case .letGo = $0 { true } else { false } })
    }
}
