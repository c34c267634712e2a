import Foundation

/// A shell that outlives the test process by a moment. It kills the children and removes the folders that the tests
/// left.
///
/// PR_SET_PDEATHSIG does not work here: it acts when the thread that started the child ends, and test threads end all
/// the time.
final class Reaper: Sendable {
    static let shared = Reaper()

    private let pipe: Int32

    /// The script uses `kill -s`, because dash allows no `--` after `-KILL`.
    private static let script = """
        trap '' INT TERM HUP
        pids=; folders=
        while read -r what value; do
            case $what in
            +) pids="$pids $value" ;;
            -) left=; for p in $pids; do [ "$p" = "$value" ] || left="$left $p"; done; pids=$left ;;
            f) folders="$folders $value" ;;
            esac
        done
        for p in $pids; do kill -s KILL -- "-$p" 2>/dev/null; done
        for f in $folders; do rm -rf -- "$f"; done
        """

    private init() {
        // Writing to a child that has ended must return an error, not end the tests.
        signal(SIGPIPE, SIG_IGN)
        guard let ends = closedPipe() else { fatalError("pipe: \(String(cString: strerror(errno)))") }
        pipe = ends[1]
        var process: pid_t = 0
        let status = spawn(
            &process, ["/bin/sh", "-c", Reaper.script], environment: ["PATH": "/usr/bin:/bin"],
            descriptors: [(ends[0], 0)])
        guard status == 0 else { fatalError("/bin/sh: \(String(cString: strerror(status)))") }
        close(ends[0])
    }

    func add(process: pid_t) { tell("+ \(process)\n") }
    func remove(process: pid_t) { tell("- \(process)\n") }
    func add(folder: String) { tell("f \(folder)\n") }

    /// Lines are shorter than PIPE_BUF, so lines of several threads are not mixed.
    private func tell(_ line: String) {
        var line = line
        line.withUTF8 { _ = write(pipe, $0.baseAddress, $0.count) }
    }
}

/// Swift does not import pipe2. So no child may start between the creation of a pipe and its close-on-exec flag.
private let spawning = NSLock()

/// A pipe that no child inherits by accident; nil if there are no free descriptors.
func closedPipe() -> [Int32]? {
    spawning.lock()
    defer { spawning.unlock() }
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return nil }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return ends
}

/// `posix_spawnp` with a process group of its own and default signals. Standard descriptors that are not listed are
/// /dev/null.
func spawn(
    _ process: inout pid_t, _ arguments: [String], environment: [String: String],
    descriptors: [(from: Int32, to: Int32)]
) -> Int32 {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for standard: Int32 in 0...2 where !descriptors.contains(where: { $0.to == standard }) {
        posix_spawn_file_actions_addopen(&actions, standard, "/dev/null", O_RDWR, 0)
    }
    for (from, to) in descriptors { posix_spawn_file_actions_adddup2(&actions, from, to) }
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    posix_spawnattr_setpgroup(&attributes, 0)
    var signals = sigset_t()
    sigfillset(&signals)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    posix_spawnattr_setflags(
        &attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
    let argv = arguments.map { strdup($0) } + [nil]
    let envp = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { (argv + envp).forEach { free($0) } }
    spawning.lock()
    defer { spawning.unlock() }
    return posix_spawnp(&process, arguments[0], &actions, &attributes, argv, envp)
}
