import DBus
import Foundation
import PluginAPI
import SessionBus
import SessionManager
import State
import TestSupport

@testable import ReferenceModel

/// The laws that must hold after each step.
extension FaultsDayWorld {
    func expectAlive() throws {
        try reviveIfDead()
        guard stage.daemon.isRunning else { throw Broken(law: "does not end", what: "\(stage.daemon.errors)") }
        try expectAnswer()
    }

    func expectAnswer() throws {
        guard stage.isServing else { throw Broken(law: "every call is answered", what: "\(stage.daemon.errors)") }
    }

    /// Every session agrees with the model.
    func expectModel() throws {
        guard !pausesOnUnplug else { return }
        let sessions = try stage.sessions()
        let paths = Dictionary(uniqueKeysWithValues: places.values.map { ($0.id, $0.path) })
        for place in places.values {
            guard let expected = model.session(place.id), let fields = sessions[place.path] else {
                throw Broken(law: "sessions stay", what: "\(place.path) is gone")
            }
            let state: SessionState =
                switch expected.status {
                case .idle, .released: .inactive
                case .playing: .active
                case .interrupted: .interrupted
                }
            let wanted: [(String, Value)] = [
                ("State", .string(state.rawValue)), ("Ducked", .bool(model.isDucked(expected))),
                ("WaitingFor", .objectPaths(model.waits(of: place.id).compactMap { paths[$0] })),
                ("Category", .string(expected.configuration.category.rawValue)),
                ("InterruptionReason", .string(expected.interruption?.reason.rawValue ?? "")),
            ]
            for (name, value) in wanted where fields[name] != value {
                throw Broken(
                    law: "sessions are as the model has them",
                    what: "\(place.path) \(name): \(String(describing: fields[name])), not \(value)")
            }
        }
    }

    /// The session of the music.
    private func adopted() throws -> [String: Value]? {
        try stage.sessions().filter { $1["Name"] == .string("Music") && $1["Adopted"] == .bool(true) }
            .max { ObjectPath.sessionID($0.key)?.number ?? 0 < ObjectPath.sessionID($1.key)?.number ?? 0 }?.value
    }

    func isDucked() throws -> Bool { try adopted()?["Ducked"] == .bool(true) }

    /// Waits until the music is as the sessions require.
    func settle() throws {
        guard isMusicThere else { return }
        var why = ""
        let isRight = try eventually(timeout: 20) {
            try reviveIfDead()
            // The daemon may crash at this moment, and a stream may be gone.
            do { why = try fault() ?? "" } catch { why = "\(error)" }
            return why.isEmpty
        }
        guard isRight else { throw Broken(law: "streams are as their sessions", what: why) }
    }

    private func fault() throws -> String? {
        guard let session = try adopted() else { return "the music has no session" }
        let (state, isDucked) = (session["State"]?.stringValue ?? "", session["Ducked"] == .bool(true))
        if let wrong = faultOfSession(state, isDucked) { return wrong }
        guard let seen = try? house.look() else { return "the music is not to be seen" }
        let description = "\(state)\(isDucked ? ", ducked" : ""), but \(seen)"
        switch state {
        case "interrupted": return try house.isHeld() && House.isSame(seen.volume, volume) ? nil : description
        case "active" where isDucked:
            let isLowered = House.isSame(seen.volume, House.volume(volume, lowered: 12))
            let isTheirs = isSetWhileDucked && House.isSame(seen.volume, volume)
            return (isLowered || isTheirs) && !seen.isMuted && !seen.sink.hasPrefix("sessiond.") ? nil : description
        case "active":
            let isUntouched = House.isSame(seen.volume, volume) && !seen.isMuted && !seen.sink.hasPrefix("sessiond.")
            if isUntouched { isSetWhileDucked = false }
            return isUntouched ? nil : description
        default: return description
        }
    }

    /// The fault of the music's session, compared with the clients' sessions; nil: none.
    private func faultOfSession(_ state: String, _ isDucked: Bool) -> String? {
        guard !pausesOnUnplug else { return nil }
        let playing = model.sessions.filter(\.isPlaying)
        let privileged = Set(playing.filter(\.isPrivileged).map(\.id))
        mixedCalls.formIntersection(privileged)
        if !privileged.isSubset(of: mixedCalls), state != "interrupted" {
            return "an alert or a call plays, and the music is \(state)"
        }
        if model.sessions.allSatisfy({ $0.status == .idle }), state != "active" || isDucked {
            return "nobody plays or may come back, and the music is \(state)\(isDucked ? ", ducked" : "")"
        }
        let ducks = playing.contains { $0.configuration.options.contains(.duckOthers) }
        if state == "active", isDucked != ducks { return "ducked \(isDucked), though somebody ducks: \(ducks)" }
        return nil
    }

