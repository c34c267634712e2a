import PluginAPI

/// One stream that is, or was a moment ago, other than its person left it: how it gets from what it is to what it must
/// be, a step at a time.
struct StreamControl {
    /// How fast, in microseconds.
    struct Pace {
        let attack: UInt64
        let release: UInt64
        let hold: UInt64

        init(_ settings: Settings.Ducking, _ rendering: AudioStream.Rendering) {
            attack = Pace.step(settings.attack, of: settings.gain, rendering.cycle)
            release = Pace.step(settings.release, of: settings.gain, rendering.cycle)
            hold = UInt64(settings.hold * 1_000_000)
        }

        /// For one decibel: never faster than two in 10 ms, nor than two in one of the server's cycles, which come a
        /// little early or late themselves.
        private static func step(_ seconds: Double, of gain: Double, _ cycle: Double) -> UInt64 {
            max(5_500, UInt64(max(seconds / max(1, -gain), cycle * 0.625) * 1_000_000))
        }
    }

    private(set) var base: StreamBase
    /// Decibels below the person's volume that it was last set to.
    private var level = 0
    private var isHeld = false
    private var isMuted = false
    /// Commands the server has not answered yet.
    private var unanswered = 0
    /// Whether the server has shown what it was last told. Only then is something else somebody else's doing.
    private var showsVolume = true
    private var showsMute = true
    private var showsHold = true
    private var canBeHeld = true
    /// It starts where it should be: there is nothing yet to be lowered from in steps.
    private var isNew: Bool
    /// Where it has started, and still is, though its person wants it elsewhere; nil: it is not astray.
    private var astray: String?
    /// How often it was sent from there.
    private var sendings = 0
    /// When the server said that it moves the stream to where it is held, which it may still not do, or show in turns;
    /// nil: that is long ago.
    private var holdPromised: UInt64?
    /// When the server is asked again to let it go, which it refused, or has not been seen to do; nil: at once.
    private var nextLetGo: UInt64?
    private var escapes = 0
    private var nextStep: UInt64?
    private var raiseAt: UInt64?
    /// When the fade under way goes on; nil: none is.
    private var nextFade: UInt64?
    /// How long after the answer to this step of a ramp the next may come; nil: answered, or no ramp.
    private var stepPace: UInt64?

    /// Down to where a cut is not heard as a click, and for how long each step, in microseconds.
    private static let fade = [8, 18, 30]
    private static let fadeStep: UInt64 = 4_000
    /// How long a stream may be on its way to where it is held, in microseconds: 40 ms were seen on PipeWire.
    private static let holdPatience: UInt64 = 250_000
    /// After the first time: whoever keeps it there wants it there.
    private static let mostSendings = 2

    /// A stream nobody has touched. `device` nil: it plays where new streams do. `isNew`: nobody has heard it yet.
    init(_ stream: AudioStream, device: String?, isNew: Bool) {
        base = StreamBase(volume: stream.volume, isMuted: stream.isMuted, deviceName: device)
        isHeld = stream.isHeld
        self.isNew = isNew
    }

    /// A stream that was under way when its last keeper ended; or a new one that starts as the last was left.
    init(_ stream: AudioStream, found base: StreamBase, isNew: Bool) {
        self.base = base
        self.isNew = isNew
        isHeld = stream.isHeld
        let isAstray = isNew && !isHeld && base.deviceName.map { $0 != stream.deviceName } ?? false
        astray = isAstray ? stream.deviceName : nil
        isMuted = stream.isMuted && !base.isMuted
        if let level = Level.of(stream.volume, below: base.volume, isRemembered: isNew) {
            self.level = level
            // As good as that level, and not exactly it: set anew.
            let exact = Level.volume(base.volume, lowered: level)
            if level > 0, !Level.isSame(stream.volume, exact) { showsVolume = false }
        } else {
            self.base.volume = stream.volume
            self.base.isVolumeTheirs = true
        }
        if base.isMuted, !stream.isMuted { self.base.isMuted = false }
    }

    var isSettled: Bool {
        level == 0 && !isHeld && astray == nil && !isMuted && unanswered == 0 && showsVolume && showsMute && showsHold
    }

    mutating func answered(_ command: StreamCommand, succeeded: Bool, at now: UInt64) {
        unanswered -= 1
        if case .setVolume = command, let stepPace {
            nextStep = now + stepPace
            self.stepPace = nil
        }
        if succeeded, case .hold = command, isHeld { holdPromised = now }
        guard !succeeded else { return }
        switch command {
        case .setVolume: showsVolume = true
        case .setMuted: showsMute = true
        case .hold:
            // It may not be moved: then it is muted.
            showsHold = true
            isHeld = false
            canBeHeld = false
        case .letGo:
            // Not at once again: what it lacks, a place to go to as a rule, will be there some time.
            showsHold = true
            isHeld = true
            nextLetGo = now + StreamControl.holdPatience
        }
    }

