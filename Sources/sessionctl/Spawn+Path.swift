import Glibc
import Processes

extension Spawn {
    /// Finds a program in PATH; throws the shell's exit code 127 or 126 if it cannot be run.
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

    /// ``start(_:_:descriptors:ownGroup:)`` that throws the shell's exit code 127 or 126 on failure.
    static func launch(
        _ program: String, _ arguments: [String], descriptors: [(from: Int32, to: Int32)]
    ) throws -> pid_t {
        do throws(SpawnFailure) {
            return try start(program, arguments, descriptors: descriptors, ownGroup: true)
        } catch {
            throw Complaint(code: error.errorNumber == ENOENT ? 127 : 126, message: "\(program.escaped): \(error)")
        }
    }

    /// A pipe that other programs do not inherit: its read end and its write end.
    static func pipe() throws -> (read: Int32, write: Int32) {
        var ends: [Int32] = [-1, -1]
        guard Glibc.pipe(&ends) == 0 else { throw Complaint.refused("pipe: \(String(cString: strerror(errno)))") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }
}
