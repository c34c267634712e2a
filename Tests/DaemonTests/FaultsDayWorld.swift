import DBus
import EventLoop
import Foundation
import Fuzzing
import PluginAPI
import SessionBus
import SessionManager
import TestSupport

@testable import ReferenceModel

/// A sound server with music, the daemon, and its clients. Performs the steps, and checks the laws after each.
final class FaultsDayWorld {
    typealias House = ForeignCrashTests.House

    /// A law that does not hold.
    struct Broken: Error {
        let law: String
        let what: String
    }

    struct Place {
        let id: SessionID
        let path: String
        let sort: FaultsDayStep.Sort
    }

    let house: House
    let stage: DaemonStage
    /// Whether an unplug pauses sessions. The model does not know headphones, so it is not compared then.
    let pausesOnUnplug: Bool
    var model: ReferenceModel
    private var nextNumber: UInt64 = 0
    private var clients: [Client] = []
    private var foreigner: Foreigner
    /// The model's numbers of the clients; the last one is the foreign client.
    private var numbers: [ClientID] = []
    var places: [Int: Place] = [:]
    private var isForeignerStopped = false
    /// Whether the daemon may crash on its own.
    private var isArmed = false
    var isMusicThere = true
    /// The calls and alerts during which the music began: it is heard, because the user wants it.
    var mixedCalls: Set<SessionID> = []
    /// The volume that the user set, and whether it was set while the music was ducked.
    var volume = House.volume
    var isSetWhileDucked = false
    private var phones: UInt32?
    var baseline: (process: Int32, Footprint)?

    static let places = 6
    private static let foreign = 5
    private static let settings = "[ducking]\nattack = 0\nrelease = 0\nhold = 0\n[interruption]\ngrace = 3600\n"

    init(_ kind: ServerKind, pausesOnUnplug: Bool) throws {
        self.pausesOnUnplug = pausesOnUnplug
        house = try House(kind)
        stage = try DaemonStage(
            pulse: house.pulse, settings: Self.settings + "[routes]\nunplug = \(pausesOnUnplug ? "on" : "off")\n")
        var settings = Arbiter.Settings()
        settings.grace = 3600
        model = ReferenceModel(settings: settings)
        foreigner = try stage.foreigner()
        for _ in 0..<3 { clients.append(try stage.client()) }
        for _ in 0..<4 { numbers.append(number()) }
        guard stage.waitForServer() else { throw SupportError("no sound server: \(house.pulse.log)") }
        try settle()
        try takeBaseline()
    }

    private func number() -> ClientID {
        nextNumber += 1
        return ClientID(nextNumber)
    }

    // MARK: Steps

    /// - Throws: ``Broken``.
    func perform(_ step: FaultsDayStep) throws {
        try carryOut(step)
        try expectAlive()
        try expectModel()
        try settle()
    }

