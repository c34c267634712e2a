public import PluginAPI

/// Everything that can happen to the core. Requests may be refused; facts may not.
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

    // Requests of the shell around us.
    case setForeground(SessionID, Bool)
    case setSilentMode(Bool)
    case setScreenLocked(Bool)

    // Facts.
    /// Its connection is gone from the bus, and all its sessions with it (R11).
    case clientVanished(ClientID)
    /// The sound server is there, or there again.
    case servicesReset(Audio)
    case servicesLost
    /// What the server offers now, where the route is another one, or one it could have been.
    case routeChanged(RouteChangeReason, Audio)
    /// The same where the route is as it was.
    case portsChanged(Audio)
    /// Nil: no server can be asked, and who is active counts as sounding.
    case soundingChanged(Sounding?)
    /// The built-in microphone, while it is in the route.
    case microphoneMuted(Bool)
    case settingsChanged(Arbiter.Settings)
    /// A session that was told to fall silent was heard at the server after the time it had for it.
    case interruptionIgnored(SessionID)
    /// The deadline the core asked for (``Arbiter/nextDeadline``) has come.
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

/// What the audio server offers now; ports in the order of ``AudioSnapshot/availableInputs``: the last is the newest.
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

/// Who sounds, judged by the server's streams.
public struct Sounding: Sendable, Hashable {
    /// Those of whom something that plays can be heard.
    public var sessions: Set<SessionID>
    /// Those of the sessions whose programs never spoke to us and play by a player that can be paused: they are paused
    /// with their output, too, whether they mix or not.
    public var pausable: Set<SessionID>
    /// Whether a program that is no session sounds.
    public var others: Bool

    public init(sessions: Set<SessionID>, pausable: Set<SessionID> = [], others: Bool) {
        self.sessions = sessions
        self.pausable = pausable
        self.others = others
    }
}
