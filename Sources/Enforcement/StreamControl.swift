import PluginAPI

/// One stream that differs, or has just differed, from what the user left: how it gets from its current state to the
/// required one, step by step.
struct StreamControl {
    /// The ramp times, in microseconds.
    struct Pace {
        let attack: UInt64
        let release: UInt64
        let hold: UInt64

        init(_ settings: Settings.Ducking, _ rendering: AudioStream.Rendering) {
            attack = Pace.step(settings.attack, of: settings.gain, rendering.cycle)
            release = Pace.step(settings.release, of: settings.gain, rendering.cycle)
            hold = UInt64(settings.hold * 1_000_000)
        }

        /// The time for one decibel: at most two in 10 ms, and at most two in one of the server's cycles, which vary
        /// slightly.
        private static func step(_ seconds: Double, of gain: Double, _ cycle: Double) -> UInt64 {
            max(5_500, UInt64(max(seconds / max(1, -gain), cycle * 0.625) * 1_000_000))
        }
    }

    private(set) var base: StreamBase
    /// Decibels below the user's volume that were last set.
    private var level = 0
    private var isHeld = false
    private var isMuted = false
    /// Commands that the server has not answered yet.
    private var unanswered = 0
    /// Whether the server has shown the last commanded state. Only then can another state come from somebody else.
    private var showsVolume = true
    private var showsMute = true
    private var showsHold = true
    private var canBeHeld = true
    /// It starts with the required level: no ramp is needed.
    private var isNew: Bool
    /// The wrong device on which it has started and still is; nil: it is not on a wrong device.
    private var astray: String?
    /// How often it was moved from there.
    private var sendings = 0
    /// When the server confirmed the move to the hold sink; it may still show the old sink, or both in turn. Nil: long
    /// ago.
    private var holdPromised: UInt64?
    /// Until when the fade waits for the hold sink to be created; nil: it has not waited.
    private var holdAwaited: UInt64?
    /// When to request the move back again, after it was refused or not seen; nil: at once.
    private var nextLetGo: UInt64?
    private var escapes = 0
    private var nextStep: UInt64?
    private var raiseAt: UInt64?
    /// When the current fade continues; nil: there is none.
    private var nextFade: UInt64?
    /// How long after the answer to this step of a ramp the next one may come; nil: answered, or no ramp.
    private var stepPace: UInt64?

    /// The level at which a cut causes no click, and the time for each step, in microseconds.
    private static let fade = [8, 18, 30]
    private static let fadeStep: UInt64 = 4_000
    /// How long a move to the hold sink may take, in microseconds: 40 ms were seen on PipeWire.
    private static let holdPatience: UInt64 = 250_000
    /// How long a fade waits for the hold sink, in microseconds: what plays between its end and the move is lost.
    private static let sinkPatience: UInt64 = 12_000
    /// After the first time: somebody wants it to stay there.
    private static let mostSendings = 2

    /// An unchanged stream. `device` nil: it plays on the default. `isNew`: it has not been heard yet.
    init(_ stream: AudioStream, device: String?, isNew: Bool) {
        base = StreamBase(volume: stream.volume, isMuted: stream.isMuted, deviceName: device)
        isHeld = stream.isHeld
        self.isNew = isNew
    }

    /// A stream that an earlier daemon had changed; or a new one that starts with the values of its predecessor.
    init(_ stream: AudioStream, found base: StreamBase, isNew: Bool) {
        self.base = base
        self.isNew = isNew
        isHeld = stream.isHeld
        let isAstray = isNew && !isHeld && base.deviceName.map { $0 != stream.deviceName } ?? false
        astray = isAstray ? stream.deviceName : nil
        isMuted = stream.isMuted && !base.isMuted
        if let level = Level.of(stream.volume, below: base.volume, isRemembered: isNew) {
            self.level = level
            // Nearly that level, but not exactly: set it again.
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
            // Not again at once: what is missing, usually another sink, will appear later.
            showsHold = true
            isHeld = true
            nextLetGo = now + StreamControl.holdPatience
        }
    }

    /// Applies what the server shows: a change that is not the daemon's was made by the user, and is kept.
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
            // Somebody moved it away again and wants it elsewhere: it must be silent there, too.
            if escapes > 1 { canBeHeld = false }
            if !isHeld { base.deviceName = stream.deviceName }
        }
    }

    /// Applies how the server has placed the stream again: the daemon's changes must be repeated.
    private mutating func takeOver(_ stream: AudioStream) {
        (showsVolume, showsMute, showsHold) = (true, true, true)
        holdPromised = nil
        if let shown = Level.of(stream.volume, below: base.volume) { level = shown }
        if isMuted, !base.isMuted { isMuted = stream.isMuted }
        isHeld = stream.isHeld
    }

    /// The commands that are due now, in order; `deadline` is set earlier if there will be more. A held stream stays
    /// held while there is no device to move it to (not `canHold`); another one is muted unless it `mayHold`. A stream
    /// that somebody else has muted is not moved: module-role-cork forgets moved streams and would never unmute it.
    mutating func advance(
        to target: Treatment, _ stream: AudioStream, at now: UInt64, _ pace: Pace, canHold: Bool, hasHold: Bool,
        mayHold: Bool, _ deadline: inout UInt64?
    ) -> [StreamCommand] {
        defer { isNew = false }
        var commands: [StreamCommand] = []
        if let holdPromised, isHeld {
            let due = holdPromised + StreamControl.holdPatience
            if due <= now {
                self.holdPromised = nil
                // The move fails, or somebody moves it away at once: then it is muted.
                if !stream.isHeld { canBeHeld = false }
            } else {
                deadline = min(deadline ?? due, due)
            }
        }
        switch target {
        case .free(let goal):
            nextFade = nil
            holdAwaited = nil
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
            let mayFade = isThere || !waits(forSink: hasHold, stream, at: now, &deadline)
            let isLow = isThere || mayFade && fadeOut(stream, at: now, &deadline, &commands)
            // PipeWire's session manager needs as long for the move as the fade takes.
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

    /// Restores it at once.
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
        // PipeWire's server may confirm a move that is lost: the stream stays where it is.
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

    /// Whether the fade is to begin later, because PipeWire is still creating the hold sink.
    private mutating func waits(
        forSink hasHold: Bool, _ stream: AudioStream, at now: UInt64, _ deadline: inout UInt64?
    ) -> Bool {
        guard stream.rendering.isInCycles, !hasHold, level == 0 else { return false }
        let due = holdAwaited ?? now + StreamControl.sinkPatience
        holdAwaited = due
        guard now < due else { return false }
        deadline = min(deadline ?? due, due)
        return true
    }

    /// Also while it is being moved to the hold sink.
    private static func isHeard(_ stream: AudioStream) -> Bool {
        stream.isSounding || stream.isStopping && !stream.isMuted
    }

    /// True when it is low enough for a cut.
    private mutating func fadeOut(
        _ stream: AudioStream, at now: UInt64, _ deadline: inout UInt64?, _ commands: inout [StreamCommand]
    ) -> Bool {
        var due = nextFade ?? now
        nextFade = nil
        guard StreamControl.isHeard(stream), !base.volume.isEmpty, !base.isVolumeTheirs else { return true }
        if due <= now {
            guard let lower = StreamControl.fade.first(where: { $0 > level }) else { return true }
            setLevel(lower, stream, &commands)
            // Counted from when it was due, so that delays do not add up.
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
        // Another prompt may follow.
        if goal < level, raiseAt == nil { raiseAt = now + pace.hold }
        if goal > level { raiseAt = nil }
        // Steps that queue up in a busy server are done at once there, and heard as one.
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
