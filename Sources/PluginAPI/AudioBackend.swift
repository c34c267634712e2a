/// The port to a sound server: devices, routes and streams.
///
/// An adapter belongs to one event loop: every call, callback and completion happens there, and none blocks. When a
/// callback is called, ``snapshot`` already shows the change. Before ``start()``, no callback is called.
public protocol AudioBackend: AnyObject {
    /// The state as last read from the server.
    var snapshot: AudioSnapshot { get }

    /// The server is gone or does not answer. Once per outage, also if it was absent at ``start()``; the snapshot is
    /// then ``AudioSnapshot/disconnected``.
    var onServicesLost: (() -> Void)? { get set }
    /// The server is back: routes and streams were read again, and none keeps its identity. Once per outage; no other
    /// callback reports what changed in the meantime.
    var onServicesReset: (() -> Void)? { get set }
    /// The route changed, or a new device could have changed it: if the server did not choose a new port, the reason is
    /// `newDeviceAvailable` and the two routes are equal. One call per cause.
    var onRouteChanged: ((_ reason: RouteChangeReason, _ previous: Route, _ current: Route) -> Void)? { get set }
    /// Ports appeared or went. After ``onRouteChanged`` of the same cause. Also when the first connection is ready.
    var onPortsChanged: (() -> Void)? { get set }
    /// A stream began, ended, moved, was corked or muted, or ``AudioSnapshot/isHeadsetHandsFree`` changed. Also when the first connection is ready.
    var onStreamsChanged: (() -> Void)? { get set }
    /// The route's input was muted or unmuted.
    var onInputMuteChanged: ((_ isMuted: Bool) -> Void)? { get set }
    /// The route's output volume, 0…1 (more if the server amplifies).
    var onOutputVolumeChanged: ((_ volume: Double) -> Void)? { get set }
    /// The latencies of the route's devices changed.
    var onLatencyChanged: (() -> Void)? { get set }
    /// The server began or stopped applying its own rules. On the first connection only if it has such rules.
    var onPoliciesChanged: (() -> Void)? { get set }

    /// Connects, and keeps trying while the adapter exists.
    func start()

