public import PluginAPI
public import SessionManager

/// Decides the route: what is requested from the server, when a change of the route is final, and how long sound is
/// held after its output was unplugged. It is a value without a server, a bus or a clock.
///
/// ``handle(_:_:at:foresee:)`` gets a fact and returns the effects, in order. The caller carries them out, and
/// sends ``Fact/timePassed`` at ``nextDeadline``.
///
/// - The route follows what the active sessions want (``RouteChoice``). The server is asked only when that changes: a
///   later choice of the user or of the server stays until then.
/// - A port that only a session needs is the default temporarily. When no session needs it any longer, the default is what
///   it was before, unless a newer device has appeared or the user has chosen one.
/// - If a device of the route goes and no session is paused for it, the sound continues on another device. The server
///   chooses one first; if the sessions want another one, both changes are reported as one, when the second is done, or
///   after a second.
/// - The output of the now-playing session is guarded (rules §7): if it is unplugged, its sound is held until the
///   paused sessions are silent, at most two seconds.
public struct Routing: Sendable, Codable {
    /// The server's state, as far as it concerns the route.
    public struct View: Sendable, Hashable, Codable {
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
        /// As ``AudioBackend/switchedHeadset``.
        public var switchedHeadset: String?
        /// The ports of ``AudioBackend/formerDefaults``; "" if such a device has none, nil if no session has needed another.
        public var formerOutput: String?
        public var formerInput: String?

        public init() {}
    }

    public enum Fact: Sendable, Hashable, Codable {
        case servicesLost
        case servicesReset
        case routeChanged(RouteChangeReason, previous: Route)
        case portsChanged
        case inputMuteChanged
        /// The sessions want that route. `reason`: the reason to report; nil: that of the choice.
        case wanted(RouteChoice, reason: RouteChangeReason?)
        /// After every event of the sessions: whether the output must be guarded, and whether all paused sessions are
        /// silent.
        case guarded(Bool, isSilent: Bool)
        /// The server refused a request.
        case refused(Request, SessionError)
        /// A client sends a request, which must not be judged by an outdated route.
        case requested
        /// The machine woke up.
        case woke
        /// The time of ``nextDeadline`` has come.
        case timePassed
    }

    /// A request to the server. It answers later, and may refuse.
    public enum Request: Sendable, Hashable, Codable {
        /// `isTemporary`: as for ``AudioBackend/selectOutput(_:reason:isTemporary:completion:)``.
        case output(String, isTemporary: Bool)
        case input(String, isTemporary: Bool)
        /// The default is as it was before it was changed temporarily.
        case formerOutput
        case formerInput
        /// nil: no headset needs its hands-free profile.
        case handsFree(String?)
    }

    public enum Effect: Sendable, Hashable {
        /// An event for the sessions.
        case submit(Event)
        /// A request to the server; `reason`: the reason to report for the change.
        case ask(Request, reason: RouteChangeReason)
        /// The requested rate and buffer of the output.
        case wish(OutputWish)
        case guardOutput(Bool)
        case releaseOutput
        /// For the log.
        case warn(String)
        /// Handled after everything before it has been carried out.
        case then(Fact)
    }

    /// The choice that was last compared with the server's route; nil while there is no server.
    private var wanted: RouteChoice?
    /// The newest input when the sessions began to need one; nil: unknown.
    private var unneededInput: String?
    private var wish = OutputWish()
    /// The requested ports that are not the route yet.
    private var asked = Asked()

    private struct Asked: Codable {
        var output: String?
        var input: String?
    }

    private var settling: Settling?
    private var held: Held?
    private var isGuarding = false
    /// The last reported state of the microphone; nil: none yet.
    private var isMicrophoneMuted: Bool?

    /// The server was asked for another output or input than it chose after a loss. The change is reported when that port
    /// is the route, or at `due`.
    private struct Settling: Codable {
        /// The route before the loss.
        let left: Route
        let due: Instant
    }

