import DBus
import EventLoop
import Glibc
import Logging
import PluginAPI
import Processes
import SessionBus
import Supervision

/// Plugin processes: found by their manifests, started on demand, and watched, without blocking anything.
/// ``PluginLife`` decides when they are started and ended.
final class PluginSupervisor: PluginService {
    /// One plugin that is running, starting, or was running.
    private final class Instance {
        let id: String
        var life = PluginLife()
        /// The data of its registration; used if there is no manifest.
        var registered: PluginManifest?
        /// Fires at the deadline of its life.
        var timer: Timer?
        /// Watches its connection, while it is registered.
        var watch: Subscription?
        var waiting: [(Result<(busName: String, path: String), Failure>) -> Void] = []
        /// Watch the clients that opened it, by unique name.
        var users: [String: Subscription] = [:]

        init(id: String) { self.id = id }
    }

    /// Limits for known plugins and for the data of a registration.
    private static let limits = (instances: 256, ofOneClient: 16, texts: 64, bytes: 255)

    private let loop: EventLoop
    private let connection: Connection
    /// The variables that tell a plugin which bus to serve.
    private let environment: [String: String]
    private let openFiles: OpenFiles?
    private let callers: Callers
    private let log: Logger
    private var folders: PluginFolders
    private var instances: [String: Instance] = [:]
    private var children: SignalWatch?
    /// Whether the client of that unique name has an active or interrupted session.
    private let hasBusySession: (String) -> Bool
    /// A plugin started, stopped or crashed: its id, state and error.
    var onStateChanged: ((_ id: String, _ state: String, _ message: String) -> Void)?
    /// The process groups whose first process has ended, with the time of the next check whether others are left.
    private var groups: [pid_t: Timer] = [:]
    /// Seconds between two checks.
    private static let pollTime = 0.05

    init(
        loop: EventLoop, connection: Connection, to bus: BusAddress, callers: Callers, openFiles: OpenFiles?,
        log: Logger,
        hasBusySession: @escaping (String) -> Bool
    ) {
        self.openFiles = openFiles
        self.callers = callers
        environment = bus.starterEnvironment
        self.hasBusySession = hasBusySession
        self.loop = loop
        self.connection = connection
        self.log = log
        folders = PluginFolders(isSystem: bus.isSystem, log: log)
    }

    /// Stops the plugins that were started here.
    func stop() {
        for instance in instances.values { if let process = instance.life.process { signal(process, SIGTERM) } }
    }

    // MARK: PluginService

    var plugins: [Value] { known().map(describe) }

    /// The installed plugins, then those that only registered and are still connected, by id.
    private func known() -> [PluginManifest] {
        let installed = folders.manifests()
        let others = instances.values.filter { instance in
            instance.life.state == .running && !installed.contains { $0.id == instance.id }
        }
        return installed + others.compactMap(\.registered).sorted { $0.id < $1.id }
    }

    func open(
        kind: String, uri: String, caller: String,
        _ reply: @escaping (Result<(busName: String, path: String), Failure>) -> Void
    ) {
        do throws(Failure) {
            // It runs as the daemon, not as the caller.
            try callers.requirePlugins(caller)
        } catch {
            return reply(.failure(error))
        }
        do throws(SessionError) {
            guard let manifest = PluginManifest.choose(from: known(), kind: kind, uri: uri) else {
                let what = MediaType.of(uri) ?? "\(uri.contains(":") ? String(uri.prefix { $0 != ":" }) : "file"):"
                let package = PluginKind.all.first { $0.word == kind }?.package
                let isMissing = !known().contains { $0.kind == kind }
                let remedy = isMissing ? package.map { "the package \($0)" } : nil
                let advice = remedy ?? "one, see sessiond-plugin(5)"
                throw SessionError(
                    .resourceNotAvailable,
                    "no plugin of kind \(quoted(kind)) opens \(quoted(what)); install \(advice)")
            }
            guard manifest.interface == PluginManifest.supportedInterface else {
                throw SessionError(.resourceNotAvailable, PluginSupervisor.mismatch(manifest.id, manifest.interface))
            }
            let instance = instances[manifest.id] ?? Instance(id: manifest.id)
            instances[manifest.id] = instance
            instance.life.idleTimeout = manifest.idleTimeout
            let answer = { [weak self, weak instance] (result: Result<(busName: String, path: String), Failure>) in
                if let self, let instance, case .success = result { use(instance, by: caller) }
                reply(result)
            }
            switch instance.life.open(at: MonotonicClock.now()) {
            case .served(let place): answer(.success((place.busName, place.path)))
            case .start:
                try start(instance, manifest)
                instance.waiting.append(answer)
            case .wait(let actions):
                instance.waiting.append(answer)
                perform(actions, for: instance)
            }
        } catch {
            reply(.failure(Failure(error)))
        }
    }

