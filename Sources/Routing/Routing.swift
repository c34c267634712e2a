public import PluginAPI
public import SessionManager

/// Decides where sound goes: what the server is asked for, when a change of the route is final, and how long the output
/// of a device that went is held. A value without a server, a bus or a clock.
///
/// ``handle(_:_:at:foresee:)`` takes what happened and returns what is to be done, in order. The shell carries it out, and
/// tells the time that ``nextDeadline`` names.
///
/// - The route follows what the active sessions want (``RouteChoice``). The server is asked only where that changes: what
///   a user or the server itself chose meanwhile stays until then.
/// - When a device of the route goes and nobody is paused for it, the sound goes on elsewhere. The server goes somewhere
///   first; where the sessions want another output, both moves are notified as one, when the second is there or after a
///   second.
/// - The output of the now-playing session is guarded (behaviour §7): what played there stays silent until those who are
///   paused have fallen silent, at most two seconds.
public struct Routing: Sendable {
    /// What the server shows, as far as it concerns the route.
    public struct View: Sendable, Hashable {
        public var isConnected = false
        public var audio = Audio.none
        /// As ``AudioSnapshot/isEnumerating``.
        public var isEnumerating = false
        /// As ``AudioSnapshot/enumerated``.
        public var enumerated: Set<String> = []
        /// As ``AudioSnapshot/isOutputHeld``.
        public var isOutputHeld = false
        /// As ``AudioSnapshot/pauseDelay``, in seconds.
        public var pauseDelay = 0.0
        /// As ``AudioSnapshot/isInputMuted``.
        public var isInputMuted = false

        public init() {}
    }

    public enum Fact: Sendable, Hashable {
        case servicesLost
        case servicesReset
        case routeChanged(RouteChangeReason, previous: Route)
        case portsChanged
        case inputMuteChanged
        /// The sessions want that route. `reason` is what the change is called; nil: what the choice itself says.
        case wanted(RouteChoice, reason: RouteChangeReason?)
        /// After every event of the sessions: whether the output is to be guarded, and whether nobody who was paused
        /// sounds any more.
        case guarded(Bool, isSilent: Bool)
        /// The server refused what it was asked for.
        case refused(Request, SessionError)
        /// Somebody asks for something, and must not be judged by a route that is no more.
        case requested
        /// The machine woke up.
        case woke
        /// The time of ``nextDeadline`` has come.
        case timePassed
    }

    /// What a server is asked for. It answers later, and may refuse.
    public enum Request: Sendable, Hashable {
        case output(String)
        case input(String)
        /// nil: no headset is to be hands-free.
        case handsFree(String?, takesOver: Bool)
    }

    public enum Effect: Sendable, Hashable {
        /// A fact for the sessions.
        case submit(Event)
        /// Something to ask the server for; `reason` is what the change will be called.
        case ask(Request, reason: RouteChangeReason)
        /// What the output is to run with.
        case wish(OutputWish)
        case guardOutput(Bool)
        case releaseOutput
        /// For the log.
        case warn(String)
        /// To be handled once everything before it has been carried out.
        case then(Fact)
    }

    /// What was wanted last; nil while there is no server.
    private var wanted: RouteChoice?
    private var wish = OutputWish()
    /// What was asked for and is not seen to be the route yet.
    private var asked: (output: String?, input: String?) = (nil, nil)
    private var settling: Settling?
    private var held: Held?
    private var isGuarding = false
    /// What was notified of the microphone last; nil: nothing yet.
    private var isMicrophoneMuted: Bool?

    /// The server is asked to go on elsewhere than where it went by itself: notified when that is the route.
    private struct Settling {
        /// The route of which something went.
        let left: Route
        let due: Instant
    }

    /// What played on an output that went is heard nowhere.
    private struct Held {
        /// When it is released in any case.
        let limit: Instant
        /// Since when nobody who was paused sounds; nil: somebody does.
        var silence: Instant?
        /// When it is released; nil: it has been.
        var due: Instant?
    }

    /// Seconds that the server may take to follow.
    private static let settleTime = 1.0
    /// Seconds that others stand still at most. Enforcement ends it sooner: what it stops does not sound.
    private static let holdTime = 2.0

    public init() {}

    /// When ``Fact/timePassed`` is due next; nil: never.
    public var nextDeadline: Instant? {
        switch (settling?.due, held?.due) {
        case (let one?, let other?): min(one, other)
        case (let one, let other): one ?? other
        }
    }

