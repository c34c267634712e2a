import DBus
import Decider
import Enforcement
import EventLoop
import PluginAPI
import Processes
import Scenario
import SessionBus
import SessionManager

extension Daemon: SessionService {
    func createSession(
        _ request: SessionRequest, caller: String, _ reply: @escaping (Result<SessionID, Failure>) -> Void
    ) {
        do throws(SessionError) {
            try check(request.name, "name")
            guard !request.name.isEmpty else { throw .badParameter("a session needs a name; users will see it") }
            try check(request.desktopEntry, "desktop-entry")
        } catch {
            reply(.failure(Failure(error)))
            return
        }
        withClient(caller) { [unowned self] result in
            switch result {
            case .failure(let failure): reply(.failure(failure))
            case .success(let client):
                do throws(SessionError) {
                    reply(.success(try create(request, for: client)))
                } catch {
                    reply(.failure(Failure(error)))
                }
            }
        }
    }

    private func create(_ request: SessionRequest, for client: Client) throws(SessionError) -> SessionID {
        let processID = try actingProcess(request, client)
        try authorize(request.sessionClass, client)
        try requireRoom(for: client)
        let decision = try create(
            NewSession(
                name: request.name, client: client.id, sessionClass: request.sessionClass,
                configuration: request.configuration, notifiesOnExit: request.notifiesOnExit),
            Member(
                process: processID, user: client.credentials.userID, desktopEntry: request.desktopEntry,
                lowersItself: request.lowersItself))
        guard let id = decision.created else { preconditionFailure("a create that is not refused creates") }
        client.sessionCount += 1
        var record = Record(object: SessionObject(id, self, on: connection.objects), owner: .client(client))
        if processID != client.credentials.processID { record.acting = acting(processID, for: id) }
        // It has ended since the request was checked.
        if let acting = record.acting, acting.watch == nil { run(.processEnded(id)) }
        export(record, id)
        save(decision)
        return id
    }

    /// Watches the process that acts for the session's client. When it ends, no stream belongs to the session by it.
    func acting(_ process: UInt32, for id: SessionID) -> ActingProcess {
        ActingProcess(process, on: loop) { [unowned self] in
            guard records[id] != nil else { return }
            submit(.processEnded(id))
            records[id]?.object.propertiesChanged(["ProcessId"])
            lookAtStreamsSoon()
        }
    }

    /// The process whose streams belong to the session: the caller's own, or another of the same user.
    private func actingProcess(_ request: SessionRequest, _ client: Client) throws(SessionError) -> UInt32 {
        guard let processID = request.processID else { return client.credentials.processID ?? 0 }
        guard let user = Process(id: processID).userID else {
            throw .badParameter("there is no process \(processID); give the pid of a running one")
        }
        guard user == client.credentials.userID else {
            throw SessionError(
                .missingEntitlement, "process \(processID) belongs to another user; use a process of your own")
        }
        // In a sandbox, only for processes of that sandbox.
        if let caller = client.process, caller.id != processID {
            switch caller.confinement {
            case .none: break
            case .application, .hidden, .gone:
                guard Process(id: processID).isLike(caller) else {
                    throw SessionError(
                        .missingEntitlement, "process \(processID) is not in your sandbox; use one that is")
                }
            }
        }
        return processID
    }

    /// The settings decide who may take a privileged class; the kernel identifies the caller.
    private func authorize(_ sessionClass: SessionClass, _ client: Client) throws(SessionError) {
        let holder: Settings.Privileges.Holder
        switch sessionClass {
        case .app: return
        case .alert: holder = settings.privileges.alert
        case .call: holder = settings.privileges.call
        }
        // Checked again afterwards, to be sure that the right process was read.
        if let process = client.process, admits(holder, process, client), client.process != nil { return }
        if bus.isSystem, holder == .anyone {
            throw SessionError(
                .missingEntitlement,
                "class '\(sessionClass.rawValue)' on the system bus is for root, the user of the daemon and the group audio; "
                    + "add the user to this group: usermod -aG audio USER")
        }
        throw SessionError(
            .missingEntitlement,
            "class '\(sessionClass.rawValue)' is not allowed for this program; allow it in sessiond.conf, "
                + "[privileges] \(sessionClass.rawValue)")
    }

    /// On the system bus `any` means root, the daemon's user and the group audio.
    private func admits(_ holder: Settings.Privileges.Holder, _ process: Process, _ client: Client) -> Bool {
        if bus.isSystem, holder == .anyone, !callers.isTrusted(client.credentials) { return false }
        return holder.admits(process, isShared: bus.isSystem)
    }

    /// One user must not use up all sessions.
    private func requireRoom(for client: Client) throws(SessionError) {
        guard bus.isSystem, !callers.isTrusted(client.credentials) else { return }
        let own = records.values.count { $0.owner.client?.credentials.userID == client.credentials.userID }
        guard own < max(1, settings.limits.sessions / 4) else {
            throw SessionError(
                .resourceNotAvailable, "your user has \(own) sessions, a quarter of the limit; close some")
        }
    }

    private func check(_ text: String, _ what: String) throws(SessionError) {
        guard text.utf8.count <= settings.limits.stringLength else {
            throw .badParameter("'\(what)' is longer than \(settings.limits.stringLength) bytes; shorten it")
        }
    }

    /// The connection that may call its methods. For an adopted session, this is the daemon's own connection.
    private func owner(of record: Record) -> String { record.owner.client?.name ?? connection.uniqueName }

    func authorize(_ id: SessionID, caller: String) throws(SessionError) {
        let owner = owner(of: try record(of: id))
        guard owner == caller else {
            throw SessionError(.notOwner, "session \(id) belongs to \(owner); create one of your own")
        }
    }