    /// Sound of an unplugged output is held.
    private struct Held: Codable {
        /// When it is released in any case.
        let limit: Instant
        /// Since when no paused session plays; nil: one does.
        var silence: Instant?
        /// When it is released; nil: it has been.
        var due: Instant?
    }

    /// Seconds that the server may take to switch.
    private static let settleTime = 1.0
    /// The most seconds for which other sound waits. Enforcement ends it earlier, because held streams do not play.
    private static let holdTime = 2.0

    public init() {}

    /// When ``Fact/timePassed`` is due next; nil: never.
    public var nextDeadline: Instant? {
        switch (settling?.due, held?.due) {
        case (let one?, let other?): min(one, other)
        case (let one, let other): one ?? other
        }
    }

    /// Handles a fact, with the current state of the server.
    ///
    /// - Parameter foresee: what the sessions will want after a loss; nil if the loss pauses a session, and must
    ///   be reported at once.
    public mutating func handle(
        _ fact: Fact, _ view: View, at now: Instant, foresee: (Audio) -> RouteChoice?
    ) -> [Effect] {
        switch fact {
        case .servicesLost:
            settling = nil
            return [.submit(.servicesLost)]
        case .servicesReset: return [.submit(.servicesReset(view.audio)), .then(.inputMuteChanged)]
        case .routeChanged(let reason, let previous):
            // A new device is reported separately.
            if reason == .newDeviceAvailable, settling != nil { return settle(view) + [.then(fact)] }
            return changed(.routeChanged(reason, view.audio), from: previous, view, at: now, foresee)
        case .portsChanged: return changed(.portsChanged(view.audio), from: nil, view, at: now, foresee)
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

    // MARK: Choices of the sessions

    private mutating func follow(_ choice: RouteChoice, _ view: View, _ reason: RouteChangeReason) -> [Effect] {
        var effects: [Effect] = []
        if choice.wish != wish {
            wish = choice.wish
            effects.append(.wish(wish))
        }
        guard view.isConnected else {
            wanted = nil
            asked = Asked()
            return effects
        }
        seeWhatBecame(view, reason)
        let isFirst = wanted == nil
        // For sessions that are active when the server is found, the reason is their category.
        let cause = isFirst ? choice.reason : reason
        let before = before(view)
        let last = wanted
        wanted = choice
        if choice.handsFree != before.handsFree {
            effects.append(.ask(.handsFree(choice.handsFree), reason: cause))
        }
        let route = view.audio.route
        // If the server itself has left the removed device, our request removes nothing more.
        let hasMoved = cause == .oldDeviceUnavailable && route.outputs.first?.isAvailable == true
        let reason = hasMoved ? .unknown : cause
        return effects + output(choice, before: before, last, view, reason)
            + input(choice, before: before, last, view, reason)
    }

    /// The request for the output. `last`: the last choice; `before`: the one to compare with.
    private mutating func output(
        _ choice: RouteChoice, before: RouteChoice, _ last: RouteChoice?, _ view: View, _ reason: RouteChangeReason
    ) -> [Effect] {
        guard let uid = choice.output else { return [] }
        // A headset in its hands-free profile is another output only as long as a session records from it.
        let headset = choice.handsFree.flatMap { input in view.audio.inputs.first { $0.uid == input }?.device }
        let isOfHeadset = headset != nil && view.audio.outputs.first { $0.uid == uid }?.device == headset
        let isTemporary = isOfHeadset || uid != Arbiter.idleRouteChoice(on: view.audio).output
        if let former = view.formerOutput, !isTemporary, last == nil || uid != before.output {
            asked.output = uid
            if view.audio.isSameOutput(uid, former) { return [.ask(.formerOutput, reason: reason)] }
        } else if uid == before.output || uid == asked.output ?? view.audio.route.outputs.first?.uid {
            return []
        }
        asked.output = uid
        return [.ask(.output(uid, isTemporary: isTemporary), reason: reason)]
    }

    /// The request for the input. `last`: the last choice; `before`: the one to compare with.
    private mutating func input(
        _ choice: RouteChoice, before: RouteChoice, _ last: RouteChoice?, _ view: View, _ reason: RouteChangeReason
    ) -> [Effect] {
        let used = asked.input ?? view.audio.route.inputs.first?.uid
        func request(_ uid: String, isTemporary: Bool) -> [Effect] {
            asked.input = uid
            return [.ask(.input(uid, isTemporary: isTemporary), reason: reason)]
        }
        guard choice.isInputNeeded else {
            // The newest input is not requested because a session has ended, but because it appeared.
            let newest = last?.isInputNeeded == true ? unneededInput : before.input
            let isNewer = newest != nil && choice.input != newest
            unneededInput = choice.input
            if let former = view.formerInput, !isNewer, last?.isInputNeeded ?? true {
                asked.input = view.audio.inputs.contains { $0.uid == former } ? former : nil
                return [.ask(.formerInput, reason: reason)]
            }
            guard let uid = choice.input, isNewer || last?.isInputNeeded != true else { return [] }
            let isInUse = uid == before.input || uid == used
            return isInUse && !(isNewer && view.formerInput != nil) ? [] : request(uid, isTemporary: false)
        }
        // The server's choice was accepted while nobody needed an input. But the session may not use every headset.
        let isNew = last?.isInputNeeded == false && view.audio.route.inputs.first?.type == .bluetoothHFP
        guard let uid = choice.input, isNew || uid != before.input, uid != used else { return [] }
        let isNewest = reason == .newDeviceAvailable && uid == Arbiter.idleRouteChoice(on: view.audio).input
        if isNewest { unneededInput = uid }
        return request(uid, isTemporary: !isNewest)
    }

    /// The choice to compare with. The route of a new server counts as chosen; so do devices that were found
    /// together, because their default was chosen earlier. A headset that was switched to hands-free for a session counts
    /// as chosen for that, even if its session ended while there was no daemon, no server or no such headset.
    private func before(_ view: View) -> RouteChoice {
        var before = wanted ?? Arbiter.idleRouteChoice(on: view.audio)
        before.handsFree = before.handsFree ?? view.switchedHeadset
        guard view.isEnumerating else { return before }
        let found = Arbiter.idleRouteChoice(on: view.audio)
        if let output = found.output, view.enumerated.contains(output) { before.output = output }
        if let input = found.input, view.enumerated.contains(input) { before.input = input }
        return before
    }

    /// Forgets requests that were carried out or are impossible now, or if the user has chosen another port.
    private mutating func seeWhatBecame(_ view: View, _ reason: RouteChangeReason) {
        func isOver(_ asked: String?, _ route: [Port], _ available: [Port]) -> Bool {
            reason == .unknown || asked == route.first?.uid || !available.contains { $0.uid == asked }
        }
        if isOver(asked.output, view.audio.route.outputs, view.audio.outputs) { asked.output = nil }
        if isOver(asked.input, view.audio.route.inputs, view.audio.inputs) { asked.input = nil }
    }

    /// A refusal of an outdated request is ignored.
    private mutating func refused(_ request: Request, _ error: SessionError) -> [Effect] {
        switch request {
        case .output(let uid, _):
            guard asked.output == uid else { return [] }
            asked.output = nil
            return [.warn("cannot change the output: \(error)")]
        case .input(let uid, _):
            guard asked.input == uid else { return [] }
            asked.input = nil
            return [.warn("cannot change the input: \(error)")]
        case .formerOutput:
            asked.output = nil
            return [.warn("cannot make the former output the default again: \(error)")]
        case .formerInput:
            asked.input = nil
            return [.warn("cannot make the former input the default again: \(error)")]
        case .handsFree(let uid):
            guard wanted?.handsFree == uid else { return [] }
            return [.warn("cannot change the profile of the headset: \(error)")]
        }
    }

    // MARK: Removed ports

    /// Judges whether a change is final, and reports it then. After a loss, the ports are requested that the sessions will want:
    /// the change is not final as long as the server has not switched to them. `previous`: the route before it; nil: it is the
    /// same.
    private mutating func changed(
        _ event: Event, from previous: Route?, _ view: View, at now: Instant, _ foresee: (Audio) -> RouteChoice?
    ) -> [Effect] {
        let report: [Effect] = [.submit(event), .then(.inputMuteChanged)]
        let isLoss = previous != nil && event.routeReason == .oldDeviceUnavailable
        guard isLoss || settling != nil, let left = settling?.left ?? previous else { return report }
        var effects: [Effect] = []
        if let choice = foresee(view.audio) {
            effects = follow(choice, view, .oldDeviceUnavailable)
            if isMoving(view) {
                settling = settling ?? Settling(left: left, due: now.advanced(bySeconds: Routing.settleTime))
                return effects
            }
        }
        return effects + (settling == nil ? report : settle(view))
    }

    /// Whether the server has not yet switched to the requested route.
    private func isMoving(_ view: View) -> Bool {
        let route = view.audio.route
        return asked.output.map { $0 != route.outputs.first?.uid } ?? false
            || asked.input.map { $0 != route.inputs.first?.uid } ?? false
    }

    /// Reports a postponed change of the route.
    private mutating func settle(_ view: View) -> [Effect] {
        guard let old = settling?.left else { return [] }
        settling = nil
        let audio = view.audio
        func uids(_ route: Route) -> [String] { (route.outputs + route.inputs).map(\.uid) }
        // The old route is back, or it is back with other properties, or it is gone.
        let event: Event =
            audio.route == old
            ? .portsChanged(audio)
            : .routeChanged(
                uids(audio.route) == uids(old) ? .routeConfigurationChange : .oldDeviceUnavailable, audio)
        return [.submit(event), .then(.inputMuteChanged)]
    }

    // MARK: Held sound

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

    /// Reports the mute of the microphone, also if it was muted before the start or while no daemon was running.
    private mutating func microphone(_ view: View) -> [Effect] {
        guard view.isConnected, settling == nil else { return [] }
        // Only the mute of the built-in microphone is an interruption: the user can unplug and replug another one.
        let isMuted = view.isInputMuted && view.audio.route.inputs.contains { $0.type == .microphoneBuiltIn }
        guard isMuted != isMicrophoneMuted else { return [] }
        isMicrophoneMuted = isMuted
        return [.submit(.microphoneMuted(isMuted))]
    }
}

extension Audio {
    /// Whether both are the same port, or outputs of one headset in different profiles.
    fileprivate func isSameOutput(_ uid: String, _ other: String) -> Bool {
        guard uid != other, let port = outputs.first(where: { $0.uid == uid }) else { return uid == other }
        let isHeadset = port.type == .bluetoothA2DP || port.type == .bluetoothHFP
        return isHeadset && other.lastIndex(of: "/").map { other[..<$0] } == port.device
    }
}

extension RouteChoice {
    /// The reason of a change that only the sessions cause.
    public var reason: RouteChangeReason { isOverridden ? .override : .categoryChange }
}

extension Event {
    /// The reason of a route change that such an event causes; nil: that of the choice.
    public var routeReason: RouteChangeReason? {
        switch self {
        case .routeChanged(let reason, _): reason
        // In both, a port that a session chose replaces the port by the rules.
        case .overrideOutput, .setPreferredInput: .override
        // A new port is reported as a change of the route. So here a port was removed that was not the route yet.
        case .portsChanged: .oldDeviceUnavailable
        case .create, .setCategory, .activate, .deactivate, .setPreferences, .close, .setForeground, .setSilentMode,
            .setScreenLocked, .clientVanished, .servicesReset, .servicesLost, .soundingChanged, .microphoneMuted,
            .settingsChanged, .interruptionIgnored, .asleep, .clientHangs, .timePassed:
            nil
        }
    }
}
