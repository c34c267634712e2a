public import DBus
public import PluginAPI

/// The requests of the exported objects to the daemon: decoded arguments in, answers or refusals out.
///
/// `caller` is the unique name of the calling connection. Everything is called on the loop's thread.
public protocol SessionService: AnyObject {
    // Manager.
    /// Answers at once, or when the bus has identified the caller; then the session is on the bus.
    func createSession(
        _ request: SessionRequest, caller: String, _ reply: @escaping (Result<SessionID, Failure>) -> Void)
    /// All sessions in the order of creation, each as ``SessionObject/listed()``.
    var listedSessions: [Value] { get }
    func setSilentMode(_ on: Bool, caller: String) throws(SessionError)
    func setScreenLocked(_ locked: Bool, caller: String) throws(SessionError)
    /// Throws `BadParameter` or `ExpiredSession` if the session does not exist.
    func setForeground(_ id: SessionID, _ foreground: Bool, caller: String) throws(SessionError)
    /// At most that many, each an a{sv}, newest last.
    func history(before sequence: UInt64, _ count: UInt32) -> [Value]
    /// A scenario that repeats the latest decisions.
    func exportHistory(isPrivate: Bool) -> String
    /// Each an a{sv}.
    func explain(_ id: SessionID) throws(SessionError) -> [Value]
    /// The streams at the sound server, each an a{sv}.
    var listedStreams: [Value] { get }
    /// What the service itself did in the last minute.
    var recentWork: (wakeUps: UInt64, processor: UInt64) { get }
    var manager: ManagerDescription { get }

    // Session: after `authorize`, for the owner only.
    func setCategory(_ id: SessionID, _ configuration: Configuration, caller: String) throws(SessionError)
    func activate(_ id: SessionID, caller: String) throws(SessionError)
    func deactivate(_ id: SessionID, notifyOthers: Bool, caller: String) throws(SessionError)
    func overrideOutput(_ id: SessionID, _ override: OutputOverride, caller: String) throws(SessionError)
    func setPreferredInput(_ id: SessionID, uid: String, caller: String) throws(SessionError)
    /// Changes the session's preferences.
    func setPreferences(_ id: SessionID, _ change: (inout Preferences) -> Void, caller: String) throws(SessionError)
    func close(_ id: SessionID, caller: String) throws(SessionError)
    /// Throws `notOwner` if the session belongs to another client, before an argument is read.
    func authorize(_ id: SessionID, caller: String) throws(SessionError)
    /// Throws if the caller may not change shared state.
    func authorizeSwitch(caller: String) throws(Failure)
    /// Nil if it is closed.
    func describe(_ id: SessionID) -> SessionDescription?
    /// The same, for a client's read: see ``SessionObject/wasRead()``.
    func read(_ id: SessionID) -> SessionDescription?
    /// The number of sessions it waits for.
    func waitCount(of id: SessionID) -> Int
}

/// The arguments of `CreateSession`.
public struct SessionRequest {
    /// For display; its length is not checked yet.
    public let name: String
    public let configuration: Configuration
    public let sessionClass: SessionClass
    /// Without directory and extension; empty: none.
    public let desktopEntry: String
    /// A process that plays for the caller; nil: the caller itself.
    public let processID: UInt32?
    /// Whether a disconnect counts as deactivating with notify-others.
    public let notifiesOnExit: Bool
    /// Whether it ducks its own sound when it gets the signal.
    public let lowersItself: Bool

    private static let known = [
        "category", "mode", "options", "class", "desktop-entry", "pid", "notify-on-exit", "lowers-itself",
    ]

    package init(_ name: String, _ options: Value) throws(Failure) {
        let reader = try OptionReader(options, known: SessionRequest.known)
        self.name = name
        desktopEntry = try reader.string("desktop-entry") ?? ""
        guard !desktopEntry.unicodeScalars.contains(where: { $0 == "/" || $0.value < 0x20 || $0.value == 0x7f }) else {
            throw Failure(
                .badParameter(
                    "\(quoted(desktopEntry)) is not a desktop entry id; use the file name without directory and .desktop"
                ))
        }
        processID = try reader.uint32("pid")
        notifiesOnExit = try reader.bool("notify-on-exit") ?? false
        lowersItself = try reader.bool("lowers-itself") ?? false
        let mode = try reader.string("mode") ?? Mode.default.rawValue
        let names = try reader.strings("options") ?? []
        let className = try reader.string("class") ?? SessionClass.app.rawValue
        guard let sessionClass = SessionClass(rawValue: className) else {
            throw Failure(.badParameter("unknown class \(quoted(className)); use app, alert or call"))
        }
        self.sessionClass = sessionClass
        let category = try reader.string("category") ?? Category.initial(of: sessionClass).rawValue
        do throws(SessionError) {
            configuration = try Configuration(category: category, mode: mode, options: names)
        } catch {
            throw Failure(error)
        }
    }
}

