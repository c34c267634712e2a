import Enforcement
import Glibc
import PluginAPI

/// Who plays each stream: what it says of itself, where the kernel does not know better. Read once per stream's life.
struct ProgramReader {
    private var known: [AudioStream.ID: StreamFacts] = [:]
    private var privileges = Settings().privileges

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
        let portal = stream.properties["pipewire.access.portal.app_id"].flatMap { $0.isEmpty ? nil : $0 }
        guard let process = stream.processID.map(Process.init), process.id != UInt32(bitPattern: getpid()) else {
            return StreamFacts(stream: stream, ancestry: [], sandbox: portal, program: nil)
        }
        var names: Set<String> = [stream.applicationName]
        for key in ["application.id", "application.process.binary"] {
            if let name = stream.properties[key] { names.insert(name) }
        }
        // In a sandbox the number is one of its own, and means another process here, or none.
        guard portal == nil, process.userID != nil else {
            let key = portal.map { Program.Key.sandbox($0) } ?? .name(stream.applicationName)
            if let portal { names.insert(portal) }
            return StreamFacts(
                stream: stream, ancestry: [], sandbox: portal,
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
            stream: stream, ancestry: process.ancestry, sandbox: sandbox,
            program: Program(
                key: sandbox.map { .sandbox($0) } ?? .process(process.root), name: name, names: names,
                mayCall: privileges.call.admits(process), mayAlert: privileges.alert.admits(process)))
    }

    private func admits(_ holder: Settings.Privileges.Holder, _ application: String?) -> Bool {
        guard case .only(let names) = holder, let application else { return false }
        return names.contains(application)
    }
}

extension StreamFacts {
    /// A number may be used again, by another server or after 2^32 streams.
    fileprivate func isAbout(_ other: AudioStream) -> Bool {
        stream.processID == other.processID && stream.applicationName == other.applicationName
    }

    fileprivate func showing(_ stream: AudioStream) -> StreamFacts {
        StreamFacts(stream: stream, ancestry: ancestry, sandbox: sandbox, program: program)
    }
}
