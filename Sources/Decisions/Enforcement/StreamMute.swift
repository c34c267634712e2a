import PluginAPI

/// The daemon's part in the mute switch of a stream.
enum StreamMute: Sendable, Hashable, Codable {
    /// The switch is as the user left it.
    ///
    /// Can transition to: `turningOn`.
    case off
    /// Set by the daemon; the server has not shown it yet.
    ///
    /// Can transition to: `on`, when it is shown or refused; `turningOff`; `off`, when the server has placed the stream again
    /// without it.
    case turningOn
    /// Shown.
    ///
    /// Can transition to: `turningOff`; `off`, when somebody else has reset it.
    case on
    /// Reset by the daemon; the server has not shown it yet.
    ///
    /// Can transition to: `off`, when that is shown or refused; `turningOn`.
    case turningOff

    /// Whether the daemon has set it.
    var isOn: Bool {
        switch self {
        case .off, .turningOff: false
        case .turningOn, .on: true
        }
    }

    /// The server has shown the last command, or refused it.
    mutating func settle() { self = isOn ? .on : .off }

    /// The server shows the switch. If neither the daemon's state nor the last command explains it, it is the user's.
    mutating func shown(_ isMuted: Bool, _ base: inout StreamBase) {
        if isMuted == (base.isMuted || isOn) { return settle() }
        switch self {
        case .turningOn, .turningOff: return
        case .on: base.isMuteTheirs = true
        case .off: break
        }
        base.isMuted = isMuted
        self = .off
    }

    /// The server has placed the stream again.
    mutating func placedAgain(_ isMuted: Bool, _ base: StreamBase) {
        self = isOn && (base.isMuted || isMuted) ? .on : .off
    }

    mutating func turnOn(_ check: inout StreamCheck) {
        self = .turningOn
        check.add(.setMuted(check.stream.id, true))
    }

    mutating func turnOff(_ base: StreamBase, _ check: inout StreamCheck) {
        guard isOn else { return }
        self = .turningOff
        check.add(.setMuted(check.stream.id, base.isMuted))
    }
}
