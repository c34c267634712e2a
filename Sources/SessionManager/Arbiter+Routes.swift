import PluginAPI

/// The route, the ports and the server (behaviour §7, §8).
extension Arbiter {
    mutating func servicesReset(_ audio: Audio, _ effects: inout [Effect]) {
        let wasConnected = self.audio != nil
        self.audio = audio
        if !wasConnected {
            effects.append(.servicesReset)
            changes.insert(.server)
        }
        changes.formUnion([.route, .ports])
        markRoutes()
    }

    mutating func servicesLost(_ effects: inout [Effect]) {
        guard audio != nil else { return }
        audio = nil
        sounding = nil
        effects.append(.servicesLost)
        changes.formUnion([.server, .route, .ports])
        forgetOverrides(&effects)
        for x in sessions.indices { forgetVanishedInput(x, &effects) }
        markRoutes()
    }

    mutating func portsChanged(_ audio: Audio, _ effects: inout [Effect]) {
        guard self.audio != audio else { return }
        // The first word of the server is no reset: nothing was lost before it.
        if self.audio == nil {
            changes.insert(.server)
            markRoutes()
        }
        self.audio = audio
        changes.formUnion([.route, .ports])
        for x in sessions.indices {
            forgetVanishedInput(x, &effects)
            if sessions[x].configuration.category.hasInput { sessions[x].changes.insert(.availableInputs) }
        }
    }

    /// Told to every session whose own route it changes, and once globally; then, where the output went, the
    /// now-playing session is paused (§7).
    mutating func routeChanged(
        _ reason: RouteChangeReason, _ audio: Audio, at now: Instant, _ effects: inout [Effect]
    ) {
        guard let before = self.audio else { return }
        let previous = sessions.map { route(of: $0) }
        self.audio = audio
        changes.formUnion([.route, .ports])
        forgetOverrides(&effects)
        for x in sessions.indices {
            forgetVanishedInput(x, &effects)
            if sessions[x].configuration.category.hasInput { sessions[x].changes.insert(.availableInputs) }
            let current = route(of: sessions[x])
            guard current != previous[x] else { continue }
            sessions[x].changes.insert(.route)
            effects.append(.routeChanged(sessions[x].id, reason, previous: previous[x], current: current))
        }
        effects.append(.routeChanged(nil, reason, previous: before.route, current: audio.route))
        if reason == .oldDeviceUnavailable { pauseAfterUnplug(before.route.outputs, at: now, &effects) }
    }

    mutating func overrideOutput(
        _ x: Int, _ override: OutputOverride, _ effects: inout [Effect]
    ) throws(SessionError) {
        let category = sessions[x].configuration.category
        guard category == .playAndRecord else {
            throw SessionError(
                .incompatibleCategory,
                "the output can be overridden in 'play-and-record' only, not in '\(category.rawValue)'")
        }
        try requireServer()
        guard sessions[x].override != override else { return }
        let previous = route(of: sessions[x])
        sessions[x].override = override
        sessions[x].changes.insert(.route)
        effects.append(.selectOutput(sessions[x].id, uid: override == .speaker ? speaker?.uid : nil))
        effects.append(
            .routeChanged(sessions[x].id, .override, previous: previous, current: route(of: sessions[x])))
    }

    mutating func setPreferredInput(_ x: Int, _ uid: String, _ effects: inout [Effect]) throws(SessionError) {
        if !uid.isEmpty {
            guard sessions[x].configuration.category.hasInput else {
                throw .badParameter(
                    "category '\(sessions[x].configuration.category.rawValue)' has no input to prefer; set another first"
                )
            }
            try requireServer()
            guard availableInputs(of: sessions[x]).contains(where: { $0.uid == uid }) else {
                throw .badParameter("no input \(quoted(uid)); use a uid of AvailableInputs")
            }
        }
        guard sessions[x].preferredInput != uid else { return }
        let previous = route(of: sessions[x])
        sessions[x].preferredInput = uid
        sessions[x].changes.formUnion([.preferredInput, .route])
        effects.append(.selectInput(sessions[x].id, uid: uid.isEmpty ? nil : uid))
        let current = route(of: sessions[x])
        if current != previous {
            effects.append(
                .routeChanged(sessions[x].id, .routeConfigurationChange, previous: previous, current: current))
        }
    }

    mutating func setPreferences(
        _ x: Int, _ preferences: Preferences, at now: Instant, _ effects: inout [Effect]
    ) {
        guard sessions[x].preferences != preferences else { return }
        sessions[x].preferences = preferences
        sessions[x].changes.insert(.preferences)
        dissolveWaits(at: now, &effects)
    }

    /// A preferred input reads empty again once its port is gone, or its category has no input.
    mutating func forgetVanishedInput(_ x: Int, _ effects: inout [Effect]) {
        let uid = sessions[x].preferredInput
        guard !uid.isEmpty, !availableInputs(of: sessions[x]).contains(where: { $0.uid == uid }) else { return }
        sessions[x].preferredInput = ""
        sessions[x].changes.insert(.preferredInput)
        effects.append(.selectInput(sessions[x].id, uid: nil))
    }

    private mutating func forgetOverrides(_ effects: inout [Effect]) {
        for x in sessions.indices where sessions[x].override != .none {
            sessions[x].override = .none
            sessions[x].changes.insert(.route)
            effects.append(.selectOutput(sessions[x].id, uid: nil))
        }
    }

    private mutating func markRoutes() {
        for x in sessions.indices { sessions[x].changes.formUnion([.route, .availableInputs]) }
    }

    private mutating func pauseAfterUnplug(_ outputs: [Port], at now: Instant, _ effects: inout [Effect]) {
        guard let audio, outputs.contains(where: { old in !audio.outputs.contains { $0.uid == old.uid } }),
            let id = nowPlaying, let x = index(of: id), sessions[x].isActive,
            sessions[x].preferences.interruptsOnRouteDisconnect
        else { return }
        begin(x, .routeDisconnected, by: nil, "", at: now, rule: .route, &effects)
    }

    private func requireServer() throws(SessionError) {
        guard audio != nil else {
            throw SessionError(
                .mediaServicesFailed,
                "there is no audio server; start PulseAudio or PipeWire, and wait for ServicesReset")
        }
    }
}