    func activate(_ id: SessionID, caller: String) throws(SessionError) { try request(.activate(id)) }

    func deactivate(_ id: SessionID, notifyOthers: Bool, caller: String) throws(SessionError) {
        try request(.deactivate(id, notifyOthers: notifyOthers))
    }

    func setCategory(_ id: SessionID, _ configuration: Configuration, caller: String) throws(SessionError) {
        try request(.setCategory(id, configuration))
    }

    func overrideOutput(_ id: SessionID, _ override: OutputOverride, caller: String) throws(SessionError) {
        try request(.overrideOutput(id, override))
    }

    func setPreferredInput(_ id: SessionID, uid: String, caller: String) throws(SessionError) {
        try check(uid, "uid")
        try request(.setPreferredInput(id, uid: uid))
    }

    func setPreferences(_ id: SessionID, _ change: (inout Preferences) -> Void, caller: String) throws(SessionError) {
        guard var preferences = arbiter.session(id)?.preferences else { return }
        change(&preferences)
        try request(.setPreferences(id, preferences))
    }

    func close(_ id: SessionID, caller: String) throws(SessionError) { try request(.close(id)) }

    func authorizeSwitch(caller: String) throws(Failure) {
        try callers.requireSwitches(caller)
    }

    func setSilentMode(_ on: Bool, caller: String) throws(SessionError) { try request(.setSilentMode(on)) }

    func setScreenLocked(_ locked: Bool, caller: String) throws(SessionError) { try request(.setScreenLocked(locked)) }

    func setForeground(_ id: SessionID, _ foreground: Bool, caller: String) throws(SessionError) {
        _ = try record(of: id)
        try request(.setForeground(id, foreground))
    }

    func history(before sequence: UInt64, _ count: UInt32) -> [Value] {
        var size = 0
        let entries = decider.history.latest(Int(count), before: sequence).reversed().prefix { entry in
            size += entry.decision.effects.count + entry.requests.count + 1
            return size <= Daemon.longestHistory
        }
        return entries.reversed().map { Value($0) }
    }

    /// The most decisions, effects and requests in one answer; each has about 150 bytes.
    private static let longestHistory = 2_048

    func explain(_ id: SessionID) throws(SessionError) -> [Value] {
        _ = try record(of: id)
        return decider.explain(id, at: Instant(microseconds: MonotonicClock.now())).map { Value($0) }
    }

    var listedStreams: [Value] {
        let unplaced = (audio?.snapshot.unplaced ?? []).map {
            ListedStream($0, program: $0.applicationName, reason: .unplaced)
        }
        return (decider.streams + unplaced).map { Value($0) }
    }

    func exportHistory(isPrivate: Bool) -> String {
        Transcript.text(of: decider, isPrivate: isPrivate, limit: Daemon.longestExport)
    }

    /// The most bytes of an exported history: with a thousand sessions each decision may have as many lines.
    private static let longestExport = 2 << 20

    var recentWork: (wakeUps: UInt64, processor: UInt64) { loop.recentWork }

    var listedSessions: [Value] { arbiter.sessions.compactMap { records[$0.id]?.object.listed() } }

    var manager: ManagerDescription {
        ManagerDescription(
            sequence: arbiter.sequence, version: version, isSilentMode: arbiter.isSilentMode,
            isScreenLocked: arbiter.isScreenLocked, nowPlaying: arbiter.nowPlaying,
            route: arbiter.audio?.route ?? .none, inputs: arbiter.audio?.inputs ?? [],
            outputs: arbiter.audio?.outputs ?? [], isServerConnected: arbiter.audio != nil,
            serverName: audio?.snapshot.serverName ?? "", neighbours: neighbours?.list ?? [],
            ducking: DuckingDescription(
                gain: settings.ducking.gain, attack: settings.ducking.attack, release: settings.ducking.release,
                hold: settings.ducking.hold), settingsError: settingsError)
    }

    func describe(_ id: SessionID) -> SessionDescription? {
        guard let session = arbiter.session(id), let record = records[id], let member = decider.members[id] else {
            return nil
        }
        let route = arbiter.route(of: session)
        return SessionDescription(
            name: session.name, configuration: session.configuration, sessionClass: session.sessionClass,
            state: session.state, stateSince: session.since.microseconds, isForeground: session.isForeground,
            owner: owner(of: record),
            processID: member.process, desktopEntry: member.desktopEntry,
            interruptionReason: session.interruption?.reason, waitingFor: session.waitingFor,
            isDucked: session.isDucked, duckGain: session.isDucked ? arbiter.settings.duckGain : 0,
            isMuted: session.isMuted, ignoredInterruption: session.ignoredSince != nil,
            isAdopted: member.adopted != nil, evidence: session.evidence, otherAudioPlaying: session.otherAudioPlaying,
            silenceHint: session.shouldSilenceSecondaryAudio, route: route,
            availableInputs: arbiter.availableInputs(of: session), preferredInput: session.preferredInput,
            preferences: session.preferences,
            outputLatency: route.outputs.isEmpty ? 0 : audio?.snapshot.outputLatency ?? 0,
            inputLatency: route.inputs.isEmpty ? 0 : audio?.snapshot.inputLatency ?? 0,
            outputVolume: audio?.snapshot.outputVolume ?? 0)
    }

    func read(_ id: SessionID) -> SessionDescription? {
        records[id]?.object.wasRead()
        return describe(id)
    }

    func waitCount(of id: SessionID) -> Int { arbiter.waitCount(of: id) }

    private func record(of id: SessionID) throws(SessionError) -> Record {
        if let record = records[id] { return record }
        if arbiter.isExpired(id) { throw SessionError(.expiredSession, "session \(id) was closed; create a new one") }
        throw .badParameter("there is no session \(id); use a path that CreateSession returned")
    }
}