    /// Takes over what the server shows: what is not ours is somebody's wish, and wins.
    mutating func observe(_ stream: AudioStream) {
        guard unanswered == 0 else { return }
        guard !stream.isSettling else { return takeOver(stream) }
        let isOurs = Level.isSame(stream.volume, Level.volume(base.volume, lowered: level))
        if isOurs {
            showsVolume = true
        } else if showsVolume, Level.of(stream.volume, below: base.volume) == nil {
            base.volume = stream.volume
            level = 0
            base.isVolumeTheirs = true
        }
        if stream.isMuted == (base.isMuted || isMuted) {
            showsMute = true
        } else if showsMute {
            base.isMuted = stream.isMuted
            base.isMuteTheirs = isMuted || base.isMuteTheirs
            isMuted = false
        }
        if stream.isHeld == isHeld {
            showsHold = true
        } else if showsHold, holdPromised == nil {
            isHeld = stream.isHeld
            escapes += 1
            // Whoever takes it away again wants it elsewhere: it is silent there, too.
            if escapes > 1 { canBeHeld = false }
            if !isHeld { base.deviceName = stream.deviceName }
        }
    }

    /// Takes over what the server has made of the stream as it placed it anew: it is to be changed again.
    private mutating func takeOver(_ stream: AudioStream) {
        (showsVolume, showsMute, showsHold) = (true, true, true)
        holdPromised = nil
        if let shown = Level.of(stream.volume, below: base.volume) { level = shown }
        if isMuted, !base.isMuted { isMuted = stream.isMuted }
        isHeld = stream.isHeld
    }

    /// The commands due now, in order; `deadline` is made earlier where there will be more. What is held stays so while
    /// there is nowhere to let it go to (not `canHold`); what is not, is muted unless it `mayHold`. What somebody else
    /// has muted stays where it is: module-role-cork forgets what is moved, and would never unmute it.
    mutating func advance(
        to target: Treatment, _ stream: AudioStream, at now: UInt64, _ pace: Pace, canHold: Bool, mayHold: Bool,
        _ deadline: inout UInt64?
    ) -> [StreamCommand] {
        defer { isNew = false }
        var commands: [StreamCommand] = []
        if let holdPromised, isHeld {
            let due = holdPromised + StreamControl.holdPatience
            if due <= now {
                self.holdPromised = nil
                // Nobody moves it, or somebody at once moves it away: then it is muted.
                if !stream.isHeld { canBeHeld = false }
            } else {
                deadline = min(deadline ?? due, due)
            }
        }
        switch target {
        case .free(let goal):
            nextFade = nil
            if goal == 0, level == 0, !isHeld, !isMuted {
                base.isVolumeTheirs = false
                base.isMuteTheirs = false
                escapes = 0
            }
            let goal = base.isVolumeTheirs || base.volume.isEmpty ? 0 : min(goal, Level.lowest)
            if isHeld || isMuted || isNew { setLevel(goal, stream, &commands) }
            if canHold { letGo(stream, at: now, &deadline, &commands) }
            unmute(stream, &commands)
            ramp(to: goal, stream, at: now, pace, &deadline, &commands)
        case .held where (canHold && mayHold || isHeld) && canBeHeld && !base.isMuted && stream.direction == .playback:
            // Not before it has stopped: it may still be heard.
            let isThere = isHeld && showsHold && (holdPromised == nil || stream.isHeld && !stream.isStopping)
            let isLow = isThere || fadeOut(stream, at: now, &deadline, &commands)
            // PipeWire's session manager needs as long to move it as the fade takes.
            if !isHeld, isLow || stream.rendering.isInCycles {
                isHeld = true
                (astray, nextLetGo) = (nil, nil)
                showsHold = false
                add(.hold(stream.id), &commands)
            }
            if isHeld { unmute(stream, &commands) }
            if isThere {
                nextFade = nil
                setLevel(0, stream, &commands)
            } else if isLow, stream.rendering.isInCycles, StreamControl.isHeard(stream), !base.isVolumeTheirs {
                setLevel(Level.lowest, stream, &commands)
            }
        case .held, .muted:
            guard !base.isMuteTheirs else { break }
            if isMuted || base.isMuted || fadeOut(stream, at: now, &deadline, &commands) {
                if !isMuted, !base.isMuted {
                    isMuted = true
                    showsMute = false
                    add(.setMuted(stream.id, true), &commands)
                }
                if canHold { letGo(stream, at: now, &deadline, &commands) }
                setLevel(0, stream, &commands)
            }
        }
        return commands
    }

