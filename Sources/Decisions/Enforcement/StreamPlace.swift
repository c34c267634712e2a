import PluginAPI

/// The device of a stream: the user's choice, the hold sink, or a pending move between them.
///
/// ```
///              hold                shown held
///    free ─────────────▶ moving ───────────────▶ held
///     ▲ ◀─── refused ──────┘ │ └─▶ late ──────────▲ ▲
///     │                      └──────┴ let go ─┐   │ │ refused, or lost
///     │  shown elsewhere                      ▼   ▼ │
///     └─────────────────────────────────── leaving ─┘
/// ```
/// If a held stream is shown on another device, the user has moved it, so it is free. If a free stream is shown on the
/// hold sink, it is held. A stream that is late is muted until it is shown held.
struct StreamPlace: Sendable, Hashable, Codable {
    enum State: Sendable, Hashable, Codable {
        /// Not held: where the user or the server has placed it.
        ///
        /// Can transition to: `moving`; `leaving`, from a wrong device; `held`, if it is found there.
        case free(Astray?)
        /// A move to the hold sink is requested, and not shown.
        ///
        /// Can transition to: `held`; `late`; `free`, if the server refuses or the user moves it; `leaving`.
        case moving(promise: UInt64?)
        /// The same, and it takes longer than usual: PipeWire's session manager moves many streams one after another.
        ///
        /// Can transition to: as `moving`.
        case late
        /// On the hold sink.
        ///
        /// Can transition to: `leaving`; `free`, if the user moves it or the server refuses; `moving`, if it must be moved again.
        case held(promise: UInt64?)
        /// A move back is requested, and not shown.
        ///
        /// Can transition to: `free`; `moving`; `held`, if the server refuses.
        case leaving(Astray?)
    }

    /// It has started on a wrong device and is still there.
    struct Astray: Sendable, Hashable, Codable {
        let device: String
        /// How often it was moved from there.
        var moves = 0
    }

    /// Whether it can be held.
    enum Holding: Sendable, Hashable, Codable {
        /// `escapes`: how often the user has moved it away since it was last free.
        case possible(escapes: Int)
        /// The server refused, or the user moved it away again. It is muted instead.
        case impossible
    }

    /// `promise` is when the server confirmed the move to the hold sink; it may still show the old sink, or both in turn.
    /// Nil: not yet, or long ago.
    private(set) var state: State
    private(set) var holding = Holding.possible(escapes: 0)
    /// When a move back may be requested again, after it was refused or not shown; nil: at once.
    private(set) var nextLetGo: UInt64?
    /// Until when the fade waits for the hold sink to be created; nil: it has not waited.
    private var sinkDue: UInt64?

    /// How long a move to the hold sink may take, in microseconds: 40 ms were seen on PipeWire.
    private static let patience: UInt64 = 250_000
    /// How long a stream that the server places again may be shown elsewhere after a confirmed move, in microseconds, before
    /// the move is requested again: PipeWire shows the stream without a device for some milliseconds of each move.
    private static let placing: UInt64 = 20_000
    /// How long a fade waits for the hold sink, in microseconds: sound between the end of the fade and the move is
    /// lost.
    private static let sinkPatience: UInt64 = 12_000
    /// The limit of moves. If it is not enough, the user wants the stream to stay there.
    private static let mostMoves = 2

    init(isHeld: Bool) { state = isHeld ? .held(promise: nil) : .free(nil) }

    init(astrayOn device: String) { state = .free(Astray(device: device)) }

    /// Whether it was last requested to be held, or found so.
    var isHeld: Bool {
        switch state {
        case .moving, .late, .held: true
        case .free, .leaving: false
        }
    }

    /// Whether it must be muted until the server has moved it to the hold sink.
    var isLate: Bool { state == .late }

    var isSettled: Bool { state == .free(nil) }

    var canBeHeld: Bool {
        switch holding {
        case .possible: true
        case .impossible: false
        }
    }

    /// Whether it is on the hold sink and does not play any more.
    func hasStopped(_ stream: AudioStream) -> Bool {
        switch state {
        case .held(promise: nil): true
        case .held: stream.isHeld && !stream.isStopping
        case .free, .moving, .late, .leaving: false
        }
    }

    // MARK: Reports of the server

    mutating func answeredHold(succeeded: Bool, at now: UInt64) {
        switch (state, succeeded) {
        case (.moving, true): state = .moving(promise: now)
        case (.held, true): state = .held(promise: now)
        case (.free, true), (.late, true), (.leaving, true): break
        case (.moving, false), (.late, false), (.held, false):
            // It may not be moved: then it is muted.
            state = .free(nil)
            holding = .impossible
        case (.free(let astray), false), (.leaving(let astray), false):
            state = .free(astray)
            holding = .impossible
        }
    }

    mutating func answeredLetGo(succeeded: Bool, at now: UInt64) {
        if succeeded { return }
        // Not repeated at once, because the missing object, usually another sink, will appear later.
        switch state {
        case .free, .late, .leaving: state = .held(promise: nil)
        case .moving(let promise), .held(let promise): state = .held(promise: promise)
        }
        nextLetGo = now + StreamPlace.patience
    }

