import DBus
import Enforcement
import EventLoop
import Glibc
import PluginAPI
import SessionBus
import SessionManager
import State

/// Sessions of adopted programs.
extension Daemon {
    /// Creates a session for the program, with its role. `evidence`: that of a guessed call; else empty. Nil if the
    /// limit of sessions is reached.
    func adopt(_ adopted: AdoptedProgram, _ program: Program, _ evidence: String) -> SessionID? {
        let process: UInt32
        switch adopted.program {
        case .process(let id): process = id
        case .sandbox, .name: process = 0
        }
        let client = Client(
            id: newClientID(), name: "", credentials: Credentials(processID: process, userID: geteuid()),
            startTime: Process(id: process).startTime ?? 0)
        let name = program.name.isEmpty ? "a program" : program.name.prefix(bytes: settings.limits.stringLength)
        let decision = decide(
            .create(
                NewSession(
                    name: name, client: client.id, sessionClass: adopted.role.sessionClass,
                    configuration: adopted.role.configuration, notifiesOnExit: true, evidence: evidence)))
        guard let id = decision.created else { return nil }
        add(Record(adopted, client: client, object: SessionObject(id, self, on: connection.objects)), id)
        save(decision)
        announce()
        return id
    }

    /// Changes how the program is adopted; if the rules refuse that, it is treated like a new program.
    func change(_ id: SessionID, to adopted: AdoptedProgram) {
        records[id]?.adopted = adopted
        let wasInterrupted = arbiter.session(id)?.state == .interrupted
        let decision = decide(.setCategory(id, adopted.role.configuration))
        if decision.refusal != nil {
            _ = decide(.close(id))
        } else if wasInterrupted, arbiter.session(id)?.state == .inactive, arbiter.isFreeToActivate(id) {
            // Its former wait no longer applies, and an adopted program cannot be asked to come back.
            _ = decide(.activate(id))
        }
        announce()
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
        add(Record(adopted, client: client, object: SessionObject(id, self, on: connection.objects)), id)
    }
}

extension Daemon.Record {
    fileprivate init(_ adopted: AdoptedProgram, client: Client, object: SessionObject) {
        switch adopted.program {
        case .process(let id): self.init(object: object, client: client, processID: id, desktopEntry: "")
        case .sandbox(let id): self.init(object: object, client: client, processID: 0, desktopEntry: id)
        case .name: self.init(object: object, client: client, processID: 0, desktopEntry: "")
        }
        self.adopted = adopted
    }
}
