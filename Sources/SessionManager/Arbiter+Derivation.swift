import PluginAPI

/// The state that results from all requests together: which sessions are ducked or muted, get the hint, or are now
/// playing.
///
/// It is computed again after every event. Only changed values become effects.
extension Arbiter {
    mutating func settle(at now: Instant, _ effects: inout Effects) {
        var duckers = 0
        var ducker = 0
        var sounding = 0
        var exclusive = 0
        var playing: (activation: UInt64, id: SessionID)?
        let mutes = isSilentMode || isScreenLocked
        let byState = self.sounding == nil
        for x in sessions.indices {
            let isMuted = mutes && sessions[x].standing.obeysSilentSwitch
            if isMuted != sessions[x].standing.isMuted { toggleMuted(x, at: now, &effects) }
            let standing = sessions[x].standing
            if standing.isDucker {
                if duckers == 0 || standing.activation > sessions[ducker].standing.activation { ducker = x }
                duckers += 1
            }
            if standing.sounds(byState: byState) {
                sounding += 1
                if !standing.isMixable { exclusive += 1 }
            }
            if standing.holdsClaim, standing.canBeNowPlaying, standing.activation > playing?.activation ?? 0 {
                playing = (standing.activation, sessions[x].id)
            }
        }
        let othersSound = self.sounding?.others == true
        for x in sessions.indices {
            let standing = sessions[x].standing
            let own = standing.sounds(byState: byState)
            let ducked = duckers > 0 && standing.canBeDucked(orAlert: settings.ducksAlerts)
            let others = othersSound || sounding - (own ? 1 : 0) > 0
            let othersExclusive = exclusive - (own && !standing.isMixable ? 1 : 0) > 0
            // Most sessions do not change in most events: they must cost next to nothing.
            if standing.reads(ducked: ducked, others: others, exclusive: othersExclusive) { continue }
            updateDucked(x, by: ducked ? ducker : nil, at: now, &effects)
            updateHints(x, others, othersExclusive, &effects)
        }
        if playing?.id != nowPlaying {
            nowPlaying = playing?.id
            changes.insert(.nowPlaying)
        }
        tellProperties(&effects)
    }

    /// Applies what the server's streams show.
    mutating func hear(_ sounding: Sounding?) {
        if self.sounding != sounding { remembersMore = true }
        self.sounding = sounding
        for x in sessions.indices {
            sessions[x].standing.isHeard = sounding?.sessions.contains(sessions[x].id) == true
        }
    }

    private mutating func toggleMuted(_ x: Int, at now: Instant, _ effects: inout Effects) {
        let muted = !sessions[x].standing.isMuted
        sessions[x].standing.isMuted = muted
        sessions[x].muteCause = muted ? Cause(.muted, .silentSwitch, at: now) : nil
        sessions[x].standing.changes.insert(.muted)
        let effect = Effect.mutedChanged(sessions[x].id, muted)
        if muted { effects.restrict(effect) } else { effects.grant(effect) }
    }

    private mutating func updateDucked(_ x: Int, by ducker: Int?, at now: Instant, _ effects: inout Effects) {
        let ducked = ducker != nil
        guard ducked != sessions[x].standing.isDucked else { return }
        sessions[x].standing.isDucked = ducked
        sessions[x].duckCause = nil
        if ducked, let ducker {
            sessions[x].duckCause = Cause(
                .lowered, .matrix, at: now, by: sessions[ducker].id, sessions[ducker].name)
        }
        sessions[x].standing.changes.formUnion([.ducked, .duckGain])
        let effect = Effect.duckingChanged(sessions[x].id, ducked: ducked, gain: ducked ? settings.duckGain : 0)
        if ducked { effects.restrict(effect) } else { effects.grant(effect) }
    }

    /// Changes are sent to active sessions only: with a thousand sessions waiting in the background, one that starts
    /// to play must not cause a thousand messages.
    private mutating func updateHints(_ x: Int, _ others: Bool, _ exclusive: Bool, _ effects: inout Effects) {
        sessions[x].standing.otherAudioPlaying = others
        let changed = sessions[x].standing.shouldSilenceSecondaryAudio != exclusive
        sessions[x].standing.shouldSilenceSecondaryAudio = exclusive
        guard sessions[x].standing.isActive else { return }
        if sessions[x].standing.toldOtherAudioPlaying != others {
            sessions[x].standing.toldOtherAudioPlaying = others
            sessions[x].standing.changes.insert(.otherAudioPlaying)
        }
        if sessions[x].standing.toldSilenceHint != exclusive {
            sessions[x].standing.toldSilenceHint = exclusive
            sessions[x].standing.changes.insert(.silenceHint)
        }
        if changed, sessions[x].standing.isForeground {
            effects.append(.silenceSecondaryAudioHint(sessions[x].id, begin: exclusive))
        }
    }

    private mutating func tellProperties(_ effects: inout Effects) {
        for x in sessions.indices where !sessions[x].standing.changes.isEmpty {
            let changed = sessions[x].standing.changes
            sessions[x].standing.changes = []
            // With a thousand waiting sessions, one that starts or leaves must not cause a thousand effects.
            if changed == .waitingFor { continue }
            effects.append(.propertiesChanged(sessions[x].id, changed))
            for place in waitChanges.indices { waitChanges[place].waiters.remove(sessions[x].id) }
        }
        if !waitChanges.isEmpty {
            for change in waitChanges where !change.waiters.isEmpty { effects.append(.waitsChanged(change)) }
            waitChanges.removeAll(keepingCapacity: true)
        }
        if !changes.isEmpty {
            effects.append(.managerPropertiesChanged(changes))
            changes = []
        }
    }
}