    private func carryOut(_ step: FaultsDayStep) throws {
        let slot = step.number(0, below: Self.places)
        switch step.word {
        case .create: try create(slot, FaultsDayStep.sorts[step.number(1, below: FaultsDayStep.sorts.count)])
        case .activate: try activate(slot)
        case .deactivate: try deactivate(slot, notify: false)
        case .notify: try deactivate(slot, notify: true)
        case .category: try setCategory(slot, FaultsDayStep.sorts[step.number(1, below: FaultsDayStep.sorts.count)])
        case .close: try close(slot)
        case .volume:
            guard isMusicThere else { return }
            volume = 20_000 + 400 * step.number(1, below: 100)
            isSetWhileDucked = try isDucked()
            try house.turn(to: volume)
        case .musicEnds:
            guard isMusicThere else { return }
            isMusicThere = false
            isSetWhileDucked = false
            try house.endProgram()
        case .musicBegins:
            guard !isMusicThere else { return }
            isMusicThere = true
            mixedCalls = Set(model.sessions.filter { $0.isPlaying && $0.isPrivileged }.map(\.id))
            try house.beginProgram()
        case .phonesPlugged:
            guard phones == nil else { return }
            phones = try house.pulse.addSink("phones", properties: ["device.form_factor": "headphone"])
        case .phonesUnplugged: try unplug()
        case .clientVanishes: try vanish(slot % clients.count)
        case .clientKilled: try killForeigner { foreigner.process.kill() }
        case .clientDiesActivating:
            guard let place = places[Self.foreign], !isForeignerStopped else { return }
            let before = try stage.property("Sequence").uint64Value ?? 0
            foreigner.tell("activate-and-die \(place.path)")
            _ = foreigner.process.wait()
            try expectAnswer()
            // Only the history shows whether the daemon read the call before the client ended.
            let decision = try stage.manager("History", [.uint32(50)])[0].arrayValue?.compactMap(\.asProperties).first {
                $0["sequence"]?.uint64Value ?? 0 > before && $0["event"] == .string("activate")
                    && $0["session"] == .objectPath(place.path)
            }
            if let decision { try tell(.activate(place.id), decision["error"]?.stringValue) }
            try killForeigner {}
        case .clientStopped:
            foreigner.process.suspend()
            isForeignerStopped = true
        case .clientContinued: continueForeigner()
        case .sameCallTwice:
            try activate(slot)
            try activate(slot)
            try deactivate(slot, notify: true)
            try deactivate(slot, notify: true)
        case .strangersCall: try callAsStranger(slot)
        case .neverReads:
            let peer = try DeafPeer(socket: stage.bus.folder.path + "/bus")
            for _ in 0..<100 { peer.send(try Self.call("ListSessions")) }
        case .flood:
            let peers = try (0..<4).map { _ in try DeafPeer(socket: stage.bus.folder.path + "/bus") }
            for index in 0..<400 { peers[index % 4].send(try Self.call("History", [.uint32(20)])) }
        case .wrongCalls: try callWrongly()
        case .secondDaemon:
            let second = try stage.start()
            guard second.wait() == .code(1) else { throw Broken(law: "one daemon", what: "\(second.errors)") }
        case .daemonKilled:
            stage.daemon.kill()
            try restart()
        case .daemonDiesActivating: try dying(step) { try activate(slot) }
        case .daemonDiesDeactivating: try dying(step) { try deactivate(slot, notify: true) }
        case .daemonTerminated:
            stage.daemon.signal(SIGTERM)
            guard stage.daemon.wait() == .code(0) else {
                throw Broken(law: "SIGTERM ends it", what: "\(stage.daemon.errors)")
            }
            try restart()
        case .stateSpoilt: try spoilState(step.number(1, below: 3))
        case .settingsBroken:
            let text = try String(contentsOfFile: settingsFile, encoding: .utf8)
            let complaints = {
                self.stage.daemon.isRunning ? self.stage.daemon.errors.count { $0.contains("loud") } : -1
            }
            let before = complaints()
            try "[ducking]\ngain = loud\n".write(toFile: settingsFile, atomically: false, encoding: .utf8)
            stage.daemon.signal(SIGHUP)
            guard eventually({ complaints() > before }) else {
                throw Broken(law: "wrong settings are named", what: "\(stage.daemon.errors)")
            }
            try text.write(toFile: settingsFile, atomically: false, encoding: .utf8)
        case .serverKilled: try killServer()
        case .serverStopped:
            house.pulse.suspend()
            defer { house.pulse.resume() }
            try activate(slot)
            try deactivate((slot + 1) % Self.places, notify: true)
        }
    }

    private var settingsFile: String { stage.bus.folder.path + "/sessiond.conf" }

    private static func call(_ member: String, _ arguments: [Value] = []) throws -> Message {
        let message = try Message.methodCall(
            destination: BusName.service, path: ObjectPath.root, interface: BusName.manager, member: member)
        message.append(arguments)
        return message
    }

    // MARK: Sessions

    private func client(of slot: Int) -> Int { slot == Self.foreign ? clients.count : slot % clients.count }

    /// Returns the name of the error, or nil. If the daemon crashes during the call, the next daemon is asked.
    private func ask(_ place: Place, _ slot: Int, _ member: String, _ arguments: [Value], _ words: String) throws
        -> String?
    {
        while true {
            let error: String?
            if slot == Self.foreign {
                continueForeigner()
                let answer = foreigner.ask("\(words) \(place.path)")
                error = answer.hasPrefix("ok") ? nil : answer
            } else {
                error = clients[client(of: slot)].call(place.path, member, arguments)
            }
            guard error != nil, isArmed, stage.daemon.wait(timeout: 2) != nil else { return error }
            try restart()
        }
    }

