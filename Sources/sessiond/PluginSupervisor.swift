import DBus
import EventLoop
import Glibc
import Logging
import PluginAPI
import SessionBus

/// Plugins as processes: found by their manifests, started on demand, watched, never in the way of anything else.
final class PluginSupervisor: PluginService {
    /// One plugin that is up, coming up, or was.
    private final class Instance {
        enum State: String {
            case starting, running, stopped, crashed
        }

        let id: String
        var state = State.starting
        var process: pid_t?
        var busName = ""
        var path = ""
        /// What it said of itself when it registered, for one without a manifest.
        var info: [String: Value] = [:]
        var watch: Subscription?
        var deadline: Timer?
        var waiting: [(Result<(busName: String, path: String), Failure>) -> Void] = []
        /// When it last crashed, newest last.
        var crashes: [UInt64] = []

        init(id: String) { self.id = id }
    }

    /// How long a plugin has to register once it is started, in seconds.
    private static let startTime = 10.0
    /// So many crashes within so many microseconds, and it is left alone for as long.
    private static let crashLimit = (count: 3, microseconds: UInt64(30_000_000))

    private let loop: EventLoop
    private let connection: Connection
    private let log: Logger
    private let folders: PluginFolders
    private var instances: [String: Instance] = [:]
    private var children: SignalWatch?

    init(loop: EventLoop, connection: Connection, log: Logger) {
        self.loop = loop
        self.connection = connection
        self.log = log
        folders = PluginFolders(log: log)
    }

    /// Ends what was started here.
    func stop() {
        for instance in instances.values { if let process = instance.process { kill(process, SIGTERM) } }
    }

    // MARK: PluginService

    var plugins: [Value] {
        let manifests = folders.manifests()
        let installed = manifests.map { manifest in
            describe(
                id: manifest.id, name: manifest.name, kind: manifest.kind.rawValue, version: manifest.version,
                schemes: manifest.schemes, mimeTypes: manifest.mimeTypes)
        }
        let others = instances.values.filter { instance in
            instance.state == .running && !manifests.contains { $0.id == instance.id }
        }
        return installed
            + others.sorted { $0.id < $1.id }.map { instance in
                describe(
                    id: instance.id, name: instance.info["name"]?.stringValue ?? instance.id,
                    kind: instance.info["kind"]?.stringValue ?? "",
                    version: instance.info["version"]?.stringValue ?? "",
                    schemes: instance.info["schemes"]?.stringsValue ?? [],
                    mimeTypes: instance.info["mime-types"]?.stringsValue ?? [])
            }
    }

    func open(
        kind: String, uri: String, _ reply: @escaping (Result<(busName: String, path: String), Failure>) -> Void
    ) {
        let scheme = uri.contains(":") ? String(uri.prefix { $0 != ":" }) : "file"
        guard
            let manifest = folders.manifests().first(where: {
                $0.kind.rawValue == kind && $0.opens(scheme: scheme, mimeType: nil)
            })
        else {
            return reply(
                .failure(
                    Failure(
                        SessionError(
                            .resourceNotAvailable,
                            "no plugin of kind \(quoted(kind)) opens \(quoted(scheme)):; install one, see sessiond-plugin(5)"
                        ))))
        }
        let instance = instances[manifest.id] ?? Instance(id: manifest.id)
        instances[manifest.id] = instance
        switch instance.state {
        case .running where !instance.busName.isEmpty: reply(.success((instance.busName, instance.path)))
        case .starting where instance.process != nil: instance.waiting.append(reply)
        case .starting, .running, .stopped, .crashed:
            do throws(SessionError) {
                try start(instance, manifest)
                instance.waiting.append(reply)
            } catch {
                reply(.failure(Failure(error)))
            }
        }
    }

    func register(_ id: String, _ info: [String: Value], caller: String) throws(Failure) {
        guard !id.isEmpty, id.utf8.count <= 128 else {
            throw Failure(.badParameter("a plugin's id has 1 to 128 bytes"))
        }
        guard let path = info["object"]?.objectPathValue else {
            throw .invalidArgs("'object' o, the path the plugin serves, is missing from info")
        }
        let instance = instances[id] ?? Instance(id: id)
        guard instance.state != .running || instance.busName == caller || instance.busName.isEmpty else {
            throw Failure(SessionError(.isBusy, "plugin \(quoted(id)) is registered by \(instance.busName) already"))
        }
        instances[id] = instance
        instance.state = .running
        instance.busName = caller
        instance.path = path
        instance.info = info
        instance.deadline = nil
        instance.watch = connection.watchName(caller) { [weak self, weak instance] in
            if let self, let instance { self.vanished(instance) }
        }
        answer(instance, .success((caller, path)))
        log.info("plugin \(id) serves \(path) as \(caller)")
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
                .resourceNotAvailable, "plugin \(quoted(instance.id)): there is no program \(quoted(manifest.exec[0]))")
        }
        if children == nil { children = loop.watch(signal: SIGCHLD) { [unowned self] in reap() } }
        instance.process = try spawn(program, Array(manifest.exec.dropFirst()) + ["--id", instance.id])
        instance.state = .starting
        let deadline = Timer(on: loop) { [weak self, weak instance] in
            guard let self, let instance else { return }
            if let process = instance.process { kill(process, SIGKILL) }
            self.fail(instance, "did not register within \(PluginSupervisor.startTime) s")
        }
        deadline.arm(after: PluginSupervisor.startTime)
        instance.deadline = deadline
    }

    private func spawn(_ program: String, _ arguments: [String]) throws(SessionError) -> pid_t {
        var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) }
        words.append(nil)
        defer { words.forEach { free($0) } }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // Signals as a new program expects them, and out of the reach of the terminal's control-C.
        var defaults = sigset_t()
        sigemptyset(&defaults)
        sigaddset(&defaults, SIGPIPE)
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        let flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP
        posix_spawnattr_setflags(&attributes, Int16(flags))
        var process: pid_t = 0
        let error = posix_spawn(&process, program, nil, &attributes, words, environ)
        guard error == 0 else {
            throw SessionError(
                .resourceNotAvailable, "\(program) cannot be started: \(String(cString: strerror(error)))")
        }
        return process
    }

    private func reap() {
        for instance in instances.values {
            guard let process = instance.process else { continue }
            var status: Int32 = 0
            guard waitpid(process, &status, WNOHANG) == process else { continue }
            instance.process = nil
            let wasKilled = status & 0x7f != 0
            if wasKilled || status >> 8 != 0 {
                instance.crashes.append(MonotonicClock.now())
                fail(instance, wasKilled ? "was ended by signal \(status & 0x7f)" : "exited with \(status >> 8)")
            } else {
                instance.state = .stopped
                answer(instance, .failure(failure(instance, "exited")))
            }
        }
    }

    private func vanished(_ instance: Instance) {
        instance.watch = nil
        instance.busName = ""
        if instance.state == .running { instance.state = .stopped }
    }

    private func fail(_ instance: Instance, _ what: String) {
        instance.state = .crashed
        instance.deadline = nil
        log.warning("plugin \(instance.id) \(what)")
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

    private func describe(
        id: String, name: String, kind: String, version: String, schemes: [String], mimeTypes: [String]
    ) -> Value {
        let instance = instances[id]
        return .properties([
            ("id", .string(id)), ("name", .string(name)), ("kind", .string(kind)), ("version", .string(version)),
            ("schemes", .strings(schemes)), ("mime-types", .strings(mimeTypes)),
            ("state", .string((instance?.state ?? .stopped).rawValue)), ("bus-name", .string(instance?.busName ?? "")),
        ])
    }
}
