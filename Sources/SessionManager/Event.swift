public import PluginAPI

/// The events of the rules. Requests may be refused; facts may not.
public enum Event: Sendable, Hashable {
    // Requests of clients.
    case create(NewSession)
    case setCategory(SessionID, Configuration)
    case activate(SessionID)
    case deactivate(SessionID, notifyOthers: Bool)
    case overrideOutput(SessionID, OutputOverride)
    case setPreferredInput(SessionID, uid: String)
    case setPreferences(SessionID, Preferences)
    case close(SessionID)

    // Requests of the daemon around the rules.
    case setForeground(SessionID, Bool)
    case setSilentMode(Bool)
    case setScreenLocked(Bool)

    // Facts.
    /// The client disconnected from the bus, with all its sessions (R11).
    case clientVanished(ClientID)
    /// The sound server is connected, or connected again.
    case servicesReset(Audio)
    case servicesLost
    /// What the server offers now; the route changed, or could have changed.
    case routeChanged(RouteChangeReason, Audio)
    /// What the server offers now; the route is unchanged.
    case portsChanged(Audio)
    /// Nil: no server can be asked, and active sessions count as playing.
    case soundingChanged(Sounding?)
    /// The built-in microphone, while it is part of the route.
    case microphoneMuted(Bool)
    case settingsChanged(Arbiter.Settings)
    /// A session that was told to fall silent was heard at the server after its deadline.
    case interruptionIgnored(SessionID)
    /// The deadline of the rules (``Arbiter/nextDeadline``) has come.
    case timePassed

    /// The session a request is about.
    public var session: SessionID? {
        switch self {
        case .setCategory(let id, _), .activate(let id), .deactivate(let id, _), .overrideOutput(let id, _),
            .setPreferredInput(let id, _), .setPreferences(let id, _), .close(let id), .setForeground(let id, _),
            .interruptionIgnored(let id):
            id
        case .create, .setSilentMode, .setScreenLocked, .clientVanished, .servicesReset, .servicesLost, .routeChanged,
            .portsChanged, .soundingChanged, .microphoneMuted, .settingsChanged, .timePassed:
            nil
        }
    }

    /// The event's name in the history, lower case with hyphens.
    public var name: String {
        switch self {
        case .create: "create"
        case .setCategory: "set-category"
        case .activate: "activate"
        case .deactivate: "deactivate"
        case .overrideOutput: "override-output"
        case .setPreferredInput: "set-preferred-input"
        case .setPreferences: "set-preferences"
        case .close: "close"
        case .setForeground: "set-foreground"
        case .setSilentMode: "set-silent-mode"
        case .setScreenLocked: "set-screen-locked"
        case .clientVanished: "client-vanished"
        case .servicesReset: "services-reset"
        case .servicesLost: "services-lost"
        case .routeChanged: "route-changed"
        case .portsChanged: "ports-changed"
        case .soundingChanged: "sounding-changed"
        case .microphoneMuted: "microphone-muted"
        case .settingsChanged: "settings-changed"
        case .interruptionIgnored: "interruption-ignored"
        case .timePassed: "claim-expired"
        }
    }
}

/// What the sound server offers now; ports in the order of ``AudioSnapshot/availableInputs``: the last is the newest.
public struct Audio: Sendable, Hashable {
    public var route: Route
    public var inputs: [Port]
    public var outputs: [Port]

    /// A server without devices.
    public static let none = Audio(route: .none, inputs: [], outputs: [])

    public init(route: Route, inputs: [Port], outputs: [Port]) {
        self.route = route
        self.inputs = inputs
        self.outputs = outputs
    }
}

/// Which sessions play, judged by the server's streams.
public struct Sounding: Sendable, Hashable {
    /// The sessions with an audible stream.
    public var sessions: Set<SessionID>
    /// The adopted sessions whose players can be paused: an unplug pauses them too, whether they mix or not.
    public var pausable: Set<SessionID>
    /// Whether a program without a session plays.
    public var others: Bool

    public init(sessions: Set<SessionID>, pausable: Set<SessionID> = [], others: Bool) {
        self.sessions = sessions
        self.pausable = pausable
        self.others = others
    }
}