    private func create(_ slot: Int, _ sort: FaultsDayStep.Sort) throws {
        guard places[slot] == nil else { return }
        let name = "S\(slot)"
        let path: String
        if slot == Self.foreign {
            continueForeigner()
            path = foreigner.create(
                name, category: sort.category, option: sort.options.first ?? "-", class: sort.sessionClass.rawValue)
        } else {
            path = try clients[client(of: slot)].session(
                name, category: sort.category, mode: sort.mode, options: sort.options,
                class: sort.sessionClass.rawValue, hears: false)
        }
        guard path.hasPrefix("/org/") else { throw Broken(law: "every call is answered", what: "create: \(path)") }
        // The foreign client supports no modes.
        let mode = slot == Self.foreign ? "default" : sort.mode
        let new = NewSession(
            name: name, client: numbers[client(of: slot)], sessionClass: sort.sessionClass,
            configuration: try Configuration(category: sort.category, mode: mode, options: sort.options),
            notifiesOnExit: false)
        try tell(.create(new), nil)
        places[slot] = Place(id: SessionID(model.lastID), path: path, sort: sort)
    }

    private func activate(_ slot: Int) throws {
        guard let place = places[slot] else { return }
        try tell(.activate(place.id), try ask(place, slot, "Activate", [.properties([])], "activate"))
    }

    private func deactivate(_ slot: Int, notify: Bool) throws {
        guard let place = places[slot] else { return }
        let recommends = notify && slot != Self.foreign
        let arguments: [Value] = [.properties([("notify-others", .bool(recommends))])]
        try tell(
            .deactivate(place.id, notifyOthers: recommends),
            try ask(place, slot, "Deactivate", arguments, "deactivate"))
    }

    private func setCategory(_ slot: Int, _ sort: FaultsDayStep.Sort) throws {
        guard let place = places[slot], slot != Self.foreign else { return }
        let configuration = try Configuration(category: sort.category, mode: sort.mode, options: sort.options)
        let arguments: [Value] = [.string(sort.category), .string(sort.mode), .strings(sort.options)]
        try tell(.setCategory(place.id, configuration), try ask(place, slot, "SetCategory", arguments, ""))
    }

    func close(_ slot: Int) throws {
        guard let place = places[slot] else { return }
        places[slot] = nil
        try tell(.close(place.id), try ask(place, slot, "Close", [], "close"))
    }

    private func vanish(_ index: Int) throws {
        clients[index].connection.close()
        clients[index] = try stage.client()
        try forget(index)
    }

    private func killForeigner(_ deed: () -> Void) throws {
        deed()
        _ = foreigner.process.wait()
        foreigner.process.kill()
        isForeignerStopped = false
        foreigner = try stage.foreigner()
        try forget(clients.count)
    }

    /// The sessions of a client that has gone are closed.
    private func forget(_ index: Int) throws {
        let gone = places.filter { client(of: $0.key) == index }
        for slot in gone.keys { places[slot] = nil }
        let paths = Set(gone.values.map(\.path))
        guard try eventually({ try paths.isDisjoint(with: stage.sessions().keys) }) else {
            throw Broken(law: "who is gone has no session", what: "\(paths)")
        }
        try tell(.clientVanished(numbers[index]), nil)
        numbers[index] = number()
    }

    func continueForeigner() {
        foreigner.process.resume()
        isForeignerStopped = false
    }

    private func callAsStranger(_ slot: Int) throws {
        let stranger = clients[(client(of: slot) + 1) % clients.count]
        if let place = places[slot], stranger.activate(place.path) != "org.sessiond1.Error.NotOwner" {
            throw Broken(law: "only the owner", what: place.path)
        }
        guard stranger.activate("/org/sessiond1/session/999999") != nil else {
            throw Broken(law: "only what is there", what: "a guessed session was activated")
        }
    }

