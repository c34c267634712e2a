import DBus
import Decider
import Enforcement
import EventLoop
import Logging
import MediaControl
import PluginAPI
import SessionBus
import SessionManager
import State

/// Surviving a restart (rules §8): what is stored of each event, and how a new daemon continues.
extension Daemon {
    /// Stores what the decision changed, before any signal is sent.
    func save(_ decision: Decision) {
        guard let state, decision.isMemorable else { return }
        CrashPoint.pass("before-state")
        // This runs before every answer: one pass over the effects, as nearly all concern one session.
        var ids: [SessionID] = []
        ids.reserveCapacity(decision.effects.count + 1)
        if let id = decision.session ?? decision.created { ids.append(id) }
        var record = StateRecord(core: arbiter.memoryOfNobody, paused: pausedPlayers)
        for effect in decision.effects {
            if let id = effect.session, id != ids.last { ids.append(id) }
            if let notice = Notice(effect) { record.told.append(notice) }
            if case .closed(let id) = effect { record.closed.append(id) }
            if case .waitsChanged(let change) = effect { record.waits.append(change) }
        }
        if decision.event.concernsInterruptions { ids += arbiter.sessions.map(\.id) }
        if ids.count > 1 { ids.sort() }
        for (index, id) in ids.enumerated() where index == 0 || ids[index - 1] != id {
            if let entry = savedEntry(id) { record.changed.append(entry) }
        }
        state.append(record)
        CrashPoint.pass("state-written")
        if state.isLong { state.replace(with: snapshot(telling: record.told)) }
    }

    /// Stores which players are paused, or about to be, so that the next daemon may resume them.
    func savePaused(_ kept: Set<PauseBook<String>.Kept>) {
        pausedPlayers = kept.map { pause in
            StateRecord.PausedPlayer(
                name: pause.player, trackID: pause.track.id, url: pause.track.url, title: pause.track.title,
                since: pause.since, isSeen: pause.isSeen)
        }
        .sorted { $0.name < $1.name }
        state?.append(
            StateRecord(core: arbiter.memoryOfNobody, paused: pausedPlayers))
        CrashPoint.pass("pause-noted")
    }

    /// The players that the last daemon had paused.
    var keptPauses: [PauseBook<String>.Kept] {
        pausedPlayers.map { player in
            PauseBook.Kept(
                player: player.name, track: Track(id: player.trackID, url: player.url, title: player.title),
                since: player.since, isSeen: player.isSeen)
        }
    }

    /// Restores the state of the last daemon on this bus, and returns it. Called before messages are dispatched, when
    /// this daemon owns the name.
    func restore() -> StateLog.Summary? {
        busID = (try? connection.askBusAndWait("GetId", timeout: 5).first?.stringValue) ?? ""
        guard !busID.isEmpty, let state = StateFile(bus: busID, log: log) else { return nil }
        self.state = state
        guard var saved = state.read() else {
            state.replace(with: snapshot())
            return nil
        }
        // No time in the file may be later than now.
        saved.limit(to: MonotonicClock.now())
        var memory = saved.core
        memory.settings = Arbiter.Settings(settings)
        let faults = memory.leaveOutFaulty()
        if let fault = faults.first {
            log.warning("\(faults.count) invalid sessions of the saved state are ignored; the first: \(fault)")
            let kept = Set(memory.members.map(\.id))
            saved.entries.removeAll { !kept.contains($0.session.id) }
        }
        let revived = saved.entries.map { ($0.session.id, revive($0)) }
        do throws(MemoryError) {
            try restore(memory, Dictionary(revived.map { ($0, $1.member) }) { $1 })
        } catch {
            log.warning("the saved state is invalid and is ignored: \(error)")
            clients = [:]
            state.replace(with: snapshot())
            return nil
        }
        for (id, (record, _)) in revived { export(record, id) }
        if !saved.entries.isEmpty { log.notice("\(saved.entries.count) sessions restored after a restart") }
        CrashPoint.pass("restored")
        return saved
    }

    /// Sends the signals that the last daemon did not send, and handles what happened while none was running.
    func catchUp(_ saved: StateLog.Summary) {
        let present = Set((try? connection.askBusAndWait("ListNames", timeout: 5).first?.stringsValue) ?? [])
        pausedPlayers = saved.paused.filter { present.contains($0.name) }
        // From here on, everything that is sent is stored first, as always.
        state?.replace(with: snapshot(telling: saved.untold), isUntold: true)
        tellRest(saved.untold, sequence: saved.core.sequence)
        // Owners are checked with the bus; those that are gone count as disconnected (R11).
        let gone = clients.values.filter { !present.contains($0.name) }.sorted { $0.id.number < $1.id.number }
        for client in gone { submit(.event(.clientVanished(client.id))) }
        // The program has ended, and another one may have its number.
        for (id, member) in decider.members.sorted(by: { $0.key < $1.key })
        where member.process != 0 {
            guard case .adopted(let start) = records[id]?.owner else { continue }
            if start == nil || Process(id: member.process).startTime != start { submit(.event(.close(id))) }
        }
        for client in clients.values { confirm(client) }
        submit(.event(.timePassed))
    }

