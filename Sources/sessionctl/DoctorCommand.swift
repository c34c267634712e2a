import ArgumentParser
import DBus
import EventLoop
import Glibc
import Installation
import MediaValues
import PluginAPI
import PulseBackend
import SessionBus
import Workers

/// `sessionctl doctor`.
///
/// Starts nothing and changes nothing, not even a service that is not running. Reports everything that it cannot find
/// out as unknown.
struct DoctorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Find faults, and print the command that corrects each one.",
        discussion: "Exits 1 if there is an error. Works without the service, the sound server and the bus, too.")

    @OptionGroup var output: OutputOptions
    @OptionGroup var bus: BusOptions

    func run() throws {
        let examination = Examination(isSystem: bus.system)
        examination.run()
        let diagnosis = examination.diagnosis
        if output.json {
            Output.line(diagnosis.json)
        } else {
            Output.write(diagnosis.table)
            Output.line(diagnosis.summary)
        }
        if !diagnosis.isHealthy { throw ExitCode(1) }
    }
}

/// The checks of `sessionctl doctor`, one topic after the other.
private final class Examination {
    /// Seconds in which each bus or service must answer.
    private static let patience = 2.0

    private(set) var diagnosis = Diagnosis()
    private let isSystem: Bool
    private let address: BusAddress
    private let loop = EventLoop()
    private var connection: Connection?
    /// The process of the service; nil: it does not run, or its process is unknown.
    private var process: UInt32?
    /// The Manager's properties; empty if the service does not run or does not answer.
    private var service: [String: Value] = [:]
    private var settings = Settings()
    /// Whether a daemon that starts now would refuse its settings.
    private var settingsAreWrong = false
    /// Nil: no systemd answers on the bus.
    private lazy var unit = connection.flatMap { ServiceUnit(on: $0, patience: Self.patience) }
    /// What this program sees at the sound server; nil: it cannot read it.
    private var streams: [AudioStream.ID: String]?

    init(isSystem: Bool) {
        self.isSystem = isSystem
        address = isSystem ? .system : .session
    }

    func run() {
        lookAtBus()
        // The causes come before what follows from them.
        lookAtSettings()
        lookAtService()
        lookAtUnit()
        lookAtServer()
        lookAtStreams()
        lookAtPlugins()
        lookAtWorkers()
        lookAtCalls()
        lookAtState()
        lookAtRecordingFolder()
        diagnosis.lookAtCache()
        lookAtProcessor()
    }

    // MARK: The bus and the service

    private func lookAtBus() {
        let open = isSystem ? "systemctl start dbus.socket" : "dbus-run-session -- $SHELL"
        guard answers() else {
            return diagnosis.add(
                "bus", .error, "the \(address.name) bus accepts connections and does not answer", remedy: open)
        }
        do throws(Failure) {
            connection = try Connection(address, loop: loop)
            diagnosis.add("bus", .ok, "the \(address.name) bus answers")
        } catch {
            diagnosis.add("bus", .error, "no \(address.name) bus: \(error.message)", remedy: open)
        }
    }

    /// False if the bus accepts connections but does not answer: libdbus would block for half a minute.
    private func answers() -> Bool {
        let session =
            environment("DBUS_SESSION_BUS_ADDRESS")
            ?? environment("XDG_RUNTIME_DIR").map { "unix:path=\($0)/bus" }
        var answer: Bool?
        let path = isSystem ? BusAddress.system : session.map { BusAddress.custom($0) } ?? .session
        // If no program listens there, a connection fails at once and gives the reason.
        let probe = BusProbe(path, loop: loop, patience: Self.patience) { answer = $0 }
        let begun = MonotonicClock.now()
        _ = withExtendedLifetime(probe) { loop.iterate(timeout: 2 * Self.patience) { answer != nil } }
        let took = MonotonicClock.now() - begun
        return answer != false || took < MonotonicClock.microseconds(Self.patience)
    }

    private func ask(_ name: String, _ path: String, _ interface: String, _ member: String, _ arguments: [Value])
        -> Result<[Value], Failure>
    {
        guard let connection else { return .failure(.disconnected) }
        do throws(Failure) {
            let message = try Message.methodCall(
                destination: name, path: path, interface: interface, member: member)
            // Does not start a service for the call.
            message.autoStart = false
            message.append(arguments)
            return .success(try connection.callAndWait(message, timeout: Self.patience))
        } catch {
            return .failure(error)
        }
    }

