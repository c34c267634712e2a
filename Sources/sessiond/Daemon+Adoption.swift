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
        guard member.adopted != nil else { return }
        export(record(of: id, start: Process(id: member.process).startTime), id)
        save(decision)
    }

    /// Takes over a session of an earlier daemon. It is closed if its program is gone.
    func readopt(_ session: Memory.Member, _ program: Program.Key, start: UInt64?) -> (Record, Member) {
        let role = Settings.Role(session.new.configuration, sessionClass: session.new.sessionClass)
        let adopted = AdoptedProgram(program: program, role: role, isGuess: !session.new.evidence.isEmpty)
        return (record(of: session.id, start: start), Member(adopted))
    }

    private func record(of id: SessionID, start: UInt64?) -> Record {
        Record(object: SessionObject(id, self, on: connection.objects), owner: .adopted(start: start))
    }
}