    /// Takes in what happened, with the server as it is now.
    ///
    /// - Parameter foresee: what the sessions will want once they know of a loss; nil where that pauses somebody, and must
    ///   be notified at once.
    public mutating func handle(
        _ fact: Fact, _ view: View, at now: Instant, foresee: (Audio) -> RouteChoice?
    ) -> [Effect] {
        switch fact {
        case .servicesLost:
            settling = nil
            return [.submit(.servicesLost)]
        case .servicesReset: return [.submit(.servicesReset(view.audio)), .then(.inputMuteChanged)]
        case .routeChanged(let reason, let previous):
            // A newcomer is news of its own.
            if reason == .newDeviceAvailable, settling != nil { return settle(view) + [.then(fact)] }
            if reason == .oldDeviceUnavailable || settling != nil {
                let (isOnItsWay, effects) = goOn(from: previous, view, at: now, foresee)
                if isOnItsWay { return effects }
                if settling != nil { return effects + settle(view) }
                return effects + [.submit(.routeChanged(reason, view.audio)), .then(.inputMuteChanged)]
            }
            return [.submit(.routeChanged(reason, view.audio)), .then(.inputMuteChanged)]
        case .portsChanged:
            guard let left = settling?.left else {
                return [.submit(.portsChanged(view.audio)), .then(.inputMuteChanged)]
            }
            let (isOnItsWay, effects) = goOn(from: left, view, at: now, foresee)
            return isOnItsWay ? effects : effects + settle(view)
        case .inputMuteChanged: return microphone(view)
        case .wanted(let choice, let reason):
            let choice = settling == nil ? choice : foresee(view.audio) ?? choice
            return follow(choice, view, reason ?? choice.reason)
        case .guarded(let isGuarding, let isSilent): return guardOutput(isGuarding, isSilent, view, at: now)
        case .refused(let request, let error): return refused(request, error)
        case .requested: return settle(view)
        case .woke:
            let wake = view.isConnected ? [Effect.submit(.routeChanged(.wakeFromSleep, view.audio))] : []
            return settle(view) + wake
        case .timePassed: return timePassed(view, at: now)
        }
    }

    // MARK: What the sessions want

    private mutating func follow(_ choice: RouteChoice, _ view: View, _ reason: RouteChangeReason) -> [Effect] {
        var effects: [Effect] = []
        if choice.wish != wish {
            wish = choice.wish
            effects.append(.wish(wish))
        }
        guard view.isConnected else {
            wanted = nil
            asked = (nil, nil)
            return effects
        }
        seeWhatBecame(view, reason)
        let isFirst = wanted == nil
        // Who is active when the server is found wants it by its category.
        let cause = isFirst ? choice.reason : reason
        let before = before(view)
        wanted = choice
        guard choice != before else { return effects }
        if choice.handsFree != before.handsFree {
            // Whoever talks already when the server is found has asked for that before.
            effects.append(.ask(.handsFree(choice.handsFree, takesOver: isFirst), reason: cause))
        }
        let route = view.audio.route
        // Where the server went by itself when a device did, nothing goes when we go on from there.
        let hasMoved = cause == .oldDeviceUnavailable && route.outputs.first?.isAvailable == true
        let reason = hasMoved ? .unknown : cause
        if let uid = choice.output, uid != before.output, uid != asked.output ?? route.outputs.first?.uid {
            asked.output = uid
            effects.append(.ask(.output(uid), reason: reason))
        }
        if let uid = choice.input, uid != before.input, uid != asked.input ?? route.inputs.first?.uid {
            asked.input = uid
            effects.append(.ask(.input(uid), reason: reason))
        }
        return effects
    }

    /// What the choice is compared with. Where a server is found, its route counts as chosen so; so do devices that came
    /// together: which of them is the route was chosen earlier.
    private func before(_ view: View) -> RouteChoice {
        guard wanted == nil || view.isEnumerating else { return wanted ?? RouteChoice() }
        let found = Arbiter.idleRouteChoice(on: view.audio)
        var before = wanted ?? found
        guard view.isEnumerating else { return before }
        if let output = found.output, view.enumerated.contains(output) { before.output = output }
        if let input = found.input, view.enumerated.contains(input) { before.input = input }
        return before
    }

    /// What was asked for has come about, cannot any more, or somebody chose otherwise.
    private mutating func seeWhatBecame(_ view: View, _ reason: RouteChangeReason) {
        func isOver(_ asked: String?, _ route: [Port], _ available: [Port]) -> Bool {
            reason == .unknown || asked == route.first?.uid || !available.contains { $0.uid == asked }
        }
        if isOver(asked.output, view.audio.route.outputs, view.audio.outputs) { asked.output = nil }
        if isOver(asked.input, view.audio.route.inputs, view.audio.inputs) { asked.input = nil }
    }