    /// All clients leave. Then everything is as the user left it, also for later streams. `forLong`: waits until our sinks
    /// are removed, which takes a minute.
    func expectNothingLeft(forLong: Bool) throws {
        continueForeigner()
        try unplug()
        for slot in 0..<Self.places { try close(slot) }
        if !isMusicThere {
            isMusicThere = true
            try house.beginProgram()
        }
        try settle()
        try expectUntouched("everybody has left")
        guard try eventually({ try isTidy() }) else {
            throw Broken(law: "nothing is left", what: "a journal of streams")
        }
        guard try eventually({ try house.pulse.control.defaults().sink == "speaker" }) else {
            throw Broken(law: "no default sticks", what: try house.pulse.control.defaults().sink)
        }
        for file in try stateFiles() {
            let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file)))
            guard StateLog(bytes) != nil else { throw Broken(law: "the state file can be read", what: file) }
        }
        let ear = try Ear(house.pulse, sink: "speaker")
        guard ear.waitUntil(CountedMusic.hertz, above: -60, window: 0.05, timeout: 20) else {
            throw Broken(law: "held streams play on", what: house.description)
        }
        try expectFlat()
        try house.endProgram()
        try house.beginProgram()
        try settle()
        try expectUntouched("the next stream")
        try expectIdle()
        guard forLong else { return }
        let end = monotonicNow() + Self.longestRest
        while let sink = try house.pulse.control.sinks().map(\.name).first(where: { $0.hasPrefix("sessiond.") }) {
            guard monotonicNow() < end else { throw Broken(law: "no sink of ours is left", what: sink) }
            usleep(500_000)
        }
        try expectIdle()
    }

    /// Seconds after which the daemon has removed what it made, and does nothing any more.
    private static let longestRest = 120.0

    /// A daemon that has nothing to do never wakes up.
    private func expectIdle() throws {
        let end = monotonicNow() + Self.longestRest
        while true {
            let before = try wakeUps()
            usleep(1_000_000)
            let count = try wakeUps() - before
            if count == 0 { return }
            guard monotonicNow() < end else {
                throw Broken(law: "idle means asleep", what: "\(count) wake-ups a second")
            }
        }
    }

    /// How often the daemon has waited for something.
    private func wakeUps() throws -> Int {
        let text = try String(contentsOfFile: "/proc/\(stage.daemon.processID)/status", encoding: .utf8)
        let line = text.split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches:") }
        guard let count = line?.split(separator: "\t").last.flatMap({ Int($0) }) else {
            throw SupportError("no wake-ups in \(text)")
        }
        return count
    }

    private func expectUntouched(_ when: String) throws {
        let isSame = try eventually {
            let (seen, isMuted, sink) = try house.look()
            return House.isSame(seen, volume) && !isMuted && sink == "speaker"
        }
        guard isSame else {
            throw Broken(law: "nothing sticks", what: "\(when): \(house.description), not \(volume) on the speaker")
        }
    }

    private func isTidy() throws -> Bool {
        try !FileManager.default.contentsOfDirectory(atPath: stage.stateFolder).contains { $0.hasPrefix("streams-") }
    }

    /// Not without the music: an adopted program uses a descriptor.
    func takeBaseline() throws {
        baseline = isMusicThere ? (stage.daemon.processID, try stage.footprint) : nil
    }

    /// Memory and descriptors have not grown since the beginning, or since the start of the daemon. A daemon that has
    /// just started cannot be compared.
    private func expectFlat() throws {
        guard let baseline, baseline.process == stage.daemon.processID else { return try takeBaseline() }
        let before = baseline.1
        let isFlat = try eventually {
            let now = try stage.footprint
            return now.descriptors <= before.descriptors && (isSanitized || now.memory <= before.memory + 8_192)
        }
        let now = try stage.footprint
        guard isFlat else {
            throw Broken(
                law: "memory and descriptors are flat",
                what:
                    "descriptors \(before.descriptors) → \(now.descriptors), memory \(before.memory) → \(now.memory) kB"
            )
        }
    }
}