    private func callWrongly() throws {
        let calls: [(String, [Value])] = [
            ("CreateSession", [.string("x")]), ("CreateSession", [.string("x"), .properties([("class", .uint32(1))])]),
            ("CreateSession", [.string(String(repeating: "x", count: 100_000)), .properties([])]),
            ("SetSilentMode", [.string("on")]), ("Explain", [.objectPath("/no/session")]), ("NoSuchMember", []),
            ("HistoryBefore", [.string("")]), ("SetForeground", [.objectPath("/"), .bool(true)]),
        ]
        for (member, arguments) in calls where (try? stage.manager(member, arguments)) != nil {
            throw Broken(law: "wrong calls are refused", what: "\(member) \(arguments.count)")
        }
    }

    /// Passes the event to the model, which must give the same answer.
    private func tell(_ event: Event, _ error: String?) throws {
        if pausesOnUnplug {
            // The model only numbers the sessions.
            if case .create = event { _ = model.handle(event, at: now) }
            guard error.map({ $0.hasPrefix("org.sessiond1.Error.") }) ?? true else {
                throw Broken(law: "every call is answered", what: "\(event): \(error ?? "")")
            }
            return
        }
        let wanted = model.handle(event, at: now).refusal.map { "org.sessiond1.Error." + $0.rawValue }
        guard error == wanted else {
            throw Broken(
                law: "answers are those of the model", what: "\(event): \(error ?? "done"), not \(wanted ?? "done")")
        }
    }

    private var now: Instant { Instant(microseconds: MonotonicClock.now()) }

    // MARK: The service

    private func restart(crash: String? = nil) throws {
        isArmed = crash != nil
        try stage.restart(crash: crash)
        let isConnected = eventually {
            (try? stage.property("ServerConnected")) == .bool(true) || isArmed && !stage.daemon.isRunning
        }
        guard isConnected else { throw Broken(law: "finds the sound server", what: house.pulse.log) }
        let warnings = stage.daemon.errors.filter { $0.contains("state-") || $0.contains("saved state") }
        guard warnings.isEmpty else { throw Broken(law: "the state file can be read", what: "\(warnings)") }
        if !isArmed { try takeBaseline() }
    }

    /// Performs the step with a daemon that may crash at one of the points.
    private func dying(_ step: FaultsDayStep, _ deed: () throws -> Void) throws {
        let points = [
            "before-state", "state-written", "told-noted", "told", "before-reply", "replied", "state-rename",
            "journal-written", "stream-changed",
        ]
        stage.daemon.kill()
        try restart(crash: points[step.number(1, below: points.count)] + ":\(1 + step.number(1, below: 3))")
        // The daemon may crash while it restores its state, before the first call.
        try reviveIfDead()
        try deed()
        try reviveIfDead()
        try settle()
        guard isArmed else { return }
        stage.daemon.kill()
        try restart()
    }

    func reviveIfDead() throws {
        guard isArmed, !stage.daemon.isRunning else { return }
        guard stage.daemon.wait() == .signal(SIGKILL) else {
            throw Broken(law: "does not end by itself", what: "\(stage.daemon.errors)")
        }
        try restart()
    }

    /// Damages the state file. Only the sessions are lost.
    private func spoilState(_ kind: Int) throws {
        stage.daemon.kill()
        for file in try stateFiles() {
            let bytes = [UInt8]((try? Data(contentsOf: URL(fileURLWithPath: file))) ?? Data())
            let spoilt = kind == 0 ? [] : kind == 1 ? bytes.map { ~$0 } : Array("not a state".utf8)
            try Data(spoilt).write(to: URL(fileURLWithPath: file))
        }
        isArmed = false
        try stage.restart()
        guard stage.waitForServer() else { throw Broken(law: "finds the sound server", what: house.pulse.log) }
        try takeBaseline()
        places = [:]
        for index in clients.indices { try vanish(index) }
        try killForeigner { foreigner.process.kill() }
    }

    func stateFiles() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: stage.stateFolder).filter { $0.hasPrefix("state-") }
            .map { stage.stateFolder + "/" + $0 }
    }

    // MARK: The sound server

    private func killServer() throws {
        // A session manager that is killed before it has stored the user's volume forgets it.
        guard eventually(timeout: 3, { house.remembers(volume) }) else { return }
        phones = nil
        guard isMusicThere else {
            house.pulse.kill()
            return try house.pulse.restart()
        }
        try house.loseServer(isSameProgram: true)
    }

    func unplug() throws {
        guard let module = phones else { return }
        phones = nil
        try house.pulse.unloadModule(module)
    }
}