/// The manager's properties, by the contract's names; empty values if there is no server.
public struct ManagerDescription {
    public var sequence: UInt64
    public var version: String
    public var isSilentMode: Bool
    public var isScreenLocked: Bool
    public var nowPlaying: SessionID?
    public var route: Route
    public var inputs: [Port]
    public var outputs: [Port]
    public var isServerConnected: Bool
    public var serverName: String
    /// Other software with its own rules.
    public var neighbours: [(name: String, does: String)]
    public var ducking: DuckingDescription
    /// Why the settings were not read again when that was asked for; empty: they were.
    public var settingsError: String

    public init(
        sequence: UInt64, version: String, isSilentMode: Bool, isScreenLocked: Bool, nowPlaying: SessionID?,
        route: Route, inputs: [Port], outputs: [Port], isServerConnected: Bool, serverName: String,
        neighbours: [(name: String, does: String)], ducking: DuckingDescription, settingsError: String
    ) {
        self.sequence = sequence
        self.version = version
        self.isSilentMode = isSilentMode
        self.isScreenLocked = isScreenLocked
        self.nowPlaying = nowPlaying
        self.route = route
        self.inputs = inputs
        self.outputs = outputs
        self.isServerConnected = isServerConnected
        self.serverName = serverName
        self.neighbours = neighbours
        self.ducking = ducking
        self.settingsError = settingsError
    }
}

/// How a client ducks its own sound: gain in decibels, the times in seconds.
public struct DuckingDescription: Sendable, Hashable {
    public var gain: Double
    public var attack: Double
    public var release: Double
    public var hold: Double

    public init(gain: Double, attack: Double, release: Double, hold: Double) {
        self.gain = gain
        self.attack = attack
        self.release = release
        self.hold = hold
    }
}

/// A session's properties, by the contract's names.
public struct SessionDescription: Equatable {
    public var name: String
    public var configuration: Configuration
    public var sessionClass: SessionClass
    public var state: SessionState
    /// When the state last changed, in microseconds of the monotonic clock.
    public var stateSince: UInt64
    public var isForeground: Bool
    /// The unique name of its connection; the daemon's own for an adopted one.
    public var owner: String
    /// The process whose streams belong to it; 0: unknown.
    public var processID: UInt32
    public var desktopEntry: String
    /// Nil unless it is interrupted.
    public var interruptionReason: InterruptionReason?
    public var waitingFor: SessionSet
    public var isDucked: Bool
    /// Decibels, 0 unless it is ducked.
    public var duckGain: Double
    public var isMuted: Bool
    /// It got `began`, but its streams still played after its deadline.
    public var ignoredInterruption: Bool
    /// It belongs to an adopted program.
    public var isAdopted: Bool
    /// The evidence of a guessed call; else empty.
    public var evidence: String
    public var otherAudioPlaying: Bool
    public var silenceHint: Bool
    public var route: Route
    public var availableInputs: [Port]
    /// A uid; empty: no preference.
    public var preferredInput: String
    public var preferences: Preferences
    /// Seconds.
    public var outputLatency: Double
    /// Seconds; 0 if unknown.
    public var inputLatency: Double
    /// 0…1.
    public var outputVolume: Double

    public init(
        name: String, configuration: Configuration, sessionClass: SessionClass, state: SessionState,
        stateSince: UInt64, isForeground: Bool, owner: String, processID: UInt32, desktopEntry: String,
        interruptionReason: InterruptionReason?, waitingFor: SessionSet, isDucked: Bool, duckGain: Double,
        isMuted: Bool, ignoredInterruption: Bool, isAdopted: Bool, evidence: String, otherAudioPlaying: Bool,
        silenceHint: Bool, route: Route, availableInputs: [Port],
        preferredInput: String, preferences: Preferences, outputLatency: Double, inputLatency: Double,
        outputVolume: Double
    ) {
        self.name = name
        self.configuration = configuration
        self.sessionClass = sessionClass
        self.state = state
        self.stateSince = stateSince
        self.isForeground = isForeground
        self.owner = owner
        self.processID = processID
        self.desktopEntry = desktopEntry
        self.interruptionReason = interruptionReason
        self.waitingFor = waitingFor
        self.isDucked = isDucked
        self.duckGain = duckGain
        self.isMuted = isMuted
        self.ignoredInterruption = ignoredInterruption
        self.isAdopted = isAdopted
        self.evidence = evidence
        self.otherAudioPlaying = otherAudioPlaying
        self.silenceHint = silenceHint
        self.route = route
        self.availableInputs = availableInputs
        self.preferredInput = preferredInput
        self.preferences = preferences
        self.outputLatency = outputLatency
        self.inputLatency = inputLatency
        self.outputVolume = outputVolume
    }
}
