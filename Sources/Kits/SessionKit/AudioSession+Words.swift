// The names of AVAudioSession, where those on D-Bus differ.

extension AudioSession {
    public typealias Category = PluginAPI.Category
    public typealias Mode = PluginAPI.Mode
    /// `Options`, under AVAudioSession's name.
    public typealias CategoryOptions = PluginAPI.Options
    public typealias InterruptionReason = PluginAPI.InterruptionReason
    public typealias RouteChangeReason = PluginAPI.RouteChangeReason
    /// `Route`, under AVAudioSession's name.
    public typealias RouteDescription = PluginAPI.Route
    /// AVAudioSession's name for a port; its Port is our `PortType`.
    public typealias Port = PluginAPI.Port
    /// `OutputOverride`, under AVAudioSession's name.
    public typealias PortOverride = PluginAPI.OutputOverride

    /// Options for deactivating.
    public struct SetActiveOptions: OptionSet, Sendable, Hashable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }

        /// Gives the interrupted sessions the should-resume hint.
        public static let notifyOthersOnDeactivation = SetActiveOptions(rawValue: 1)
    }

    /// An interruption of the session began or ended.
    public enum Interruption: Sendable, Hashable {
        /// The session is silent now. `by` is for display: the name of the interrupting session, or with
        /// `.routeDisconnected` the unplugged output; empty if there is neither.
        case began(reason: InterruptionReason, by: String)
        /// The session is inactive now. With `.shouldResume`, activate it and resume.
        case ended(options: InterruptionOptions)
    }

    /// The recommendation at the end of an interruption.
    public struct InterruptionOptions: OptionSet, Sendable, Hashable, CustomStringConvertible {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }

        /// `[shouldResume]` or `[]`.
        public var description: String { contains(.shouldResume) ? "[shouldResume]" : "[]" }

        /// The session should resume.
        public static let shouldResume = InterruptionOptions(rawValue: 1)
    }

    /// A change of the route and its reason. Both routes contain only the part that the session's category uses.
    public struct RouteChange: Sendable, Hashable {
        public let reason: RouteChangeReason
        public let previousRoute: RouteDescription
        public let currentRoute: RouteDescription
    }

    /// Whether secondary sound should be silent from now on (`begin`), or no longer (`end`).
    public enum SilenceSecondaryAudioHintType: Sendable, Hashable {
        case begin, end
    }

    /// AVAudioSession's mediaServicesWereLost and mediaServicesWereReset.
    public enum MediaServicesEvent: Sendable, Hashable {
        /// The sound server or the daemon is gone: there is no sound, or the rules are not applied.
        case lost
        /// It is back, and so is the session: open streams must be opened again.
        case reset
    }

    /// How loud a session may be now.
    public struct Loudness: Sendable, Hashable {
        /// Decibels, 0 if the session is not ducked, else negative.
        public let gain: Double
        /// Whether the silent switch or the screen lock mutes the session.
        public let isMuted: Bool
    }
}
