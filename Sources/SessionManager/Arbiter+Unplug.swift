import PluginAPI

/// Outputs that are unplugged, and come back (rules §7).
///
/// Each session has its own outputs: those on which its streams were last heard (``Sounding/outputs``), or those of the
/// route if it never had a stream.
extension Arbiter {
    /// Outputs went, of the route or others. Of the sessions that used them, those that can be paused are interrupted, the
    /// most recently active one first. Sessions that are interrupted already must not resume elsewhere.
    ///
    /// - Parameter kept: outputs that are still there under another name.
    mutating func judgeLoss(since old: Audio, beside kept: [Port] = [], at now: Instant, _ effects: inout Effects) {
        guard let audio else { return }
        let lost = audio.lost(since: old).filter { port in !kept.contains { $0.uid == port.uid } }
        guard !lost.isEmpty else { return }
        for x in sessions.indices {
            guard let interruption = sessions[x].interruption, interruption.endsByItself else { continue }
            let own = lost.filter { uses(x, $0, in: old.route) }.map(AwayOutput.init)
            setAway(x, interruption.away + own.filter { !interruption.away.contains($0) })
        }
        let paused = sessions.indices.compactMap { x -> (x: Int, own: [AwayOutput])? in
            guard isPausedByUnplug(x) else { return nil }
            let own = lost.filter { uses(x, $0, in: old.route) }.map(AwayOutput.init)
            return own.isEmpty ? nil : (x, own)
        }
        for (x, own) in paused.sorted(by: { activation(of: $0.x) > activation(of: $1.x) }) {
            // An adopted program that was asked to resume a moment ago, and is about to.
            if sessions[x].claimExpires != nil { dropClaim(x, .inactive, at: now) }
            begin(x, .routeDisconnected, by: nil, own.first?.name ?? "", away: own, at: now, rule: .route, &effects)
        }
    }

    /// Outputs that came back during an interruption are as if they had never gone.
    mutating func noteRegained(since old: Audio?) {
        guard let audio else { return }
        for x in sessions.indices {
            // A pause because of an unplug ends only when the output is in the route again.
            guard let interruption = sessions[x].interruption, interruption.lacksOutput else { continue }
            let back = audio.gained(since: old)
            setAway(x, interruption.away.filter { output in !back.contains(where: output.isSame) })
        }
    }

    private mutating func setAway(_ x: Int, _ outputs: [AwayOutput]) {
        guard sessions[x].interruption?.away != outputs else { return }
        sessions[x].interruption?.away = outputs
        remembersMore = true
    }

    /// A replug in time ends the pause with the should-resume hint; sound that is only held continues at any time. If the user or another session has ended or
    /// extended the interruption in the meantime, there is no hint.
    mutating func offerAfterReplug(_ before: [Port], at now: Instant, _ effects: inout Effects) {
        guard let audio else { return }
        let back = audio.route.outputs.filter { port in !before.contains { $0.uid == port.uid } }
        let offered = sessions.indices.filter { x in
            guard let interruption = sessions[x].interruption, interruption.reason == .routeDisconnected else {
                return false
            }
            return sessions[x].waitingFor.isEmpty
                && interruption.away.contains { back.contains(where: $0.isSame) }
                && (sounding?.holdable.contains(sessions[x].id) == true
                    || settings.replug > 0 && now <= interruption.since.advanced(bySeconds: settings.replug))
        }
        end(offered, by: nil, at: now, rule: .route, &effects)
    }

    /// If only an unplugged output keeps the session silent: when a replug no longer ends that with the hint.
    public func awaitsUserFrom(_ session: Session) -> Instant? {
        guard let interruption = session.interruption, interruption.reason == .routeDisconnected,
            session.waitingFor.isEmpty
        else { return nil }
        return interruption.since.advanced(bySeconds: settings.replug)
    }

    /// The output to request when a part of the route is gone and this remains; nil if the loss pauses a session, and
    /// must be reported at once.
    public func routeChoice(afterLossOn audio: Audio) -> RouteChoice? {
        if let old = self.audio {
            let lost = audio.lost(since: old)
            let pauses = sessions.indices.contains { x in
                isPausedByUnplug(x) && lost.contains { uses(x, $0, in: old.route) }
            }
            if pauses { return nil }
        }
        var after = self
        after.audio = audio
        var told = Effects()
        after.forgetOverrides(&told)
        return after.routeChoice
    }

    /// Whether sound must not continue elsewhere when the route's output is unplugged. Built-in outputs never count.
    public var guardsOutput: Bool {
        guard let route = audio?.route, let output = route.outputs.first else { return false }
        switch output.type {
        case .speaker, .receiver: return false
        case .lineIn, .microphoneBuiltIn, .microphoneWired, .lineOut, .headphones, .bluetoothA2DP, .hdmi, .airPlay,
            .displayPort, .bluetoothHFP, .usbAudio, .carAudio, .virtual, .pci:
            return sessions.indices.contains { isPausedByUnplug($0) && uses($0, output, in: route) }
        }
    }

    /// Whether the session is paused if its output is unplugged: the now-playing session, and adopted players that can be
    /// paused. Such a player also while it has been asked to resume.
    private func isPausedByUnplug(_ x: Int) -> Bool {
        // Asked after every event for every session: without a copy of the session.
        guard settings.pausesOnUnplug, sessions[x].standing.mayBePausedByUnplug else { return false }
        let id = sessions[x].id
        if sounding?.exempt.contains(id) == true { return false }
        if sounding?.holdable.contains(id) == true { return sessions[x].standing.isActive }
        if sounding?.pausable.contains(id) == true { return sessions[x].standing.isActive || sessions[x].mayResume }
        return sessions[x].standing.isActive && id == nowPlaying
    }

    /// Whether the port is one of the session's outputs.
    private func uses(_ x: Int, _ port: Port, in route: Route) -> Bool {
        guard sessions[x].configuration.category.hasOutput else { return false }
        // A headset is one output in all its profiles: music was heard on it before a call made it hands-free.
        if let outputs = sounding?.outputs[sessions[x].id] {
            return outputs.contains(port.uid)
                || port.isHeadset && outputs.contains { port.device == Port.device(of: $0) }
        }
        return route.outputs.contains { $0.uid == port.uid }
    }

    private func activation(of x: Int) -> UInt64 { sessions[x].standing.activation }
}

extension Audio {
    /// The outputs that were there before and are gone; an unplugged one counts as gone, a headset in another profile does
    /// not. The route may use an output that is not in the list.
    fileprivate func lost(since old: Audio) -> [Port] {
        let before = old.outputs + old.route.outputs.filter { port in !old.outputs.contains { $0.uid == port.uid } }
        return before.filter { old in
            old.isAvailable && !outputs.contains { $0.isAvailable && AwayOutput(old).isSame(as: $0) }
        }
    }

    /// The outputs that are there now and were not before; nil: nothing is known of before.
    fileprivate func gained(since old: Audio?) -> [Port] {
        outputs.filter { port in
            port.isAvailable && old?.outputs.contains { $0.uid == port.uid && $0.isAvailable } != true
        }
    }
}