    private static func mismatch(_ id: String, _ version: Int) -> String {
        let supported = PluginManifest.supportedInterface
        return "plugin \(quoted(id)) implements version \(version) of the plugin interface, this daemon version "
            + "\(supported); update \(version > supported ? "sessiond" : "the plugin")"
    }

    func register(
        _ id: String, _ info: [String: Value], caller: String, _ reply: @escaping (Result<Void, Failure>) -> Void
    ) {
        // Facts that the bus has from the kernel; the caller cannot forge them.
        connection.credentials(of: caller) { [weak self] answer in
            guard let self else { return reply(.failure(.disconnected)) }
            do throws(Failure) {
                try admit(try answer.get(), to: id)
                try register(id, info, caller)
                reply(.success(()))
            } catch {
                reply(.failure(error))
            }
        }
    }

    /// Only the process that was started here for an id may register it. Other ids, and that of an installed plugin
    /// that was not started, are for programs of the daemon's own user or root outside of sandboxes: clients that open
    /// something later pass it to them.
    private func admit(_ caller: Credentials, to id: String) throws(Failure) {
        guard let process = caller.processID.map(Process.init), caller.startTime != nil else {
            throw Failure(SessionError(.missingEntitlement, "the process that registers is unknown"))
        }
        if let started = instances[id]?.life.process {
            // If a script runs the program, it is the parent, in the process group that was created for it.
            guard process.id == UInt32(started) || getpgid(pid_t(process.id)) == started else {
                throw Failure(
                    SessionError(.missingEntitlement, "plugin \(quoted(id)) is process \(started), not this one"))
            }
        } else {
            guard caller.userID == geteuid() || caller.userID == 0 else {
                throw Failure(
                    SessionError(.missingEntitlement, "a plugin must run as the user of sessiond, or as root"))
            }
            guard case .none = process.confinement else {
                throw Failure(SessionError(.missingEntitlement, "a program in a sandbox cannot be a plugin"))
            }
        }
    }

    private func register(_ id: String, _ info: [String: Value], _ caller: String) throws(Failure) {
        guard !id.isEmpty, id.utf8.count <= 128 else {
            throw Failure(.badParameter("a plugin's id has 1 to 128 bytes"))
        }
        guard let path = info["object"]?.objectPathValue else {
            throw .invalidArgs("'object' o, the path the plugin serves, is missing from info")
        }
        let limits = PluginSupervisor.limits
        guard path.utf8.count <= limits.bytes else {
            throw Failure(.badParameter("'object' is longer than \(limits.bytes) bytes"))
        }
        if let version = info["interface"]?.uint32Value, Int(version) != PluginManifest.supportedInterface {
            let message = PluginSupervisor.mismatch(id, Int(version))
            if let instance = instances[id] {
                perform(instance.life.registeredWrongly(version: Int(version)), for: instance)
            }
            throw Failure(SessionError(.resourceNotAvailable, message))
        }
        let registered = try described(id, info)
        let saysBusy = info["busy"]?.boolValue
        guard info["busy"] == nil || saysBusy != nil else {
            throw .invalidArgs("'busy' must have type 'b', not '\(info["busy"]?.signature ?? "")'")
        }
        guard instances[id] != nil || instances.count < limits.instances else {
            throw Failure(SessionError(.resourceNotAvailable, "there are \(instances.count) plugins already"))
        }
        let own = instances.values.count { $0.life.registration?.busName == caller && $0.id != id }
        guard own < limits.ofOneClient else {
            throw Failure(SessionError(.resourceNotAvailable, "you have already registered \(own) plugins"))
        }
        let instance = instances[id] ?? Instance(id: id)
        switch instance.life.objection(to: caller) {
        case .isStopping:
            throw Failure(SessionError(.resourceNotAvailable, "plugin \(quoted(id)) is being stopped"))
        case .isTaken(let other):
            throw Failure(SessionError(.isBusy, "plugin \(quoted(id)) is already registered by \(other)"))
        case nil: break
        }
        instances[id] = instance
        instance.registered = registered
        let isNew = instance.life.registration == nil
        if isNew {
            instance.watch = connection.watchName(caller) { [weak self, weak instance] in
                if let self, let instance { self.vanished(instance) }
            }
            log.info("plugin \(quoted(id)) serves \(quoted(path)) as \(caller)")
        }
        let registration = PluginLife.Registration(busName: caller, path: path, isBusy: saysBusy ?? false)
        perform(instance.life.registered(registration, at: MonotonicClock.now()), for: instance)
    }

