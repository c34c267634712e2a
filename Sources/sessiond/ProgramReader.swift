import Enforcement
import Glibc
import PluginAPI

/// Who plays each stream: what it says of itself, where the kernel does not know better. Read once per stream's life.
struct ProgramReader {
    private var known: [AudioStream.ID: StreamFacts] = [:]
    private var privileges = Settings().privileges
    /// Whether several users' programs play here.
    private let isSystem: Bool

    init(isSystem: Bool) { self.isSystem = isSystem }

    /// The streams with their programs, in the server's order.
    mutating func facts(_ streams: [AudioStream], _ privileges: Settings.Privileges) -> [StreamFacts] {
        if privileges != self.privileges {
            known = [:]
            self.privileges = privileges
        }
        var result: [AudioStream.ID: StreamFacts] = [:]
        let facts = streams.map { stream in
            let facts = known[stream.id].flatMap { $0.isAbout(stream) ? $0.showing(stream) : nil } ?? read(stream)
            result[stream.id] = facts
            return facts
        }
        known = result
        return facts
    }

    mutating func forget() { known = [:] }

    private func read(_ stream: AudioStream) -> StreamFacts {
        let portal = stream.sandbox
        guard stream.isProgram else {
            // One end of a loopback or a filter: nobody's, but for a telephone call (``Program/server``).
            return StreamFacts(stream: stream, ancestry: [], sandbox: nil, program: .server)
        }
        guard stream.processID != UInt32(bitPattern: getpid()) else {
            return StreamFacts(stream: stream, ancestry: [], sandbox: nil, program: nil)
        }
        var names: Set<String> = [stream.applicationName]
        for key in ["application.id", "application.process.binary"] {
            if let name = stream.properties[key] { names.insert(name) }
        }
        guard portal == nil, let process = process(of: stream) else {
            let key = portal.map { Program.Key.sandbox($0) } ?? .name(stream.applicationName)
            if let portal { names.insert(portal) }
            return StreamFacts(
                stream: stream, ancestry: [], user: user(of: nil), sandbox: portal,
                program: Program(
                    key: key, name: stream.applicationName, names: names, mayCall: admits(privileges.call, portal),
                    mayAlert: admits(privileges.alert, portal)))
        }
        var sandbox: String?
        if case .application(let id) = process.confinement {
            sandbox = id
            names.insert(id)
        }
        let executable = process.executable
        if let executable {
            names.insert(executable)
            if let file = executable.split(separator: "/").last { names.insert(String(file)) }
        }
        let name = stream.applicationName.isEmpty ? executable ?? "process \(process.id)" : stream.applicationName
        return StreamFacts(
            stream: stream, ancestry: process.ancestry, user: user(of: process), sandbox: sandbox,
            program: Program(
                key: sandbox.map { .sandbox($0) } ?? .process(process.root), name: name, names: names,
                mayCall: admits(privileges.call, process, of: stream),
                mayAlert: admits(privileges.alert, process, of: stream)))
    }

    /// Where everybody is the same person, who cannot be seen is that one, too.
    private func user(of process: Process?) -> UInt32? { process?.userID ?? (isSystem ? nil : geteuid()) }

    /// A list names programs, and is not for whoever says that it is one of them: a server that has a stream's process
    /// from its client alone has its client's word. `any` is anybody who looks after the machine, where it has several
    /// users.
    private func admits(_ holder: Settings.Privileges.Holder, _ process: Process, of stream: AudioStream) -> Bool {
        switch holder {
        case .only: stream.isProcessVouched && holder.admits(process)
        case .anyone: (!isSystem || stream.isProcessVouched && process.isTrusted) && holder.admits(process)
        }
    }

    /// The process that plays or records; nil where it is unknown.
    ///
    /// PipeWire has the number from the kernel. PulseAudio has what the client says, which inside a sandbox with process
    /// numbers of its own is the number of another process here, or of none: the one that runs what the client says it
    /// runs is looked for in all sandboxes then.
    private func process(of stream: AudioStream) -> Process? {
        guard let process = stream.processID.map(Process.init) else { return nil }
        if stream.isProcessVouched { return process.userID == nil ? nil : process }
        let binary = stream.properties["application.process.binary"]
        if let binary, process.executableName != binary {
            let sandboxed = Process.sandboxed(number: process.id, running: binary, under: geteuid())
            // Two sandboxes of the same application are one program.
            if let first = sandboxed.first, sandboxed.allSatisfy({ $0.isLike(first) }) { return first }
        }
        return process.userID == nil ? nil : process
    }

    private func admits(_ holder: Settings.Privileges.Holder, _ application: String?) -> Bool {
        guard case .only(let names) = holder, let application else { return false }
        return names.contains(application)
    }
}

extension AudioStream {
    /// The id of the sandboxed application, as PipeWire has it from the kernel; nil where it is in no sandbox, or the
    /// server does not know.
    fileprivate var sandbox: String? {
        for key in ["pipewire.access.portal.app_id", "pipewire.snap.id"] {
            if let id = properties[key], !id.isEmpty { return id }
        }
        return nil
    }
}

extension StreamFacts {
    /// A number may be used again, by another server or after 2^32 streams.
    fileprivate func isAbout(_ other: AudioStream) -> Bool {
        stream.processID == other.processID && stream.applicationName == other.applicationName
    }

    fileprivate func showing(_ stream: AudioStream) -> StreamFacts {
        StreamFacts(stream: stream, ancestry: ancestry, user: user, sandbox: sandbox, program: program)
    }
}
