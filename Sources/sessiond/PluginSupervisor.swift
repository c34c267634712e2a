import DBus
import EventLoop
import Glibc
import Logging
import PluginAPI
import Processes
import SessionBus

/// Plugin processes: found by their manifests, started on demand, and watched, without blocking anything.
final class PluginSupervisor: PluginService {
    /// One plugin that is running, starting, or was running.
    private final class Instance {
        enum State: String {
            case starting, running, stopping, stopped, crashed
        }

        let id: String
        var state = State.stopped
        /// The reason of its last crash.
        var message = ""
        var process: pid_t?
        var busName = ""
        var path = ""
        /// The data of its registration; used if there is no manifest.
        var registered: PluginManifest?
        var watch: Subscription?
        var deadline: Timer?
        var waiting: [(Result<(busName: String, path: String), Failure>) -> Void] = []
        /// The clients that opened it and are still connected, by unique name.
        var users: [String: Subscription] = [:]
        /// Whether it registered as busy: it works for a client that may have left.
        var saysBusy = false
        /// Whether it was busy when it left the bus or crashed: then it is started again, to continue.
        var wasBusy = false
        /// Seconds after which it is stopped when idle; 0: never.
        var idleTimeout = 0
        var idleTimer: Timer?
        /// The times of its crashes, latest last.
        var crashes: [UInt64] = []

        init(id: String) { self.id = id }
    }