    /// - Returns: whether the user or another program has moved it to its current device.
    mutating func shown(isHeld: Bool, at now: UInt64) -> Bool {
        switch (state, isHeld) {
        case (.free, false), (.moving, false), (.late, false), (.held(.some), false), (.held, true), (.leaving, true):
            return false
        case (.moving(let promise), true):
            state = .held(promise: promise)
            return false
        case (.late, true):
            state = .held(promise: now)
            return false
        case (.leaving(let astray), false):
            state = .free(astray)
            return false
        case (.free, true): state = .held(promise: nil)
        case (.held(nil), false): state = .free(nil)
        }
        // The user moved it away again and wants it on another device. It must be silent there, too.
        if case .possible(let escapes) = holding { holding = escapes > 0 ? .impossible : .possible(escapes: 1) }
        return !isHeld
    }

    /// The server has placed the stream again, or is doing so.
    mutating func placedAgain(isHeld: Bool, at now: UInt64) {
        switch (state, isHeld) {
        case (_, true): state = .held(promise: nil)
        case (.moving(let promise?), false) where now < promise + StreamPlace.placing: break
        case (.held(let promise?), false) where now < promise + StreamPlace.placing: break
        case (.free(let astray), false), (.leaving(let astray), false): state = .free(astray)
        case (.moving, false), (.late, false), (.held, false): state = .free(nil)
        }
    }

    // MARK: Commands

    /// Checks a confirmed move: if it is not shown in time, the stream is muted until it is; if the user moves the stream
    /// away at once, it is muted there. `progress`: when the server has moved any stream to the hold sink, as it may move
    /// many, one after another.
    mutating func awaitMove(progress: UInt64, _ check: inout StreamCheck) {
        let promised: UInt64
        switch state {
        case .moving(let promise?), .held(let promise?): promised = promise
        case .free, .moving(nil), .late, .held(nil), .leaving: return
        }
        let due = max(promised, progress) + StreamPlace.patience
        guard due <= check.now else {
            let again = promised + StreamPlace.placing
            let isPlacing = check.stream.isSettling && !check.stream.isHeld && again > check.now
            return check.checkAgain(at: isPlacing ? again : due)
        }
        switch (state, check.stream.isHeld) {
        case (.moving, true): state = .moving(promise: nil)
        case (.moving, false): state = .late
        case (_, let isHeld):
            state = .held(promise: nil)
            if !isHeld { holding = .impossible }
        }
    }

    /// Whether the fade should begin later, because PipeWire is still creating the hold sink.
    mutating func awaitsSink(isThere: Bool, _ check: inout StreamCheck) -> Bool {
        guard check.stream.rendering.isInCycles, !isThere else { return false }
        let due = sinkDue ?? check.now + StreamPlace.sinkPatience
        sinkDue = due
        guard check.now < due else { return false }
        check.checkAgain(at: due)
        return true
    }

    /// The next hold may wait for the sink again.
    mutating func forgetSink() { sinkDue = nil }

    /// The stream is as the user left it, so a later move counts as the first one.
    mutating func forgetEscapes() {
        if canBeHeld { holding = .possible(escapes: 0) }
    }

    mutating func hold(_ check: inout StreamCheck) {
        state = .moving(promise: nil)
        nextLetGo = nil
        check.add(.hold(check.stream.id))
    }

    /// Moves it back, unless that was requested a moment ago.
    mutating func letGo(to device: String?, _ check: inout StreamCheck) {
        var astray: Astray?
        switch state {
        case .moving, .late, .held: break
        case .free(let now):
            astray = now.flatMap { $0.device == check.stream.deviceName ? $0 : nil }
            state = .free(astray)
        case .leaving(let now):
            astray = now.flatMap { $0.device == check.stream.deviceName ? $0 : nil }
            state = .leaving(astray)
        }
        let isInCycles = check.stream.rendering.isInCycles
        // PipeWire's server may confirm a move that is lost: the stream stays where it is.
        var isLost = false
        if case .leaving = state { isLost = isInCycles && check.stream.isHeld }
        guard isHeld || isLost || astray != nil else {
            nextLetGo = nil
            return
        }
        if let nextLetGo, check.now < nextLetGo { return check.checkAgain(at: nextLetGo) }
        if isLost { state = .held(promise: nil) }
        letGoAtOnce(to: device, &check)
        guard isInCycles else { return }
        if var astray {
            guard astray.moves < StreamPlace.mostMoves else { return }
            astray.moves += 1
            state = .leaving(astray)
        }
        let due = check.now + StreamPlace.patience
        nextLetGo = due
        check.checkAgain(at: due)
    }

    /// Moves it back.
    mutating func letGoAtOnce(to device: String?, _ check: inout StreamCheck) {
        nextLetGo = nil
        switch state {
        case .free(nil), .leaving(nil): return
        case .free(.some), .leaving(.some), .moving, .late, .held:
            state = .leaving(nil)
            check.add(.letGo(check.stream.id, to: device))
        }
    }
}
