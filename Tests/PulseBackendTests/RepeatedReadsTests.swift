import CPulse
import PluginAPI
import Testing

@testable import PulseBackend
@testable import ReferenceModel

/// Tests which streams are read again without an event of the server, and that this ends.
@Suite struct RepeatedReadsTests {
    private static func stream(_ index: UInt32) -> ReadRound.Item {
        ReadRound.Item(facility: .playing, index: index)
    }

    /// The times of the reads, in milliseconds, if nothing else happens.
    private static func times(
        _ reads: inout RepeatedReads, count: Int = 100, _ read: (inout RepeatedReads) -> Void = { _ in }
    )
        -> [UInt64]
    {
        var times: [UInt64] = []
        while let next = reads.next, times.count < count {
            #expect(!reads.take(at: next).isEmpty)
            times.append(next / 1_000)
            read(&reads)
        }
        return times
    }

    @Test func movedStream_isReadOften_thenLessAndThenNoMore() {
        var reads = RepeatedReads()
        #expect(reads.next == nil)
        reads.expectMove(of: Self.stream(1), at: 0)
        let often = (1...16).map { UInt64($0) * 15 }
        #expect(Self.times(&reads) == often + [270, 330, 450, 690, 1_170, 2_130, 4_050])
    }

    /// A stream that is never linked.
    @Test func streamThatStaysIncomplete_isReadLessAndLess_andThenNoMore() {
        var reads = RepeatedReads()
        reads.wasShown(Self.stream(1), isComplete: false, at: 0)
        let times = Self.times(&reads) { $0.wasShown(Self.stream(1), isComplete: false, at: 0) }
        #expect(times == [15, 45, 105, 225, 465, 945, 1_905, 3_825, 7_665, 15_345, 30_705])
    }

    @Test func streamThatIsComplete_isReadNoMore() {
        var reads = RepeatedReads()
        reads.wasShown(Self.stream(1), isComplete: false, at: 0)
        #expect(reads.incompleteStreams(.playing) == [Self.stream(1)] && reads.incompleteStreams(.recording).isEmpty)
        #expect(Self.times(&reads, count: 2) == [15, 45])
        reads.wasShown(Self.stream(1), isComplete: true, at: 50_000)
        #expect(reads.next == nil && reads.incompleteStreams(.playing).isEmpty)
    }

    /// A sound that is shorter than the time in which it may be moved.
    @Test func streamThatEnds_isReadNoMore() {
        var reads = RepeatedReads()
        reads.expectMove(of: Self.stream(1), at: 0)
        reads.wasShown(Self.stream(1), isComplete: false, at: 0)
        reads.hold([Self.stream(1)], at: 0)
        reads.ended(Self.stream(1))
        #expect(reads.next == nil)
    }

    /// A call may last for hours.
    @Test func heldStreams_areReadLessAndLess_forAsLongAsTheyAreHeld() {
        // Milliseconds, rounded down.
        let minute: [UInt64] = [62, 187, 437, 937, 1_937, 3_937, 7_937, 15_937, 31_937, 47_937, 63_937]
        var reads = RepeatedReads()
        reads.hold([Self.stream(1)], at: 0)
        // An evaluation that changes nothing.
        #expect(Self.times(&reads, count: 11) { $0.hold([Self.stream(1)], at: 0) } == minute)
        reads.hold([Self.stream(1), Self.stream(2)], at: 100_000_000)
        #expect(Self.times(&reads, count: 11) == minute.map { $0 + 100_000 })
        reads.hold([Self.stream(1)], at: 200_000_000)
        reads.somethingHappened(at: 200_000_000)
        #expect(Self.times(&reads, count: 2) == [200_062, 200_187])
        reads.hold([], at: 202_000_000)
        reads.somethingHappened(at: 202_000_000)
        #expect(reads.next == nil)
    }

    /// The guard may stay the default for long, if there is no other output.
    @Test func allStreamsAreMoved_eachIsReadOnceForEachMove() {
        var reads = RepeatedReads()
        let streams = [Self.stream(1), Self.stream(2)]
        reads.expectMoves(of: streams, false, at: 0)
        #expect(reads.next == nil && !reads.mayBeMoved(isHoldThere: false))
        for isMoving in [true, false] {
            for _ in 0..<3 { reads.expectMoves(of: streams, isMoving, at: 0) }
            #expect(reads.mayBeMoved(isHoldThere: false) == isMoving && reads.mayBeMoved(isHoldThere: true))
            #expect(Self.times(&reads).count == 23)
            reads.expectMoves(of: streams, isMoving, at: 0)
            #expect(reads.next == nil)
        }
    }

