import Foundation

/// A shell that outlives the test process by a moment: kills the children and removes the folders it left behind.
///
/// PR_SET_PDEATHSIG is of no use here: it follows the thread that spawned, and test threads come and go.
final class Reaper: Sendable {
    static let shared = Reaper()

    private let pipe: Int32

    /// `-s`, because dash takes no `--` after `-KILL`.
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
        // Writing to a child that is gone must be an error to handle, not the end of the tests.
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

    /// Lines are shorter than PIPE_BUF, so threads cannot mix them.
    private func tell(_ line: String) {
        var line = line
        line.withUTF8 { _ = write(pipe, $0.baseAddress, $0.count) }
    }
}

/// Swift sees no pipe2, so nobody may start a child between a pipe's making and its close-on-exec.
private let spawning = NSLock()

/// A pipe no child inherits by accident; nil where descriptors are exhausted.
func closedPipe() -> [Int32]? {
    spawning.lock()
    defer { spawning.unlock() }
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return nil }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return ends
}

/// `posix_spawnp` in a process group of its own, with default signals; descriptors not listed are /dev/null.
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
