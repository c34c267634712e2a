import DBus
import EventLoop
import Foundation
import PluginAPI
import SessionBus
import TestSupport

/// The plugin for uploads on a bus of its own, a server that misbehaves on command, and a client that knows only the
/// contract.
final class UploadStage {
    let bus: PrivateBus
    let server: UploadServer
    let machine: FakeMachine?
    let folder: PrivateFolder
    let loop = EventLoop()
    let connection: Connection
    private(set) var plugin: Child
    private(set) var place = ""
    /// Everything that the plugin told everybody, as text.
    private(set) var told: [String] = []
    /// What it told of its jobs' `Done`, by their paths.
    private(set) var progress: [String: [UInt64]] = [:]
    private var subscriptions: [Subscription] = []

    private let environment: [String: String]

    init(machine wantsMachine: Bool = false, metered: Int? = nil, environment: [String: String] = [:]) throws {
        self.environment = environment
        bus = try PrivateBus()
        server = try UploadServer()
        folder = try PrivateFolder()
        machine = wantsMachine ? try FakeMachine(on: bus, metered: metered) : nil
        connection = try Connection(.custom(bus.address), loop: loop)
        plugin = try UploadStage.start(bus, folder, environment)
        place = try connection.owner(of: .uploads, plugin)
        subscriptions = [
            connection.subscribe { [unowned self] message in
                guard message.sender == place, let values = try? message.arguments() else { return }
                told.append("\(message.member ?? "") \(values)")
                guard message.member == "PropertiesChanged", let path = message.path,
                    let done = values[1].asProperties?["Done"]?.uint64Value
                else { return }
                progress[path, default: []].append(done)
            }
        ]
    }

    private static func start(
        _ bus: PrivateBus, _ folder: PrivateFolder, _ environment: [String: String]
    ) throws -> Child {
        try Child(
            try builtProduct(named: "sessiond-transfer"), [],
            environment: ["PATH": "/usr/bin:/bin", "HOME": folder.path, "XDG_STATE_HOME": folder.path + "/state"]
                .merging(bus.environment) { $1 }.merging(environment) { $1 })
    }

    /// SIGKILL, and another one, which continues.
    func restart() throws {
        plugin.kill()
        plugin = try UploadStage.start(bus, folder, environment)
        place = try connection.owner(of: .uploads, plugin)
    }

    /// The folder of the records, which is there as soon as the plugin is.
    var recordFolder: String { folder.path + "/state/sessiond/uploads/" }

    /// A file of that many random bytes.
    func file(_ size: Int, _ name: String = "film.mp4", seed: UInt64 = 1) throws -> (path: String, bytes: Data) {
        let bytes = randomBytes(size, seed: seed)
        let path = folder.path + "/" + name
        try bytes.write(to: URL(fileURLWithPath: path))
        return (path, bytes)
    }

    func call(_ member: String, _ arguments: [Value] = []) throws(Failure) -> [Value] {
        try connection.callAndWait(
            place, PluginKind.uploads.objectPath, PluginKind.uploads.interface, member, arguments, timeout: 30)
    }

    /// The path of the job.
    func upload(_ path: String, to target: String, _ options: [(String, Value)] = []) throws(Failure) -> String {
        try call(
            "Upload",
            [.string(path), .string(target.contains(":") ? target : server.url(target)), .properties(options)]
        )
        .first?.objectPathValue ?? ""
    }

    /// The error of an upload that is refused.
    func refusal(_ path: String, to target: String, _ options: [(String, Value)] = []) -> Failure? {
        do throws(Failure) {
            _ = try upload(path, to: target, options)
            return nil
        } catch {
            return error
        }
    }

    func job(_ path: String, _ member: String) throws {
        _ = try connection.callAndWait(place, path, BusName.job, member, [], timeout: 30)
    }

    func properties(_ job: String) -> [String: Value] {
        let values = try? connection.callAndWait(
            place, job, StandardName.properties, "GetAll", [.string(BusName.job)], timeout: 30)
        return values?.first?.asProperties ?? [:]
    }

    func state(_ job: String) -> String { properties(job)["State"]?.stringValue ?? "" }
    func done(_ job: String) -> UInt64 { properties(job)["Done"]?.uint64Value ?? 0 }
    func message(_ job: String) -> String { properties(job)["Message"]?.stringValue ?? "" }
    func error(_ job: String) -> String {
        (properties(job)["Error"]?.stringValue ?? "").split(separator: ".").last.map(String.init) ?? ""
    }