    /// The stored part of a registration: a few short texts.
    private func described(_ id: String, _ info: [String: Value]) throws(Failure) -> PluginManifest {
        func checked(_ key: String, _ type: String, _ read: (Value) -> [String]?) throws(Failure) -> [String] {
            guard let value = info[key] else { return [] }
            guard let texts = read(value) else {
                throw .invalidArgs("'\(key)' must have type '\(type)', not '\(value.signature)'")
            }
            let limits = PluginSupervisor.limits
            guard texts.count <= limits.texts, texts.allSatisfy({ $0.utf8.count <= limits.bytes }) else {
                throw Failure(
                    .badParameter("'\(key)' is longer than \(limits.texts) texts of \(limits.bytes) bytes"))
            }
            return texts
        }
        func text(_ key: String) throws(Failure) -> String? {
            try checked(key, "s") { value in value.stringValue.map { [$0] } }.first
        }
        return PluginManifest(
            registered: id, name: try text("name"), kind: try text("kind"), version: try text("version"),
            schemes: try checked("schemes", "as", \.stringsValue),
            mimeTypes: try checked("mime-types", "as", \.stringsValue))
    }

    // MARK: Processes

    private func start(_ instance: Instance, _ manifest: PluginManifest) throws(SessionError) {
        let now = MonotonicClock.now()
        if let count = instance.life.crashCount(at: now) {
            throw SessionError(
                .resourceNotAvailable,
                "plugin \(quoted(instance.id)) crashed \(count) times in a row; try again in half a minute")
        }
        guard let program = folders.executable(manifest.exec[0]) else {
            throw SessionError(
                .resourceNotAvailable,
                "plugin \(quoted(instance.id)): there is no program \(quoted(manifest.exec[0])) in sessiond's PATH; "
                    + "write its absolute path in the manifest (Exec=)")
        }
        if children == nil { children = loop.watch(signal: SIGCHLD) { [unowned self] in reap() } }
        let process: pid_t
        do throws(SpawnFailure) {
            process = try Spawn.startConfined(
                program, manifest.exec.dropFirst() + ["--id", instance.id], environment: environment,
                openFiles: openFiles)
        } catch {
            throw SessionError(.resourceNotAvailable, "\(program) cannot be started: \(error)")
        }
        perform(instance.life.started(process, at: now), for: instance)
    }

    private func perform(_ actions: [PluginLife.Action], for instance: Instance) {
        for action in actions { perform(action, for: instance) }
        update(instance)
    }

    /// Follows the state of its life.
    private func update(_ instance: Instance) {
        if instance.life.registration == nil { instance.watch = nil }
        guard let deadline = instance.life.nextDeadline else {
            instance.timer = nil
            return
        }
        if instance.timer == nil {
            instance.timer = Timer(on: loop) { [weak self, weak instance] in
                if let self, let instance { timePassed(instance) }
            }
        }
        instance.timer?.arm(at: deadline)
    }

    private func perform(_ action: PluginLife.Action, for instance: Instance) {
        switch action {
        case .announce(let state, let message):
            if state == .crashed { log.warning("plugin \(quoted(instance.id)) \(message)") }
            onStateChanged?(instance.id, state.rawValue, message)
        case .serve:
            if let place = instance.life.registration { answer(instance, .success((place.busName, place.path))) }
        case .refuse(let how):
            let text = "plugin \(quoted(instance.id)) \(how); see the daemon's log"
            answer(instance, .failure(Failure(SessionError(.resourceNotAvailable, text))))
        case .end(let process, let why):
            log.info("plugin \(quoted(instance.id)) \(why) and is stopped")
            signal(process, SIGTERM)
        case .kill(let process): signal(process, SIGKILL)
        case .endGroup(let process, let wasAsked):
            // If it was asked, the others have got the same signal, and may need longer.
            if !wasAsked { kill(-process, SIGTERM) }
            awaitEnd(of: process, since: MonotonicClock.now()) { [weak self, weak instance] in
                if let self, let instance { perform(instance.life.groupEnded(process), for: instance) }
            }
        case .startIfAwaited: startAgain(instance)
        case .startSoon:
            loop.later { [weak self, weak instance] in if let self, let instance { continueWork(of: instance) } }
        }
    }

