import PluginAPI

/// Brings a stream step by step from its current state to the required one. It exists while the stream differs, or has
/// just differed, from the user's settings. Its volume, mute switch and device are separate values.
struct StreamControl: Codable {
    /// The ramp times, in microseconds.
    struct Pace {
        /// The time for one decibel.
        struct Interval: Sendable, Hashable, Codable {
            /// From one step to the next.
            let step: UInt64
            /// From the server's answer to the next step, at least. The step was made some time before the answer.
            let rest: UInt64
        }

        let attack: Interval
        let release: Interval
        let hold: UInt64
        /// The decibels of ducking. A stream that is lower has been faded out: it is back at this level at once.
        let depth: Int

        init(_ settings: Settings.Ducking, _ rendering: AudioStream.Rendering) {
            attack = Pace.interval(settings.attack, of: settings.gain, rendering.cycle)
            release = Pace.interval(settings.release, of: settings.gain, rendering.cycle)
            hold = UInt64(settings.hold * 1_000_000)
            depth = Int(-settings.gain.rounded())
        }

        /// The time for one decibel: at most two in 10 ms, and at most two in one of the server's cycles, which vary
        /// slightly.
        private static func interval(_ seconds: Double, of gain: Double, _ cycle: Double) -> Interval {
            let step = max(5_500, UInt64(max(seconds / max(1, -gain), cycle * 0.625) * 1_000_000))
            return Interval(step: step, rest: cycle > 0 ? step : max(10_000, step) - step)
        }
    }

    private(set) var base: StreamBase
    private var level: StreamLevel
    private var mute: StreamMute
    private var place: StreamPlace
    /// Until when it stays muted although it plays on its own device again; nil: it does not.
    private var restDue: UInt64?
    /// Commands that the server has not answered yet.
    private var unanswered = 0
    /// It starts with the required level: no ramp is needed.
    private var isNew: Bool

    /// An unchanged stream. `device` nil: it plays on the default. `isNew`: it has not been heard yet.
    init(_ stream: AudioStream, device: String?, isNew: Bool) {
        base = StreamBase(volume: stream.volume, isMuted: stream.isMuted, deviceName: device)
        (level, mute, place) = (StreamLevel(), .off, StreamPlace(isHeld: stream.isHeld))
        self.isNew = isNew
    }

    /// A stream that an earlier daemon had changed; or a new one that starts with the values of its predecessor.
    init(_ stream: AudioStream, found base: StreamBase, isNew: Bool) {
        self.base = base
        self.isNew = isNew
        let isAstray = isNew && !stream.isHeld && base.deviceName.map { $0 != stream.deviceName } ?? false
        place = isAstray ? StreamPlace(astrayOn: stream.deviceName) : StreamPlace(isHeld: stream.isHeld)
        mute = stream.isMuted && !base.isMuted ? .on : .off
        if let found = Level.of(stream.volume, below: base.volume, isRemembered: isNew) {
            // Nearly that level, but not exactly: set it again.
            let exact = Level.volume(base.volume, lowered: found)
            level = StreamLevel(decibels: found, isShown: found == 0 || Level.isSame(stream.volume, exact))
        } else {
            level = StreamLevel()
            self.base.volume = stream.volume
            self.base.volumeChange = .absolute
        }
        if base.isMuted, !stream.isMuted { self.base.isMuted = false }
    }

    /// Whether the daemon has muted it.
    var isMuted: Bool { mute.isOn }

    var isSettled: Bool {
        level.decibels == 0 && level.isShown && mute == .off && place.isSettled && unanswered == 0
    }

    /// Whether it is being ducked or restored, not faded.
    var isRamping: Bool {
        if case .ramp = level.course { true } else { false }
    }

    mutating func answered(_ command: StreamCommand, succeeded: Bool, at now: UInt64) {
        unanswered -= 1
        switch command {
        case .setVolume: level.answered(succeeded: succeeded, at: now)
        case .setMuted: if !succeeded { mute.settle() }
        case .hold: place.answeredHold(succeeded: succeeded, at: now)
        case .letGo: place.answeredLetGo(succeeded: succeeded, at: now)
        }
    }

    /// Applies what the server shows: a change that is not the daemon's was made by the user, and is kept.
    mutating func observe(_ stream: AudioStream, at now: UInt64) {
        guard unanswered == 0 else {
            if !stream.isSettling { level.glimpsed(stream, of: base, at: now) }
            return
        }
        if stream.isSettling {
            // The server has placed it again: the daemon's changes must be repeated.
            level.placedAgain(stream.volume, of: base.volume)
            mute.placedAgain(stream.isMuted, base)
            place.placedAgain(isHeld: stream.isHeld, at: now)
            return
        }
        level.shown(stream, of: &base, isSilenced: place.isHeld || mute.isOn, at: now)
        mute.shown(stream.isMuted, &base)
        if place.shown(isHeld: stream.isHeld, at: now) { base.deviceName = stream.deviceName }
    }

