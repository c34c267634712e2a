/// A sound server as sessions need it: what is connected, where sound goes, who plays and records.
///
/// An adapter lives on one event loop: every call, callback and completion happens there, and none blocks. Callbacks
/// come after ``snapshot`` shows what they tell of. Until ``start()`` nothing is called.
public protocol AudioBackend: AnyObject {
    /// Everything as last read from the server.
    var snapshot: AudioSnapshot { get }

    /// The server is away or does not answer. Once per outage, also where it was absent at ``start()``; the snapshot
    /// is then ``AudioSnapshot/disconnected``.
    var onServicesLost: (() -> Void)? { get set }
    /// The server is back: routes and streams are read anew, none kept its identity. Once per outage; no other callback
    /// tells of what changed meanwhile.
    var onServicesReset: (() -> Void)? { get set }
    /// The route changed, or could have: with `newDeviceAvailable` the two routes are the same where a port appeared
    /// that the server did not choose. One call per cause.
    var onRouteChanged: ((_ reason: RouteChangeReason, _ previous: Route, _ current: Route) -> Void)? { get set }
    /// Ports came or went. After ``onRouteChanged`` of the same cause. Also once the first connection is there.
    var onPortsChanged: (() -> Void)? { get set }
    /// A stream came, went, moved, was corked or muted. Also once the first connection is there.
    var onStreamsChanged: (() -> Void)? { get set }
    /// The route's input was muted or unmuted.
    var onInputMuteChanged: ((_ isMuted: Bool) -> Void)? { get set }
    /// The route's output volume, 0…1 (more where the server amplifies).
    var onOutputVolumeChanged: ((_ volume: Double) -> Void)? { get set }
    /// The server runs the route's devices with other latencies.
    var onLatencyChanged: (() -> Void)? { get set }
    /// The server began or ceased to arbitrate on its own account. With the first connection only where it does.
    var onPoliciesChanged: (() -> Void)? { get set }

    /// Connects, and goes on trying for as long as the adapter lives.
    func start()

    /// Makes that port the route's output. `reason` is what ``onRouteChanged`` will say of it.
    /// Fails with `badParameter` for an unknown port, `mediaServicesFailed` where the server is away, refuses or does
    /// not answer within the adapter's deadline; so do all requests below.
    func selectOutput(_ uid: String, reason: RouteChangeReason, completion: @escaping Completion)
    /// Makes that port the route's input. The microphone of a headset that shows its music profile becomes it as soon
    /// as ``setHandsFree(_:takesOver:reason:completion:)`` has brought it about.
    func selectInput(_ uid: String, reason: RouteChangeReason, completion: @escaping Completion)
    /// Has the headset with that input show its hands-free profile, and every other one, nil: all, the profile that it
    /// had before this was asked of it. Profiles that somebody else set stay, unless the request `takesOver`: then the
    /// headset counts as made hands-free by it, for one that was asked before the adapter was there.
    func setHandsFree(
        _ uid: String?, takesOver: Bool, reason: RouteChangeReason, completion: @escaping Completion)
    /// Moves one stream to that port's device.
    func moveStream(_ id: AudioStream.ID, to uid: String, completion: @escaping Completion)
    /// Mutes or unmutes one stream at the server. The caller undoes it: the server remembers a mute.
    func setMuted(_ muted: Bool, stream id: AudioStream.ID, completion: @escaping Completion)
    /// Sets one stream's volume, for each of its channels as ``AudioStream/volume`` has them. The caller undoes it: the
    /// server remembers a volume.
    func setVolume(_ volume: [UInt32], stream id: AudioStream.ID, completion: @escaping Completion)
    /// Stops a stream that plays where it is: silent, and nothing of it lost. Only where ``AudioSnapshot/canHold``. The
    /// place it is held at is made when it is first needed.
    func hold(_ id: AudioStream.ID, completion: @escaping Completion)
    /// Streams will be held soon: makes the place now where that takes time. It goes when it is not needed for a while.
    func prepareHold()
    /// Lets a held stream go on, on the device of that name; nil, or one that went: where new streams go.
    func letGo(_ id: AudioStream.ID, to deviceName: String?, completion: @escaping Completion)
    /// Takes away the place where streams are held; whoever is still there is moved by the server.
    func removeHold(completion: @escaping Completion)
    /// What the server remembers of streams for the next of the same ``AudioStream/memoryName``; nil where it
    /// remembers nothing, or does not say.
    func readMemory(_ completion: @escaping ([StreamMemory]?) -> Void)
    /// Puts these in place of what the server remembers under their names, and forgets the others named.
    func writeMemory(_ entries: [StreamMemory], forgetting names: [String], completion: @escaping Completion)
    /// Where the server ignores what is written (``AudioSnapshot/ignoresMemory``): what a paused stream of ours is there for
    /// in a program's place, to be put right and so remembered, until it is taken out of the list.
    var wantedStandIns: [StreamMemory] { get set }
    /// Whether ``onMemoryChanged`` is called.
    var watchesMemory: Bool { get set }
    /// What the server remembers of streams changed.
    var onMemoryChanged: (() -> Void)? { get set }