    /// The complete state, with the signals that are about to be sent.
    private func snapshot(telling notices: [Notice] = []) -> StateRecord {
        StateRecord(
            core: arbiter.memoryOfNobody, changed: arbiter.sessions.compactMap { savedEntry($0.id) }, closed: [],
            told: notices, paused: pausedPlayers)
    }

    private func savedEntry(_ id: SessionID) -> StateRecord.Entry? {
        guard let session = arbiter.member(id), let record = records[id], let member = decider.members[id] else {
            return nil
        }
        switch (record.owner, member.adopted) {
        case (.client(let client), _):
            let saved = StateRecord.Client(
                name: client.name, process: client.credentials.processID ?? 0,
                user: client.credentials.userID ?? .max, start: client.startTime, actingProcess: member.process,
                actingStart: record.acting?.startTime ?? 0, desktopEntry: member.desktopEntry,
                lowersItself: member.lowersItself)
            return StateRecord.Entry(session: session, owner: .client(saved))
        case (.adopted(let start), let adopted?):
            return StateRecord.Entry(session: session, owner: .adopted(adopted.program, start: start ?? 0))
        case (.adopted, nil): return nil
        }
    }

    private func revive(_ entry: StateRecord.Entry) -> (record: Record, member: Member) {
        switch entry.owner {
        case .client(let saved): revive(entry.session, of: saved)
        case .adopted(let program, let start): readopt(entry.session, program, start: start == 0 ? nil : start)
        }
    }

    private func revive(_ session: Memory.Member, of saved: StateRecord.Client) -> (Record, Member) {
        let client =
            clients[saved.name]
            ?? Client(
                id: session.new.client, name: saved.name,
                credentials: Credentials(processID: saved.process, userID: saved.user), startTime: saved.start)
        clients[saved.name] = client
        client.sessionCount += 1
        var record = Record(object: SessionObject(session.id, self, on: connection.objects), owner: .client(client))
        var member = Member(
            process: saved.actingProcess, user: saved.user, desktopEntry: saved.desktopEntry,
            lowersItself: saved.lowersItself)
        if saved.actingStart != 0 {
            let acting = acting(saved.actingProcess, for: session.id)
            if acting.startTime == saved.actingStart, acting.watch != nil {
                record.acting = acting
            } else {
                member.process = 0
            }
        }
        return (record, member)
    }

    /// Watches a client again, and checks that it is the one that was stored.
    private func confirm(_ client: Client) {
        watch(client)
        connection.credentials(of: client.name) { [weak self, weak client] result in
            guard let self, let client, self.clients[client.name] === client else { return }
            guard case .success(let credentials) = result else { return }
            let start = credentials.startTime ?? 0
            guard credentials.processID == client.credentials.processID, start == client.startTime else {
                self.log.warning("\(client.name) is another client than before the restart; its sessions are closed")
                return self.submit(.event(.clientVanished(client.id)))
            }
            client.confirm(credentials)
        }
    }

    /// Sends the signal of a notice.
    func tell(_ notice: Notice, sequence: UInt64) {
        switch notice {
        case .began(let id, let reason, let by, let byName):
            records[id]?.object.interruptionBegan(reason, by: by, byName: byName, sequence: sequence)
        case .ended(let id, let shouldResume, let microseconds, let reason):
            records[id]?.object.interruptionEnded(
                shouldResume: shouldResume, microseconds: microseconds, reason: reason, sequence: sequence)
        case .ducking(let id, let isDucked, let gain): records[id]?.object.duckingChanged(isDucked, gain: gain)
        case .hint(let id, let begin): records[id]?.object.silenceSecondaryAudioHint(begin: begin)
        case .servicesLost: managerObject?.servicesLost()
        case .servicesReset: managerObject?.servicesReset()
        }
    }

    /// Sends the signals of the last daemon's decision that were not sent.
    private func tellRest(_ untold: [Notice], sequence: UInt64) {
        for (place, notice) in untold.enumerated() {
            state?.noteTold(place + 1)
            CrashPoint.pass("told-noted")
            tell(notice, sequence: sequence)
            connection.push()
            CrashPoint.pass("told")
        }
    }
}
