import PluginAPI
import Testing

@testable import Enforcement
@testable import ReferenceModel

/// Volumes that the user or another program sets while a stream is ducked.
@Suite struct DuckedVolumeTests {
    /// A server with one stream, which answers and shows everything at once.
    private struct World {
        var stream: AudioStream
        var control: StreamControl
        var now: UInt64 = 1_000_000
        var target = Treatment.free(lowered: 12)
        var written: [[UInt32]] = []

        init(_ volume: [UInt32] = [65_536], isInCycles: Bool = false) {
            stream = AudioStream(
                id: AudioStream.ID(.playback, 1), volume: volume,
                rendering: isInCycles ? .inCycles(seconds: 0.021) : .atOnce)
            control = StreamControl(stream, device: nil, isNew: false)
        }

        /// Looks at the stream whenever it is due until then.
        mutating func run(for microseconds: UInt64) {
            let end = now + microseconds
            let pace = StreamControl.Pace(Settings().ducking, stream.rendering)
            while true {
                var deadline: UInt64?
                control.observe(stream, at: now)
                let commands = control.advance(
                    to: target, stream, at: now, pace, canHold: true, hasHold: true, mayHold: true,
                    progress: 0, &deadline)
                for command in commands {
                    switch command {
                    case .setVolume(_, let volume):
                        stream.volume = volume
                        written.append(volume)
                    case .setMuted(_, let isMuted): stream.isMuted = isMuted
                    case .hold: stream.isHeld = true
                    case .letGo: stream.isHeld = false
                    }
                    control.answered(command, succeeded: true, at: now)
                }
                if !commands.isEmpty { continue }
                guard let deadline, deadline <= end else { break }
                now = max(now, deadline)
            }
            now = end
        }

        mutating func set(_ volume: [UInt32], for microseconds: UInt64) {
            stream.volume = volume
            run(for: microseconds)
        }

        mutating func add(points: Double, for microseconds: UInt64) {
            set(stream.volume.map { UInt32((Double($0) + points * 655.36).rounded()) }, for: microseconds)
        }

        /// What the user hears after the prompt.
        mutating func endPrompt() -> [UInt32] {
            target = .free(lowered: 0)
            run(for: 2_000_000)
            return stream.volume
        }
    }

    private static let half: UInt32 = 32_768
    private static let tenPoints: UInt32 = 6_554

    private static func isNear(_ one: [UInt32], _ other: [UInt32]) -> Bool { Level.isSame(one, other) }

    @Test(arguments: [false, true]) func step_movesTheUsersVolumeAndStaysDucked(isInCycles: Bool) {
        var world = World([Self.half], isInCycles: isInCycles)
        world.run(for: 2_000_000)
        world.written = []
        world.add(points: 10, for: 299_999)
        #expect(world.written.isEmpty)
        let goal = [Self.half + Self.tenPoints]
        world.run(for: 1)
        #expect(world.written == [Level.volume(goal, lowered: 12)])
        #expect(world.control.base == StreamBase(volume: goal, isMuted: false, deviceName: nil, volumeChange: .step))
        #expect(Self.isNear(world.endPrompt(), goal))
        #expect(world.control.isSettled && world.control.base.volumeChange == .none)
    }

    @Test(arguments: [false, true], [6, -6, 3, -3]) func decibels_moveTheUsersVolume(isInCycles: Bool, step: Int) {
        var world = World(isInCycles: isInCycles)
        world.run(for: 2_000_000)
        // Louder: a level that the daemon has set in its ramp.
        world.set(Level.volume([65_536], lowered: 12 - step), for: 400_000)
        #expect(Self.isNear(world.stream.volume, Level.volume([65_536], lowered: 12 - step)))
        let after = Double(world.endPrompt()[0])
        #expect(abs(after - VolumeModel.moved(65_536, by: Double(step))) < 2)
    }

    @Test func stepsApart_addUp_andARowStays() {
        var world = World([Self.half])
        world.run(for: 1_000_000)
        world.add(points: 10, for: 300_000)
        world.add(points: 10, for: 300_000)
        world.add(points: -5, for: 300_000)
        #expect(Self.isNear(world.endPrompt(), [UInt32(65 * 655.36)]))
        world = World([Self.half])
        world.run(for: 1_000_000)
        world.add(points: 10, for: 200_000)
        world.add(points: 10, for: 200_000)
        let last = world.stream.volume
        world.written = []
        #expect(world.endPrompt() == last && world.written.isEmpty)
    }

    @Test func volumeThatIsNoStep_staysAndIsNotDucked() {
        var world = World()
        world.run(for: 1_000_000)
        world.written = []
        world.set([Self.half], for: 1_000_000)
        #expect(world.control.base.volumeChange == .absolute)
        // And so does each later one of this prompt.
        world.add(points: 10, for: 1_000_000)
        #expect(world.written.isEmpty)
        #expect(world.endPrompt() == [Self.half + Self.tenPoints])
        world.target = .free(lowered: 12)
        world.run(for: 1_000_000)
        #expect(world.stream.volume == Level.volume([Self.half + Self.tenPoints], lowered: 12))
    }

    @Test func volumeTakenBack_changesNothing() {
        var world = World()
        world.run(for: 1_000_000)
        let ducked = world.stream.volume
        world.add(points: 10, for: 100_000)
        world.set(ducked, for: 1_000_000)
        #expect(world.stream.volume == ducked && world.endPrompt() == [65_536])
    }

