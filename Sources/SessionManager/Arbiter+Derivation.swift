import PluginAPI

/// What follows from all requests together: who is lowered, muted, hinted at, now playing.
///
/// Computed anew after every event; only what reads differently than before becomes an effect.
extension Arbiter {
    mutating func settle(at now: Instant, _ effects: inout Effects) {
        var duckers = 0
        var ducker = 0
        var sounding = 0
        var exclusive = 0
        var playing: (activation: UInt64, id: SessionID)?
        for x in sessions.indices {
            updateMuted(x, at: now, &effects)
            if sessions[x].standing.isDucker {
                if duckers == 0 || sessions[x].standing.activation > sessions[ducker].standing.activation { ducker = x }
                duckers += 1
            }
            if sounds(x) {
                sounding += 1
                if !sessions[x].standing.isMixable { exclusive += 1 }
            }
            if sessions[x].standing.holdsClaim, sessions[x].standing.canBeNowPlaying,
                sessions[x].standing.activation > playing?.activation ?? 0
            {
                playing = (sessions[x].standing.activation, sessions[x].id)
            }
        }
        for x in sessions.indices {
            updateDucked(x, by: duckers > 0 ? ducker : nil, at: now, &effects)
            let own = sounds(x)
            let others = sounding - (own ? 1 : 0)
            let othersExclusive = exclusive - (own && !sessions[x].standing.isMixable ? 1 : 0)
            updateHints(x, others > 0 || self.sounding?.others == true, othersExclusive > 0, &effects)
        }
        if playing?.id != nowPlaying {
            nowPlaying = playing?.id
            changes.insert(.nowPlaying)
        }
        tellProperties(&effects)
    }

    private func sounds(_ x: Int) -> Bool {
        guard let sounding else { return sessions[x].standing.soundsByState }
        return sounding.sessions.contains(sessions[x].id)
    }

    private mutating func updateMuted(_ x: Int, at now: Instant, _ effects: inout Effects) {
        let muted = (isSilentMode || isScreenLocked) && sessions[x].standing.configuration.category.obeysSilentSwitch
        guard muted != sessions[x].standing.isMuted else { return }
        sessions[x].standing.isMuted = muted
        sessions[x].muteCause = muted ? Cause(.muted, .silentSwitch, at: now) : nil
        sessions[x].standing.changes.insert(.muted)
        let effect = Effect.mutedChanged(sessions[x].id, muted)
        if muted { effects.restrict(effect) } else { effects.grant(effect) }
    }

    private mutating func updateDucked(_ x: Int, by ducker: Int?, at now: Instant, _ effects: inout Effects) {
        let ducked = ducker != nil && sessions[x].standing.canBeDucked
        guard ducked != sessions[x].standing.isDucked else { return }
        sessions[x].standing.isDucked = ducked
        sessions[x].duckCause = nil
        if ducked, let ducker {
            sessions[x].duckCause = Cause(
                .lowered, .matrix, at: now, by: sessions[ducker].id, sessions[ducker].name)
        }
        sessions[x].standing.changes.insert(.ducked)
        let effect = Effect.duckingChanged(sessions[x].id, ducked: ducked, gain: ducked ? settings.duckGain : 0)
        if ducked { effects.restrict(effect) } else { effects.grant(effect) }
    }

    /// Told as they change to active sessions alone: with a thousand sessions waiting in the background, one that
    /// starts to play must not cost a thousand messages.
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
            effects.append(.propertiesChanged(sessions[x].id, sessions[x].standing.changes))
            sessions[x].standing.changes = []
        }
        if !changes.isEmpty {
            effects.append(.managerPropertiesChanged(changes))
            changes = []
        }
    }
}