    /// Makes that port the route's output. ``onRouteChanged`` will report `reason`. Fails with `badParameter` for an
    /// unknown port; with `mediaServicesFailed` if the server is gone, refuses or does not answer within the adapter's
    /// deadline. This applies to all requests below.
    ///
    /// `isTemporary`: only for as long as sessions need it. Then the default from before is kept in ``formerDefaults``,
    /// until ``restoreDefault(isInput:reason:completion:)``, a request that is not temporary, or a choice of the user.
    func selectOutput(_ uid: String, reason: RouteChangeReason, isTemporary: Bool, completion: @escaping Completion)
    /// Makes that port the route's input. The microphone of a headset in its music profile becomes the input when
    /// ``setHandsFree(_:reason:completion:)`` has changed the profile.
    func selectInput(_ uid: String, reason: RouteChangeReason, isTemporary: Bool, completion: @escaping Completion)
    /// Makes the device in ``formerDefaults`` the default again, as it was: a default that nobody has configured is not
    /// configured afterwards. Does nothing if there is none.
    func restoreDefault(isInput: Bool, reason: RouteChangeReason, completion: @escaping Completion)
    /// The default devices before sessions needed other ones; they are kept while the server is gone. Set them before
    /// ``start()`` to continue for an earlier daemon.
    var formerDefaults: FormerDefaults { get set }
    /// ``formerDefaults`` changed. Called before the server is asked for another default.
    var onFormerDefaultsChanged: (() -> Void)? { get set }
    /// Switches the headset with that input to its hands-free profile, and every other headset in ``formerProfiles``
    /// (nil: all of them) back to its former profile. The defaults from before are kept in ``formerDefaults``, because the
    /// devices of the headset are others in another profile. A headset that the user or another program made hands-free is not
    /// in there, and stays. Fails with `badParameter` if no headset has the input.
    func setHandsFree(_ uid: String?, reason: RouteChangeReason, completion: @escaping Completion)
    /// The profiles that headsets had before they were switched to hands-free, by card; they are kept while the server
    /// is gone. Set them before ``start()`` to continue for an earlier daemon.
    var formerProfiles: [String: String] { get set }
    /// ``formerProfiles`` changed. Called before the server is asked to switch a headset.
    var onFormerProfilesChanged: (() -> Void)? { get set }
    /// The input of a headset in ``formerProfiles`` that is hands-free and was not asked to switch back; nil: there is none.
    var switchedHeadset: String? { get }
    /// Moves one stream to the device of that port.
    func moveStream(_ id: AudioStream.ID, to uid: String, completion: @escaping Completion)
    /// Mutes or unmutes one stream at the server. The caller must restore it, because the server remembers a mute.
    func setMuted(_ muted: Bool, stream id: AudioStream.ID, completion: @escaping Completion)
    /// Sets the volume of one stream, per channel as in ``AudioStream/volume``. The caller must restore it, because the
    /// server remembers a volume.
    func setVolume(_ volume: [UInt32], stream id: AudioStream.ID, completion: @escaping Completion)
    /// Holds a playing stream: it stops and loses nothing. Only if ``AudioSnapshot/canHold``. The hold sink is created
    /// when it is first needed.
    func hold(_ id: AudioStream.ID, completion: @escaping Completion)
    /// Announces that streams will be held soon: creates the hold sink now if that takes time. An unused one is
    /// removed.
    func prepareHold()
    /// Moves a held stream to the device of that name, where it continues; nil, or a missing device: the default.
    func letGo(_ id: AudioStream.ID, to deviceName: String?, completion: @escaping Completion)
    /// The playing streams whose sound is measured (``AudioStream/hasSound``). Each costs some wake-ups a second. Empty
    /// after the server was lost.
    var measured: Set<AudioStream.ID> { get set }
    /// Removes the hold sink; the server moves streams that are still on it.
    func removeHold(completion: @escaping Completion)
    /// Reads these streams again, and then calls `completion`: a change that the server has made is seen before the next
    /// request. At once if the server is gone.
    func readAgain(_ streams: Set<AudioStream.ID>, completion: @escaping () -> Void)
    /// Reads the values that the server remembers for the next streams, by ``AudioStream/memoryName``; nil if it
    /// remembers none, or does not report them.
    func readMemory(_ completion: @escaping ([StreamMemory]?) -> Void)
    /// Replaces the values that the server remembers under these names, and deletes the entries of the other names.
    func writeMemory(_ entries: [StreamMemory], forgetting names: [String], completion: @escaping Completion)
    /// The stand-ins that are wanted: paused streams in the place of ended or held ones, corrected so that the server
    /// remembers the right values. Each exists while it is listed. None on PulseAudio (``MemoryAccess/readAndWrite``).
    var wantedStandIns: [StreamMemory] { get set }
    /// Whether ``onMemoryChanged`` is called.
    var watchesMemory: Bool { get set }
    /// The values that the server remembers for streams changed.
    var onMemoryChanged: (() -> Void)? { get set }

    /// Whether sound is held, instead of played elsewhere, when the route's output is unplugged. It is held from the
    /// first sample if the server can be prepared for that (``AudioSnapshot/isOutputHeld``), until ``releaseOutput()``.
    var guardsOutput: Bool { get set }
    /// The rate and buffer that are requested for the route's output; ``AudioSnapshot/outputLatency`` and the rate of
    /// the port show the actual values.
    var outputWish: OutputWish { get set }
    /// Releases the sound that the guard has caught, then removes everything that the backend has created in the server.
    /// This is the last request: the backend creates nothing afterwards.
    func shutDown(completion: @escaping Completion)
    /// Lets held sound continue on the current route; does nothing if none is held.
    func releaseOutput()

    /// Called once, from the loop, never before the request has returned.
    typealias Completion = (Result<Void, SessionError>) -> Void
}

