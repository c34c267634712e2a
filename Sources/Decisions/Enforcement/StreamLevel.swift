import PluginAPI

/// How many decibels a stream is ducked below the user's volume, and the ramp to another level.
struct StreamLevel: Sendable, Hashable, Codable {
    enum Course: Sendable, Hashable, Codable {
        /// The level stays.
        ///
        /// Can transition to: `ramp`, `fade`.
        case steady
        /// Ducking or restoring, one decibel per step.
        ///
        /// Can transition to: `steady`, at the wanted level or when the user has set a volume; `fade`.
        case ramp(Ramp)
        /// A quick fade before a cut; the next step is due at this time.
        ///
        /// Can transition to: `steady`, after the cut; `ramp`.
        case fade(next: UInt64)
    }

    struct Ramp: Sendable, Hashable, Codable {
        /// The event that the next step waits for.
        enum Wait: Sendable, Hashable, Codable {
            case nothing
            /// `sent`: when the last step was sent.
            case time(UInt64, sent: UInt64)
            /// The server's answer to the last step, which was sent at that time. Steps that queue up in a busy server
            /// are done at once there, and heard as one.
            case answer(sent: UInt64, StreamControl.Pace.Interval)
        }

        var wait = Wait.nothing
        /// Before this time the level is not raised: another sound that ducks may follow.
        var raise: UInt64?
    }

    /// Decibels below the user's volume that were last set.
    private(set) var decibels: Int
    /// Whether the server has shown this level. Then another volume was set by the user or another program.
    private(set) var isShown: Bool
    /// Whether the server refused this level: it may still show an earlier one.
    private var isRefused = false
    private(set) var course = Course.steady
    /// When the server confirmed this level without showing it; nil: it is shown, or not confirmed yet.
    private var confirmed: UInt64?
    private var repetitions = 0
    /// The user's or another program's volume, which is not judged yet; nil: none.
    private var foreign: ForeignWrite?
    /// Volumes before the current one, which the server may still show: those of the daemon's ramp, and those that the
    /// daemon has replaced.
    private var earlier: [[UInt32]] = []
    /// When the server confirmed the last level, or the stream was last silenced.
    private var confirmedLast: UInt64 = 0
    /// The last levels before the current one, and until when they were shown.
    private var replaced: [Replaced] = []

    private struct Replaced: Sendable, Hashable, Codable {
        let decibels: Int
        let time: UInt64
    }

    /// How long a confirmed level may take to be shown, in microseconds, and how often it is set again.
    private static let patience: UInt64 = 250_000
    private static let mostRepetitions = 3
    /// A program may set a step from a level that was replaced less than that many microseconds ago.
    private static let staleness: UInt64 = 10_000

    /// The level at which a cut causes no click, and the time for each step, in microseconds.
    private static let fade = [8, 18, 30]
    private static let fadeStep: UInt64 = 4_000

    init(decibels: Int = 0, isShown: Bool = true) {
        self.decibels = decibels
        self.isShown = isShown
    }

    // MARK: Reports of the server

    mutating func answered(succeeded: Bool, at now: UInt64) {
        if case .ramp(var ramp) = course, case .answer(let sent, let interval) = ramp.wait {
            ramp.wait = .time(max(sent + interval.step, now + interval.rest), sent: sent)
            course = .ramp(ramp)
        }
        if !succeeded { (isShown, isRefused) = (true, true) }
        confirmed = isShown ? nil : now
        confirmedLast = now
    }

    /// Applies the volume that the server shows. One that the user or another program has set is judged by
    /// ``judge(_:_:isOver:)``, or at once if the stream is not ducked or such a volume is waiting already.
    /// `isSilenced`: the stream is held or muted by the daemon.
    mutating func shown(_ stream: AudioStream, of base: inout StreamBase, isSilenced: Bool, at now: UInt64) {
        let volume = stream.volume
        if isSilenced { confirmedLast = max(confirmedLast, now) }
        if Level.isSame(volume, Level.volume(base.volume, lowered: decibels)) {
            if foreign?.isOverwritten == false { foreign = nil }
            (isShown, isRefused, confirmed) = (true, false, nil)
            forgetEarlier(stream.rendering, at: now)
            return
        }
        if let foreign, Level.isSame(volume, foreign.volume) { return }
        if isShown, !isRefused { forgetEarlier(stream.rendering, at: now) }
        guard isForeign(volume, of: base.volume, stream.rendering, isSilenced: isSilenced, at: now) else { return }
        guard decibels != 0, foreign == nil else { return keep(volume, &base) }
        note(volume, of: base, at: now)
    }

