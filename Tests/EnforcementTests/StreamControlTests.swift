import PluginAPI
import Testing

@testable import Enforcement
@testable import ReferenceModel

/// Random treatments of a stream on a server that answers and acts late, loses and refuses requests, and is used by the
/// user meanwhile.
@Suite struct StreamControlTests {
    private struct World {
        var dice: SplitMix64
        var stream: AudioStream
        var control: StreamControl
        var target = Treatment.free(lowered: 0)
        var now: UInt64 = 1_000_000
        /// Commands that the server has not answered, and moves that it has confirmed but not carried out.
        var unanswered: [StreamCommand] = []
        var undone: [StreamCommand] = []
        var deadline: UInt64?
        var lastChange: UInt64 = 0
        var complaints: [String] = []
        var commands = 0
        // The user's last choices.
        var volume: UInt32 = 65_536
        var isMuted = false
        var device = "speaker"
        let pace: StreamControl.Pace

        init(seed: UInt64, isInCycles: Bool) {
            dice = SplitMix64(seed: seed)
            stream = AudioStream(
                id: AudioStream.ID(.playback, 1), deviceName: "speaker", volume: [65_536],
                rendering: isInCycles ? .inCycles(seconds: 0.021) : .atOnce)
            control = StreamControl(stream, device: nil, isNew: false)
            pace = StreamControl.Pace(Settings().ducking, stream.rendering)
        }

