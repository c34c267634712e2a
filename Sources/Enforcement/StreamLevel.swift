import PluginAPI

/// How many decibels a stream is ducked below the user's volume, and the ramp to another level.
struct StreamLevel: Sendable, Hashable {
    enum Course: Sendable, Hashable {
        /// The level stays.
        case steady
        /// Ducking or restoring, one decibel per step.
        case ramp(Ramp)
        /// A quick fade before a cut; the next step is due at this time.
        case fade(next: UInt64)
    }

    struct Ramp: Sendable, Hashable {
        /// The event that the next step waits for.
        enum Wait: Sendable, Hashable {
            case nothing
            case time(UInt64)
            /// The server's answer to the last step, and then that many microseconds. Steps that queue up in a busy server
            /// are done at once there, and heard as one.
            case answer(then: UInt64)
        }

        var wait = Wait.nothing
        /// Before this time the level is not raised: another sound that ducks may follow.
        var raise: UInt64?
    }

    /// Decibels below the user's volume that were last set.
    private(set) var decibels: Int
    /// Whether the server has shown this level. Then another volume was set by the user or another program.
    private(set) var isShown: Bool
    private(set) var course = Course.steady
    /// When the server confirmed this level without showing it; nil: it is shown, or not confirmed yet.
    private var confirmed: UInt64?
    private var repetitions = 0

    /// How long a confirmed level may take to be shown, in microseconds, and how often it is set again.
    private static let patience: UInt64 = 250_000
    private static let mostRepetitions = 3

    /// The level at which a cut causes no click, and the time for each step, in microseconds.
    private static let fade = [8, 18, 30]
    private static let fadeStep: UInt64 = 4_000

    init(decibels: Int = 0, isShown: Bool = true) {
        self.decibels = decibels
        self.isShown = isShown
    }

    // MARK: Reports of the server

    mutating func answered(succeeded: Bool, at now: UInt64) {
        if case .ramp(var ramp) = course, case .answer(let pace) = ramp.wait {
            ramp.wait = .time(now + pace)
            course = .ramp(ramp)
        }
        if !succeeded { isShown = true }
        confirmed = isShown ? nil : now
    }

    /// - Returns: whether the user or another program has set this volume. Then the stream is no longer ducked.
    mutating func shown(_ volume: [UInt32], of base: [UInt32], at now: UInt64) -> Bool {
        if Level.isSame(volume, Level.volume(base, lowered: decibels)) {
            (isShown, confirmed) = (true, nil)
            return false
        }
        guard Level.of(volume, below: base) == nil else { return false }
        // A server that has confirmed this level may still show one before it, but no volume that was never set. While a
        // stream is created it may have other channels, or a volume that the session manager has rounded.
        let isOnlyTheirs = volume.count == base.count && Level.of(volume, below: base, isRemembered: true) == nil
        let isConfirmed = confirmed.map { isOnlyTheirs || $0 + StreamLevel.patience <= now } ?? false
        guard isShown || isConfirmed else { return false }
        (decibels, isShown, confirmed) = (0, true, nil)
        return true
    }

    /// The server has placed the stream again, with that volume.
    mutating func placedAgain(_ volume: [UInt32], of base: [UInt32]) {
        (isShown, confirmed) = (true, nil)
        if let shown = Level.of(volume, below: base) { decibels = shown }
    }

    // MARK: Commands

    /// Sets the level at once. A ramp ends.
    mutating func set(_ new: Int, of base: [UInt32], _ check: inout StreamCheck) {
        if case .ramp = course { course = .steady }
        guard new != decibels, !base.isEmpty else { return }
        decibels = new
        (isShown, confirmed, repetitions) = (false, nil, 0)
        check.add(.setVolume(check.stream.id, Level.volume(base, lowered: new)))
    }

    /// Looks again at a level that the server has confirmed and does not show. PipeWire's server may lose a confirmed
    /// volume: the stream keeps an earlier level of the daemon. Then it is set again.
    mutating func awaitShown(of base: [UInt32], _ check: inout StreamCheck) {
        guard let confirmed else { return }
        let isLost = Level.of(check.stream.volume, below: base) != nil
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
        guard check.isHeard, !base.volume.isEmpty, !base.isVolumeTheirs else { return true }
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

    /// The next step of a ramp to that level.
    mutating func ramp(to goal: Int, of base: [UInt32], _ pace: StreamControl.Pace, _ check: inout StreamCheck) {
        endFade()
        var ramp = Ramp()
        if case .ramp(let current) = course { ramp = current }
        ramp.raise = goal < decibels ? ramp.raise ?? check.now + pace.hold : nil
        var due = ramp.raise ?? check.now
        switch ramp.wait {
        case .nothing: break
        case .time(let time) where goal != decibels: due = max(due, time)
        case .time: ramp.wait = .nothing
        case .answer:
            course = .ramp(ramp)
            return
        }
        course = ramp == Ramp() ? .steady : .ramp(ramp)
        guard goal != decibels else { return }
        guard due <= check.now else { return check.checkAgain(at: due) }
        let isLowering = goal > decibels
        set(isLowering ? decibels + 1 : decibels - 1, of: base, &check)
        ramp.wait = .answer(then: isLowering ? pace.attack : pace.release)
        course = .ramp(ramp)
    }
}