    private func askBus(_ member: String, _ arguments: [Value] = []) -> Value? {
        try? connection?.askBusAndWait(member, arguments, timeout: Self.patience).first
    }

    private var startCommand: String { ServiceStart.command(isSystem: isSystem) }
    private var restartCommand: String { ServiceStart.restart(isSystem: isSystem) }

    private func lookAtService() {
        guard connection != nil else {
            return diagnosis.add("service", .unknown, "without a bus, it is unknown whether sessiond runs")
        }
        guard let owner = askBus("GetNameOwner", [.string(BusName.service)])?.stringValue else {
            return tellAbsence()
        }
        let credentials = try? connection?.credentialsAndWait(of: owner, timeout: Self.patience)
        process = credentials?.processID
        let number = process.map { " (process \($0))" } ?? ""
        let program = process.flatMap(executable)
        let answer = ask(
            BusName.service, ObjectPath.root, StandardName.properties, "GetAll", [.string(BusName.manager)])
        switch answer {
        case .success(let values):
            service = values.first?.asProperties ?? [:]
            let theirs = service["Version"]?.stringValue ?? "unknown"
            if theirs != version {
                diagnosis.add(
                    "service", .warning, "sessiond \(theirs)\(number) runs, but sessionctl is of version \(version)",
                    remedy: restartCommand)
            } else {
                diagnosis.add("service", .ok, "sessiond \(theirs)\(number) runs")
            }
        case .failure(let failure)
        where [Failure.Name.noReply, "org.freedesktop.DBus.Error.Timeout"].contains(failure.name):
            let silent = SilentService(process: process)
            diagnosis.add("service", .error, silent.text, remedy: silent.remedy)
        case .failure(let failure):
            let who = program.map { "the program \($0)" } ?? "another program"
            diagnosis.add(
                "service", .error,
                "\(who)\(number) owns \(BusName.service) and is not sessiond: \(failure.message)",
                remedy: process.map { "kill \($0)" })
        }
        if let program, program.split(separator: "/").last.map({ !$0.hasPrefix("sessiond") }) ?? false,
            !service.isEmpty
        {
            diagnosis.add("service", .warning, "its program is \(program)")
        }
    }

    private func tellAbsence() {
        let names = askBus("ListActivatableNames")?.stringsValue
        if settingsAreWrong {
            return diagnosis.add(
                "service", .error, "sessiond does not run, and cannot start before its settings are corrected")
        }
        switch names?.contains(BusName.service) {
        case true:
            switch unit?.condition {
            case .masked, .broken, .failed:
                return diagnosis.add(
                    "service", .error, "sessiond does not run, because of its unit",
                    remedy: unit?.remedy(system: isSystem))
            case .missing, .usable, nil: break
            }
            diagnosis.add("service", .ok, "sessiond does not run; the bus starts it when it is first asked")
        case false:
            diagnosis.add(
                "service", .error, "sessiond does not run, and the bus cannot start it", remedy: startCommand)
        case nil: diagnosis.add("service", .unknown, "the bus does not say whether sessiond runs")
        }
    }

    private func executable(of process: UInt32) -> String? {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/\(process)/exe", &buffer, buffer.count - 1)
        return count > 0 ? String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil
    }

    // MARK: The unit

    private func lookAtUnit() {
        guard let unit else {
            return diagnosis.add("unit", .unknown, "no systemd answers on this bus; nothing restarts sessiond")
        }
        let remedy = unit.remedy(system: isSystem)
        switch unit.condition {
        case .missing:
            diagnosis.add(
                "unit", service.isEmpty ? .warning : .ok, "systemd has no sessiond.service; nothing restarts sessiond")
        case .failed:
            let why = settingsAreWrong ? "; correct the settings first" : ""
            diagnosis.add("unit", .error, "sessiond.service has failed" + why, remedy: remedy)
        case .masked: diagnosis.add("unit", .error, "sessiond.service is masked: nothing can start it", remedy: remedy)
        case .broken: diagnosis.add("unit", .error, "sessiond.service is \(unit.load)", remedy: remedy)
        case .usable:
            let state = unit.file.isEmpty ? "" : " and \(unit.file)"
            diagnosis.add("unit", .ok, "sessiond.service is \(unit.active)" + state)
        }
    }

