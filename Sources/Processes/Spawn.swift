import Glibc

/// Why a program was not started.
public struct SpawnFailure: Error, CustomStringConvertible {
    /// What `posix_spawn` answered: `ENOENT`, `EACCES`, `EAGAIN` …
    public let errorNumber: Int32

    /// As `strerror` says it.
    public var description: String { String(cString: strerror(errorNumber)) }
}

/// Starting programs.
public enum Spawn {
    /// Starts a program, with our environment and standard streams but those of `descriptors`, and returns its process,
    /// which is the caller's to wait for (``ChildChange/next(of:)``).
    ///
    /// - Parameters:
    ///   - program: its path; PATH is not looked through.
    ///   - arguments: without the program itself.
    ///   - descriptors: which of ours are which of its own.
    ///   - ownGroup: whether it leads a process group of its own, out of the reach of the terminal's control-C.
    public static func start(
        _ program: String, _ arguments: [String], descriptors: [(from: Int32, to: Int32)] = [], ownGroup: Bool
    ) throws(SpawnFailure) -> Int32 {
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
        let words = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var process: Int32 = 0
        let status = posix_spawn(&process, program, &actions, &attributes, words, environ)
        guard status == 0 else { throw SpawnFailure(errorNumber: status) }
        return process
    }
}