    /// The commands that are due now, in order; `deadline` is set earlier if there will be more. A held stream stays
    /// held while there is no device to move it to (not `canHold`); another one is muted unless it `mayHold`. A stream
    /// that another program has muted is not moved: module-role-cork forgets moved streams and would never unmute it.
    /// `progress`: when any stream was last seen to arrive at the hold sink.
    mutating func advance(
        to target: Treatment, _ stream: AudioStream, at now: UInt64, _ pace: Pace, canHold: Bool, hasHold: Bool,
        mayHold: Bool, progress: UInt64, _ deadline: inout UInt64?
    ) -> [StreamCommand] {
        var check = StreamCheck(stream, at: now, deadline: deadline)
        place.awaitMove(progress: progress, &check)
        switch target {
        case .free(let goal): free(lowered: goal, pace, canHold: canHold, &check)
        case .held
        where (canHold && mayHold || place.isHeld) && place.canBeHeld && !base.isMuted && stream.direction == .playback:
            hold(hasHold: hasHold, &check)
        case .held, .muted: silence(canHold: canHold, &check)
        }
        if unanswered == 0, check.commands.isEmpty { level.awaitShown(of: base.volume, &check) }
        isNew = false
        unanswered += check.commands.count
        deadline = check.deadline
        return check.commands
    }

    private mutating func free(lowered goal: Int, _ pace: Pace, canHold: Bool, _ check: inout StreamCheck) {
        place.forgetSink()
        let mayRamp = level.judge(&base, &check)
        // A volume that the user set while the stream was silent does not prevent ducking.
        if place.isHeld || mute.isOn { base.volumeChange = .none }
        base.isMuteTheirs = false
        if goal == 0, level.decibels == 0, !place.isHeld, !mute.isOn {
            base.volumeChange = .none
            place.forgetEscapes()
        }
        let goal = base.volumeChange == .absolute || base.volume.isEmpty ? 0 : min(goal, Level.lowest)
        if mayRamp, place.isHeld || mute.isOn || isNew { level.set(goal, of: base.volume, &check) }
        if canHold {
            muteRest(&check)
            place.letGo(to: base.deviceName, &check)
        }
        if let restDue, check.now < restDue, check.stream.isCorked {
            check.checkAgain(at: restDue)
        } else {
            restDue = nil
            mute.turnOff(base, &check)
        }
        if mayRamp { level.ramp(to: goal, of: base.volume, pace, &check) }
    }

    private mutating func hold(hasHold: Bool, _ check: inout StreamCheck) {
        _ = level.judge(&base, &check, isOver: true)
        if place.isLate {
            // Muted, it has its own volume: one that the user sets now is ducked later.
            if turnSilent(&check) { level.set(0, of: base.volume, &check) }
            return
        }
        // Only after it has stopped, because it may still be heard before.
        let hasStopped = place.hasStopped(check.stream)
        let mayFade = hasStopped || level.decibels != 0 || !place.awaitsSink(isThere: hasHold, &check)
        let isLow = hasStopped || mayFade && level.fadeOut(of: base, &check)
        let isInCycles = check.stream.rendering.isInCycles
        // PipeWire's session manager needs as long for the move as the fade takes.
        if !place.isHeld, isLow || isInCycles { place.hold(&check) }
        if place.isHeld { mute.turnOff(base, &check) }
        if hasStopped {
            level.endFade()
            level.doubt(check, of: base.volume)
            level.set(0, of: base.volume, &check)
        } else if isLow, isInCycles, check.isHeard, base.volumeChange != .absolute {
            level.set(Level.lowest, of: base.volume, &check)
        }
    }

    /// PulseAudio plays what it had fetched of a held stream when that is on another sink, also if its program has paused
    /// it meanwhile. It is muted until that is over, or until its program plays again: then PulseAudio drops it.
    private mutating func muteRest(_ check: inout StreamCheck) {
        let stream = check.stream
        let isPausedThere = place.isHeld && stream.isHeld && stream.isCorked && !stream.rendering.isInCycles
        guard isPausedThere, !mute.isOn, !base.isMuted else { return }
        mute.turnOn(&check)
        restDue = check.now + StreamControl.longestRest
    }

    /// The most that PulseAudio fetches of a stream, in microseconds.
    private static let longestRest: UInt64 = 2_000_000

    /// Fades it out, then mutes it.
    /// - Returns: whether it is muted.
    private mutating func turnSilent(_ check: inout StreamCheck) -> Bool {
        // A new stream is not heard yet.
        let isSilent = isNew || mute.isOn || base.isMuted
        guard !base.isMuteTheirs, isSilent || level.fadeOut(of: base, &check) else { return false }
        if !mute.isOn, !base.isMuted { mute.turnOn(&check) }
        return true
    }

    private mutating func silence(canHold: Bool, _ check: inout StreamCheck) {
        _ = level.judge(&base, &check, isOver: true)
        guard turnSilent(&check) else { return }
        if canHold { place.letGo(to: base.deviceName, &check) }
        level.set(0, of: base.volume, &check)
    }

    /// Restores it at once.
    mutating func restore(_ stream: AudioStream) -> [StreamCommand] {
        var check = StreamCheck(stream, at: 0)
        _ = level.judge(&base, &check, isOver: true)
        level.set(0, of: base.volume, &check)
        place.letGoAtOnce(to: base.deviceName, &check)
        mute.turnOff(base, &check)
        unanswered += check.commands.count
        return check.commands
    }
}
