import Enforcement
import Glibc
import PluginAPI
import Processes

/// The program of each stream: from the kernel if possible, else as stated by the client. Read once per stream.
struct ProgramReader {
    private var known: [AudioStream.ID: StreamFacts] = [:]
    private var privileges = Settings().privileges
    /// Whether programs of several users play here.
    private let isSystem: Bool
    /// The most bytes of a name that stands for a program, because it is also stored.
    private static let longestName = 255

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
        if !stream.isProgram, stream.eventID != nil {
            // A sound from the server's cache. The name is that of the program that stored it, which proves nothing.
            return StreamFacts(
                stream: stream, ancestry: [], user: user(of: nil), sandbox: nil,
                program: Program(
                    key: Program.eventSounds, name: stream.applicationName, names: [stream.applicationName],
                    mayCall: false, mayAlert: !isSystem && privileges.alert == .anyone, mayBeGuessed: false))
        }
        if let input = stream.inputName {
            // No program plays, but the user knows it by the name of the phone or the input.
            let name = input.prefix(bytes: ProgramReader.longestName)
            return StreamFacts(
                stream: stream, ancestry: [], user: user(of: nil), sandbox: nil,
                program: Program(
                    key: .name(name), name: name, names: [name], mayCall: false, mayAlert: false, mayBeGuessed: false))
        }
        guard stream.isProgram else {
            // One end of a loopback or a filter belongs to no program, except a telephone call (``Program/server``).
            return StreamFacts(stream: stream, ancestry: [], sandbox: nil, program: .server)
        }
        guard stream.processID != UInt32(bitPattern: getpid()) else {
            return StreamFacts(stream: stream, ancestry: [], sandbox: nil, program: nil)
        }
        let stated = stream.applicationName.behindPlugIn
        var names: Set<String> = [stream.applicationName, stated]
        for key in ["application.id", "application.process.binary"] {
            if let name = stream.properties[key] { names.insert(name) }
        }
        guard portal == nil || stream.isProcessVouched, let process = process(of: stream) else {
            let key =
                portal.map { Program.Key.sandbox($0) }
                ?? .name(stream.applicationName.prefix(bytes: ProgramReader.longestName))
            if let portal { names.insert(portal) }
            // A server passes on what clients state: that names a program, and gives it no rights.
            return StreamFacts(
                stream: stream, ancestry: [], user: user(of: nil), sandbox: portal,
                program: Program(
                    key: key, name: stated, names: names, mayCall: false, mayAlert: false, mayBeGuessed: !isSystem))
        }
        var sandbox = portal
        if case .application(let id, _) = process.confinement { sandbox = id }
        if let sandbox { names.insert(sandbox) }
        let executable = process.executable
        if let executable { names.insert(executable) }
        names.formUnion(process.names.map { String($0.prefix(bytes: ProgramReader.longestName)) })
        let name = stated.isEmpty ? executable ?? "process \(process.id)" : stated
        // With several users, a name is no evidence: a guess gives the same rights as a declaration.
        let mayCall = admits(privileges.call, process, of: stream)
        return StreamFacts(
            stream: stream, ancestry: process.ancestry, user: user(of: process), sandbox: sandbox,
            program: Program(
                key: sandbox.map { .sandbox($0) } ?? .process(process.root), name: name, names: names,
                mayCall: mayCall, mayAlert: admits(privileges.alert, process, of: stream),
                mayBeGuessed: !isSystem || mayCall))
    }

    /// If all programs belong to one user, a process that cannot be inspected belongs to that user, too.
    private func user(of process: Process?) -> UInt32? { process?.userID ?? (isSystem ? nil : geteuid()) }

    /// A list in the settings must not admit a program that only claims to be listed: a server without the process id
    /// from the kernel has only the client's statement. With several users, `any` means root, the daemon's user and the
    /// group audio.
    private func admits(_ holder: Settings.Privileges.Holder, _ process: Process, of stream: AudioStream) -> Bool {
        switch holder {
        case .only: stream.isProcessVouched && holder.admits(process, isShared: isSystem)
        case .anyone:
            (!isSystem || stream.isProcessVouched && process.isTrusted) && holder.admits(process, isShared: isSystem)
        }
    }

    /// The process that plays or records; nil if unknown.
    ///
    /// PipeWire has the id from the kernel. PulseAudio has what the client states. From a sandbox with its own process
    /// namespace, that is the id of another process here, or of none; then the process is searched in all sandboxes, by
    /// the executable that the client states.
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
}

extension String {
    /// The program's name in the one that ALSA's plug-in for the sound server states for it.
    fileprivate var behindPlugIn: String {
        guard hasPrefix("ALSA plug-in ["), hasSuffix("]") else { return self }
        return String(dropFirst("ALSA plug-in [".count).dropLast())
    }
}

extension AudioStream {
    /// The id of the sandboxed application, as PipeWire passes it on; nil: none. A client outside of a sandbox can also
    /// state one.
    fileprivate var sandbox: String? {
        for key in ["pipewire.access.portal.app_id", "pipewire.snap.id"] {
            if let id = properties[key], !id.isEmpty { return id }
        }
        return nil
    }
}

extension StreamFacts {
    /// Stream numbers may be reused, by another server or after 2^32 streams.
    fileprivate func isAbout(_ other: AudioStream) -> Bool {
        stream.processID == other.processID && stream.applicationName == other.applicationName
            && stream.inputName == other.inputName
    }

    fileprivate func showing(_ stream: AudioStream) -> StreamFacts {
        StreamFacts(stream: stream, ancestry: ancestry, user: user, sandbox: sandbox, program: program)
    }
}
