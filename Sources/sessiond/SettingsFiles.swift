import Glibc
import PluginAPI
import Processes

/// The settings files: one main file, and the drop-ins next to it in the order of their names.
struct SettingsFiles {
    /// The file given with `--config`; nil: the first that exists of the user's and the system's.
    let explicit: String?
    /// Whether this is the system service: then settings in its own home are ignored, because it can write there.
    let isSystem: Bool

    /// Throws an error text for the user: the file, the position, and what is wrong.
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

    /// At most one byte more than the limit, so that a huge file is refused without reading it.
    private func contents(_ path: String) -> [UInt8]? { readFile(path, limit: KeyFile.maximumBytes + 1) }
}

struct SettingsError: Error {
    let message: String
    init(_ message: String) { self.message = message }
}

/// The value of the variable; nil if unset or empty.
func environment(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
}