    /// The same before the server has answered the last command, which will replace that volume, or has been replaced by
    /// it.
    mutating func glimpsed(_ stream: AudioStream, of base: StreamBase, at now: UInt64) {
        let volume = stream.volume
        guard !isShown, decibels != 0, foreign == nil, volume.count == base.volume.count,
            !Level.isSame(volume, Level.volume(base.volume, lowered: decibels)),
            !earlier.contains(where: { Level.isSame(volume, $0) }),
            Level.of(volume, below: base.volume, isRemembered: true) == nil
        else { return }
        note(volume, of: base, at: now)
    }

    private mutating func note(_ volume: [UInt32], of base: StreamBase, at now: UInt64) {
        let recent = replaced.filter { !isShown || now < $0.time + StreamLevel.staleness }.map(\.decibels)
        let levels = [decibels] + recent.reversed()
        foreign = ForeignWrite(
            volume: volume, shown: levels.map { Level.volume(base.volume, lowered: $0) }, time: now,
            isOverwritten: !isShown)
    }

    /// Whether the user or another program has set this volume, which is not the current level.
    private func isForeign(
        _ volume: [UInt32], of base: [UInt32], _ rendering: AudioStream.Rendering, isSilenced: Bool, at now: UInt64
    ) -> Bool {
        // The server may still show an earlier volume, and PipeWire a step of the fade of a stopped stream.
        if earlier.contains(where: { Level.isSame(volume, $0) }) { return false }
        if isSilenced, rendering.isInCycles, let level = Level.of(volume, below: base), StreamLevel.isOfFade(level) {
            return false
        }
        if isShown { return true }
        // While a stream is created it may have other channels, or a volume that the session manager has rounded.
        let isOnlyTheirs = volume.count == base.count && Level.of(volume, below: base, isRemembered: true) == nil
        return confirmed.map { isOnlyTheirs || $0 + StreamLevel.patience <= now } ?? false
    }

    private static func isOfFade(_ level: Int) -> Bool { fade.contains(level) || level == Level.lowest }

    /// Once this level is shown, PulseAudio shows no earlier volume, and PipeWire only for a while.
    private mutating func forgetEarlier(_ rendering: AudioStream.Rendering, at now: UInt64) {
        if !rendering.isInCycles || confirmedLast + StreamLevel.patience <= now { earlier = [] }
    }

    /// That volume stays: the stream is no longer ducked.
    private mutating func keep(_ volume: [UInt32], _ base: inout StreamBase) {
        replace(Level.volume(base.volume, lowered: decibels))
        base.volume = volume
        base.volumeChange = .absolute
        (decibels, isShown, confirmed, foreign, replaced) = (0, true, nil, nil, [])
    }

    /// The server may still show that volume.
    private mutating func replace(_ volume: [UInt32]) {
        if !earlier.contains(volume) { earlier.append(volume) }
    }

    /// The server has placed the stream again, with that volume.
    mutating func placedAgain(_ volume: [UInt32], of base: [UInt32]) {
        (isShown, confirmed, foreign) = (true, nil, nil)
        if let shown = Level.of(volume, below: base) { decibels = shown }
    }

    // MARK: Commands

    /// Sets the level at once. A ramp ends.
    mutating func set(_ new: Int, of base: [UInt32], _ check: inout StreamCheck) {
        if case .ramp = course { course = .steady }
        guard new != decibels, !base.isEmpty else { return }
        replace(Level.volume(base, lowered: decibels))
        replaced.removeAll { $0.time + StreamLevel.staleness <= check.now }
        replaced.append(Replaced(decibels: decibels, time: check.now))
        decibels = new
        write(base, &check)
    }

    private mutating func write(_ base: [UInt32], _ check: inout StreamCheck) {
        (isShown, isRefused, confirmed, repetitions) = (false, false, nil, 0)
        check.add(.setVolume(check.stream.id, Level.volume(base, lowered: decibels)))
    }