    /// Whatever happened and whatever the server shows, the reads end.
    @Test func randomHistories_end() {
        for seed in 0..<UInt64(400) {
            var dice = SplitMix64(seed: seed)
            var reads = RepeatedReads()
            var now: UInt64 = 0
            let streams = (1...4).map { Self.stream(UInt32($0)) }
            func show(_ stream: ReadRound.Item) {
                switch dice.next() % 8 {
                case 0: reads.ended(stream)
                case 1, 2: reads.wasShown(stream, isComplete: true, at: now)
                default: reads.wasShown(stream, isComplete: false, at: now)
                }
            }
            for _ in 0..<100 {
                now += dice.next() % 100_000
                let stream = streams[Int(dice.next() % 4)]
                switch dice.next() % 6 {
                case 5: reads.somethingHappened(at: now)
                case 0: reads.expectMove(of: stream, at: now)
                case 1: reads.expectMoves(of: streams, dice.next() % 2 == 0, at: now)
                case 2: reads.hold(Set(streams.prefix(Int(dice.next() % 5))), at: now)
                case 3: show(stream)
                default: for stream in reads.take(at: now) { show(stream) }
                }
            }
            // Nothing is held any more, and no event follows.
            reads.hold([], at: now)
            let end = now
            var count = 0
            while let next = reads.next, count < 4 * 23 * 11 {
                #expect(next <= end + 40_000_000, "seed \(seed)")
                now = max(now, next)
                for stream in reads.take(at: now) { show(stream) }
                count += 1
            }
            #expect(reads.next == nil, "seed \(seed)")
        }
    }

    // MARK: What is complete

    private static func playing(_ index: UInt32, on sink: UInt32, volume: UInt32 = 65_536) -> PulseStream {
        var info = pa_sink_input_info()
        (info.index, info.client, info.sink, info.volume_writable) = (index, 5, sink, 1)
        pa_cvolume_set(&info.volume, 2, volume)
        let list = pa_proplist_new()
        defer { pa_proplist_free(list) }
        info.proplist = list
        return PulseStream(info)
    }

    private static func recording(_ index: UInt32, on source: UInt32) -> PulseStream {
        var info = pa_source_output_info()
        (info.index, info.client, info.source) = (index, 5, source)
        let list = pa_proplist_new()
        defer { pa_proplist_free(list) }
        info.proplist = list
        return PulseStream(info)
    }

    @Test func streamOfPipeWire_isIncompleteUntilItIsLinked() {
        var model = PulseModel()
        model.serverName = "PulseAudio (on PipeWire 1.4.2)"
        var isComplete = [model.add(playing: Self.playing(1, on: .max), now: 0)]
        #expect(model.playing[1] == nil)
        isComplete.append(model.add(playing: Self.playing(1, on: 3), now: 1))
        #expect(model.playing[1]?.device == 3)
        // It is being moved, or its sink is gone.
        isComplete.append(model.add(playing: Self.playing(1, on: .max), now: 2))
        #expect(model.playing[1]?.device == .max)
        #expect(isComplete == [false, true, false])
        isComplete = [
            model.add(recording: Self.recording(2, on: .max)), model.add(recording: Self.recording(2, on: 4)),
        ]
        #expect(isComplete == [false, true])
    }

    @Test func newStreamOfPipeWire_isIncompleteWhileItsVolumeIsZero_forAMoment() {
        var model = PulseModel()
        model.serverName = "PulseAudio (on PipeWire 1.4.2)"
        let isComplete = [0, 249_999, 250_000].map {
            model.add(playing: Self.playing(1, on: 3, volume: 0), now: $0)
        }
        #expect(isComplete == [false, false, true] && model.playing[1] != nil)
    }

    @Test func streamOfPulseAudio_isComplete() {
        var model = PulseModel()
        model.serverName = "pulseaudio 16.1"
        let isComplete = [
            model.add(playing: Self.playing(1, on: .max, volume: 0), now: 0),
            model.add(recording: Self.recording(2, on: .max)),
        ]
        #expect(isComplete == [true, true])
    }

    /// A sink that begins to run has a new stream, which PipeWire need not report.
    @Test func deviceThatBeginsOrCeasesToRun_mayHaveOtherStreams() {
        func sink(_ state: pa_sink_state, volume: UInt32 = 65_536) -> PulseDevice {
            var info = pa_sink_info()
            (info.index, info.state) = (3, state)
            pa_cvolume_set(&info.volume, 2, volume)
            return PulseDevice(info)
        }
        var model = PulseModel()
        let isChanged = [
            sink(PA_SINK_IDLE), sink(PA_SINK_IDLE), sink(PA_SINK_RUNNING), sink(PA_SINK_RUNNING, volume: 9),
            sink(PA_SINK_SUSPENDED),
        ]
        .map { model.add($0) }
        #expect(isChanged == [true, false, true, false, true])
        #expect(model.sinks[3]?.state == PA_SINK_SUSPENDED.rawValue)
    }
}