    /// The ramp waits while a volume is judged, and goes on from the new one.
    @Test(arguments: [20_000, 40_000, 60_000, 85_000] as [UInt64], [true, false])
    func stepDuringTheRamp(after start: UInt64, isDown: Bool) {
        var world = World([Self.half])
        if !isDown {
            world.run(for: 1_000_000)
            world.target = .free(lowered: 0)
            world.run(for: 250_000)
        }
        world.run(for: start)
        let shown = Level.of(world.stream.volume, below: [Self.half]) ?? 0
        world.add(points: 10, for: 299_999)
        #expect(world.stream.volume[0] > Self.half / 2)
        world.written = []
        world.run(for: 1_000_000)
        let goal = [Self.half + Self.tenPoints]
        #expect(world.written.first == Level.volume(goal, lowered: shown))
        #expect(world.stream.volume == Level.volume(goal, lowered: isDown ? 12 : 0))
        #expect(world.endPrompt() == goal)
    }

    /// The daemon's next level was on its way when the step was set.
    @Test func stepThatTheNextLevelReplaces_isNotLost() {
        var world = World([Self.half])
        world.run(for: 30_000)
        let shown = world.stream.volume
        let pace = StreamControl.Pace(Settings().ducking, .atOnce)
        world.now += 10_000
        var deadline: UInt64?
        let commands = world.control.advance(
            to: world.target, world.stream, at: world.now, pace, canHold: true, hasHold: true, mayHold: true,
            progress: 0, &deadline)
        guard case .setVolume(_, let next)? = commands.first else {
            Issue.record("no step is due")
            return
        }
        world.stream.volume = [shown[0] + Self.tenPoints]
        world.control.answered(commands[0], succeeded: true, at: world.now)
        world.run(for: 1_000)
        world.set(next, for: 1_000_000)
        #expect(world.endPrompt() == [Self.half + Self.tenPoints])
    }

    /// The first level waits until the journal is written.
    @Test(arguments: [(70.0, 70.0), (35, 35)]) func volumeBeforeTheFirstLevelIsSent_isNotLost(
        set: Double, after: Double
    ) {
        var world = World([UInt32(60 * 655.36)])
        let pace = StreamControl.Pace(Settings().ducking, .atOnce)
        var deadline: UInt64?
        let commands = world.control.advance(
            to: world.target, world.stream, at: world.now, pace, canHold: true, hasHold: true, mayHold: true,
            progress: 0, &deadline)
        guard case .setVolume(_, let first)? = commands.first else {
            Issue.record("no step is due")
            return
        }
        world.stream.volume = [UInt32(set * 655.36)]
        world.control.observe(world.stream, at: world.now + 5_000)
        world.now += 6_000
        world.stream.volume = first
        world.control.answered(commands[0], succeeded: true, at: world.now)
        world.run(for: 1_000_000)
        let volume = world.endPrompt()
        #expect(abs(Double(volume[0]) - after * 655.36) < 3)
    }

    @Test func callBeginsBeforeTheStepIsJudged_stepCounts() {
        var world = World([Self.half])
        world.run(for: 1_000_000)
        world.add(points: 10, for: 100_000)
        world.target = .held
        world.run(for: 1_000_000)
        #expect(world.stream.isHeld && Self.isNear(world.stream.volume, [Self.half + Self.tenPoints]))
        world.target = .free(lowered: 12)
        world.run(for: 1_000_000)
        #expect(Self.isNear(world.endPrompt(), [Self.half + Self.tenPoints]))
    }

    @Test func promptOrDaemonEndsBeforeTheStepIsJudged_stepCounts() {
        var world = World([Self.half])
        world.run(for: 1_000_000)
        world.add(points: 10, for: 100_000)
        var leaving = world
        #expect(
            leaving.control.restore(leaving.stream) == [.setVolume(leaving.stream.id, [Self.half + Self.tenPoints])])
        #expect(world.endPrompt() == [Self.half + Self.tenPoints])
    }

    @Test func balance_isKept() {
        var world = World([65_536 / 2, 65_536 / 4])
        world.run(for: 1_000_000)
        world.add(points: 10, for: 1_000_000)
        #expect(Self.isNear(world.endPrompt(), [32_768 + Self.tenPoints, 16_384 + Self.tenPoints]))
    }

    @Test func mutedMeanwhile_stepCounts() {
        var world = World([Self.half])
        world.run(for: 1_000_000)
        world.stream.isMuted = true
        world.run(for: 100_000)
        world.add(points: 10, for: 100_000)
        world.stream.isMuted = false
        world.run(for: 1_000_000)
        #expect(world.endPrompt() == [Self.half + Self.tenPoints] && !world.stream.isMuted)
    }

    /// PipeWire may show levels of the ramp, and the volumes that the daemon has replaced, again for a moment.
    @Test func earlierVolumes_areNotTheUsersOnPipeWire() {
        var world = World([Self.half], isInCycles: true)
        world.run(for: 1_000_000)
        world.add(points: 10, for: 301_000)
        let goal = [Self.half + Self.tenPoints]
        let right = world.stream.volume
        for earlier in [
            Level.volume([Self.half], lowered: 12), [Level.volume([Self.half], lowered: 12)[0] + Self.tenPoints],
        ] {
            world.set(earlier, for: 10_000)
            #expect(world.control.base.volume == goal)
            world.set(right, for: 10_000)
        }
        #expect(world.endPrompt() == goal)
    }
}
