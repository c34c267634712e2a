import Glibc
public import PluginAPI
import Processes

/// The installed manifests of plugins, the user's before the system's; the first one of an id is used.
public struct ManifestFiles {
    /// Whether this is for the system service: then folders to which plugins can write are ignored.
    private let isSystem: Bool

    public init(isSystem: Bool) { self.isSystem = isSystem }

    public var folders: [String] {
        let home = environment("XDG_DATA_HOME") ?? environment("HOME").map { $0 + "/.local/share" }
        let system = environment("XDG_DATA_DIRS") ?? "/usr/local/share:/usr/share"
        return ((isSystem ? [] : home.map { [$0] } ?? []) + system.split(separator: ":").map(String.init)).map {
            $0 + "/sessiond/plugins"
        }
    }

    /// The manifests, and the errors of the invalid ones.
    public func read() -> (manifests: [PluginManifest], errors: [String]) {
        var found: [PluginManifest] = []
        var errors: [String] = []
        for file in folders.flatMap({ filesIn($0, suffix: ".plugin") }) {
            guard let bytes = readFile(file, limit: KeyFile.maximumBytes + 1) else { continue }
            do throws(KeyFileError) {
                let manifest = try PluginManifest(bytes: bytes, file: file)
                if !found.contains(where: { $0.id == manifest.id }) { found.append(manifest) }
            } catch {
                errors.append(error.description)
            }
        }
        return (found, errors)
    }

    /// The absolute path of a manifest's program: as given, in that folder (the daemon's), or in PATH; nil: not found.
    public static func executable(_ program: String, beside folder: String?) -> String? {
        if program.hasPrefix("/") { return access(program, X_OK) == 0 ? program : nil }
        let path = (environment("PATH") ?? "/usr/local/bin:/usr/bin:/bin").split(separator: ":").map(String.init)
        return ((folder.map { [$0] } ?? []) + path).map { $0 + "/" + program }.first { access($0, X_OK) == 0 }
    }
}
