import Enforcement
import PluginAPI
import SessionManager

extension StateRecord {
    /// The record's bytes in the state file; ``init(_:)`` reads them.
    public var bytes: [UInt8] {
        var writer = ByteWriter()
        write(to: &writer)
        return writer.bytes
    }

    func write(to writer: inout ByteWriter) {
        writer.integer(core.sequence)
        writer.integer(core.lastID)
        writer.integer(core.lastOrder)
        writer.bool(core.isSilentMode)
        writer.bool(core.isScreenLocked)
        writer.bool(core.isMicrophoneMuted)
        writer.bool(core.isAsleep)
        writer.string(core.services.rawValue)
        writer.optional(core.sounding) { writer, sounding in
            writer.array(sounding.sessions.sorted()) { $0.id($1) }
            writer.bool(sounding.others)
            writer.array(sounding.outputs.sorted { $0.key < $1.key }) { writer, entry in
                writer.id(entry.key)
                writer.array(entry.value.sorted()) { $0.string($1) }
            }
        }
        writer.entries(changed) { $0.entry($1) }
        writer.array(closed) { $0.id($1) }
        writer.entries(waits) { $0.wait($1) }
        writer.entries(told) { $0.notice($1) }
        writer.entries(paused) { writer, player in
            writer.string(player.name)
            writer.string(player.trackID)
            writer.string(player.url)
            writer.string(player.title)
            writer.integer(player.since)
            writer.bool(player.isSeen)
        }
    }

    /// Throws if the bytes are not one complete record. An entry that cannot be read is left out, and its session
    /// counts as closed.
    public init(_ bytes: ArraySlice<UInt8>) throws(ByteError) {
        var reader = ByteReader(bytes)
        core = Memory()
        core.sequence = try reader.integer()
        core.lastID = try reader.integer()
        core.lastOrder = try reader.integer()
        core.isSilentMode = try reader.bool()
        core.isScreenLocked = try reader.bool()
        core.isMicrophoneMuted = try reader.bool()
        core.isAsleep = try reader.bool()
        core.services = try reader.word()
        core.sounding = try reader.optional { reader throws(ByteError) in
            let sessions = try reader.array { reader throws(ByteError) in try reader.id() }
            var sounding = Sounding(sessions: Set(sessions), others: try reader.bool())
            let outputs = try reader.array { reader throws(ByteError) in
                (try reader.id(), Set(try reader.array { reader throws(ByteError) in try reader.string() }))
            }
            for (id, uids) in outputs { sounding.outputs[id] = uids }
            return sounding
        }
        var lost: [SessionID] = []
        changed = try reader.entries(lost: { bytes in
            var reader = ByteReader(bytes)
            if let id = try? reader.id() { lost.append(id) }
        }) { reader throws(ByteError) in try reader.entry() }
        closed = try reader.array { reader throws(ByteError) in try reader.id() }
        closed += lost
        waits = try reader.entries { reader throws(ByteError) in try reader.wait() }
        told = try reader.entries { reader throws(ByteError) in try reader.notice() }
        paused = try reader.entries { reader throws(ByteError) in
            PausedPlayer(
                name: try reader.string(), trackID: try reader.string(), url: try reader.string(),
                title: try reader.string(), since: try reader.microseconds(), isSeen: try reader.bool())
        }
        guard reader.isAtEnd else { throw ByteError() }
    }
}

extension ByteWriter {
    fileprivate mutating func id(_ id: SessionID) { integer(id.number) }

    private mutating func set(_ ids: SessionSet) {
        array(ids.runs) { writer, run in
            writer.integer(run.first)
            writer.integer(run.last)
        }
    }

    fileprivate mutating func wait(_ change: WaitChange) {
        id(change.owner)
        set(change.waiters)
        bool(change.isOver)
        optional(change.spoiler) { $0.cause($1) }
    }

