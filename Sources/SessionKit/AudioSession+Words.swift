// The words of AVAudioSession, where the contract has others.

extension AudioSession {
    public typealias Category = PluginAPI.Category
    public typealias Mode = PluginAPI.Mode
    /// `Options`, by AVAudioSession's name.
    public typealias CategoryOptions = PluginAPI.Options
    public typealias InterruptionReason = PluginAPI.InterruptionReason
    public typealias RouteChangeReason = PluginAPI.RouteChangeReason
    /// `Route`, by AVAudioSession's name.
    public typealias RouteDescription = PluginAPI.Route
    /// What AVAudioSession calls a port description; its Port is our `PortType`.
    public typealias Port = PluginAPI.Port
    /// `OutputOverride`, by AVAudioSession's name.
    public typealias PortOverride = PluginAPI.OutputOverride

    /// How to give the sound back.
    public struct SetActiveOptions: OptionSet, Sendable, Hashable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }

        /// Recommends to those who were interrupted that they resume.
        public static let notifyOthersOnDeactivation = SetActiveOptions(rawValue: 1)
    }

    /// The sound was taken from the session, or may be had again.
    public enum Interruption: Sendable, Hashable {
        /// It is silent now. `by` is for people: who has the sound; with `.routeDisconnected`, the output that went; empty
        /// where it is neither.
        case began(reason: InterruptionReason, by: String)
        /// It is inactive now: with `.shouldResume`, activate it and go on.
        case ended(options: InterruptionOptions)
    }

    /// What is recommended at the end of an interruption.
    public struct InterruptionOptions: OptionSet, Sendable, Hashable, CustomStringConvertible {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }

        /// `[shouldResume]` or `[]`.
        public var description: String { contains(.shouldResume) ? "[shouldResume]" : "[]" }

        /// The one who was interrupted may go on by itself.
        public static let shouldResume = InterruptionOptions(rawValue: 1)
    }

    /// Another route, and why; of both routes the part that the session's category uses.
    public struct RouteChange: Sendable, Hashable {
        public let reason: RouteChangeReason
        public let previousRoute: RouteDescription
        public let currentRoute: RouteDescription
    }

    /// Whether secondary sound should be silent from now on (`begin`), or need not be any more (`end`).
    public enum SilenceSecondaryAudioHintType: Sendable, Hashable {
        case begin, end
    }

    /// What AVAudioSession posts as mediaServicesWereLost and mediaServicesWereReset.
    public enum MediaServicesEvent: Sendable, Hashable {
        /// The sound server or the daemon is away: nothing is heard, or nobody arbitrates.
        case lost
        /// It is back, and the session with it: streams that were open must be opened again.
        case reset
    }

    /// How loud a session may be now.
    public struct Loudness: Sendable, Hashable {
        /// Decibels, 0 where it is not lowered, else below.
        public let gain: Double
        /// Under the silent switch or the screen lock, in a category that heeds them.
        public let isMuted: Bool
    }
}
