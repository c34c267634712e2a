public import PluginAPI

/// The complete state of the rules as plain values, without what follows from it (which sessions are ducked, muted, now
/// playing).
public struct Memory: Sendable {
    /// A session, as in ``Session``.
    public struct Member: Sendable, Hashable {
        public var id: SessionID
        public var new: NewSession
        public var isForeground = true
        public var preferences = Preferences()
        public var override = OutputOverride.none
        public var preferredInput = ""
        public var state = SessionState.inactive
        public var since = Instant(microseconds: 0)
        /// Its position in the order of activations; 0: never activated.
        public var activation: UInt64 = 0
        /// Present only in the grace period after `ended`.
        public var claimExpires: Instant?
        public var waitingFor: SessionSet = []
        /// Present only while it is interrupted.
        public var interruption: Interruption?
        /// In the grace period: the interruption that ended.
        public var ended: Interruption?
        /// Whether that interruption ended with the should-resume hint.
        public var mayResume = false
        /// Since when it has played on although it was interrupted.
        public var ignoredSince: Instant?
        /// The cause of the state; nil: unknown, before the recorded history.
        public var cause: Cause?
        public var duckCause: Cause?
        public var muteCause: Cause?
        public var lackCause: Cause?
        public var refused: RefusedRequest?
        /// The last sent value of OtherAudioPlaying.
        public var toldOtherAudioPlaying = false
        /// The last sent value of the hint.
        public var toldSilenceHint = false

        /// As after its creation: in the foreground, inactive, waiting for nobody.
        public init(id: SessionID, new: NewSession) {
            self.id = id
            self.new = new
        }
    }

    public var settings = Arbiter.Settings()
    public var sequence: UInt64 = 0
    /// The number of the session created last.
    public var lastID: UInt64 = 0
    /// The number of activations and interruptions so far, which defines their order.
    public var clock: UInt64 = 0
    public var isSilentMode = false
    public var isScreenLocked = false
    public var isMicrophoneMuted = false
    public var audio: Audio?
    /// Also if ``audio`` is nil because the server has not been read yet: needed to report a loss, and its end, once.
    public var services = Arbiter.Services.unknown
    public var sounding: Sounding?
    /// Sorted by number.
    public var members: [Member] = []

    public init() {}

    /// Whether nothing has happened yet.
    public var isBlank: Bool { sequence == 0 && lastID == 0 && clock == 0 }
}

extension Arbiter {
    /// The complete state; the time is linear in the sessions and their waits.
    public var memory: Memory {
        var memory = memoryOfNobody
        memory.members = sessions.map(Memory.Member.init)
        return memory
    }

    /// The state without the sessions: cheap.
    public var memoryOfNobody: Memory {
        var memory = Memory()
        memory.settings = settings
        memory.sequence = sequence
        memory.lastID = lastID
        memory.clock = clock
        memory.isSilentMode = isSilentMode
        memory.isScreenLocked = isScreenLocked
        memory.isMicrophoneMuted = isMicrophoneMuted
        memory.audio = audio
        memory.services = services
        memory.sounding = sounding
        return memory
    }

    /// The state of one session; nil if it does not exist.
    public func member(_ id: SessionID) -> Memory.Member? { index(of: id).map { Memory.Member(sessions[$0]) } }

    /// Restores the rules. Sends nothing: clients were told before.
    ///
    /// Throws if no sequence of events leads to such a state: then no part of it can be trusted.
    public init(_ memory: Memory) throws(MemoryError) {
        self.init(settings: memory.settings)
        sequence = memory.sequence
        lastID = memory.lastID
        clock = memory.clock
        isSilentMode = memory.isSilentMode
        isScreenLocked = memory.isScreenLocked
        isMicrophoneMuted = memory.isMicrophoneMuted
        audio = memory.audio
        services = memory.audio == nil ? memory.services : .there
        sessions = memory.members.map(Session.init)
        try checkRemembered()
        // A history as text does not contain the time.
        if audio != nil { for x in sessions.indices { noteLack(x, .earlier, at: sessions[x].since) } }
        hear(memory.sounding)
        var told = Effects()
        settle(at: sessions.map(\.since).max() ?? Instant(microseconds: 0), &told)
        remembersMore = false
    }

