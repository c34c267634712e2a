import DBus
import PluginAPI
import SessionManager

/// One step of the state file: what an event changed, and what of it was still to be told.
struct StateRecord {
    /// A session as the core and the shell know it.
    struct Entry {
        var session: Memory.Member
        var owner: String
        /// The owner's process, and when that started: with the name, this owner and no other.
        var ownerProcess: UInt32
        var ownerUser: UInt32
        var ownerStart: UInt64
        var processID: UInt32
        var desktopEntry: String
    }

    /// The core without its sessions, its sounds and its audio server, which are found anew.
    var core: Memory
    /// The sessions that changed, whole.
    var changed: [Entry]
    var closed: [SessionID]
    /// What clients are told of this event, in order.
    var told: [Notice]
}

/// What a client is told and must not be told twice.
enum Notice: Equatable {
    case began(SessionID, InterruptionReason, by: SessionID?, byName: String)
    case ended(SessionID, shouldResume: Bool, microseconds: UInt64, reason: InterruptionReason)
    case ducking(SessionID, isDucked: Bool, gain: Double)
    case hint(SessionID, begin: Bool)

    /// Nil for an effect that tells no client, or that a client reads again anyway.
    init?(_ effect: Effect) {
        switch effect {
        case .interruptionBegan(let id, let interruption):
            self = .began(id, interruption.reason, by: interruption.by, byName: interruption.byName)
        case .interruptionEnded(let id, let shouldResume, let microseconds, let reason, _):
            self = .ended(id, shouldResume: shouldResume, microseconds: microseconds, reason: reason)
        case .duckingChanged(let id, let isDucked, let gain): self = .ducking(id, isDucked: isDucked, gain: gain)
        case .silenceSecondaryAudioHint(let id, let begin): self = .hint(id, begin: begin)
        case .created, .activated, .deactivated, .closed, .claimDropped, .mutedChanged, .routeChanged, .servicesLost,
            .servicesReset, .selectOutput, .selectInput, .propertiesChanged, .managerPropertiesChanged:
            return nil
        }
    }
}

extension StateRecord {
    var bytes: [UInt8] {
        var writer = ByteWriter()
        writer.integer(core.sequence)
        writer.integer(core.lastID)
        writer.integer(core.clock)
        writer.bool(core.isSilentMode)
        writer.bool(core.isScreenLocked)
        writer.bool(core.isMicrophoneMuted)
        writer.array(changed) { $0.entry($1) }
        writer.array(closed) { $0.id($1) }
        writer.array(told) { $0.notice($1) }
        return writer.bytes
    }

    init(_ bytes: ArraySlice<UInt8>) throws(ByteError) {
        var reader = ByteReader(bytes)
        core = Memory()
        core.sequence = try reader.integer()
        core.lastID = try reader.integer()
        core.clock = try reader.integer()
        core.isSilentMode = try reader.bool()
        core.isScreenLocked = try reader.bool()
        core.isMicrophoneMuted = try reader.bool()
        changed = try reader.array { reader throws(ByteError) in try reader.entry() }
        closed = try reader.array { reader throws(ByteError) in try reader.id() }
        told = try reader.array { reader throws(ByteError) in try reader.notice() }
        guard reader.isAtEnd else { throw ByteError() }
    }
}

extension ByteWriter {
    fileprivate mutating func id(_ id: SessionID) { integer(id.number) }

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
        string(session.state.rawValue)
        bool(session.isForeground)
        optional(session.preferences.sampleRate) { $0.double($1) }
        optional(session.preferences.ioBufferDuration) { $0.double($1) }
        bool(session.preferences.interruptsOnRouteDisconnect)
        bool(session.preferences.noInterruptionsFromAlerts)
        string(session.override.rawValue)
        string(session.preferredInput)
        optional(session.stretch) { writer, interruption in
            writer.string(interruption.reason.rawValue)
            writer.optional(interruption.by) { $0.id($1) }
            writer.string(interruption.byName)
            writer.integer(interruption.since.microseconds)
            writer.string(interruption.rule.rawValue)
            writer.integer(interruption.order)
            writer.bool(interruption.isMicrophoneMuted)
            writer.bool(interruption.isSpoiled)
        }
        array(session.waitingFor) { $0.id($1) }
        optional(session.claimExpires) { $0.integer($1.microseconds) }
        integer(session.since.microseconds)
        integer(session.activation)
        bool(session.toldOtherAudioPlaying)
        bool(session.toldSilenceHint)
        string(entry.owner)
        integer(entry.ownerProcess)
        integer(entry.ownerUser)
        integer(entry.ownerStart)
        integer(entry.processID)
        string(entry.desktopEntry)
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
        }
    }
}

extension ByteReader {
    fileprivate mutating func id() throws(ByteError) -> SessionID { SessionID(try integer()) }
    fileprivate mutating func instant() throws(ByteError) -> Instant { Instant(microseconds: try integer()) }

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
            notifiesOnExit: try bool())
        let state = try word(SessionState.self)
        let isForeground = try bool()
        var preferences = Preferences()
        preferences.sampleRate = try optional { reader throws(ByteError) in try reader.double() }
        preferences.ioBufferDuration = try optional { reader throws(ByteError) in try reader.double() }
        preferences.interruptsOnRouteDisconnect = try bool()
        preferences.noInterruptionsFromAlerts = try bool()
        var session = Memory.Member(id: id, new: new)
        session.state = state
        session.isForeground = isForeground
        session.preferences = preferences
        session.override = try word()
        session.preferredInput = try string()
        session.stretch = try optional { reader throws(ByteError) in try reader.stretch() }
        session.waitingFor = try array { reader throws(ByteError) in try reader.id() }
        session.claimExpires = try optional { reader throws(ByteError) in try reader.instant() }
        session.since = try instant()
        session.activation = try integer()
        session.toldOtherAudioPlaying = try bool()
        session.toldSilenceHint = try bool()
        return StateRecord.Entry(
            session: session, owner: try string(), ownerProcess: try integer(), ownerUser: try integer(),
            ownerStart: try integer(), processID: try integer(), desktopEntry: try string())
    }

    private mutating func stretch() throws(ByteError) -> Memory.Stretch {
        Memory.Stretch(
            reason: try word(), by: try optional { reader throws(ByteError) in try reader.id() }, byName: try string(),
            since: try instant(), rule: try word(), order: try integer(), isMicrophoneMuted: try bool(),
            isSpoiled: try bool())
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
        default: throw ByteError()
        }
    }
}