    // MARK: The settings

    private func lookAtSettings() {
        let files = SettingsFiles(isSystem: isSystem)
        let errors = files.errors
        settingsAreWrong = !errors.isEmpty
        for error in errors {
            let file = files.paths.first { error.message.hasPrefix($0 + ":") }
            diagnosis.add(
                "settings", .error,
                error.message
                    + "; sessiond does not start with this file; a running sessiond keeps its old settings",
                remedy: file.map { "${EDITOR:-nano} \($0)" })
        }
        if errors.isEmpty, let read = try? files.read() {
            settings = read
            let paths = files.paths
            diagnosis.add("settings", .ok, paths.isEmpty ? "no file; the defaults" : Wording.list(paths))
        }
        for file in files.hidden {
            diagnosis.add("settings", .warning, "\(file) is not read, because \(files.paths.first ?? "another") is")
        }
    }

    // MARK: The sound server and who else decides

    private func lookAtServer() {
        let isConnected = service["ServerConnected"]?.boolValue
        if isSystem { return lookAtServerOfTheSystem(isConnected) }
        switch ServerProbe.look(on: loop, patience: Self.patience) {
        case .unreachable:
            diagnosis.add(
                "sound server", .error, "none is running, or it does not accept this user",
                remedy: SoundServerAdvice.command("start"))
            tellNeighbours(nil)
        case .silent:
            diagnosis.add(
                "sound server", .error, "it is there and does not answer", remedy: SoundServerAdvice.command("restart"))
            tellNeighbours(nil)
        case .found(let server): tell(server, isConnected)
        }
    }

    private func lookAtServerOfTheSystem(_ isConnected: Bool?) {
        switch isConnected {
        case true:
            diagnosis.add("sound server", .ok, ServerLabel(service["ServerName"]?.stringValue ?? "").text)
        case false:
            diagnosis.add(
                "sound server", .error, "the service is not connected to any", remedy: SoundServerAdvice.systemCommand)
        case nil:
            diagnosis.add(
                "sound server", .unknown, "only the service knows which one it uses, and it does not run")
        }
        tellNeighbours(nil)
    }

    private func tell(_ server: ServerProbe, _ isConnected: Bool?) {
        let label = ServerLabel(server.name, version: server.version)
        var words = [label.text]
        if let manager = server.wirePlumber { words.append("WirePlumber \(manager)") }
        let name = words.joined(separator: ", ")
        if isConnected == false {
            diagnosis.add(
                "sound server", .error, "\(name) answers, but sessiond is not connected to it", remedy: restartCommand)
        } else {
            diagnosis.add("sound server", .ok, name)
        }
        if server.outputs.isEmpty {
            diagnosis.add("output", .warning, "none is available; nothing can be heard", remedy: "pactl list cards")
        } else {
            diagnosis.add("output", .ok, Wording.list(server.outputs))
        }
        if server.inputs.isEmpty {
            diagnosis.add(
                "recordings", .warning,
                "no input is available; "
                    + (label.recordsOutputs ? "PulseAudio records what its output plays" : "recordings have no sound"),
                remedy: "pactl list cards")
        } else {
            diagnosis.add("recordings", .ok, "from \(Wording.list(server.inputs))")
        }
        if let (label, better) = server.monitor {
            diagnosis.add(
                "default input", .warning, "\(label) records what an output plays, not a microphone",
                remedy: "pactl set-default-source \(better)")
        }
        streams = server.streams
        tellNeighbours(server.policies)
    }

    // MARK: What plays and records