    /// Waits for the job's end, and returns its state.
    func end(_ job: String, timeout: Double = 60) -> String {
        var last = ""
        _ = eventually(timeout: timeout) {
            hear()
            last = state(job)
            if ["finished", "failed", "cancelled"].contains(last) { return true }
            // Not asked again before it has said something, or a moment later.
            let before = told.count
            loop.iterate(timeout: 0.05) { told.count > before }
            return false
        }
        hear()
        return last
    }

    /// While the job waits, the network comes back: for tests of something else than waiting.
    func nudge(_ job: String) {
        if state(job) == "waiting" { try? machine?.tell("state 70") }
    }

    func wait(timeout: Double = 20, _ condition: () -> Bool) -> Bool {
        eventually(timeout: timeout) {
            hear()
            return condition()
        }
    }

    /// What was sent before now is heard.
    private func hear() {
        _ = eventually {
            loop.iterate(blocking: false)
            return !connection.hasBacklog
        }
    }

    /// A call to the plugin's object for ``stranger(_:isSandboxed:)``.
    static func call(_ member: String, _ signature: String, _ arguments: String) -> String {
        "'\(PluginKind.uploads.objectPath)', '\(PluginKind.uploads.interface)', '\(member)', '\(signature)', \(arguments)"
    }

    /// What a program of another connection is answered: `ok`, or the name of the error. In a sandbox it looks like one of
    /// Flatpak, for which it must be root.
    /// - Parameter call: in Python: path, interface, member, signature and arguments.
    func stranger(_ call: String, isSandboxed: Bool) throws -> String {
        let root = try PrivateFolder()
        if isSandboxed { try root.file(".flatpak-info", "[Application]\nname=org.example.Game\nruntime=runtime/x\n") }
        let program = """
            import dbus, os, sys
            bus = dbus.SessionBus()
            if \(isSandboxed ? "True" : "False"):
                os.chroot(sys.argv[2])
            try:
                bus.call_blocking(sys.argv[1], \(call), timeout=10)
                print('ok')
            except dbus.DBusException as error:
                print(error.get_dbus_name())
            """
        return try Child.run(
            "/usr/bin/python3", ["-c", program, place, root.path],
            environment: ["PATH": "/usr/bin:/bin"].merging(bus.environment) { $1 })
    }

    /// The rows of `List`.
    func list() throws -> [[String: Value]] { try call("List").first?.arrayValue?.compactMap(\.asProperties) ?? [] }

    func answer(_ job: String) throws -> (status: UInt32, headers: [String: String], body: String, location: String) {
        let values = try call("Answer", [.objectPath(job)])
        let headers = values[1].dictionaryValue?.compactMap { entry in
            entry.key.stringValue.flatMap { key in entry.value.stringValue.map { (key, $0) } }
        }
        return (
            values[0].uint32Value ?? 0, Dictionary(headers ?? [], uniquingKeysWith: { $1 }),
            String(decoding: values[2].arrayValue?.compactMap(\.byteValue) ?? [], as: UTF8.self),
            values[3].stringValue ?? ""
        )
    }

    /// The records that are kept, by name.
    var records: [String] {
        let names =
            (try? FileManager.default.contentsOfDirectory(atPath: folder.path + "/state/sessiond/uploads")) ?? []
        return names.filter { UInt64($0) != nil }.sorted()
    }

    var storedByTus: Data? { server.storedByTus }

    /// Begins an upload that the server reads that much of, and then stops.
    func held(
        _ path: String, to target: String, at size: UInt64, _ options: [(String, Value)]
    ) throws -> String {
        try server.tell("hold \(size)")
        let job = try upload(path, to: target, options)
        guard wait({ done(job) >= size }) else { throw SupportError("nothing was sent: \(properties(job))") }
        return job
    }

    /// The lines that the plugin has written.
    var lines: [String] { plugin.isRunning ? plugin.errors + plugin.output : plugin.output + plugin.errors }

    /// kB, as the kernel counts them; the second is the most there ever was.
    func memory() throws -> (now: Int, most: Int) {
        let status = try String(contentsOfFile: "/proc/\(plugin.processID)/status", encoding: .utf8)
        func value(_ key: String) -> Int {
            let line = status.split(separator: "\n").first { $0.hasPrefix(key) } ?? ""
            return line.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) } ?? 0
        }
        return (value("VmRSS"), value("VmHWM"))
    }
}

/// The manifest of the plugin, where a daemon finds it.
enum UploadPlugin {
    /// - Parameter home: the HOME of the daemon.
    static func install(below home: String) throws {
        let folder = home + "/.local/share/sessiond/plugins"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try FileManager.default.copyItem(
            atPath: repository.path + "/data/plugins/transfer.plugin", toPath: folder + "/transfer.plugin")
    }
}
