import Glibc
public import PluginAPI
import Processes

/// The settings files: one main file, and the drop-ins next to it in the order of their names.
public struct SettingsFiles {
    /// The file given with `--config`; nil: the first that exists of the user's and the system's.
    let explicit: String?
    /// Whether this is the system service: then settings in its own home are ignored, because it can write there.
    let isSystem: Bool

    public init(explicit: String? = nil, isSystem: Bool) {
        self.explicit = explicit
        self.isSystem = isSystem
    }

    /// Throws an error text for the user, with the file, the position and the error.
    public func read() throws(SettingsError) -> Settings {
        var files: [(name: String, bytes: [UInt8])] = []
        for file in paths { files.append((file, try contents(file))) }
        do throws(KeyFileError) {
            return try Settings(files: files)
        } catch {
            throw SettingsError(error.description)
        }
    }

    /// The settings for a program beside the daemon, which must run even if a file has an error: then `complain` gets the
    /// text of the error, and the result is the defaults.
    public func read(complain: (String) -> Void) -> Settings {
        do throws(SettingsError) {
            return try read()
        } catch {
            complain("\(error.message); the defaults apply until this is corrected and the program is started again")
            return Settings()
        }
    }

    /// The errors of the files, at most one of each; ``read()`` throws the first.
    public var errors: [SettingsError] {
        var settings = Settings()
        var errors: [SettingsError] = []
        for file in paths {
            do throws(SettingsError) {
                let bytes = try contents(file)
                do throws(KeyFileError) {
                    try settings.merge(bytes: bytes, file: file)
                } catch {
                    errors.append(SettingsError(error.description))
                }
            } catch {
                errors.append(error)
            }
        }
        return errors
    }

    /// The files that are read, in order; empty: there are none.
    public var paths: [String] {
        if let explicit { return [explicit] }
        guard let path = candidates.first(where: { access($0, F_OK) == 0 || access($0 + ".d", F_OK) == 0 }) else {
            return []
        }
        return ([path] + filesIn(path + ".d", suffix: ".conf")).filter { access($0, F_OK) == 0 }
    }

    /// Existing files that are not read, because others have priority.
    public var hidden: [String] {
        let read = paths
        return candidates.dropFirst().filter { access($0, F_OK) == 0 && !read.contains($0) }
    }

    private var candidates: [String] {
        var home = environment("XDG_CONFIG_HOME")
        if home == nil, !isSystem { home = environment("HOME").map { $0 + "/.config" } }
        return (home.map { [$0 + "/sessiond/sessiond.conf"] } ?? []) + ["/etc/sessiond/sessiond.conf"]
    }

    /// At most one byte more than the limit, so that a huge file is refused without reading it.
    private func contents(_ path: String) throws(SettingsError) -> [UInt8] {
        guard let bytes = readFile(path, limit: KeyFile.maximumBytes + 1) else {
            throw SettingsError("\(path): cannot be read: \(String(cString: strerror(errno)))")
        }
        return bytes
    }
}

/// An error in the settings, for the user.
public struct SettingsError: Error {
    public let message: String

    init(_ message: String) { self.message = message }
}
