public import Enforcement
public import PluginAPI
public import SessionManager

/// One step of the state file: the changes by an event, and the notices that had to be sent.
public struct StateRecord: Sendable {
    /// A session as the rules and the daemon know it.
    public struct Entry: Sendable {
        /// Its state in the rules; all the rest belongs to the daemon.
        public var session: Memory.Member
        public var owner: Owner

        public init(session: Memory.Member, owner: Owner) {
            self.session = session
            self.owner = owner
        }
    }

    /// Whose session it is.
    public enum Owner: Sendable, Hashable {
        case client(Client)
        /// A program that was adopted. `start`: when its process started, in the kernel's ticks since it booted; 0: not
        /// known, or it is not known by its process.
        case adopted(Program.Key, start: UInt64)
    }

    /// The client that owns a session.
    public struct Client: Sendable, Hashable {
        /// Its unique name on the bus.
        public var name: String
        /// Its process; 0: not known.
        public var process: UInt32
        /// Its user; the highest number: not known.
        public var user: UInt32
        /// When its process started, in the kernel's ticks since it booted; 0: not known. With the name and the process:
        /// this client and no other.
        public var start: UInt64
        /// The process whose streams belong to the session.
        public var actingProcess: UInt32
        /// When that process started, if it is not the client's; else 0.
        public var actingStart: UInt64
        /// Empty: none.
        public var desktopEntry: String
        /// Whether the client ducks its own sound when it gets the signal.
        public var lowersItself: Bool

        public init(
            name: String, process: UInt32, user: UInt32, start: UInt64, actingProcess: UInt32, actingStart: UInt64 = 0,
            desktopEntry: String, lowersItself: Bool = false
        ) {
            self.name = name
            self.process = process
            self.user = user
            self.start = start
            self.actingProcess = actingProcess
            self.actingStart = actingStart
            self.desktopEntry = desktopEntry
            self.lowersItself = lowersItself
        }
    }

    /// An MPRIS player that the daemon has paused or is about to pause.
    public struct PausedPlayer: Sendable, Hashable {
        /// Its unique name on the bus.
        public var name: String
        /// `mpris:trackid` of its track; like the next two, empty if the player did not report it.
        public var trackID: String
        /// `xesam:url`.
        public var url: String
        /// `xesam:title`.
        public var title: String
        /// Microseconds on the monotonic clock.
        public var since: UInt64
        /// Whether it was seen paused.
        public var isSeen: Bool

        public init(name: String, trackID: String, url: String, title: String, since: UInt64, isSeen: Bool) {
            self.name = name
            self.trackID = trackID
            self.url = url
            self.title = title
            self.since = since
            self.isSeen = isSeen
        }
    }

    /// The state of the rules without sessions, and without the ports of the sound server, which are read again. It
    /// contains which sessions were heard, because clients were notified that others play.
    public var core: Memory
    /// The sessions that changed, complete.
    public var changed: [Entry]
    /// Sessions that are gone.
    public var closed: [SessionID]
    /// Other changes of waits, in order, to be applied before ``changed``.
    public var waits: [WaitChange]
    /// The notices for clients about this event, in order.
    public var told: [Notice]
    /// All of them.
    public var paused: [PausedPlayer]

    public init(
        core: Memory, changed: [Entry] = [], closed: [SessionID] = [], waits: [WaitChange] = [], told: [Notice] = [],
        paused: [PausedPlayer] = []
    ) {
        self.core = core
        self.changed = changed
        self.closed = closed
        self.waits = waits
        self.told = told
        self.paused = paused
    }
}