    /// Whether what plays when the route's output goes is held rather than heard elsewhere, from the very first sample
    /// where the server can be prepared for it (``AudioSnapshot/isOutputHeld``), until ``releaseOutput()``.
    var guardsOutput: Bool { get set }
    /// What the route's output is asked to run with, whichever it is; ``AudioSnapshot/outputLatency`` and the port's
    /// rate say what really is.
    var outputWish: OutputWish { get set }
    /// Takes away all that ``guardsOutput`` put into the server, and lets go what is held.
    func removeGuard(completion: @escaping Completion)
    /// Lets what is held go on where the route goes now; nothing where nothing is.
    func releaseOutput()

    /// Called once, from the loop, never before the request returned.
    typealias Completion = (Result<Void, SessionError>) -> Void
}

/// What a sound server shows at one moment.
public struct AudioSnapshot: Sendable, Hashable {
    public var isConnected = false
    /// For people: "pulseaudio 16.1", "PulseAudio (on PipeWire 0.3.65)"; empty while disconnected.
    public var serverName = ""
    /// In order of appearance, or of being chosen by a person since; oldest first: the last is the one that wins. Only
    /// what is plugged in. A Bluetooth headset's input is there whichever profile it shows.
    public var availableInputs: [Port] = []
    /// In the same order.
    public var availableOutputs: [Port] = []
    /// The server, or its session manager, has just started and is finding devices: what the route is need not be what was
    /// chosen, and what comes did not come by itself.
    public var isEnumerating = false
    /// While ``isEnumerating``, the ports that must not be made the route only because they are the newest: those that came
    /// together and of which none was chosen; while there is no session manager, all.
    public var enumerated: Set<String> = []
    /// Where new streams go and come from; at most one port each way, none where the device has no port.
    public var route = Route.none
    /// In the server's order: oldest first, playing before recording.
    public var streams: [AudioStream] = []
    /// The route's input is muted at the server; false where there is none.
    public var isInputMuted = false
    /// The route's output went while ``AudioBackend/guardsOutput``: what played there is heard nowhere.
    public var isOutputHeld = false
    /// For how many seconds a stream must be told of as paused to be believed so, after its device went: 0 where the
    /// server says what the program asked for, more where it says what it is doing.
    public var pauseDelay = 0.0
    /// Of the route's output: 0…1, more where the server amplifies, 0 while it is muted.
    public var outputVolume = 1.0
    /// In seconds from a sample to its sound, as the server set the route's output; 0 where unknown.
    public var outputLatency = 0.0
    /// The same of the route's input, from a sound to its sample.
    public var inputLatency = 0.0
    /// The device where new streams go; nil where there is none.
    public var defaultDevice: String?
    /// Whether the server can hold streams (``AudioBackend/hold(_:completion:)``).
    public var canHold = false
    /// Whether what is remembered of streams can be written and not read: ``AudioBackend/readMemory(_:)`` finds the channels
    /// of who plays.
    public var hidesMemory = false
    /// Whether what is written of it is ignored: a stream must be there to be remembered otherwise.
    public var ignoresMemory = false
    /// This run of the server: with a stream's number, that stream and no other.
    public var instance: UInt32 = 0

    /// What the server silences or lowers by rules of its own.
    public var policies: Set<ServerPolicy> = []

    /// What shows while there is no server.
    public static let disconnected = AudioSnapshot()

    public init() {}
}

/// One program's sound as the server sees it (`pa_sink_input_info`, `pa_source_output_info`).
public struct AudioStream: Sendable, Hashable, Identifiable {
    public enum Direction: Sendable, Hashable {
        case playback
        case record
    }