/// The state of a sound server at one moment.
public struct AudioSnapshot: Sendable, Hashable {
    public var isConnected = false
    /// For display: "pulseaudio 16.1", "PulseAudio (on PipeWire 0.3.65)"; empty while disconnected.
    public var serverName = ""
    /// Connected ports, oldest first: in the order in which they appeared or were chosen by the user. The last one
    /// is the newest, and becomes the route unless a session wants another one. A Bluetooth headset's input is listed
    /// whichever profile is active.
    public var availableInputs: [Port] = []
    /// In the same order.
    public var availableOutputs: [Port] = []
    /// The server, or its session manager, has just started and is finding devices. The current route may not be the
    /// chosen one, and devices that appear were not plugged in just now.
    public var isEnumerating = false
    /// While ``isEnumerating``: ports that must not become the route only because they are the newest. These are the
    /// ports found together of which none was chosen; without a session manager, all ports.
    public var enumerated: Set<String> = []
    /// The default devices for new streams; at most one port each way, none if the device has no port.
    public var route = Route.none
    /// In the server's order: oldest first, playing streams before recording ones.
    public var streams: [AudioStream] = []
    /// Playing streams that the server is still creating; they are not in ``streams``.
    public var unplaced: [AudioStream] = []
    /// The route's input is muted at the server; false if there is none.
    public var isInputMuted = false
    /// The route's output was unplugged while ``AudioBackend/guardsOutput``, so its sound is held.
    public var isOutputHeld = false
    /// After the device of a stream was removed, how many seconds the stream must be shown as paused before that
    /// counts. 0 if the server reports the request of the program; more if it reports its own state.
    public var pauseDelay = 0.0
    /// Of the route's output: 0…1, more if the server amplifies, 0 while it is muted.
    public var outputVolume = 1.0
    /// Seconds from a sample to its sound on the route's output; 0 if unknown.
    public var outputLatency = 0.0
    /// Seconds from a sound to its sample on the route's input.
    public var inputLatency = 0.0
    /// The default device for new streams; nil if there is none.
    public var defaultDevice: String?
    /// The headset of the route is in its profile for calls, or has no output while it changes to its profile for music.
    public var isHeadsetHandsFree = false
    /// Whether the server can hold streams (``AudioBackend/hold(_:completion:)``).
    public var canHold = false
    /// Whether the sink for that exists, which is created when it is needed.
    public var hasHold = false
    /// What can be done about the values that the server remembers of streams.
    public var memoryAccess = MemoryAccess.readAndWrite
    /// Identifies this run of the server: together with a stream's number it identifies the stream.
    public var instance: UInt32 = 0

    /// The server's own rules for muting or ducking.
    public var policies: Set<ServerPolicy> = []

    /// The snapshot while there is no server.
    public static let disconnected = AudioSnapshot()

    public init() {}
}

/// One stream of a program at the server (`pa_sink_input_info`, `pa_source_output_info`).
public struct AudioStream: Sendable, Hashable, Identifiable, Codable {
    public enum Direction: Sendable, Hashable, Codable {
        case playback
        case record
    }

    /// The server's number, unique per direction while the server lives.
    public struct ID: Sendable, Hashable, Codable {
        public let direction: Direction
        public let number: UInt32

        public init(_ direction: Direction, _ number: UInt32) {
            self.direction = direction
            self.number = number
        }

        /// `p` for playback or `r` for record, and the number.
        public init?(word: String) {
            guard let number = UInt32(word.dropFirst()), let first = word.utf8.first else { return nil }
            switch first {
            case UInt8(ascii: "p"): self.init(.playback, number)
            case UInt8(ascii: "r"): self.init(.record, number)
            default: return nil
            }
        }

        /// As in ``init(word:)``.
        public var word: String { (direction == .playback ? "p" : "r") + String(number) }

        public init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            guard let id = ID(word: try container.decode(String.self)) else {
                throw DecodingError.dataCorruptedError(
                    in: container, debugDescription: "a stream is called p1, p2, … or r1, r2, …")
            }
            self = id
        }

