import PluginAPI

/// The route, the ports and the server (rules §7, §8).
extension Arbiter {
    mutating func servicesReset(_ audio: Audio, at now: Instant, _ effects: inout Effects) {
        let before = self
        self.audio = audio
        if before.audio == nil { changes.insert(.server) }
        if services != .there { effects.append(.servicesReset) }
        services = .there
        noteRegained(since: before.audio)
        tellRoutes(since: before)
        tellLack(Array(sessions.indices), at: now, &effects)
    }

    mutating func servicesLost(_ effects: inout Effects) {
        // This also applies to what an earlier daemon knew: without a server, the states decide which sessions play
        // (§6).
        hear(nil)
        guard services == .there else {
            // Absent from the start: there is no loss to report, but its appearance is reported, also by the next
            // daemon.
            if services == .unknown { remembersMore = true }
            services = .lost
            return
        }
        let before = self
        services = .lost
        audio = nil
        effects.append(.servicesLost)
        changes.insert(.server)
        forgetOverrides(&effects)
        for x in sessions.indices {
            forgetVanishedInput(x, &effects)
            sessions[x].lackCause = nil
        }
        tellRoutes(since: before)
    }

    mutating func portsChanged(_ audio: Audio, at now: Instant, _ effects: inout Effects) {
        guard self.audio != audio else { return }
        let before = self
        if self.audio == nil { changes.insert(.server) }
        self.audio = audio
        // The first state of the server is no reset, unless it was lost before a restart.
        if services == .lost { effects.append(.servicesReset) }
        services = .there
        for x in sessions.indices { forgetVanishedInput(x, &effects) }
        tellLostInputs(since: before, &effects)
        tellRoutes(since: before)
        // A missing input or output is not reported again: active sessions got the signal before the restart.
        noteRegained(since: before.audio)
        if let old = before.audio {
            tellLack(Array(sessions.indices), at: now, &effects)
            judgeLoss(since: old, at: now, &effects)
        } else {
            for x in sessions.indices { noteLack(x, at: now) }
        }
    }

    /// Reported to every session whose own route changes, and once globally. Then sessions whose output was unplugged are
    /// paused (§7).
    mutating func routeChanged(
        _ reason: RouteChangeReason, _ audio: Audio, at now: Instant, _ effects: inout Effects
    ) {
        // A wake-up of the machine is always reported; other changes only if something changed.
        let wakes = reason == .wakeFromSleep
        guard let old = self.audio, old != audio || wakes else { return }
        let before = self
        self.audio = audio
        // Either the route changed because of the override, or the override ends.
        if reason != .override, !wakes { forgetOverrides(&effects) }
        for x in sessions.indices { forgetVanishedInput(x, &effects) }
        let isOnItsWay =
            reason == .oldDeviceUnavailable ? isAboutToLeave : old.route == audio.route && isAboutToChange(old)
        if wakes || !isOnItsWay {
            for x in sessions.indices {
                let (previous, current) = (before.route(of: before.sessions[x]), route(of: sessions[x]))
                guard current != previous || wakes && isWoken(x) else { continue }
                effects.append(.routeChanged(sessions[x].id, reason, previous: previous, current: current))
            }
            effects.append(.routeChanged(nil, reason, previous: old.route, current: audio.route))
        }
        tellRoutes(since: before)
        tellLack(Array(sessions.indices), at: now, &effects)
        noteRegained(since: old)
        // For any other reason, the route's port is still there, perhaps under another name.
        judgeLoss(since: old, beside: reason == .oldDeviceUnavailable ? [] : old.route.outputs, at: now, &effects)
        if reason == .newDeviceAvailable { offerAfterReplug(old.route.outputs, at: now, &effects) }
    }

    /// Whether a wake-up of the machine concerns the session: it is active, or was until the machine went to sleep.
    private func isWoken(_ x: Int) -> Bool {
        sessions[x].standing.isActive || sessions[x].interruption?.reason == .appWasSuspended
    }

    /// Whether the route is about to leave an unplugged port: then one change is reported later instead of two.
    private var isAboutToLeave: Bool {
        let choice = routeChoice
        guard let audio else { return false }
        func leaves(_ uid: String?, _ route: [Port]) -> Bool {
            guard let uid, let port = route.first else { return false }
            return !port.isAvailable && port.uid != uid
        }
        return leaves(choice.output, audio.route.outputs) || leaves(choice.input, audio.route.inputs)
    }

    /// Whether a new port is about to become the route: then one change is reported later instead of two.
    private func isAboutToChange(_ old: Audio) -> Bool {
        let choice = routeChoice
        guard let audio else { return false }
        func comes(_ uid: String?, _ before: [Port], _ route: [Port]) -> Bool {
            guard let uid else { return false }
            return !before.contains { $0.uid == uid } && !route.contains { $0.uid == uid }
        }
        return comes(choice.output, old.outputs, audio.route.outputs)
            || comes(choice.input, old.inputs, audio.route.inputs)
    }

    mutating func overrideOutput(
        _ x: Int, _ override: OutputOverride, _ effects: inout Effects
    ) throws(SessionError) {
        let category = sessions[x].standing.configuration.category
        guard category == .playAndRecord else {
            throw SessionError(
                .incompatibleCategory,
                "the output can be overridden in 'play-and-record' only, not in '\(category.rawValue)'")
        }
        try requireServer()
        guard sessions[x].standing.override != override else { return }
        sessions[x].standing.override = override
        let speaker = audio?.outputs.last { $0.type == .speaker }
        effects.append(.selectOutput(sessions[x].id, uid: override == .speaker ? speaker?.uid : nil))
    }