    /// What the service knows of the streams, and what it does not.
    private func lookAtStreams() {
        let answer = ask(BusName.service, ObjectPath.root, BusName.manager, "ListStreams", [])
        guard service["ServerConnected"]?.boolValue == true, let list = (try? answer.get())?.first?.arrayValue else {
            return
        }
        let known = list.compactMap(StreamInfo.init)
        let strangers = known.filter(\.isStranger)
        for stream in strangers {
            diagnosis.add("streams", stream.isSurprise ? .warning : .ok, stream.sentence)
        }
        let ids = Set(known.map { AudioStream.ID($0.isPlayback ? .playback : .record, $0.number) })
        var unseen = (streams ?? [:]).filter { !ids.contains($0.key) }
        // It may have ended meanwhile.
        if !unseen.isEmpty, case .found(let now) = ServerProbe.look(on: loop, patience: Self.patience) {
            unseen = unseen.filter { now.streams[$0.key] != nil }
        }
        for (id, name) in unseen.sorted(by: { $0.key.number < $1.key.number }) {
            let does = id.direction == .playback ? "plays" : "records"
            diagnosis.add(
                "streams", .warning,
                "\(name.isEmpty ? "a program" : name) \(does), and sessiond does not see it", remedy: restartCommand)
        }
        if strangers.isEmpty, unseen.isEmpty { diagnosis.add("streams", .ok, "all that plays has a session") }
    }

    /// A service that worked all the time is caught in a loop, or many clients use it.
    private func lookAtProcessor() {
        let answer = ask(BusName.service, ObjectPath.root, BusName.manager, "LastMinute", [])
        guard let used = (try? answer.get())?.first?.asProperties, let wakeUps = used["wake-ups"]?.uint64Value,
            let processor = used["processor-usec"]?.uint64Value
        else { return }
        if processor >= Self.muchWork || wakeUps >= Self.manyWakeUps {
            let seconds = (Double(processor) / 100_000).rounded() / 10
            diagnosis.add(
                "processor", .warning,
                "sessiond used it for \(seconds) s in the last minute, and woke up \(wakeUps) times; "
                    + "sessionctl history shows what happened. If nothing did, restart it", remedy: restartCommand)
        } else {
            diagnosis.add("processor", .ok, "sessiond hardly used it in the last minute")
        }
    }

    /// Microseconds of a minute.
    private static let muchWork: UInt64 = 3_000_000
    /// In a minute. A prompt that ducks another program costs about thirty.
    private static let manyWakeUps: UInt64 = 3_000

    /// `policies`: the policies that this program found; nil if it cannot read the server, so only the service knows
    /// them.
    private func tellNeighbours(_ policies: Set<ServerPolicy>?) {
        var seen: [String: String] = [:]
        for policy in policies ?? [] { seen[policy.rawValue] = "" }
        for neighbour in service["Neighbours"]?.arrayValue?.compactMap(\.asProperties) ?? [] {
            seen[neighbour["name"]?.stringValue ?? ""] = neighbour["does"]?.stringValue ?? ""
        }
        if !isSystem, askBus("NameHasOwner", [.string("org.kde.kdeconnect")])?.boolValue == true {
            seen["kdeconnect"] = seen["kdeconnect"] ?? ""
        }
        for (name, does) in seen.sorted(by: { $0.key < $1.key }) {
            var text = name + (does.isEmpty ? " decides, too" : " " + does)
            if [.roleCork, .roleDucking].contains(ServerPolicy(rawValue: name)) {
                text += "; after the next login it does again, unless its line in /etc/pulse/default.pa is removed"
            }
            diagnosis.add("neighbours", .warning, text, remedy: Self.remedy(against: name))
        }
        guard seen.isEmpty else { return }
        if policies == nil, service["ServerConnected"]?.boolValue != true {
            diagnosis.add("neighbours", .unknown, "most of them are part of the sound server, which cannot be asked")
        } else {
            diagnosis.add("neighbours", .ok, "no other program that is known to mute, duck or pause")
        }
    }

    /// The remedies of sessiond(8), section NEIGHBOURS.
    private static func remedy(against name: String) -> String {
        switch ServerPolicy(rawValue: name) {
        case .roleCork, .roleDucking: "pactl unload-module \(name)"
        case .wirePlumberRoles: "set streams = off in [adoption], or remove the role-based loopbacks of WirePlumber"
        case .wirePlumberPause: "wpctl settings --save linking.pause-playback false"
        case nil: "turn off 'Pause media during calls' in KDE Connect, or set pause = off in [mpris]"
        }
    }

    // MARK: Plugins, calls, files