        mutating func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &dice) == 0 }

        mutating func run(steps: Int) {
            for _ in 0..<steps where complaints.isEmpty {
                if chance(6) { aim() }
                if chance(25), isQuiet { useIt() }
                serve()
                check()
                now += UInt64.random(in: 0..<9_000, using: &dice)
            }
            settle()
            expectTarget()
            target = .free(lowered: 0)
            settle()
            expectTarget()
            expectAsTheUserLeftIt()
        }

        mutating func aim() {
            switch Int.random(in: 0..<4, using: &dice) {
            case 0: target = .free(lowered: 0)
            case 1: target = .free(lowered: Int.random(in: 1...30, using: &dice))
            case 2: target = .muted
            default: target = .held
            }
        }

        /// Nothing is in progress, so the next change is clearly the user's.
        var isQuiet: Bool { unanswered.isEmpty && undone.isEmpty && deadline == nil && now > lastChange + 600_000 }

        mutating func useIt() {
            switch Int.random(in: 0..<3, using: &dice) {
            case 0: setVolume()
            case 1:
                stream.isMuted.toggle()
                isMuted = stream.isMuted
            default:
                guard stream.isHeld else { return }
                device = chance(2) ? "speaker" : "other"
                (stream.isHeld, stream.isStopping, stream.deviceName) = (false, false, device)
            }
            check()
        }

        /// A step, another volume, or several in a row.
        mutating func setVolume() {
            var ducked = 0
            if case .free(let goal) = target, control.base.volumeChange != .absolute { ducked = goal }
            var model = VolumeModel(base: Double(volume) / 655.36, lowered: ducked)
            var row: [Double] = []
            repeat {
                let shown = Double(stream.volume[0]) / 655.36
                let steps: [Double] = [1, 2, 3, 5, 10, -1, -2, -3, -5, -10]
                let step: Double = steps.randomElement(using: &dice) ?? 1
                let new: Double =
                    switch Int.random(in: 0..<4, using: &dice) {
                    case 0: Double.random(in: 30...100, using: &dice)
                    case 1: Double.random(in: 30...100, using: &dice).rounded()
                    case 2: VolumeModel.moved(shown, by: step)
                    default: shown + step
                    }
                guard new > 10, new < 200 else { continue }
                let written = UInt32((new * 655.36).rounded())
                // PipeWire may show these levels of a silenced stream again.
                let isOfFade = [8, 18, 30, 96].contains { Level.isSame(Level.volume([volume], lowered: $0), [written]) }
                if Level.isSame([written], stream.volume) || ducked == 0 && isOfFade { continue }
                stream.volume = [written]
                row.append(Double(written) / 655.36)
                check()
                now += UInt64.random(in: 0..<150_000, using: &dice)
                check()
            } while chance(3)
            model.set(row)
            settle()
            volume = UInt32((model.base * 655.36).rounded())
            let (base, isKept) = (control.base.volume, control.base.volumeChange == .absolute)
            if ducked > 0, !row.isEmpty, isKept != (model.lowered == 0) || !Level.isSame(base, [volume]) {
                complaints.append("\(row) at \(ducked) dB is \(control.base), not \(volume)")
            }
            // Rounded like the daemon's volumes.
            volume = base.first ?? volume
        }

        mutating func serve() {
            while !unanswered.isEmpty, chance(2) {
                let command = unanswered.removeFirst()
                let isMove = if case .letGo = command { true } else if case .hold = command { true } else { false }
                // A server may refuse to move a stream. PipeWire confirms a move before it is done.
                let isRefused = isMove && chance(12)
                if !isRefused { isMove && stream.rendering.isInCycles ? undone.append(command) : carryOut(command) }
                control.answered(command, succeeded: !isRefused, at: now)
            }
            while !undone.isEmpty, chance(2) { carryOut(undone.removeFirst()) }
            if stream.isStopping, chance(4) { stream.isStopping = false }
        }

        mutating func carryOut(_ command: StreamCommand) {
            lastChange = now
            switch command {
            case .setVolume(_, let volume):
                // PipeWire may confirm a volume and lose it.
                if stream.rendering.isInCycles, chance(40) { return }
                stream.volume = volume
            case .setMuted(_, let isMuted): stream.isMuted = isMuted
            case .hold:
                // PipeWire may confirm a move and lose it.
                if stream.rendering.isInCycles, chance(15) { return }
                (stream.isHeld, stream.deviceName) = (true, "sessiond.hold")
                stream.isStopping = stream.rendering.isInCycles
            case .letGo(_, let name):
                if stream.rendering.isInCycles, chance(15) { return }
                (stream.isHeld, stream.isStopping, stream.deviceName) = (false, false, name ?? "speaker")
            }
        }

        mutating func check() {
            control.observe(stream, at: now)
            deadline = nil
            let new = control.advance(
                to: target, stream, at: now, pace, canHold: true, hasHold: true, mayHold: true, progress: 0, &deadline)
            let volumes = new.filter { if case .setVolume = $0 { true } else { false } }
            if volumes.count > 1 { complaints.append("two volumes at once: \(new)") }
            if !new.isEmpty { lastChange = now }
            commands += new.count
            unanswered += new
        }

        mutating func settle() {
            for _ in 0..<4_000 {
                serve()
                check()
                if unanswered.isEmpty, undone.isEmpty, !stream.isStopping {
                    guard let deadline else { return }
                    now = max(now, deadline)
                } else {
                    now += 1_000
                }
            }
            complaints.append("never settles: \(target) \(stream) \(control)")
        }

        mutating func expectTarget() {
            switch target {
            case .free(let goal):
                if stream.isHeld { complaints.append("the stream is still held") }
                let lowered = control.base.volumeChange == .absolute ? 0 : goal
                if !Level.isSame(stream.volume, Level.volume(control.base.volume, lowered: lowered)) {
                    complaints.append("\(stream.volume) is not \(lowered) dB below \(control.base.volume)")
                }
            case .held, .muted:
                if !stream.isHeld, !stream.isMuted, !control.base.isMuteTheirs { complaints.append("it is audible") }
            }
        }

        mutating func expectAsTheUserLeftIt() {
            if !Level.isSame(stream.volume, [volume]) { complaints.append("\(stream.volume) is not \(volume)") }
            if stream.isMuted != isMuted { complaints.append("the mute switch is \(stream.isMuted)") }
            if stream.deviceName != device { complaints.append("it plays on \(stream.deviceName), not \(device)") }
            if !control.isSettled { complaints.append("not settled: \(control)") }
        }
    }

    @Test(arguments: [false, true]) func randomTreatments_endAsTheUserLeftTheStream(isInCycles: Bool) {
        var commands = 0
        for seed in 0..<UInt64(1_000) {
            var world = World(seed: seed, isInCycles: isInCycles)
            world.run(steps: 200)
            commands += world.commands
            guard world.complaints.isEmpty else {
                Issue.record("seed \(seed): \(world.complaints.joined(separator: "; "))")
                return
            }
        }
        #expect(commands > 10_000, "the stream is hardly ever changed")
    }

    @Test func ramp_waitsForItsReplyAndThenForItsTime() {
        let stream = AudioStream(id: AudioStream.ID(.playback, 1), volume: [65_536])
        let pace = StreamControl.Pace(Settings().ducking, .atOnce)
        var level = StreamLevel()
        var check = StreamCheck(stream, at: 0)
        level.ramp(to: 12, of: [65_536], pace, &check)
        #expect(check.commands.count == 1 && level.decibels == 1)
        #expect(level.course == .ramp(.init(wait: .answer(sent: 0, pace.attack), raise: nil)))
        level.answered(succeeded: true, at: 100)
        #expect(level.course == .ramp(.init(wait: .time(pace.attack.step, sent: 0), raise: nil)))
        check = StreamCheck(stream, at: 101)
        level.ramp(to: 12, of: [65_536], pace, &check)
        #expect(check.commands.isEmpty && check.deadline == pace.attack.step)
        // The goal is the present level, so there is nothing to wait for.
        level.ramp(to: 1, of: [65_536], pace, &check)
        #expect(level.course == .steady)
        // The volume rises only after a while, because another sound may follow.
        check = StreamCheck(stream, at: 200)
        level.ramp(to: 0, of: [65_536], pace, &check)
        #expect(check.commands.isEmpty && check.deadline == 200 + pace.hold)
        #expect(level.course == .ramp(.init(wait: .nothing, raise: 200 + pace.hold)))
        // A fade does not wait for the ramp; it ends the ramp.
        let base = StreamBase(volume: [65_536], isMuted: false, deviceName: nil)
        let isLow = level.fadeOut(of: base, &check)
        #expect(!isLow && check.commands.count == 1 && level.course == .fade(next: 200 + 4_000))
        check = StreamCheck(stream, at: 5_000)
        level.ramp(to: 8, of: [65_536], pace, &check)
        #expect(level.course == .steady)
    }

    /// At most two steps in 10 ms, whenever the server made them.
    @Test func lateAnswer_delaysTheNextStepOnlyAsFarAsNeeded() {
        let stream = AudioStream(id: AudioStream.ID(.playback, 1), volume: [65_536])
        let (quick, inCycles) = (
            StreamControl.Pace(Settings().ducking, .atOnce),
            StreamControl.Pace(Settings().ducking, .inCycles(seconds: 0.021))
        )
        for (pace, answer, due) in [
            (quick, 5_000, 5_000 + 10_000 - quick.attack.step), (quick, 1_000, quick.attack.step),
            (inCycles, 5_000, 5_000 + inCycles.attack.step),
        ] as [(StreamControl.Pace, UInt64, UInt64)] {
            var level = StreamLevel()
            var check = StreamCheck(stream, at: 0)
            level.ramp(to: 12, of: [65_536], pace, &check)
            level.answered(succeeded: true, at: answer)
            #expect(level.course == .ramp(.init(wait: .time(due, sent: 0), raise: nil)))
        }
    }

    @Test func otherVolume_isTheUsersOnlyAfterTheDaemonsLastOneWasShown() {
        var level = StreamLevel(decibels: 5)
        func look(_ volume: [UInt32]) -> Bool {
            let stream = AudioStream(id: AudioStream.ID(.playback, 1), volume: volume)
            var base = StreamBase(volume: [65_536], isMuted: false, deviceName: nil)
            level.shown(stream, of: &base, isSilenced: false, at: 0)
            var check = StreamCheck(stream, at: 0)
            _ = level.judge(&base, &check, isOver: true)
            return base.volumeChange == .absolute
        }
        var isTheirs = look([50_300])
        #expect(isTheirs && level.decibels == 0)
        level = StreamLevel(decibels: 5, isShown: false)
        isTheirs = look([50_300])
        #expect(!isTheirs && !level.isShown)
        isTheirs = look(Level.volume([65_536], lowered: 5))
        #expect(!isTheirs && level.isShown)
        isTheirs = look([50_300])
        #expect(isTheirs)
    }

    /// The user changes the volume between the daemon's last step and the moment in which the daemon would have seen it.
    @Test(arguments: [false, true])
    func volumeSetBeforeTheLastStepIsShown_isTheUsers(isInCycles: Bool) {
        var stream = AudioStream(
            id: AudioStream.ID(.playback, 1), volume: [65_536],
            rendering: isInCycles ? .inCycles(seconds: 0.021) : .atOnce)
        let pace = StreamControl.Pace(Settings().ducking, stream.rendering)
        var control = StreamControl(stream, device: nil, isNew: true)
        func advance(at now: UInt64) -> (commands: [StreamCommand], deadline: UInt64?) {
            var deadline: UInt64?
            control.observe(stream, at: now)
            let commands = control.advance(
                to: .free(lowered: 12), stream, at: now, pace, canHold: true, hasHold: true, mayHold: true, progress: 0,
                &deadline)
            return (commands, deadline)
        }
        let step = StreamCommand.setVolume(stream.id, Level.volume([65_536], lowered: 12))
        #expect(advance(at: 1_000).commands == [step])
        control.answered(step, succeeded: true, at: 2_000)
        // A volume that the session manager may have rounded is not the user's at once.
        let rounded = Level.volume([65_536], lowered: 90)[0] + 3
        stream.volume = [rounded]
        let soon = advance(at: 3_000)
        #expect(soon.commands.isEmpty && soon.deadline == 252_000 && control.base.volume == [65_536])
        stream.volume = [50_300]
        let late = advance(at: 4_000)
        #expect(late.commands.isEmpty && late.deadline == 304_000 && control.base.volume == [65_536])
        let judged = advance(at: 304_000)
        #expect(judged.commands.isEmpty && judged.deadline == nil)
        #expect(control.base.volume == [50_300] && control.base.volumeChange == .absolute && control.isSettled)
    }

    /// A volume that the user sets while the stream is held or muted is ducked when it is heard again; one that the user
    /// sets while it is ducked is not.
    @Test(arguments: [Treatment.held, .muted, .free(lowered: 12)], [false, true])
    func volumeSetWhileChanged_isDuckedOnlyIfItWasNotHeard(before: Treatment, isInCycles: Bool) {
        for seed in 0..<20 as Range<UInt64> {
            var world = World(seed: seed, isInCycles: isInCycles)
            world.target = before
            world.settle()
            world.stream.volume = [50_300]
            world.volume = 50_300
            world.target = .free(lowered: 12)
            world.settle()
            let lowered = before == .free(lowered: 12) ? 0 : 12
            #expect(Level.isSame(world.stream.volume, Level.volume([50_300], lowered: lowered)), "seed \(seed)")
            world.target = .free(lowered: 0)
            world.settle()
            world.expectAsTheUserLeftIt()
            #expect(world.complaints.isEmpty, "\(world.complaints)")
        }
    }

    /// A volume that was confirmed and is not shown is set again on PipeWire, three times.
    @Test(arguments: [false, true]) func lostVolume_isSetAgainOnPipeWire(isInCycles: Bool) {
        let stream = AudioStream(
            id: AudioStream.ID(.playback, 1), volume: [65_536],
            rendering: isInCycles ? .inCycles(seconds: 0.021) : .atOnce)
        var level = StreamLevel()
        var first = StreamCheck(stream, at: 0)
        level.set(12, of: [65_536], &first)
        var times: [UInt64] = []
        var now: UInt64 = 1_000
        for _ in 0..<5 {
            level.answered(succeeded: true, at: now)
            var check = StreamCheck(stream, at: now)
            level.awaitShown(of: [65_536], &check)
            guard let deadline = check.deadline else { break }
            now = deadline
            check = StreamCheck(stream, at: now)
            level.awaitShown(of: [65_536], &check)
            #expect(check.commands == first.commands)
            times.append(now)
        }
        #expect(times == (isInCycles ? [251_000, 501_000, 751_000] : []))
    }

    /// PipeWire may show a step of the fade of a stopped stream again: it is set to its full volume once more.
    @Test(arguments: [
        (true, 8, true), (true, 18, true), (true, 30, true), (true, 12, false), (true, 0, false), (false, 18, false),
    ]) func fadeStepOfAStoppedStream_isDoubtedOnPipeWire(isInCycles: Bool, shown: Int, isDoubted: Bool) {
        let stream = AudioStream(
            id: AudioStream.ID(.playback, 1), volume: Level.volume([65_536], lowered: shown),
            rendering: isInCycles ? .inCycles(seconds: 0.021) : .atOnce)
        var level = StreamLevel()
        level.doubt(StreamCheck(stream, at: 1_000), of: [65_536])
        var check = StreamCheck(stream, at: 251_000)
        level.awaitShown(of: [65_536], &check)
        #expect(check.commands == (isDoubted ? [.setVolume(stream.id, [65_536])] : []))
    }
}
