import CIsolation
import CLinux
import Glibc

/// The reason why a program could not be started.
public struct SpawnFailure: Error, CustomStringConvertible {
    /// The error of `posix_spawn`: `ENOENT`, `EACCES`, `EAGAIN` …
    public let errorNumber: Int32

    /// The text of `strerror`.
    public var description: String { String(cString: strerror(errorNumber)) }
}

/// Starts programs.
public enum Spawn {
    /// Starts a program with the environment and standard streams of this process, except for `environment` and
    /// `descriptors`. Returns its process; the caller must wait for it (``ChildChange/next(of:)``).
    ///
    /// - Parameters:
    ///   - program: its path; it is not searched in PATH.
    ///   - arguments: without the program itself.
    ///   - environment: changed variables, by name.
    ///   - descriptors: the descriptors of the program, and the descriptors of this process that they are copies of.
    ///   - ownGroup: whether it gets a new process group, so that Control-C in the terminal does not reach it.
    public static func start(
        _ program: String, _ arguments: [String], environment: [String: String] = [:],
        descriptors: [(from: Int32, to: Int32)] = [], ownGroup: Bool
    ) throws(SpawnFailure) -> Int32 {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (from, to) in descriptors { posix_spawn_file_actions_adddup2(&actions, from, to) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // The program must not inherit ignored signals; handlers are reset anyway.
        var defaults = sigset_t()
        sigemptyset(&defaults)
        for number in FailedWrites.signals + [SIGTTOU] { sigaddset(&defaults, number) }
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        posix_spawnattr_setpgroup(&attributes, 0)
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        let flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | (ownGroup ? POSIX_SPAWN_SETPGROUP : 0)
        posix_spawnattr_setflags(&attributes, Int16(flags))
        let words = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        let own = environment.map { strdup("\($0)=\($1)") }
        defer { for variable in own { free(variable) } }
        var process: Int32 = 0
        let status = posix_spawn(
            &process, program, &actions, &attributes, words, inherited(but: environment.keys) + own + [nil])
        guard status == 0 else { throw SpawnFailure(errorNumber: status) }
        return process
    }

    /// Starts an untrusted program in a new session: with the environment of this process, without a controlling terminal,
    /// without any capability, without a way to get more privileges (`PR_SET_NO_NEW_PRIVS`), and with limits.
    ///
    /// - Parameters:
    ///   - openFiles: its limits of open files; nil: those of this process.
    ///   - output: becomes its standard output and error, and its standard input is empty; nil: it has the streams of this
    ///     process.
    ///   - isApart: whether it gets user and process namespaces of its own, where the kernel allows it. All processes that
    ///     it starts end with it, and it cannot name any other.
    public static func startConfined(
        _ program: String, _ arguments: [String], environment: [String: String] = [:], openFiles: OpenFiles?,
        output: Int32? = nil, isApart: Bool = false
    ) throws(SpawnFailure) -> Int32 {
        let words = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        let own = environment.map { strdup("\($0)=\($1)") }
        defer { for variable in own { free(variable) } }
        var start = isolation_start()
        start.memory = largestMemory
        start.output = output ?? -1
        start.has_namespaces = isApart ? 1 : 0
        if let openFiles {
            start.files = openFiles.limits
        } else {
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &start.files)
        }
        let process = isolation_start_program(program, words, inherited(but: environment.keys) + own + [nil], &start)
        guard process > 0 else { throw SpawnFailure(errorNumber: errno) }
        return process
    }

    /// The largest private memory of an untrusted program, in bytes: more than any media need.
    private static let largestMemory: rlim_t = 2 << 30

    /// All other variables of this process, unchanged; they need not be UTF-8.
    private static func inherited(but names: some Collection<String>) -> [UnsafeMutablePointer<CChar>?] {
        var variables: [UnsafeMutablePointer<CChar>?] = []
        var next = environ
        while let variable = next.pointee {
            if !names.contains(where: { strncmp(variable, $0 + "=", $0.utf8.count + 1) == 0 }) {
                variables.append(variable)
            }
            next += 1
        }
        return variables
    }
}
