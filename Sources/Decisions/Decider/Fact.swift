public import Enforcement
public import MediaControl
public import PluginAPI
public import Routing
public import SessionManager

/// An event that decisions depend on. All facts are passed to ``Decider/submit(_:)``.
public enum Fact: Sendable, Codable {
    /// A request of a client; the decision with that event is the answer.
    case request(Event)
    /// A client requests a session, and what is known of its process; the decision is the answer. A call or an alert may
    /// silence all others as soon as it becomes active: then ``Action/prepareHold`` is the next action.
    case create(NewSession, Member)
    /// That number belongs to a client now (``Decider/freeClientID``).
    case client(ClientID)
    /// A fact for the rules of the sessions.
    case event(Event)
    /// An event of a recorded history, in which claims expire by events of their own.
    case replayed(Event)
    /// A fact about the sound server's route.
    case server(Routing.Fact)
    /// The streams were looked at.
    indirect case streams(StreamsSeen)
    /// The application of a session's process was read (``Member/application``).
    case application(SessionID, String)
    /// The ancestors of a session's process were read (``Member/ancestry``).
    case ancestry(SessionID, [UInt32])
    /// The process that acts for a session's client has ended.
    case processEnded(SessionID)
    /// The server carried out a command for a stream, or refused it.
    case answered(StreamCommand, succeeded: Bool)
    /// The server refused to move a recording.
    case moveRefused(RecordingPlacement.Move)
    /// The sound server is gone: it knows no stream any more.
    case streamsForgotten
    /// An event of a player on the bus, with the unique name of its connection.
    case player(String, PlayerEvent)
    /// An earlier daemon paused these players, and they still exist.
    case pausesKept(Set<PauseBook<String>.Kept>)
    /// The daemon exits: these streams are restored at once.
    case leaving([AudioStream])
    /// The answer to a request was sent: the players are checked (``Action/checkPlayers``).
    case players
    indirect case settings(Settings)
    /// The machine is about to sleep.
    case machineSleeps
    /// The machine has woken up.
    case machineWoke
    /// A client has answered ``Action/ping(_:)``.
    case pingAnswered(ClientID)
    /// The time of ``Decider/nextDeadline`` has come.
    case timePassed
}

/// The streams at the sound server, with the kernel's data of their programs.
public struct StreamsSeen: Sendable, Codable {
    /// Whether a server is there.
    public var isConnected = false
    /// In the server's order.
    public var streams: [StreamFacts] = []
    /// As ``AudioSnapshot/canHold``.
    public var canHold = false
    /// As ``AudioSnapshot/hasHold``.
    public var hasHold = true
    /// As ``Enforcement/Facts/mayHold``.
    public var mayHold = true
    /// As ``Enforcement/Facts/defaultDevice``.
    public var defaultDevice: String?
    /// Processes of adopted sessions that have ended.
    public var gone: Set<UInt32> = []
    /// As ``Enforcement/Facts/sustainedCalls``.
    public var sustainedCalls: Set<Program.Key> = []
    /// As ``AudioSnapshot/isHeadsetHandsFree``.
    public var isHeadsetHandsFree = false
    /// Streams that an earlier daemon or connection had changed, and what it knew about them.
    public var found: [Found] = []

    public struct Found: Sendable, Codable {
        public let stream: AudioStream
        public let kept: KeptStream
        /// It started with the values of its predecessor.
        public let isNew: Bool

        public init(_ stream: AudioStream, _ kept: KeptStream, isNew: Bool) {
            self.stream = stream
            self.kept = kept
            self.isNew = isNew
        }
    }

    public init() {}
}

/// An action. The caller carries it out before it requests the next one.
public enum Action: Sendable {
    /// The rules have decided: send the effects to the clients, and store the changes for a restart.
    case decided(Decision)
    /// A request to the sound server; `reason`: the reason to report for the change.
    case ask(Routing.Request, reason: RouteChangeReason)
    /// The requested rate and buffer of the output.
    case wish(OutputWish)
    case guardOutput(Bool)
    case releaseOutput
    /// A recording is moved to another input.
    case move(RecordingPlacement.Move)
    /// Streams will be held soon.
    case prepareHold
    /// The streams whose sound is measured from now on.
    case measure(Set<AudioStream.ID>)
    /// Commands for streams, in order. Also returned without commands, because the stored values of the streams may
    /// have changed.
    case streams([StreamCommand])
    /// The streams must be looked at again: time has passed.
    case look
    /// ``Fact/players`` is due when the answer to the request in progress was sent.
    case checkPlayers
    /// The players that are paused, or about to be: the next daemon must know of a pause that was sent.
    case keepPauses(Set<PauseBook<String>.Kept>)
    /// A request to a player.
    case player(String, PlayerRequest)
    /// The player that media keys reach from now on; nil: none.
    case showPlayer(String?)
    /// Whether the machine must wait before it sleeps, because something plays that must be paused first.
    case delaySleep(Bool)
    /// Asks a client whether it still runs. If it answers within ``HangingClients/patience``, ``Fact/pingAnswered(_:)`` is due.
    case ping(ClientID)
    case warn(String)
    case notice(String)
}