    /// Seconds in which a started plugin must register.
    private static let startTime = 10.0
    /// After that many crashes within that many microseconds, the plugin is not started for as long.
    private static let crashLimit = (count: 3, microseconds: UInt64(30_000_000))
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
    /// Seconds that a plugin may take to exit.
    private static let endTime = 5.0
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
        for instance in instances.values { if let process = instance.process { signal(process, SIGTERM) } }
    }

    // MARK: PluginService

    var plugins: [Value] { known().map(describe) }

    /// The installed plugins, then those that only registered and are still connected, by id.
    private func known() -> [PluginManifest] {
        let installed = folders.manifests()
        let others = instances.values.filter { instance in
            instance.state == .running && !installed.contains { $0.id == instance.id }
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
            instance.idleTimeout = manifest.idleTimeout
            let answer = { [weak self, weak instance] (result: Result<(busName: String, path: String), Failure>) in
                if let self, let instance, case .success = result { use(instance, by: caller) }
                reply(result)
            }
            switch instance.state {
            case .running where !instance.busName.isEmpty: answer(.success((instance.busName, instance.path)))
            case .starting where instance.process != nil: instance.waiting.append(answer)
            // It is started again when the old process has ended.
            case .stopping: instance.waiting.append(answer)
            case .starting, .running, .stopped, .crashed:
                if instance.process == nil { try start(instance, manifest) } else { replace(instance) }
                instance.waiting.append(answer)
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
        if let started = instances[id]?.process {
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
            if let instance = instances[id], instance.state == .starting, let process = instance.process {
                signal(process, SIGTERM)
                fail(instance, "registered with version \(version) of the plugin interface")
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
        let own = instances.values.count { $0.busName == caller && $0.id != id }
        guard own < limits.ofOneClient else {
            throw Failure(SessionError(.resourceNotAvailable, "you have already registered \(own) plugins"))
        }
        let instance = instances[id] ?? Instance(id: id)
        guard instance.state != .stopping else {
            throw Failure(SessionError(.resourceNotAvailable, "plugin \(quoted(id)) is being stopped"))
        }
        guard instance.state != .running || instance.busName == caller || instance.busName.isEmpty else {
            throw Failure(SessionError(.isBusy, "plugin \(quoted(id)) is already registered by \(instance.busName)"))
        }
        instances[id] = instance
        instance.path = path
        instance.registered = registered
        instance.saysBusy = saysBusy ?? false
        instance.wasBusy = false
        guard instance.state != .running || instance.busName != caller else { return settleIdle(instance) }
        instance.busName = caller
        instance.deadline = nil
        set(instance, .running)
        instance.watch = connection.watchName(caller) { [weak self, weak instance] in
            if let self, let instance { self.vanished(instance) }
        }
        answer(instance, .success((caller, path)))
        settleIdle(instance)
        log.info("plugin \(quoted(id)) serves \(quoted(path)) as \(caller)")
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
        instance.crashes.removeAll { now &- $0 > PluginSupervisor.crashLimit.microseconds }
        guard instance.crashes.count < PluginSupervisor.crashLimit.count else {
            throw SessionError(
                .resourceNotAvailable,
                "plugin \(quoted(instance.id)) crashed \(instance.crashes.count) times in a row; try again in half a minute"
            )
        }
        guard let program = folders.executable(manifest.exec[0]) else {
            throw SessionError(
                .resourceNotAvailable,
                "plugin \(quoted(instance.id)): there is no program \(quoted(manifest.exec[0])) in sessiond's PATH; "
                    + "write its absolute path in the manifest (Exec=)")
        }
        if children == nil { children = loop.watch(signal: SIGCHLD) { [unowned self] in reap() } }
        do throws(SpawnFailure) {
            instance.process = try Spawn.startConfined(
                program, manifest.exec.dropFirst() + ["--id", instance.id], environment: environment,
                openFiles: openFiles)
        } catch {
            throw SessionError(.resourceNotAvailable, "\(program) cannot be started: \(error)")
        }
        set(instance, .starting)
        let deadline = Timer(on: loop) { [weak self, weak instance] in
            guard let self, let instance else { return }
            if let process = instance.process { signal(process, SIGKILL) }
            self.fail(instance, "did not register within \(PluginSupervisor.startTime) s")
        }
        deadline.arm(after: PluginSupervisor.startTime)
        instance.deadline = deadline
    }

    /// Sends a signal to a process that is not reaped yet, and to all that it has started in its process group: if a script
    /// runs the program, the process is the script.
    private func signal(_ process: pid_t, _ signal: Int32) {
        kill(-process, signal)
        // It may have joined another group.
        if getpgid(process) != process { kill(process, signal) }
    }

    /// Calls `done` when no process of that group is left, whose first process has ended: at once, unless a script has
    /// started others. After ``endTime`` seconds they are killed.
    private func awaitEnd(of group: pid_t, since start: UInt64, _ done: @escaping () -> Void) {
        let isLate = MonotonicClock.now() &- start > UInt64(PluginSupervisor.endTime * 1_000_000)
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
            guard let process = instance.process, let change = ChildChange.next(of: process), change.isEnd
            else { continue }
            let now = MonotonicClock.now()
            instance.process = nil
            instance.deadline = nil
            if instance.state != .stopping {
                // The programs of a script end with it: they would not be watched any more.
                kill(-process, SIGTERM)
                awaitEnd(of: process, since: now) {}
            }
            switch change {
            case _ where instance.state == .stopping:
                // A crash before it could exit is a crash.
                if case .killed(let signal) = change, signal != SIGTERM, signal != SIGKILL {
                    instance.crashes.append(now)
                }
                // The programs of a script have got the same signal, and may need longer.
                awaitEnd(of: process, since: now) { [weak self, weak instance] in
                    guard let self, let instance else { return }
                    set(instance, .stopped)
                    startAgain(instance)
                }
            case .exited(0):
                set(instance, .stopped)
                answer(instance, .failure(failure(instance, "exited")))
            case .exited(let code): crashed(instance, "exited with \(code)")
            case .killed(let signal): crashed(instance, "was ended by signal \(signal)")
            case .stopped, .continued: break
            }
        }
    }

    private func crashed(_ instance: Instance, _ how: String) {
        instance.crashes.append(MonotonicClock.now())
        let hasWork = instance.saysBusy || instance.wasBusy
        instance.wasBusy = false
        fail(instance, how)
        if hasWork {
            loop.later { [weak self, weak instance] in if let self, let instance { continueWork(of: instance) } }
        }
    }

    /// Starts a plugin that crashed while it was busy, unless somebody did so already.
    private func continueWork(of instance: Instance) {
        guard instance.state == .crashed, instance.process == nil,
            let manifest = folders.manifests().first(where: { $0.id == instance.id })
        else { return }
        // One that crashes again and again is not started; who opens it next is told why.
        try? start(instance, manifest)
    }

    private func vanished(_ instance: Instance) {
        instance.watch = nil
        instance.busName = ""
        // A process that was started here is asked for how it ended: that may come before or after this.
        if instance.process != nil { instance.wasBusy = instance.saysBusy }
        instance.saysBusy = false
        instance.idleTimer = nil
        if instance.state == .running { set(instance, .stopped) }
        // A process that was not started here leaves nothing behind.
        if instance.process == nil, instance.state != .stopping, instance.crashes.isEmpty, instance.waiting.isEmpty,
            instances[instance.id] === instance
        {
            instances[instance.id] = nil
        }
    }

    private func fail(_ instance: Instance, _ what: String) {
        instance.deadline = nil
        log.warning("plugin \(quoted(instance.id)) \(what)")
        set(instance, .crashed, what)
        answer(instance, .failure(failure(instance, what)))
    }

    private func failure(_ instance: Instance, _ what: String) -> Failure {
        Failure(SessionError(.resourceNotAvailable, "plugin \(quoted(instance.id)) \(what); see the daemon's log"))
    }

    private func answer(_ instance: Instance, _ result: Result<(busName: String, path: String), Failure>) {
        let waiting = instance.waiting
        instance.waiting = []
        for reply in waiting { reply(result) }
    }

    private func describe(_ manifest: PluginManifest) -> Value {
        let instance = instances[manifest.id]
        let isSupported = manifest.interface == PluginManifest.supportedInterface
        let state = isSupported ? (instance?.state ?? .stopped).rawValue : "unsupported"
        let message =
            isSupported ? instance?.message ?? "" : PluginSupervisor.mismatch(manifest.id, manifest.interface)
        return .properties([
            ("id", .string(manifest.id)), ("name", .string(manifest.name)), ("kind", .string(manifest.kind)),
            ("version", .string(manifest.version)), ("schemes", .strings(manifest.schemes)),
            ("mime-types", .strings(manifest.mimeTypes)),
            ("interface", .uint32(UInt32(clamping: manifest.interface))), ("state", .string(state)),
            ("message", .string(message)), ("bus-name", .string(instance?.busName ?? "")),
            ("busy", .bool(instance.map(isBusy) ?? false)),
        ])
    }

    private func set(_ instance: Instance, _ state: Instance.State, _ message: String = "") {
        guard instance.state != state || instance.message != message || state == .starting else { return }
        (instance.state, instance.message) = (state, message)
        if state != .running { instance.idleTimer = nil }
        onStateChanged?(instance.id, state.rawValue, message)
    }
}

// MARK: - Idle plugins

extension PluginSupervisor {
    /// Keeps the plugin running while that client is on the bus.
    private func use(_ instance: Instance, by caller: String) {
        guard instance.users[caller] == nil else { return }
        instance.users[caller] = connection.watchName(caller) { [weak self, weak instance] in
            guard let self, let instance else { return }
            instance.users[caller] = nil
            settleIdle(instance)
        }
        settleIdle(instance)
    }

    /// A timer runs only while a plugin that was started here has no user.
    private func settleIdle(_ instance: Instance) {
        guard instance.process != nil, instance.state == .running, instance.users.isEmpty, instance.idleTimeout > 0,
            !instance.saysBusy
        else {
            instance.idleTimer = nil
            return
        }
        guard instance.idleTimer == nil else { return }
        let timer = Timer(on: loop) { [weak self, weak instance] in
            guard let self, let instance else { return }
            instance.idleTimer = nil
            if isBusy(instance) { settleIdle(instance) } else { end(instance, "is idle") }
        }
        timer.arm(after: Double(instance.idleTimeout))
        instance.idleTimer = timer
    }

    /// Whether it registered as busy, or has an active or interrupted session.
    private func isBusy(_ instance: Instance) -> Bool {
        instance.saysBusy || !instance.busName.isEmpty && hasBusySession(instance.busName)
    }

    /// Stops a process that left the bus, or failed to register, and still runs; the next one starts when it has ended.
    private func replace(_ instance: Instance) {
        if instance.state == .crashed { instance.crashes.append(MonotonicClock.now()) }
        end(instance, "left the bus or did not register")
    }

    private func end(_ instance: Instance, _ why: String) {
        guard let process = instance.process else { return }
        log.info("plugin \(quoted(instance.id)) \(why) and is stopped")
        set(instance, .stopping)
        signal(process, SIGTERM)
        let deadline = Timer(on: loop) { [unowned self] in signal(process, SIGKILL) }
        deadline.arm(after: PluginSupervisor.endTime)
        instance.deadline = deadline
    }

    /// A client asked for it while it was exiting.
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
