import PluginAPI
import Scenario
import SessionManager
import State

// What is read to have a core go on from it: a state file, a scenario.
extension Decoder {
    /// A record alone, and the same bytes as a whole file; a checksum keeps a fuzzer out of what it guards.
    static func state(_ bytes: [UInt8]) {
        if let log = StateLog(bytes) { believe(log) }
        guard let record = try? StateRecord(bytes[...]) else { return }
        let written = record.bytes
        guard let copy = try? StateRecord(written[...]) else { preconditionFailure("what was read cannot be written") }
        precondition(copy.bytes == written, "what was written reads differently")
        guard let log = StateLog(StateLog.magic + StateLog.bytes(of: record) + StateLog.bytes(ofTold: 1)) else {
            preconditionFailure("our own file is refused")
        }
        precondition(log.isWhole && log.records.count == 1, "our own file is not whole")
        believe(log)
    }

    /// Goes on from the state, if it is believed, and writes it down again.
    private static func believe(_ log: StateLog) {
        guard var memory = log.summary?.core else { return }
        let faults = memory.leaveOutFaulty()
        guard var core = try? Arbiter(memory) else {
            // What counts too far is no session's.
            let counts = max(memory.sequence, memory.lastID, memory.clock)
            precondition(counts > SessionSet.highest, "\(faults) were not all")
            return
        }
        let now = Instant(microseconds: 1 << 40)
        checkAgain(core)
        for id in core.sessions.map(\.id) {
            _ = core.handle(.activate(id), at: now)
            _ = core.handle(.setSilentMode(!core.isSilentMode), at: now)
            _ = core.handle(.microphoneMuted(id.number % 2 == 0), at: now)
            _ = core.handle(.deactivate(id, notifyOthers: true), at: now)
        }
        _ = core.handle(.timePassed, at: Instant(microseconds: .max))
        if let client = core.sessions.first?.client { _ = core.handle(.clientVanished(client), at: now) }
        checkAgain(core)
    }

    /// Restarted once more it is the same, and says the same.
    private static func checkAgain(_ core: Arbiter) {
        let entries = core.memory.members.map { member in
            StateRecord.Entry(
                session: member, owner: "", ownerProcess: 0, ownerUser: 0, ownerStart: 0, processID: 0, desktopEntry: ""
            )
        }
        let record = StateRecord(core: core.memoryOfNobody, changed: entries, closed: [], told: [])
        guard var memory = StateLog(StateLog.magic + StateLog.bytes(of: record))?.summary?.core else {
            preconditionFailure("our own file is refused")
        }
        memory.settings = core.settings
        guard let again = try? Arbiter(memory) else { preconditionFailure("what is believed is not believed twice") }
        for session in core.sessions {
            precondition(again.explain(session.id) == core.explain(session.id), "it is explained differently")
        }
    }

    /// Carried out; what an exact one writes of itself is carried out the same.
    static func scenario(_ bytes: [UInt8]) {
        guard let scenario = try? Scenario(bytes: bytes, file: "fuzz") else { return }
        var run = Run(scenario)
        run.perform()
        guard scenario.isExact else { return }
        let transcript = run.transcript
        let again: Scenario
        do throws(ScenarioError) {
            again = try Scenario(transcript, file: "fuzz")
        } catch {
            preconditionFailure("its own transcript is refused: \(error)")
        }
        var second = Run(again)
        second.perform()
        precondition(second.failures.isEmpty, "its own transcript is not met: \(second.failures)")
        precondition(second.transcript == transcript, "its own transcript is not the same twice")
    }
}