    private func lookAtPlugins() {
        let (manifests, errors) = ManifestFiles(isSystem: isSystem).read()
        for error in errors {
            let file = String(error.prefix { $0 != ":" })
            diagnosis.add("plugins", .error, error, remedy: "${EDITOR:-nano} \(file)")
        }
        // The daemon first searches its own folder. This program is installed in the same one.
        let own = executable(of: process ?? UInt32(getpid())) ?? executable(of: UInt32(getpid())) ?? ""
        let folder = own.lastIndex(of: "/").map { String(own[..<$0]) }
        var working: [String] = []
        for manifest in manifests {
            let program = manifest.exec.first ?? ""
            if !PluginKind.all.contains(where: { $0.word == manifest.kind }) {
                let known = Wording.list(PluginKind.all.map(\.word))
                diagnosis.add(
                    "plugins", .warning,
                    "\(manifest.id) has the unknown kind '\(manifest.kind)', which only its own clients ask for; "
                        + "sessiond has \(known)")
            }
            if manifest.interface != PluginManifest.supportedInterface {
                diagnosis.add(
                    "plugins", .error,
                    "\(manifest.id) is for interface \(manifest.interface), sessiond has "
                        + "\(PluginManifest.supportedInterface); install a version for it")
            } else if ManifestFiles.executable(program, beside: folder) == nil {
                diagnosis.add(
                    "plugins", .error, "\(manifest.id): its program \(program) is not installed",
                    remedy: "install \(program)")
            } else {
                working.append(manifest.id)
            }
        }
        let running =
            service.isEmpty
            ? .failure(.disconnected) : ask(BusName.service, ObjectPath.root, BusName.plugins, "List", [])
        let kinds = Set(manifests.map(\.kind))
        // The others are in packages that many machines do not need.
        for kind in PluginKind.all where kind.package == PluginKind.player.package && !kinds.contains(kind.word) {
            diagnosis.add(
                "plugins", .warning, "none of the kind \(kind.word) is installed",
                remedy: "install \(kind.program) and its manifest")
        }
        for plugin in (try? running.get())?.first?.arrayValue?.compactMap(\.asProperties) ?? []
        where plugin["state"]?.stringValue == "crashed" {
            let name = plugin["id"]?.stringValue ?? ""
            working.removeAll { $0 == name }
            diagnosis.add("plugins", .warning, "\(name) has crashed: \(plugin["message"]?.stringValue ?? "")")
        }
        if !working.isEmpty { diagnosis.add("plugins", .ok, Wording.list(working)) }
    }

    /// How far the processes that read untrusted films and music are isolated. Tried in a child of this program, so it
    /// holds for this user.
    private func lookAtWorkers() {
        let parts = WorkerProcess.probe()
        guard parts.contains(.calls) else {
            return diagnosis.add(
                "workers", .warning,
                "the kernel has no seccomp filter: a film or a cover that attacks its decoder has the rights of this user",
                remedy: "install a kernel with CONFIG_SECCOMP_FILTER")
        }
        let always = "the processes that read films and music start no program, open no connection and reach no process"
        if parts.contains(.namespaces) {
            diagnosis.add("workers", .ok, always + ", and see no network")
        } else if isSystem {
            diagnosis.add("workers", .ok, always)
        } else {
            diagnosis.add(
                "workers", .warning,
                always + "; but they have no namespaces of their own, because this user may have none",
                remedy: Self.namespaceSwitches.first { access("/proc/sys/" + $0.path, F_OK) == 0 }.map {
                    "echo \($0.setting) | sudo tee /etc/sysctl.d/90-sessiond.conf && sudo sysctl --system"
                })
        }
    }

    /// The settings of kernels that refuse namespaces to ordinary users.
    private static let namespaceSwitches = [
        (
            path: "kernel/apparmor_restrict_unprivileged_userns",
            setting: "kernel.apparmor_restrict_unprivileged_userns=0"
        ),
        (path: "kernel/unprivileged_userns_clone", setting: "kernel.unprivileged_userns_clone=1"),
        (path: "user/max_user_namespaces", setting: "user.max_user_namespaces=10000"),
    ]

