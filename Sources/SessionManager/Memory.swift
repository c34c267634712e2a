public import PluginAPI

/// The complete state of the rules as plain values. It does not contain computed values, for example which sessions are
/// ducked, muted or now playing.
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
        /// If that interruption ended with the should-resume hint: the number of the latest activation at that time.
        public var resumeOrder: UInt64?
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

        /// The state after the creation: in the foreground, inactive, without waits.
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
    public var lastOrder: UInt64 = 0
    public var isSilentMode = false
    public var isScreenLocked = false
    public var isMicrophoneMuted = false
    public var isAsleep = false
    public var audio: Audio?
    /// Also if ``audio`` is nil because the server has not been read yet: needed to report a loss, and its end, once.
    public var services = Arbiter.Services.unknown
    public var sounding: Sounding?
    /// Sorted by number.
    public var members: [Member] = []

    public init() {}

    /// Whether nothing has happened yet.
    public var isBlank: Bool { sequence == 0 && lastID == 0 && lastOrder == 0 }
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
        memory.lastOrder = lastOrder
        memory.isSilentMode = isSilentMode
        memory.isScreenLocked = isScreenLocked
        memory.isMicrophoneMuted = isMicrophoneMuted
        memory.isAsleep = isAsleep
        memory.audio = audio
        memory.services = services
        memory.sounding = sounding
        return memory
    }

    /// The state of one session; nil if it does not exist.
    public func member(_ id: SessionID) -> Memory.Member? { index(of: id).map { Memory.Member(sessions[$0]) } }

    /// Restores the rules. It returns no effects, because the previous daemon has notified the clients.
    ///
    /// Throws if no sequence of events leads to such a memory. ``Memory/leaveOutFaulty()`` finds the faulty sessions.
    public init(_ memory: Memory) throws(MemoryError) {
        self.init(settings: memory.settings)
        sequence = memory.sequence
        lastID = memory.lastID
        lastOrder = memory.lastOrder
        isSilentMode = memory.isSilentMode
        isScreenLocked = memory.isScreenLocked
        isMicrophoneMuted = memory.isMicrophoneMuted
        isAsleep = memory.isAsleep
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
        let memory = memory
        try memory.checkCounts()
        let claims = memory.claims
        var exclusive = 0
        for (x, member) in memory.members.enumerated() {
            if x > 0, memory.members[x - 1].id >= member.id {
                throw MemoryError(description: "session \(member.id) is out of order, or there twice")
            }
            if let fault = memory.fault(of: member) { throw MemoryError(description: fault) }
            guard member.waitingFor.isSubset(of: claims) else {
                throw MemoryError(description: "session \(member.id) waits for one that holds no claim")
            }
            if member.isExclusive { exclusive += 1 }
        }
        guard exclusive <= 1 else {
            throw MemoryError(description: "\(exclusive) sessions that do not mix are active at once")
        }
    }
}

extension Memory {
    /// Removes every session that no sequence of events leads to, so that the other sessions can be restored. Returns
    /// the fault of each.
    ///
    /// Also removes the waits for them, without the should-resume hint, because it is unknown whether they play. The
    /// next ``Event/timePassed`` ends the interruption of sessions that have no other wait.
    public mutating func leaveOutFaulty() -> [String] {
        var faults: [String] = []
        var kept: [Member] = []
        for member in members.sorted(by: { $0.id < $1.id }) {
            if kept.last?.id == member.id {
                faults.append("session \(member.id) is there twice")
            } else if let fault = fault(of: member) {
                faults.append(fault)
            } else {
                kept.append(member)
            }
        }
        // Only the session that became active last may be active.
        let newest = kept.filter(\.isExclusive).max { $0.activation < $1.activation }?.id
        kept.removeAll { member in
            guard member.isExclusive, member.id != newest else { return false }
            faults.append("session \(member.id) is active beside one that it does not mix with")
            return true
        }
        members = kept
        let claims = claims
        for x in members.indices {
            // A set from a file may have a huge number of elements, so this stops at the first missing one.
            guard let gone = members[x].waitingFor.first(where: { !claims.contains($0) }) else { continue }
            let (waits, since) = (members[x].waitingFor, members[x].since)
            members[x].waitingFor = SessionSet(claims.filter(waits.contains))
            guard members[x].interruption?.spoiler == nil else { continue }
            members[x].interruption?.spoiler = Cause(.vanished, .vanished, at: since, by: gone)
        }
        return faults
    }

    fileprivate var claims: SessionSet { SessionSet(members.lazy.filter(\.holdsClaim).map(\.id)) }

    /// Checks that the counters are far from an overflow.
    fileprivate func checkCounts() throws(MemoryError) {
        guard max(sequence, lastID, lastOrder) <= SessionSet.highest else {
            throw MemoryError(description: "a counter is too large")
        }
    }

    /// The fault of the session, independent of the other sessions; nil if it has none.
    fileprivate func fault(of member: Member) -> String? {
        let isInterrupted = member.state == .interrupted
        let hasClaimTime = member.claimExpires != nil
        let fault: String? =
            if member.id.number == 0 || member.id.number > lastID {
                "was never created"
            } else if max(member.activation, member.interruption?.order ?? 0, member.resumeOrder ?? 0) > lastOrder {
                "has an order number above the latest one"
            } else if isInterrupted != (member.interruption != nil) {
                "is interrupted but has no interruption, or has one but is not interrupted"
            } else if !isInterrupted, !member.waitingFor.isEmpty {
                "waits for other sessions, but is not interrupted"
            } else if hasClaimTime, member.state != .inactive {
                "has two claims"
            } else if member.ended != nil, !hasClaimTime {
                "has the end of an interruption, but no claim"
            } else if member.resumeOrder != nil, !hasClaimTime {
                "may resume without a claim"
            } else if member.ignoredSince != nil, !isInterrupted {
                "ignores an interruption, but is not interrupted"
            } else if member.lackCause != nil, member.state != .active {
                "lacks a usable input or output, but is not active"
            } else if member.new.client.number > SessionSet.highest {
                "belongs to a client whose number is too large"
            } else if member.waitingFor.contains(member.id) {
                "waits for itself"
            } else {
                nil
            }
        return fault.map { "session \(member.id) \($0)" }
    }
}

extension Memory.Member {
    /// As ``Session/holdsClaim``.
    fileprivate var holdsClaim: Bool { state != .inactive || claimExpires != nil }

    fileprivate var isExclusive: Bool {
        state == .active && new.sessionClass == .app && !new.configuration.isMixable
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
        resumeOrder = session.resumeOrder
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
        resumeOrder = member.resumeOrder
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