    /// Judges the volume that the user or another program has set, if it is time: a step changes the user's volume, and the
    /// stream is ducked below that at once; any other volume stays. `isOver`: it cannot be waited for, because the stream
    /// is silenced or restored, which sets its volume.
    /// - Returns: whether the level may be changed now.
    mutating func judge(_ base: inout StreamBase, _ check: inout StreamCheck, isOver: Bool = false) -> Bool {
        guard let foreign else { return true }
        let due = foreign.time + ForeignWrite.alone
        guard isOver || due <= check.now else {
            check.checkAgain(at: due)
            return false
        }
        guard let step = foreign.step else {
            keep(foreign.volume, &base)
            if Level.isSame(check.stream.volume, base.volume) { return true }
            // The daemon's next level has replaced it.
            write(base.volume, &check)
            return false
        }
        replace(Level.volume(base.volume, lowered: decibels))
        replace(foreign.volume)
        base.volume = step.applied(to: base.volume)
        base.volumeChange = .step
        (self.foreign, replaced, isShown) = (nil, [], false)
        if isOver { return true }
        write(base.volume, &check)
        return false
    }

    /// Looks again at a level that the server has confirmed and does not show. PipeWire's server may lose a confirmed
    /// volume: the stream keeps an earlier level of the daemon. Then it is set again.
    mutating func awaitShown(of base: [UInt32], _ check: inout StreamCheck) {
        guard let confirmed, foreign == nil else { return }
        let shown = check.stream.volume
        let isLost = Level.of(shown, below: base) != nil || earlier.contains { Level.isSame(shown, $0) }
        if isLost, !check.stream.rendering.isInCycles || repetitions == StreamLevel.mostRepetitions { return }
        let due = confirmed + StreamLevel.patience
        guard due <= check.now else { return check.checkAgain(at: due) }
        guard isLost else { return }
        self.confirmed = nil
        repetitions += 1
        check.add(.setVolume(check.stream.id, Level.volume(base, lowered: decibels)))
    }

    /// PipeWire may show a step of the fade of a stopped stream again, after its full volume was shown.
    mutating func doubt(_ check: StreamCheck, of base: [UInt32]) {
        guard check.stream.rendering.isInCycles, isShown, decibels == 0,
            let shown = Level.of(check.stream.volume, below: base),
            StreamLevel.fade.contains(shown)
        else { return }
        (isShown, confirmed) = (false, check.now)
    }

    mutating func endFade() {
        if case .fade = course { course = .steady }
    }

    /// The next step down before a cut.
    /// - Returns: whether it is low enough for the cut.
    mutating func fadeOut(of base: StreamBase, _ check: inout StreamCheck) -> Bool {
        var due = check.now
        if case .fade(let next) = course { due = next }
        endFade()
        guard check.isHeard, !base.volume.isEmpty, base.volumeChange != .absolute else { return true }
        if due <= check.now {
            guard let lower = StreamLevel.fade.first(where: { $0 > decibels }) else { return true }
            set(lower, of: base.volume, &check)
            // Counted from when it was due, so that delays do not add up.
            due += StreamLevel.fadeStep
        }
        course = .fade(next: due)
        check.checkAgain(at: due)
        return false
    }

    /// The decibels of the next step: one, or two after a slow answer of the server, with which the ramp would take long.
    /// `elapsed`: microseconds since the last step.
    private static func step(after elapsed: UInt64, _ interval: StreamControl.Pace.Interval) -> Int {
        elapsed < slowAnswer * interval.step ? 1 : 2
    }

    /// So many intervals are a slow answer.
    private static let slowAnswer: UInt64 = 5

    /// The next step of a ramp to that level.
    mutating func ramp(to goal: Int, of base: [UInt32], _ pace: StreamControl.Pace, _ check: inout StreamCheck) {
        endFade()
        var ramp = Ramp()
        if case .ramp(let current) = course { ramp = current }
        ramp.raise = goal < decibels ? ramp.raise ?? check.now + pace.hold : nil
        var due = ramp.raise ?? check.now
        var last: UInt64?
        switch ramp.wait {
        case .nothing: break
        case .time(let time, let sent) where goal != decibels:
            due = max(due, time)
            last = sent
        case .time: ramp.wait = .nothing
        case .answer:
            course = .ramp(ramp)
            return
        }
        course = ramp == Ramp() ? .steady : .ramp(ramp)
        guard goal != decibels else { return }
        guard due <= check.now else { return check.checkAgain(at: due) }
        let isLowering = goal > decibels
        let interval = isLowering ? pace.attack : pace.release
        let step = StreamLevel.step(after: last.map { check.now - max($0, ramp.raise ?? 0) } ?? 0, interval)
        let next = isLowering ? decibels + step : min(decibels - step, pace.depth)
        set(isLowering ? min(goal, next) : max(goal, next), of: base, &check)
        ramp.wait = .answer(sent: check.now, interval)
        course = .ramp(ramp)
    }
}
