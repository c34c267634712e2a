import Glibc
import PluginAPI

/// Where the settings are read from: one file, and the drop-ins beside it in the order of their names.
struct SettingsFiles {
    /// The file given with `--config`; nil: the first that is there of the user's and the system's.
    let explicit: String?
    /// Whether it is the service of the whole machine: a home that it can write to itself is no place for its settings.
    let isSystem: Bool

    /// Throws a line for a person: the file, where in it, and what is wrong.
    func read() throws(SettingsError) -> Settings {
        var files: [(name: String, bytes: [UInt8])] = []
        if let explicit {
            guard let bytes = contents(explicit) else {
                throw SettingsError("\(explicit): cannot be read: \(String(cString: strerror(errno)))")
            }
            files.append((explicit, bytes))
        } else if let path = candidates.first(where: { access($0, F_OK) == 0 || access($0 + ".d", F_OK) == 0 }) {
            for file in [path] + filesIn(path + ".d", suffix: ".conf") where access(file, F_OK) == 0 {
                guard let bytes = contents(file) else {
                    throw SettingsError("\(file): cannot be read: \(String(cString: strerror(errno)))")
                }
                files.append((file, bytes))
            }
        }
        do throws(KeyFileError) {
            return try Settings(files: files)
        } catch {
            throw SettingsError(error.description)
        }
    }

    private var candidates: [String] {
        var home = environment("XDG_CONFIG_HOME")
        if home == nil, !isSystem { home = environment("HOME").map { $0 + "/.config" } }
        return (home.map { [$0 + "/sessiond/sessiond.conf"] } ?? []) + ["/etc/sessiond/sessiond.conf"]
    }

    /// At most one byte more than a settings file may have, so that a huge one is refused and not read.
    private func contents(_ path: String) -> [UInt8]? { readFile(path, limit: KeyFile.maximumBytes + 1) }
}

struct SettingsError: Error {
    let message: String
    init(_ message: String) { self.message = message }
}

/// The variable's value; nil where it is unset or empty.
func environment(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
}

/// The first `limit` bytes of a file; nil, with errno set, where it cannot be read. Never waits for a FIFO's writer.
func readFile(_ path: String, limit: Int) -> [UInt8]? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    return readFile(descriptor, limit: limit)
}

/// The same of a file that is open, from where it is read next.
func readFile(_ descriptor: Int32, limit: Int) -> [UInt8]? {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16384)
    while bytes.count < limit {
        let count = read(descriptor, &chunk, min(chunk.count, limit - bytes.count))
        if count < 0 { return nil }
        if count == 0 { break }
        bytes += chunk[..<count]
    }
    return bytes
}