    private func checkRemembered() throws(MemoryError) {
        func require(_ holds: Bool, _ what: String) throws(MemoryError) {
            if !holds { throw MemoryError(description: what) }
        }
        // Far from values that could overflow.
        try require(max(sequence, lastID, clock) <= SessionSet.highest, "it counts too far")
        let claims = SessionSet(sessions.lazy.filter(\.holdsClaim).map(\.id))
        var exclusive = 0
        for (x, session) in sessions.enumerated() {
            let id = session.id
            try require(x == 0 || sessions[x - 1].id < id, "session \(id) is out of order, or there twice")
            try require(id.number > 0 && id.number <= lastID, "session \(id) was never created")
            try require(
                session.standing.activation <= clock && (session.interruption?.order ?? 0) <= clock,
                "session \(id) is ahead of its time")
            try require(
                (session.state == .interrupted) == (session.interruption != nil),
                "session \(id) is interrupted without an interruption, or the other way round")
            try require(session.state == .interrupted || session.waitingFor.isEmpty, "session \(id) waits for nothing")
            try require(session.claimExpires == nil || session.state == .inactive, "session \(id) has two claims")
            try require(
                session.ended == nil || session.claimExpires != nil, "session \(id) remembers an end without a claim")
            try require(
                !session.mayResume || session.claimExpires != nil, "session \(id) may resume without a claim")
            try require(
                session.ignoredSince == nil || session.state == .interrupted,
                "session \(id) ignores an interruption that is none")
            try require(
                session.lackCause == nil || session.state == .active, "session \(id) lacks a route that it needs not")
            try require(
                session.client.number <= SessionSet.highest, "session \(id) belongs to a client that counts too far")
            try require(
                session.waitingFor.isSubset(of: claims) && !session.waitingFor.contains(id),
                "session \(id) waits for one that holds no claim")
            if session.state == .active, session.sessionClass == .app, !session.configuration.isMixable {
                exclusive += 1
            }
        }
        try require(exclusive <= 1, "\(exclusive) sessions that do not mix are active at once")
    }
}

/// Why a stored state cannot be the result of the rules.
public struct MemoryError: Error, Sendable, CustomStringConvertible {
    public let description: String
}

extension Memory.Member {
    init(_ session: Session) {
        self.init(
            id: session.id,
            new: NewSession(
                name: session.name, client: session.client, sessionClass: session.sessionClass,
                configuration: session.configuration, notifiesOnExit: session.notifiesOnExit,
                evidence: session.evidence))
        isForeground = session.isForeground
        preferences = session.preferences
        override = session.override
        preferredInput = session.preferredInput
        state = session.state
        since = session.since
        activation = session.standing.activation
        claimExpires = session.claimExpires
        waitingFor = session.waitingFor
        toldOtherAudioPlaying = session.standing.toldOtherAudioPlaying
        toldSilenceHint = session.standing.toldSilenceHint
        interruption = session.interruption
        ended = session.ended
        mayResume = session.mayResume
        ignoredSince = session.ignoredSince
        cause = session.cause
        duckCause = session.duckCause
        muteCause = session.muteCause
        lackCause = session.lackCause
        refused = session.refused
    }
}

extension Session {
    fileprivate init(_ member: Memory.Member) {
        self.init(member.id, member.new, at: member.since)
        preferredInput = member.preferredInput
        waitingFor = member.waitingFor
        standing.isForeground = member.isForeground
        standing.preferences = member.preferences
        standing.override = member.override
        standing.state = member.state
        standing.activation = member.activation
        standing.claimExpires = member.claimExpires
        standing.toldOtherAudioPlaying = member.toldOtherAudioPlaying
        standing.toldSilenceHint = member.toldSilenceHint
        standing.isDucked = member.duckCause != nil
        standing.isMuted = member.muteCause != nil
        interruption = member.interruption
        ended = member.ended
        mayResume = member.mayResume
        ignoredSince = member.ignoredSince
        duckCause = member.duckCause
        muteCause = member.muteCause
        lackCause = member.lackCause
        refused = member.refused
        // Otherwise only what the state itself contains.
        cause =
            member.cause
            ?? Cause(
                .earlier, interruption?.rule ?? .services, at: since, by: interruption?.by, interruption?.byName ?? "")
    }
}
