public import PluginAPI
public import SessionManager

/// One step of the state file: what an event changed, and what of it was still to be told.
public struct StateRecord: Sendable {
    /// A session as the core and the shell know it.
    public struct Entry: Sendable {
        /// As the core remembers it; the rest is the shell's.
        public var session: Memory.Member
        /// The owner's unique name on the bus; empty for a session of the daemon's own making (``isAdopted``).
        public var owner: String
        /// The owner's process; 0: not known.
        public var ownerProcess: UInt32
        /// The owner's user; the highest number: not known.
        public var ownerUser: UInt32
        /// When the owner's process started, in the kernel's ticks since it booted; 0: not known. With the name and the
        /// process: this owner and no other.
        public var ownerStart: UInt64
        /// The process whose streams are the session's.
        public var processID: UInt32
        /// When that one started, where it is another process than the owner's; else 0.
        public var processStart: UInt64
        /// Empty: none.
        public var desktopEntry: String
        /// Whether the client lowers its own sound when it is told to.
        public var lowersItself: Bool

        /// Whether the daemon made the session, for a program that never spoke to it.
        public var isAdopted: Bool { owner.isEmpty }

        public init(
            session: Memory.Member, owner: String, ownerProcess: UInt32, ownerUser: UInt32, ownerStart: UInt64,
            processID: UInt32, processStart: UInt64 = 0, desktopEntry: String, lowersItself: Bool = false
        ) {
            self.session = session
            self.owner = owner
            self.ownerProcess = ownerProcess
            self.ownerUser = ownerUser
            self.ownerStart = ownerStart
            self.processID = processID
            self.processStart = processStart
            self.desktopEntry = desktopEntry
            self.lowersItself = lowersItself
        }
    }

    /// A player of somebody else's that is paused by our doing, or about to be.
    public struct PausedPlayer: Sendable, Hashable {
        /// Its unique name on the bus.
        public var name: String
        /// `mpris:trackid` of what it had loaded; like the two that follow, empty where it did not say.
        public var trackID: String
        /// `xesam:url`.
        public var url: String
        /// `xesam:title`.
        public var title: String
        /// Microseconds on the monotonic clock.
        public var since: UInt64
        /// Whether it was seen to be paused.
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

    /// The core without its sessions, and without what the audio server offers, which is found anew. Who sounded is kept:
    /// by it clients were told what others play.
    public var core: Memory
    /// The sessions that changed, whole.
    public var changed: [Entry]
    /// Sessions that were there before, and are not any more.
    public var closed: [SessionID]
    /// What else changed of waiting, before ``changed``, and in order.
    public var waits: [WaitChange]
    /// What clients are told of this event, in order.
    public var told: [Notice]
    /// All there are.
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
