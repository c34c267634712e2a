import PluginAPI

/// What follows from all requests together: who is lowered, muted, hinted at, now playing.
///
/// Computed anew after every event; only what reads differently than before becomes an effect.
extension Arbiter {
    mutating func settle(_ effects: inout [Effect]) {
        var duckers = 0
        var sounding = 0
        var exclusive = 0
        var playing: (activation: UInt64, id: SessionID)?
        for x in sessions.indices {
            updateMuted(x, &effects)
            if sessions[x].isDucker { duckers += 1 }
            if sounds(x) {
                sounding += 1
                if !sessions[x].isMixable { exclusive += 1 }
            }
            if sessions[x].holdsClaim, sessions[x].canBeNowPlaying, sessions[x].activation > playing?.activation ?? 0 {
                playing = (sessions[x].activation, sessions[x].id)
            }
        }
        // Restrict before granting: those who are lowered come before those who come back up.
        for x in sessions.indices where !sessions[x].isDucked { updateDucked(x, duckers > 0, &effects) }
        for x in sessions.indices where sessions[x].isDucked { updateDucked(x, duckers > 0, &effects) }
        for x in sessions.indices {
            let own = sounds(x)
            let others = sounding - (own ? 1 : 0)
            let othersExclusive = exclusive - (own && !sessions[x].isMixable ? 1 : 0)
            updateHints(x, others > 0 || self.sounding?.others == true, othersExclusive > 0, &effects)
        }
        if playing?.id != nowPlaying {
            nowPlaying = playing?.id
            changes.insert(.nowPlaying)
        }
        tellProperties(&effects)
    }

    private func sounds(_ x: Int) -> Bool {
        guard let sounding else { return sessions[x].soundsByState }
        return sounding.sessions.contains(sessions[x].id)
    }

    private mutating func updateMuted(_ x: Int, _ effects: inout [Effect]) {
        let muted = (isSilentMode || isScreenLocked) && sessions[x].configuration.category.obeysSilentSwitch
        guard muted != sessions[x].isMuted else { return }
        sessions[x].isMuted = muted
        sessions[x].changes.insert(.muted)
        effects.append(.mutedChanged(sessions[x].id, muted))
    }

    private mutating func updateDucked(_ x: Int, _ isDucking: Bool, _ effects: inout [Effect]) {
        let ducked = isDucking && sessions[x].canBeDucked
        guard ducked != sessions[x].isDucked else { return }
        sessions[x].isDucked = ducked
        sessions[x].changes.insert(.ducked)
        effects.append(.duckingChanged(sessions[x].id, ducked: ducked, gain: ducked ? settings.duckGain : 0))
    }

    /// Told as they change to active sessions alone: with a thousand sessions waiting in the background, one that
    /// starts to play must not cost a thousand messages.
    private mutating func updateHints(_ x: Int, _ others: Bool, _ exclusive: Bool, _ effects: inout [Effect]) {
        sessions[x].otherAudioPlaying = others
        let changed = sessions[x].shouldSilenceSecondaryAudio != exclusive
        sessions[x].shouldSilenceSecondaryAudio = exclusive
        guard sessions[x].isActive else { return }
        if sessions[x].toldOtherAudioPlaying != others {
            sessions[x].toldOtherAudioPlaying = others
            sessions[x].changes.insert(.otherAudioPlaying)
        }
        if sessions[x].toldSilenceHint != exclusive {
            sessions[x].toldSilenceHint = exclusive
            sessions[x].changes.insert(.silenceHint)
        }
        if changed, sessions[x].isForeground {
            effects.append(.silenceSecondaryAudioHint(sessions[x].id, begin: exclusive))
        }
    }

    private mutating func tellProperties(_ effects: inout [Effect]) {
        for x in sessions.indices where !sessions[x].changes.isEmpty {
            effects.append(.propertiesChanged(sessions[x].id, sessions[x].changes))
            sessions[x].changes = []
        }
        if !changes.isEmpty {
            effects.append(.managerPropertiesChanged(changes))
            changes = []
        }
    }
}