    fileprivate mutating func entry(_ entry: StateRecord.Entry) {
        let session = entry.session
        id(session.id)
        string(session.new.name)
        integer(session.new.client.number)
        string(session.new.sessionClass.rawValue)
        string(session.new.configuration.category.rawValue)
        string(session.new.configuration.mode.rawValue)
        integer(session.new.configuration.requestedOptions.rawValue)
        bool(session.new.notifiesOnExit)
        string(session.new.evidence)
        string(session.state.rawValue)
        bool(session.isForeground)
        optional(session.preferences.sampleRate) { $0.double($1) }
        optional(session.preferences.ioBufferDuration) { $0.double($1) }
        bool(session.preferences.interruptsOnRouteDisconnect)
        bool(session.preferences.noInterruptionsFromAlerts)
        string(session.override.rawValue)
        string(session.preferredInput)
        optional(session.interruption) { $0.interruption($1) }
        optional(session.ended) { $0.interruption($1) }
        optional(session.resumeOrder) { $0.integer($1) }
        optional(session.ignoredSince) { $0.integer($1.microseconds) }
        optional(session.cause) { $0.cause($1) }
        optional(session.duckCause) { $0.cause($1) }
        optional(session.muteCause) { $0.cause($1) }
        optional(session.lackCause) { $0.cause($1) }
        optional(session.refused) { writer, refused in
            writer.string(refused.request.rawValue)
            writer.string(refused.error.code.rawValue)
            writer.string(refused.error.message)
            writer.cause(refused.cause)
        }
        set(session.waitingFor)
        optional(session.claimExpires) { $0.integer($1.microseconds) }
        integer(session.since.microseconds)
        integer(session.activation)
        bool(session.toldOtherAudioPlaying)
        bool(session.toldSilenceHint)
        owner(entry.owner)
    }

    private mutating func owner(_ owner: StateRecord.Owner) {
        switch owner {
        case .client(let client):
            integer(UInt8(0))
            string(client.name)
            integer(client.process)
            integer(client.user)
            integer(client.start)
            integer(client.actingProcess)
            integer(client.actingStart)
            string(client.desktopEntry)
            bool(client.lowersItself)
        case .adopted(.process(let process), let start):
            integer(UInt8(1))
            integer(process)
            integer(start)
        case .adopted(.sandbox(let id), let start):
            integer(UInt8(2))
            string(id)
            integer(start)
        case .adopted(.name(let name), let start):
            integer(UInt8(3))
            string(name)
            integer(start)
        }
    }

    private mutating func interruption(_ interruption: Interruption) {
        string(interruption.reason.rawValue)
        optional(interruption.by) { $0.id($1) }
        string(interruption.byName)
        integer(interruption.since.microseconds)
        string(interruption.rule.rawValue)
        integer(interruption.order)
        bool(interruption.microphoneMuted)
        array(interruption.away) { writer, output in
            writer.string(output.uid)
            writer.string(output.name)
        }
        optional(interruption.spoiler) { $0.cause($1) }
    }

    fileprivate mutating func cause(_ cause: Cause) {
        string(cause.kind.rawValue)
        string(cause.rule.rawValue)
        integer(cause.since.microseconds)
        optional(cause.by) { $0.id($1) }
        string(cause.byName)
    }

    fileprivate mutating func notice(_ notice: Notice) {
        switch notice {
        case .began(let session, let reason, let by, let byName):
            integer(UInt8(0))
            id(session)
            string(reason.rawValue)
            optional(by) { $0.id($1) }
            string(byName)
        case .ended(let session, let shouldResume, let microseconds, let reason):
            integer(UInt8(1))
            id(session)
            bool(shouldResume)
            integer(microseconds)
            string(reason.rawValue)
        case .ducking(let session, let isDucked, let gain):
            integer(UInt8(2))
            id(session)
            bool(isDucked)
            double(gain)
        case .hint(let session, let begin):
            integer(UInt8(3))
            id(session)
            bool(begin)
        case .servicesLost: integer(UInt8(4))
        case .servicesReset: integer(UInt8(5))
        }
    }
}

extension ByteReader {
    fileprivate mutating func id() throws(ByteError) -> SessionID { SessionID(try integer()) }

    private mutating func set() throws(ByteError) -> SessionSet {
        let runs = try array { reader throws(ByteError) in
            SessionSet.Run(first: try reader.integer(), last: try reader.integer())
        }
        guard let set = SessionSet(runs: runs) else { throw ByteError() }
        return set
    }

    fileprivate mutating func wait() throws(ByteError) -> WaitChange {
        WaitChange(
            owner: try id(), waiters: try set(), isOver: try bool(),
            spoiler: try optional { reader throws(ByteError) in try reader.cause() })
    }
    /// Later than any machine runs, and far from an overflow.
    fileprivate mutating func microseconds() throws(ByteError) -> UInt64 { min(try integer(), 1 << 52) }
    fileprivate mutating func instant() throws(ByteError) -> Instant { Instant(microseconds: try microseconds()) }

    fileprivate mutating func configuration() throws(ByteError) -> Configuration {
        let (category, mode) = (try word(Category.self), try word(Mode.self))
        let options = Options(rawValue: try integer())
        guard let configuration = try? Configuration(category: category, mode: mode, options: options) else {
            throw ByteError()
        }
        return configuration
    }