    private func timePassed(_ instance: Instance) {
        perform(
            instance.life.timePassed(at: MonotonicClock.now(), isBusy: isBusy(instance)), for: instance)
    }

    /// Sends a signal to a process that is not reaped yet, and to all that it has started in its process group: if a script
    /// runs the program, the process is the script.
    private func signal(_ process: pid_t, _ signal: Int32) {
        kill(-process, signal)
        // It may have joined another group.
        if getpgid(process) != process { kill(process, signal) }
    }

    /// Calls `done` when no process of that group is left, whose first process has ended: at once, unless a script has
    /// started others. After ``PluginLife/endTime`` they are killed.
    private func awaitEnd(of group: pid_t, since start: UInt64, _ done: @escaping () -> Void) {
        let isLate = MonotonicClock.now() &- start > PluginLife.endTime
        if isLate { kill(-group, SIGKILL) }
        // A process that nobody reaps stays in its group, so this ends after SIGKILL in any case.
        guard !isLate, kill(-group, 0) == 0 else {
            groups[group] = nil
            return done()
        }
        let timer = Timer(on: loop) { [unowned self] in awaitEnd(of: group, since: start, done) }
        timer.arm(after: PluginSupervisor.pollTime)
        groups[group] = timer
    }

    private func reap() {
        for instance in instances.values {
            guard let process = instance.life.process, let change = ChildChange.next(of: process) else { continue }
            perform(instance.life.exited(change, at: MonotonicClock.now()), for: instance)
        }
    }

    /// Starts a plugin that crashed while it was busy, unless somebody did so already.
    private func continueWork(of instance: Instance) {
        guard instance.life.state == .crashed, instance.life.process == nil,
            let manifest = folders.manifests().first(where: { $0.id == instance.id })
        else { return }
        // One that crashes again and again is not started; who opens it next is told why.
        try? start(instance, manifest)
    }

    private func vanished(_ instance: Instance) {
        perform(instance.life.leftBus(), for: instance)
        if instance.life.isBlank, instance.waiting.isEmpty, instances[instance.id] === instance {
            instances[instance.id] = nil
        }
    }

    private func answer(_ instance: Instance, _ result: Result<(busName: String, path: String), Failure>) {
        let waiting = instance.waiting
        instance.waiting = []
        for reply in waiting { reply(result) }
    }

    private func describe(_ manifest: PluginManifest) -> Value {
        let instance = instances[manifest.id]
        let isSupported = manifest.interface == PluginManifest.supportedInterface
        let state = isSupported ? (instance?.life.state ?? .stopped).rawValue : "unsupported"
        let message =
            isSupported ? instance?.life.message ?? "" : PluginSupervisor.mismatch(manifest.id, manifest.interface)
        return .properties([
            ("id", .string(manifest.id)), ("name", .string(manifest.name)), ("kind", .string(manifest.kind)),
            ("version", .string(manifest.version)), ("schemes", .strings(manifest.schemes)),
            ("mime-types", .strings(manifest.mimeTypes)),
            ("interface", .uint32(UInt32(clamping: manifest.interface))), ("state", .string(state)),
            ("message", .string(message)), ("bus-name", .string(instance?.life.registration?.busName ?? "")),
            ("busy", .bool(instance.map(isBusy) ?? false)),
        ])
    }
}

// MARK: - Clients of plugins

extension PluginSupervisor {
    /// Keeps the plugin running while that client is on the bus.
    private func use(_ instance: Instance, by caller: String) {
        guard instance.users[caller] == nil else { return }
        instance.users[caller] = connection.watchName(caller) { [weak self, weak instance] in
            guard let self, let instance else { return }
            instance.users[caller] = nil
            instance.life.left(by: caller, at: MonotonicClock.now())
            update(instance)
        }
        instance.life.used(by: caller, at: MonotonicClock.now())
        update(instance)
    }

    /// Whether it registered as busy, or has an active or interrupted session.
    private func isBusy(_ instance: Instance) -> Bool {
        instance.life.registration.map { $0.isBusy || hasBusySession($0.busName) } ?? false
    }

    /// A client opened it while it was exiting.
    private func startAgain(_ instance: Instance) {
        guard !instance.waiting.isEmpty else { return }
        do throws(SessionError) {
            guard let manifest = folders.manifests().first(where: { $0.id == instance.id }) else {
                throw SessionError(.resourceNotAvailable, "plugin \(quoted(instance.id)) is not installed any more")
            }
            try start(instance, manifest)
        } catch {
            answer(instance, .failure(Failure(error)))
        }
    }
}
