import Enforcement
import Glibc
import Installation
import PluginAPI
import Processes

/// The kernel's data of a process. A process cannot forge it.
struct Process {
    let id: UInt32

    /// Its user; nil if it is gone.
    var userID: UInt32? {
        var status = stat()
        return stat("/proc/\(id)", &status) == 0 ? status.st_uid : nil
    }

    /// Its parent; nil if it is gone or is the first process.
    var parent: UInt32? {
        guard let bytes = readFile("/proc/\(id)/stat", limit: 4096) else { return nil }
        // The command may contain spaces and parentheses: the fields start after the last one.
        guard let end = bytes.lastIndex(of: UInt8(ascii: ")")) else { return nil }
        let fields = bytes[(end + 1)...].split(separator: UInt8(ascii: " "))
        guard fields.count > 1, let number = UInt32(String(decoding: fields[1], as: UTF8.self)) else { return nil }
        return number == 0 ? nil : number
    }

    /// When it started, in clock ticks since boot: together with the id it identifies the process.
    var startTime: UInt64? {
        guard let bytes = readFile("/proc/\(id)/stat", limit: 4096),
            let end = bytes.lastIndex(of: UInt8(ascii: ")"))
        else { return nil }
        let fields = bytes[(end + 1)...].split(separator: UInt8(ascii: " "))
        return fields.count > 19 ? UInt64(String(decoding: fields[19], as: UTF8.self)) : nil
    }

    /// The absolute path of its executable; nil if it may not be read.
    var executable: String? {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = Capabilities.looking { readlink("/proc/\(id)/exe", &buffer, buffer.count - 1) }
        guard count > 0 else { return nil }
        return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The file name of its executable; nil if it may not be read.
    var executableName: String? { executable?.split(separator: "/").last.map(String.init) }

    /// The names by which it was started, as the process itself may have changed them: the kernel's name of it, which has at
    /// most 15 bytes, and the first argument with its file name. A link, such as parec, is not resolved here.
    private var startedNames: Set<String> {
        var names: Set<String> = []
        if let name = text("comm") { names.insert(String(name.prefix { $0 != "\n" })) }
        if let command = text("cmdline")?.prefix(while: { $0 != "\0" }) {
            names.insert(String(command))
            if let file = command.split(separator: "/").last { names.insert(String(file)) }
        }
        names.remove("")
        return names
    }

    /// Those, and the path and file name of its executable: the names by which settings may list it.
    var names: Set<String> {
        var names = startedNames
        if let executable {
            names.insert(executable)
            if let file = executable.split(separator: "/").last { names.insert(String(file)) }
        }
        return names
    }

    /// The processes of that user that have that id inside the process namespace of a sandbox (`NSpid` of
    /// proc_pid_status(5)) and run a file of that name; oldest first.
    static func sandboxed(number: UInt32, running name: String, under user: UInt32) -> [Process] {
        var found: [Process] = []
        for text in namesIn("/proc") {
            // First what costs little: a desktop has hundreds of processes.
            guard let process = UInt32(text).map(Process.init), process.userID == user, process.executableName == name,
                process.innermostID == number
            else { continue }
            found.append(process)
        }
        return found.sorted { $0.id < $1.id }
    }

    /// Its id in the innermost process namespace, if that is not ours; nil: it has no other id.
    private var innermostID: UInt32? {
        guard let status = text("status") else { return nil }
        for line in status.split(separator: "\n") where line.hasPrefix("NSpid:") {
            let numbers = line.split { $0 == "\t" || $0 == " " }.dropFirst()
            return numbers.count > 1 ? numbers.last.flatMap { UInt32($0) } : nil
        }
        return nil
    }

    /// Whether both are of one application in the same kind of sandbox.
    func isLike(_ other: Process) -> Bool {
        switch (confinement, other.confinement) {
        case (.application(let one, let its), .application(let two, let others)): one == two && its == others
        case (.none, _), (.application, _), (.hidden, _), (.gone, _): id == other.id
        }
    }

    /// Whether it belongs to the daemon's user, root or the group audio.
    var isTrusted: Bool {
        guard let user = userID, let status = text("status") else { return false }
        var groups: [UInt32] = []
        for line in status.split(separator: "\n") where line.hasPrefix("Groups:") {
            groups += line.dropFirst("Groups:".count).split(separator: " ").compactMap { UInt32($0.filter(\.isNumber)) }
        }
        return Callers.areTrusted(user, groups)
    }

    var confinement: Sandbox { Sandbox(of: id) }

    private func text(_ file: String) -> String? {
        Capabilities.looking { readFile("/proc/\(id)/\(file)", limit: 65536) }
            .map { String(decoding: $0, as: UTF8.self) }
    }

    /// The process and its ancestors, as far as systemd treats them as one application: programs that a desktop
    /// starts do not belong to the desktop.
    var ancestry: [UInt32] {
        var chain = [id]
        let unit = applicationUnit
        // A limit above any real depth, in case the tree changes while it is read.
        while chain.count < 64, let parent = Process(id: chain[chain.count - 1]).parent, parent > 1,
            Process(id: parent).applicationUnit == unit
        {
            chain.append(parent)
        }
        return chain
    }

    /// The first process of the program: the highest ancestor that runs the same executable, and is the same application for
    /// systemd. An interpreter runs many programs: one that it runs for another is a program of its own.
    var root: UInt32 {
        guard let executable else { return id }
        let (file, unit) = (startedFile, applicationUnit)
        var root = self
        for _ in 0..<64 {
            guard let id = root.parent, id > 1 else { break }
            let parent = Process(id: id)
            guard parent.executable == executable, parent.applicationUnit == unit else { break }
            if let file, let other = parent.startedFile, other != file { break }
            root = parent
        }
        return root.id
    }

    /// The file that it was started with, such as the script of an interpreter: the first argument that is no option, if
    /// there is such a file. Its links are resolved.
    private var startedFile: String? {
        let arguments = text("cmdline")?.split(separator: "\0").dropFirst() ?? []
        guard let first = arguments.first(where: { !$0.hasPrefix("-") }) else { return nil }
        let path = first.hasPrefix("/") ? String(first) : "/proc/\(id)/cwd/\(first)"
        return Capabilities.looking {
            guard let real = realpath(path, nil) else { return nil }
            defer { free(real) }
            return String(cString: real)
        }
    }

    private var applicationUnit: String? { text("cgroup").flatMap(Confinement.applicationUnit(groups:)) }
}

/// The absolute path with links resolved; the path itself if that fails.
func resolved(_ path: String) -> String {
    guard path.hasPrefix("/"), let real = realpath(path, nil) else { return path }
    defer { free(real) }
    return String(cString: real)
}

extension Settings.Privileges.Holder {
    /// Whether the process may use the class.
    ///
    /// A sandbox must be proved, because it gives a right here. A file in it is a proof only if all programs belong to
    /// one user (`isShared` is false): they could run the listed application as well.
    func admits(_ process: Process, isShared: Bool) -> Bool {
        switch (process.confinement, self) {
        case (.hidden, _), (.gone, _): return false
        case (.none, .anyone): return true
        case (.none, .only(let names)):
            // A program may be listed by a link to it, such as /usr/bin/python3.
            guard let executable = process.executable else { return false }
            return names.contains { resolved($0) == executable }
        case (.application, .anyone): return false
        case (.application(let application, .label), .only(let names)): return names.contains(application)
        case (.application(let application, .file), .only(let names)): return !isShared && names.contains(application)
        case (.application(_, .controlGroup), .only): return false
        }
    }
}