    /// A refusal of what is no longer wanted is worth no word.
    private mutating func refused(_ request: Request, _ error: SessionError) -> [Effect] {
        switch request {
        case .output(let uid):
            guard asked.output == uid else { return [] }
            asked.output = nil
            return [.warn("the output stays: \(error)")]
        case .input(let uid):
            guard asked.input == uid else { return [] }
            asked.input = nil
            return [.warn("the input stays: \(error)")]
        case .handsFree(let uid, _):
            guard wanted?.handsFree == uid else { return [] }
            return [.warn("the headset's profile stays: \(error)")]
        }
    }

    // MARK: What went

    /// Asks for what will be wanted after what the server has just shown; false where it is there already.
    private mutating func goOn(
        from previous: Route, _ view: View, at now: Instant, _ foresee: (Audio) -> RouteChoice?
    ) -> (Bool, [Effect]) {
        guard let choice = foresee(view.audio) else { return (false, []) }
        let effects = follow(choice, view, .oldDeviceUnavailable)
        guard isMoving(view) else { return (false, effects) }
        settling = settling ?? Settling(left: previous, due: now.advanced(bySeconds: Routing.settleTime))
        return (true, effects)
    }

    /// Whether the route is on its way to where it was asked to go.
    private func isMoving(_ view: View) -> Bool {
        let route = view.audio.route
        return asked.output.map { $0 != route.outputs.first?.uid } ?? false
            || asked.input.map { $0 != route.inputs.first?.uid } ?? false
    }

    /// Notifies the route as it is, where that was put off.
    private mutating func settle(_ view: View) -> [Effect] {
        guard let old = settling?.left else { return [] }
        settling = nil
        let audio = view.audio
        func uids(_ route: Route) -> [String] { (route.outputs + route.inputs).map(\.uid) }
        // It is back already, or it is back otherwise, or gone.
        let event: Event =
            audio.route == old
            ? .portsChanged(audio)
            : .routeChanged(
                uids(audio.route) == uids(old) ? .routeConfigurationChange : .oldDeviceUnavailable, audio)
        return [.submit(event), .then(.inputMuteChanged)]
    }

    // MARK: What is held

    private mutating func guardOutput(
        _ isGuarding: Bool, _ isSilent: Bool, _ view: View, at now: Instant
    ) -> [Effect] {
        var effects: [Effect] = []
        if isGuarding != self.isGuarding {
            self.isGuarding = isGuarding
            effects.append(.guardOutput(isGuarding))
        }
        guard view.isOutputHeld else {
            held = nil
            return effects
        }
        var held = held ?? Held(limit: now.advanced(bySeconds: Routing.holdTime))
        held.silence = isSilent ? held.silence ?? now : nil
        let due = min(held.silence?.advanced(bySeconds: view.pauseDelay) ?? held.limit, held.limit)
        held.due = due > now ? due : nil
        self.held = held
        return due > now ? effects : effects + [.releaseOutput]
    }

    private mutating func timePassed(_ view: View, at now: Instant) -> [Effect] {
        var effects: [Effect] = []
        if let due = held?.due, due <= now {
            held?.due = nil
            effects.append(.releaseOutput)
        }
        if let due = settling?.due, due <= now { effects += settle(view) }
        return effects
    }

    // MARK: The microphone

    /// Also where it was muted from the start, or while no daemon was there to see it.
    private mutating func microphone(_ view: View) -> [Effect] {
        guard view.isConnected, settling == nil else { return [] }
        // Only the built-in microphone's mute is an interruption: another can be taken out and put back.
        let isMuted = view.isInputMuted && view.audio.route.inputs.contains { $0.type == .microphoneBuiltIn }
        guard isMuted != isMicrophoneMuted else { return [] }
        isMicrophoneMuted = isMuted
        return [.submit(.microphoneMuted(isMuted))]
    }
}

extension RouteChoice {
    /// What a change is called that the sessions alone bring about.
    public var reason: RouteChangeReason { isOverridden ? .override : .categoryChange }
}

extension Event {
    /// What a change of the route is called that such an event brings about; nil: what the choice itself says.
    public var routeReason: RouteChangeReason? {
        switch self {
        case .routeChanged(let reason, _): reason
        // Both put a port that a session chose in the place of the one by the rules.
        case .overrideOutput, .setPreferredInput: .override
        // What comes is notified as a change of the route: here something went that was not the route yet.
        case .portsChanged: .oldDeviceUnavailable
        case .create, .setCategory, .activate, .deactivate, .setPreferences, .close, .setForeground, .setSilentMode,
            .setScreenLocked, .clientVanished, .servicesReset, .servicesLost, .soundingChanged, .microphoneMuted,
            .settingsChanged, .interruptionIgnored, .timePassed:
            nil
        }
    }
}