    mutating func setPreferredInput(_ x: Int, _ uid: String, _ effects: inout Effects) throws(SessionError) {
        if !uid.isEmpty {
            guard sessions[x].standing.configuration.category.hasInput else {
                throw .badParameter(
                    "category '\(sessions[x].standing.configuration.category.rawValue)' has no input to prefer; set another first"
                )
            }
            try requireServer()
            guard availableInputs(of: sessions[x]).contains(where: { $0.uid == uid }) else {
                throw .badParameter("no input \(quoted(uid)); use a uid of AvailableInputs (sessionctl route)")
            }
        }
        guard sessions[x].preferredInput != uid else { return }
        let previous = route(of: sessions[x])
        let choice = routeChoice
        sessions[x].preferredInput = uid
        sessions[x].standing.changes.insert(.preferredInput)
        effects.append(.selectInput(sessions[x].id, uid: uid.isEmpty ? nil : uid))
        let current = route(of: sessions[x])
        if current != previous {
            sessions[x].standing.changes.insert(.route)
            // The session replaced the port of the rules: this is an override, and is reported as one.
            effects.append(.routeChanged(sessions[x].id, .override, previous: previous, current: current))
            // If the server's route follows, that is reported when it has.
            if let audio, routeChoice == choice {
                effects.append(.routeChanged(nil, .override, previous: audio.route, current: audio.route))
            }
            // An override of the output lasts until the route changes.
            forgetOverrides(&effects)
        }
    }

    mutating func setPreferences(
        _ x: Int, _ preferences: Preferences, at now: Instant, _ effects: inout Effects
    ) {
        guard sessions[x].standing.preferences != preferences else { return }
        sessions[x].standing.preferences = preferences
        sessions[x].standing.changes.insert(.preferences)
        dissolveWaits(of: x, at: now, rule: .classes, &effects)
    }

    /// A preferred input becomes empty when its port is gone, or when its category has no input.
    mutating func forgetVanishedInput(_ x: Int, _ effects: inout Effects) {
        let uid = sessions[x].preferredInput
        guard !uid.isEmpty, !availableInputs(of: sessions[x]).contains(where: { $0.uid == uid }) else { return }
        sessions[x].preferredInput = ""
        sessions[x].standing.changes.insert(.preferredInput)
        effects.append(.selectInput(sessions[x].id, uid: nil))
    }

    /// Reported to every session whose preferred input is gone, and once globally. The server's route is unchanged.
    private func tellLostInputs(since before: Arbiter, _ effects: inout Effects) {
        guard let audio, before.audio != nil else { return }
        var isLost = false
        for (old, new) in zip(before.sessions, sessions) where old.preferredInput != new.preferredInput {
            let (previous, current) = (before.route(of: old), route(of: new))
            guard current != previous else { continue }
            isLost = true
            effects.append(.routeChanged(new.id, .oldDeviceUnavailable, previous: previous, current: current))
        }
        if isLost {
            effects.append(.routeChanged(nil, .oldDeviceUnavailable, previous: audio.route, current: audio.route))
        }
    }

    mutating func forgetOverrides(_ effects: inout Effects) {
        for x in sessions.indices { forgetOverride(x, &effects) }
    }

    mutating func forgetOverride(_ x: Int, _ effects: inout Effects) {
        guard sessions[x].standing.override != .none else { return }
        sessions[x].standing.override = .none
        effects.append(.selectOutput(sessions[x].id, uid: nil))
    }

    /// Marks the properties that changed; the list of sessions is unchanged.
    private mutating func tellRoutes(since before: Arbiter) {
        // Without a server, the properties show no route and no ports.
        if before.audio?.route ?? .none != audio?.route ?? .none { changes.insert(.route) }
        if before.audio?.inputs ?? [] != audio?.inputs ?? [] { changes.insert(.inputs) }
        if before.audio?.outputs ?? [] != audio?.outputs ?? [] { changes.insert(.outputs) }
        for x in sessions.indices {
            let old = before.sessions[x]
            if before.route(of: old) != route(of: sessions[x]) { sessions[x].standing.changes.insert(.route) }
            if before.availableInputs(of: old) != availableInputs(of: sessions[x]) {
                sessions[x].standing.changes.insert(.availableInputs)
            }
        }
    }

    /// Records whether the session has a usable input and output; true if that has just become false.
    @discardableResult
    mutating func noteLack(_ x: Int, _ kind: Cause.Kind = .lacks, at now: Instant) -> Bool {
        let lacks = lacksRoute(sessions[x])
        guard lacks != (sessions[x].lackCause != nil) else { return false }
        sessions[x].lackCause = lacks ? Cause(kind, .route, at: now) : nil
        return lacks
    }

    /// Notifies each session that just lost its last usable input or output, and once globally.
    mutating func tellLack(_ indices: [Int], at now: Instant, _ effects: inout Effects) {
        let lacking = indices.filter { noteLack($0, at: now) }
        guard let audio, !lacking.isEmpty else { return }
        for x in lacking {
            let own = route(of: sessions[x])
            effects.append(.routeChanged(sessions[x].id, .noSuitableRouteForCategory, previous: own, current: own))
        }
        effects.append(
            .routeChanged(nil, .noSuitableRouteForCategory, previous: audio.route, current: audio.route))
    }

    private func requireServer() throws(SessionError) {
        guard audio != nil else {
            throw SessionError(
                .mediaServicesFailed,
                "there is no sound server; start PulseAudio or PipeWire, and wait for ServicesReset")
        }
    }
}
