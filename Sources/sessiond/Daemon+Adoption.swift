import DBus
import Decider
import Enforcement
import EventLoop
import Glibc
import PluginAPI
import SessionBus
import SessionManager
import State

/// Sessions of adopted programs.
extension Daemon {
    /// Exports the session that was created for a program.
    func addAdopted(_ id: SessionID, _ member: Member, _ decision: Decision) {
        guard member.adopted != nil, case .create(let new) = decision.event else { return }
        let client = Client(
            id: new.client, name: "", credentials: Credentials(processID: member.process, userID: geteuid()),
            startTime: Process(id: member.process).startTime ?? 0)
        export(Record(object: SessionObject(id, self, on: connection.objects), client: client), id)
        save(decision)
    }

    /// Takes over a session of an earlier daemon. It is closed if its program is gone.
    func readopt(_ entry: StateRecord.Entry) {
        let client = Client(
            id: entry.session.new.client, name: "",
            credentials: Credentials(processID: entry.ownerProcess, userID: entry.ownerUser),
            startTime: entry.ownerStart)
        reserve(client.id)
        let key: Program.Key =
            if entry.processID != 0 { .process(entry.processID) } else if !entry.desktopEntry.isEmpty {
                .sandbox(entry.desktopEntry)
            } else { .name(entry.session.new.name) }
        let adopted = AdoptedProgram(
            program: key,
            role: Settings.Role(entry.session.new.configuration, sessionClass: entry.session.new.sessionClass),
            isGuess: !entry.session.new.evidence.isEmpty)
        let id = entry.session.id
        add(Record(object: SessionObject(id, self, on: connection.objects), client: client), Member(adopted), id)
    }
}