    /// The server's number, unique per direction while the server lives.
    public struct ID: Sendable, Hashable {
        public let direction: Direction
        public let number: UInt32

        public init(_ direction: Direction, _ number: UInt32) {
            self.direction = direction
            self.number = number
        }
    }

    public let id: ID
    /// The process that plays or records; nil for a stream of the server's own, and where nobody says.
    public var processID: UInt32?
    /// Whether the server has the process from the kernel. Otherwise it is what the client says of itself, and inside a
    /// sandbox the number of another process, or of none.
    public var isProcessVouched: Bool
    /// Whether a program made it: false for a stream of the server's own, such as one end of a loopback or of a filter.
    public var isProgram: Bool
    /// Whether it only measures how loud something is.
    public var isPeakMeter: Bool
    /// For people: the program's name, else the stream's title; empty where neither is said.
    public var applicationName: String
    /// `media.role`; nil where the program does not say.
    public var role: String?
    /// Paused by its program: it makes no sound.
    public var isCorked: Bool
    /// At the server, by whomever.
    public var isMuted: Bool
    /// The server's name of the sink or source.
    public var deviceName: String
    /// The port it goes through; nil where the device is none (a monitor, a dummy).
    public var portUID: String?
    /// For people: the port's name; empty where it goes through none.
    public var portName: String
    /// The server's properties of the names `application.*`, `media.*`, `pipewire.*`, `module-stream-restore.*`, those of
    /// its client included: what identifies a program beyond its process.
    public var properties: [String: String]
    /// Per channel, of the server's cubic scale (`pa_volume_t`): ``fullVolume`` is as the program made it, 0 silence. Empty
    /// where it cannot be set.
    public var volume: [UInt32]
    /// Stopped where it is (``AudioBackend/hold(_:completion:)``).
    public var isHeld: Bool
    /// Held, and perhaps heard still: PipeWire's server says so before its session manager has stopped it.
    public var isStopping: Bool
    public var rendering: Rendering
    /// Whether the server is placing it anew, as where its session manager was started again: what changes of it meanwhile
    /// is nobody's wish.
    public var isSettling: Bool

    /// How the server makes sound of a stream.
    public enum Rendering: Sendable, Hashable {
        /// A volume that was changed, and a move, is heard at once: what was not heard yet is computed again (PulseAudio).
        case atOnce
        /// In cycles of so many seconds, each with one volume; streams are moved by somebody else, a while after he was
        /// asked (PipeWire and its session manager).
        case inCycles(seconds: Double)

        public var isInCycles: Bool {
            switch self {
            case .atOnce: false
            case .inCycles: true
            }
        }
        /// Seconds between the moments at which a change is heard; 0: it is heard at once.
        public var cycle: Double {
            switch self {
            case .atOnce: 0
            case .inCycles(let seconds): seconds
            }
        }
    }

    /// The volume that changes nothing (`PA_VOLUME_NORM`).
    public static let fullVolume: UInt32 = 65_536

    public init(
        id: ID, processID: UInt32? = nil, isProcessVouched: Bool = false, isProgram: Bool = true,
        isPeakMeter: Bool = false, applicationName: String = "", role: String? = nil, isCorked: Bool = false,
        isMuted: Bool = false, deviceName: String = "", portUID: String? = nil, portName: String = "",
        properties: [String: String] = [:], volume: [UInt32] = [], isHeld: Bool = false, isStopping: Bool = false,
        rendering: Rendering = .atOnce, isSettling: Bool = false
    ) {
        self.id = id
        self.processID = processID
        self.isProcessVouched = isProcessVouched
        self.isProgram = isProgram
        self.isPeakMeter = isPeakMeter
        self.applicationName = applicationName
        self.role = role
        self.isCorked = isCorked
        self.isMuted = isMuted
        self.deviceName = deviceName
        self.portUID = portUID
        self.portName = portName
        self.properties = properties
        self.volume = volume
        self.isHeld = isHeld
        self.isStopping = isStopping
        self.rendering = rendering
        self.isSettling = isSettling
    }

    public var direction: Direction { id.direction }
    /// Under what the server remembers it; nil where it does not.
    public var memoryName: String? { properties["module-stream-restore.id"] }
    /// Whether anything of it can be heard, or is recorded.
    public var isSounding: Bool { !isCorked && !isMuted && !isHeld }
}