    private func lookAtCalls() {
        let adoption = settings.adoption
        guard adoption.streams != .off else {
            return diagnosis.add(
                "calls", .warning,
                "programs that do not use sessiond are not adopted; only calls that a client declares count",
                remedy: "set streams = calls in [adoption]")
        }
        let known = Settings.Adoption.knownCallPrograms.count
        let programs = adoption.callPrograms.isEmpty ? "" : ", and " + Wording.list(adoption.callPrograms)
        let labelled = "streams labelled as calls"
        let text =
            switch adoption.calls {
            case .off: "nothing counts as a call unless a client declares it"
            case .labelled: labelled + programs
            case .known:
                "\(labelled); known call programs (\(known) name patterns), while they record and play\(programs)"
            case .any: "\(labelled); any program that records and plays\(programs)"
            }
        diagnosis.add("calls", adoption.calls == .off ? .warning : .ok, text)
    }

    private func lookAtState() {
        if isSystem, getuid() != 0 {
            return diagnosis.add("state", .unknown, "only root sees the folders of the service")
        }
        let runtime = isSystem ? "/run/sessiond" : environment("XDG_RUNTIME_DIR")
        if let runtime {
            tellFolder(runtime + "/sessiond", "sessions survive a restart of sessiond")
        } else {
            diagnosis.add(
                "state", .warning, "XDG_RUNTIME_DIR is not set: sessions do not survive a restart of sessiond",
                remedy: "log in through systemd-logind, or set XDG_RUNTIME_DIR")
        }
        let home = environment("HOME").map { $0 + "/.local/state" }
        if let state = isSystem ? "/var/lib" : environment("XDG_STATE_HOME") ?? home {
            tellFolder(state + "/sessiond", "volumes are restored after a crash")
        }
    }

    /// `sessionctl record` writes a file without a path to the current folder.
    private func lookAtRecordingFolder() {
        let topic = "recording folder"
        guard let path = FileURI.currentFolder else {
            return diagnosis.add(topic, .warning, "the current folder no longer exists", remedy: "cd")
        }
        var disk = statvfs()
        guard access(path, W_OK | X_OK) == 0, statvfs(path, &disk) == 0 else {
            return diagnosis.add(
                topic, .warning,
                "\(path) cannot be written: \(String(cString: strerror(errno))); record to a file elsewhere",
                remedy: "cd")
        }
        let free = Double(disk.f_bavail) * Double(disk.f_frsize)
        let room = "\(path) can be written, and has \(Wording.size(free)) free: "
        let time = Wording.duration(UInt64(free / Self.bytesPerSecond * 1e6))
        if free < Self.leastFree {
            diagnosis.add(topic, .warning, room + "only \(time) of WAV", remedy: "df -h \(path)")
        } else {
            diagnosis.add(topic, .ok, room + "\(time) of WAV")
        }
    }

    /// The data rate of a recording by default: 44.1 kHz, two channels, 16 bits.
    private static let bytesPerSecond = 44_100.0 * 2 * 2
    /// Ten minutes.
    private static let leastFree = bytesPerSecond * 600

    /// Checks the folder or, if it does not exist yet, the nearest existing parent.
    private func tellFolder(_ path: String, _ purpose: String) {
        var folder = path
        while access(folder, F_OK) != 0, folder.contains("/"), folder != "/" {
            folder = String(folder[..<(folder.lastIndex(of: "/") ?? folder.startIndex)])
            if folder.isEmpty { folder = "/" }
        }
        var status = stat()
        guard stat(folder, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            return diagnosis.add("state", .error, "\(folder) is not a folder", remedy: "rm \(folder)")
        }
        let isOwn = folder == path
        if access(folder, W_OK) != 0 {
            diagnosis.add(
                "state", .error, "\(folder) cannot be written: \(String(cString: strerror(errno)))",
                remedy: isOwn ? "chmod u+rwx \(folder)" : "mkdir -p \(path)")
        } else if isOwn, !isSystem, status.st_uid != getuid() || status.st_mode & 0o022 != 0 {
            diagnosis.add(
                "state", .error, "others may write to \(folder), so sessiond does not use it",
                remedy: status.st_uid == getuid() ? "chmod 700 \(folder)" : "rm -r \(folder)")
        } else {
            diagnosis.add("state", .ok, "\(path): \(purpose)")
        }
    }
}
