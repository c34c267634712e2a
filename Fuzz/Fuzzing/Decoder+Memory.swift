import Enforcement
import PluginAPI
import Scenario
import SessionManager
import State

// The decoders whose result the rules continue from: state files and scenarios.
extension Decoder {
    /// Decodes the bytes as a whole file and also as one record, because the checksum of a file rejects most fuzzed
    /// bytes.
    static func state(_ bytes: [UInt8]) {
        if let log = StateLog(bytes) { believe(log) }
        guard let record = try? StateRecord(bytes[...]) else { return }
        let written = record.bytes
        guard let copy = try? StateRecord(written[...]) else { preconditionFailure("our own record is invalid") }
        precondition(copy.bytes == written, "a record changes when it is encoded and decoded")
        guard let log = StateLog(StateLog.magic + StateLog.bytes(of: record) + StateLog.bytes(ofTold: 1)) else {
            preconditionFailure("our own file is no valid state file")
        }
        precondition(log.isWhole && log.records.count == 1, "our own file is incomplete")
        believe(log)
    }

    /// Restores the rules from the state if it is valid, continues from there, and saves the state again.
    private static func believe(_ log: StateLog) {
        guard var memory = log.summary?.core else { return }
        let faults = memory.leaveOutFaulty()
        guard var core = try? Arbiter(memory) else {
            // Only counters that are too high do not belong to a session.
            let counts = max(memory.sequence, memory.lastID, memory.lastOrder)
            precondition(counts > SessionSet.highest, "the state is still invalid without the faults \(faults)")
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

    /// After another restart, the explanations of all sessions are the same.
    private static func checkAgain(_ core: Arbiter) {
        let entries = core.memory.members.map { member in
            StateRecord.Entry(session: member, owner: .adopted(.name(""), start: 0))
        }
        let record = StateRecord(core: core.memoryOfNobody, changed: entries, closed: [], told: [])
        guard var memory = StateLog(StateLog.magic + StateLog.bytes(of: record))?.summary?.core else {
            preconditionFailure("our own file is no valid state file")
        }
        memory.settings = core.settings
        guard let again = try? Arbiter(memory) else { preconditionFailure("a valid state is invalid after saving") }
        for session in core.sessions {
            precondition(again.explain(session.id) == core.explain(session.id), "a restart changes the explanation")
        }
    }

    /// Runs the scenario. The transcript of an exact scenario must give the same transcript when it is run.
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
            preconditionFailure("the transcript is no valid scenario: \(error)")
        }
        var second = Run(again)
        second.perform()
        precondition(second.failures.isEmpty, "the run of the transcript differs from it: \(second.failures)")
        precondition(second.transcript == transcript, "the transcript of the transcript differs")
    }
}
