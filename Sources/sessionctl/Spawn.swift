import Glibc

/// Programs that we start.
enum Spawn {
    /// Where in PATH a program is; throws the shell's 127 or 126 where there is none to run.
    static func find(_ name: String) throws -> String {
        var isSeen = false
        func isProgram(_ path: String) -> Bool {
            var status = stat()
            guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return false }
            isSeen = true
            return access(path, X_OK) == 0
        }
        let folders = getenv("PATH").map { String(cString: $0) } ?? "/usr/local/bin:/usr/bin:/bin"
        let places =
            name.contains("/")
            ? [name]
            : folders.split(separator: ":", omittingEmptySubsequences: false).map {
                $0.isEmpty ? name : $0 + "/" + name
            }
        if !name.isEmpty, let path = places.first(where: isProgram) { return path }
        throw isSeen
            ? Complaint(code: 126, message: "\(name.escaped) may not be executed")
            : Complaint(code: 127, message: "\(name.escaped): command not found")
    }

    /// Starts a program with our standard streams but those of `descriptors`, and returns its process.
    ///
    /// - Parameter ownGroup: whether it leads a process group of its own.
    static func start(
        _ arguments: [String], descriptors: [(from: Int32, to: Int32)] = [], ownGroup: Bool
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (from, to) in descriptors { posix_spawn_file_actions_adddup2(&actions, from, to) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // What we ignore ourselves is not theirs to inherit; handlers go by themselves.
        var defaults = sigset_t()
        sigemptyset(&defaults)
        sigaddset(&defaults, SIGPIPE)
        sigaddset(&defaults, SIGTTOU)
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        posix_spawnattr_setpgroup(&attributes, 0)
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        let flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | (ownGroup ? POSIX_SPAWN_SETPGROUP : 0)
        posix_spawnattr_setflags(&attributes, Int16(flags))
        let words = arguments.map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var process: pid_t = 0
        let status = posix_spawn(&process, arguments[0], &actions, &attributes, words, environ)
        guard status == 0 else {
            throw Complaint(
                code: status == ENOENT ? 127 : 126,
                message: "\(arguments[0].escaped): \(String(cString: strerror(status)))")
        }
        return process
    }

    /// A pipe that no program inherits by accident: to read from, to write to.
    static func pipe() throws -> (read: Int32, write: Int32) {
        var ends: [Int32] = [-1, -1]
        guard Glibc.pipe(&ends) == 0 else { throw Complaint.refused("pipe: \(String(cString: strerror(errno)))") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }
}

/// What became of a child process.
enum ChildChange {
    /// With the code that a shell would report: 128 and the signal's number where one ended it.
    case ended(code: Int32)
    case stopped(signal: Int32)
    case continued

    /// The next change of that child since last asked; nil where there is none (`waitid`).
    static func next(of process: pid_t) -> ChildChange? {
        var status: Int32 = 0
        guard waitpid(process, &status, WNOHANG | WUNTRACED | 8 /* WCONTINUED */) == process else { return nil }
        if status == 0xFFFF { return .continued }
        if status & 0xFF == 0x7F { return .stopped(signal: status >> 8 & 0xFF) }
        return .ended(code: status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + (status & 0x7F))
    }
}