    /// At once as its person left it.
    mutating func restore(_ stream: AudioStream) -> [StreamCommand] {
        var commands: [StreamCommand] = []
        setLevel(0, stream, &commands)
        sendBack(stream, &commands)
        unmute(stream, &commands)
        return commands
    }

    private mutating func add(_ command: StreamCommand, _ commands: inout [StreamCommand]) {
        unanswered += 1
        commands.append(command)
    }

    private mutating func setLevel(_ new: Int, _ stream: AudioStream, _ commands: inout [StreamCommand]) {
        nextStep = nil
        raiseAt = nil
        stepPace = nil
        guard new != level, !base.volume.isEmpty else { return }
        level = new
        showsVolume = false
        add(.setVolume(stream.id, Level.volume(base.volume, lowered: level)), &commands)
    }

    private mutating func letGo(
        _ stream: AudioStream, at now: UInt64, _ deadline: inout UInt64?, _ commands: inout [StreamCommand]
    ) {
        let place = astray == stream.deviceName ? astray : nil
        astray = place
        // What PipeWire's server says that it does may be lost: the stream stays where it is.
        let isStuck = stream.rendering.isInCycles && stream.isHeld && !isHeld && !showsHold
        guard isHeld || isStuck || astray != nil else {
            nextLetGo = nil
            return
        }
        if let nextLetGo, now < nextLetGo {
            deadline = min(deadline ?? nextLetGo, nextLetGo)
            return
        }
        isHeld = isHeld || isStuck
        sendBack(stream, &commands)
        guard stream.rendering.isInCycles else { return }
        if place != nil {
            guard sendings < StreamControl.mostSendings else { return }
            sendings += 1
            astray = place
        }
        let due = now + StreamControl.holdPatience
        nextLetGo = due
        deadline = min(deadline ?? due, due)
    }

    private mutating func sendBack(_ stream: AudioStream, _ commands: inout [StreamCommand]) {
        nextLetGo = nil
        guard isHeld || astray != nil else { return }
        isHeld = false
        astray = nil
        showsHold = false
        holdPromised = nil
        add(.letGo(stream.id, to: base.deviceName), &commands)
    }

    private mutating func unmute(_ stream: AudioStream, _ commands: inout [StreamCommand]) {
        guard isMuted else { return }
        isMuted = false
        showsMute = false
        add(.setMuted(stream.id, base.isMuted), &commands)
    }

    /// Also where it is on its way to where it is held.
    private static func isHeard(_ stream: AudioStream) -> Bool {
        stream.isSounding || stream.isStopping && !stream.isMuted
    }

    /// True once it is so low that it can be cut.
    private mutating func fadeOut(
        _ stream: AudioStream, at now: UInt64, _ deadline: inout UInt64?, _ commands: inout [StreamCommand]
    ) -> Bool {
        var due = nextFade ?? now
        nextFade = nil
        guard StreamControl.isHeard(stream), !base.volume.isEmpty, !base.isVolumeTheirs else { return true }
        if due <= now {
            guard let lower = StreamControl.fade.first(where: { $0 > level }) else { return true }
            setLevel(lower, stream, &commands)
            // From when it was due: who comes late to each step is not later with each.
            due += StreamControl.fadeStep
        }
        nextFade = due
        deadline = min(deadline ?? due, due)
        return false
    }

    private mutating func ramp(
        to goal: Int, _ stream: AudioStream, at now: UInt64, _ pace: Pace, _ deadline: inout UInt64?,
        _ commands: inout [StreamCommand]
    ) {
        guard goal != level else {
            nextStep = nil
            raiseAt = nil
            return
        }
        // A prompt may follow the last.
        if goal < level, raiseAt == nil { raiseAt = now + pace.hold }
        if goal > level { raiseAt = nil }
        // Steps that wait in a busy server are done at once there, and heard as one.
        guard stepPace == nil else { return }
        let due = max(nextStep ?? now, raiseAt ?? now)
        guard due <= now else {
            deadline = min(deadline ?? due, due)
            return
        }
        let raising = raiseAt
        let step = goal > level ? pace.attack : pace.release
        setLevel(goal > level ? level + 1 : level - 1, stream, &commands)
        raiseAt = raising
        stepPace = step
    }
}