        public func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(word)
        }
    }

    public let id: ID
    /// The process that plays or records; nil for a stream of the server itself, and if unknown.
    public var processID: UInt32?
    /// Whether the server has the process from the kernel. Otherwise the client stated it; from inside a sandbox it is
    /// then the number of another process, or of none.
    public var isProcessVouched: Bool
    /// Whether a program made it: false for a stream of the server itself, such as one end of a loopback or a filter.
    public var isProgram: Bool
    /// Whether it only measures a level.
    public var isPeakMeter: Bool
    /// For display: the program's name, else the stream's title; empty if neither is known.
    public var applicationName: String
    /// `media.role`; nil if the program did not set it.
    public var role: String?
    /// Paused by its program: it makes no sound.
    public var isCorked: Bool
    /// Whether ``isCorked`` is not the request of its program, but the state of the stream at the server: while it is moved,
    /// it is shown as paused for a moment.
    public var isPauseInferred = false
    /// Muted at the server, by anyone.
    public var isMuted: Bool
    /// The server's name of the sink or source.
    public var deviceName: String
    /// The port it uses; nil if the device is not a port (a monitor, a dummy).
    public var portUID: String?
    /// For display: the port's name; empty if it uses none.
    public var portName: String
    /// The name of the Bluetooth or line input whose sound the server itself plays by this stream; nil: it is no such
    /// stream.
    public var inputName: String?
    /// The port on which its sound comes out: ``portUID``, or for a stream on a filter the port behind the filter; nil if
    /// unknown.
    public var outputUID: String?
    /// The server's properties `application.*`, `event.*`, `media.*`, `pipewire.*` and `module-stream-restore.*` of the stream and
    /// its client: they identify a program beyond its process.
    public var properties: [String: String]
    /// Per channel, on the server's cubic scale (`pa_volume_t`): ``fullVolume`` is unchanged sound, 0 is silence. Empty
    /// if it cannot be set.
    public var volume: [UInt32]
    /// Held at its current place (``AudioBackend/hold(_:completion:)``).
    public var isHeld: Bool
    /// Held, but perhaps still heard: PipeWire's server reports it before its session manager has stopped the stream.
    public var isStopping: Bool
    public var rendering: Rendering
    /// Whether it is not PCM, like AC-3 for a receiver: it can be muted, but plays only on a device that takes its format.
    public var isEncoded: Bool
    /// Whether the server is placing the stream again, for example after a restart of its session manager; changes
    /// during that time do not come from the user.
    public var isSettling: Bool
    /// Whether sound was measured in it within ``soundSpan``, or it cannot be measured. False if it is not one of
    /// ``AudioBackend/measured``.
    public var hasSound: Bool

    /// Microseconds without sound after which a stream counts as silent.
    public static let soundSpan: UInt64 = 500_000

    /// When the server applies a changed volume or a move.
    public enum Rendering: Sendable, Hashable, Codable {
        /// At once: the server renders the data again that were not played yet (PulseAudio).
        case atOnce
        /// At the next cycle, of that many seconds; a separate session manager moves streams, some time after the request
        /// (PipeWire).
        case inCycles(seconds: Double)

        public var isInCycles: Bool {
            switch self {
            case .atOnce: false
            case .inCycles: true
            }
        }
        /// Seconds between the moments at which a change is applied; 0: at once.
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
        rendering: Rendering = .atOnce, isEncoded: Bool = false, isSettling: Bool = false, hasSound: Bool = false
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
        outputUID = portUID
        self.properties = properties
        self.volume = volume
        self.isHeld = isHeld
        self.isStopping = isStopping
        self.rendering = rendering
        self.isEncoded = isEncoded
        self.isSettling = isSettling
        self.hasSound = hasSound
    }

    public var direction: Direction { id.direction }
    /// The name of the event sound that it plays, such as `alarm-clock-elapsed`; nil: none.
    public var eventID: String? { direction == .playback ? properties["event.id"] : nil }
    /// Whether it declares the sound of an alarm: by the role `alarm`, or by the name of its event sound.
    public var isAlarm: Bool {
        direction == .playback && (role?.lowercased() == "alarm" || eventID?.hasPrefix("alarm-") == true)
    }
    /// The name under which the server remembers it; nil if it does not. Names of more than 512 bytes do not count: they
    /// could make the record of what was changed too large to be written, and then nothing may be changed.
    public var memoryName: String? {
        properties["module-stream-restore.id"].flatMap { $0.utf8.count <= 512 ? $0 : nil }
    }
    /// Whether it can be heard, or records.
    public var isSounding: Bool { !isCorked && !isMuted && !isHeld }
}