    fileprivate mutating func entry() throws(ByteError) -> StateRecord.Entry {
        let id = try id()
        let name = try string()
        let client = ClientID(try integer())
        let sessionClass = try word(SessionClass.self)
        let configuration = try configuration()
        let new = NewSession(
            name: name, client: client, sessionClass: sessionClass, configuration: configuration,
            notifiesOnExit: try bool(), evidence: try string())
        let state = try word(SessionState.self)
        let isForeground = try bool()
        var preferences = Preferences()
        preferences.sampleRate = try optional { reader throws(ByteError) in try reader.double() }
        preferences.ioBufferDuration = try optional { reader throws(ByteError) in try reader.double() }
        guard preferences.sampleRate.map(Preferences.sampleRates.contains) != false,
            preferences.ioBufferDuration.map({ $0 > 0 && $0 <= Preferences.longestBuffer }) != false
        else { throw ByteError() }
        preferences.interruptsOnRouteDisconnect = try bool()
        preferences.noInterruptionsFromAlerts = try bool()
        var session = Memory.Member(id: id, new: new)
        session.state = state
        session.isForeground = isForeground
        session.preferences = preferences
        session.override = try word()
        session.preferredInput = try string()
        session.interruption = try optional { reader throws(ByteError) in try reader.interruption() }
        session.ended = try optional { reader throws(ByteError) in try reader.interruption() }
        session.resumeOrder = try optional { reader throws(ByteError) in try reader.integer() }
        session.ignoredSince = try optional { reader throws(ByteError) in try reader.instant() }
        session.cause = try optional { reader throws(ByteError) in try reader.cause() }
        session.duckCause = try optional { reader throws(ByteError) in try reader.cause() }
        session.muteCause = try optional { reader throws(ByteError) in try reader.cause() }
        session.lackCause = try optional { reader throws(ByteError) in try reader.cause() }
        session.refused = try optional { reader throws(ByteError) in try reader.refusedRequest() }
        session.waitingFor = try set()
        session.claimExpires = try optional { reader throws(ByteError) in try reader.instant() }
        session.since = try instant()
        session.activation = try integer()
        session.toldOtherAudioPlaying = try bool()
        session.toldSilenceHint = try bool()
        return StateRecord.Entry(session: session, owner: try owner())
    }

    private mutating func owner() throws(ByteError) -> StateRecord.Owner {
        switch try integer(UInt8.self) {
        case 0:
            .client(
                StateRecord.Client(
                    name: try string(), process: try integer(), user: try integer(), start: try integer(),
                    actingProcess: try integer(), actingStart: try integer(), desktopEntry: try string(),
                    lowersItself: try bool()))
        case 1: .adopted(.process(try integer()), start: try integer())
        case 2: .adopted(.sandbox(try string()), start: try integer())
        case 3: .adopted(.name(try string()), start: try integer())
        default: throw ByteError()
        }
    }

    private mutating func interruption() throws(ByteError) -> Interruption {
        Interruption(
            reason: try word(), by: try optional { reader throws(ByteError) in try reader.id() }, byName: try string(),
            since: try instant(), rule: try word(), order: try integer(), microphoneMuted: try bool(),
            away: try array { reader throws(ByteError) in
                AwayOutput(uid: try reader.string(), name: try reader.string())
            },
            spoiler: try optional { reader throws(ByteError) in try reader.cause() })
    }

    fileprivate mutating func cause() throws(ByteError) -> Cause {
        Cause(
            try word(), try word(), at: try instant(), by: try optional { reader throws(ByteError) in try reader.id() },
            try string())
    }

    private mutating func refusedRequest() throws(ByteError) -> RefusedRequest {
        RefusedRequest(
            request: try word(), error: SessionError(try word(), asWritten: try string()), cause: try cause())
    }

    fileprivate mutating func notice() throws(ByteError) -> Notice {
        switch try integer(UInt8.self) {
        case 0:
            .began(
                try id(), try word(InterruptionReason.self),
                by: try optional { reader throws(ByteError) in try reader.id() }, byName: try string())
        case 1:
            .ended(
                try id(), shouldResume: try bool(), microseconds: try integer(),
                reason: try word(InterruptionReason.self)
            )
        case 2: .ducking(try id(), isDucked: try bool(), gain: try double())
        case 3: .hint(try id(), begin: try bool())
        case 4: .servicesLost
        case 5: .servicesReset
        default: throw ByteError()
        }
    }
}
