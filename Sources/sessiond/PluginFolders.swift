import Glibc
import Logging
import PluginAPI
import Processes

/// The installed manifests, the user's before the system's; the first one of an id is used.
struct PluginFolders {
    private let log: Logger
    /// Whether this is the system service: then folders to which plugins can write are ignored.
    private let isSystem: Bool
    /// The logged errors of manifests that still exist.
    private var complaints: Set<String> = []

    init(isSystem: Bool, log: Logger) {
        self.isSystem = isSystem
        self.log = log
    }

    private var folders: [String] {
        let own = isSystem ? nil : environment("HOME").map { $0 + "/.local/share" }
        let home = environment("XDG_DATA_HOME") ?? own
        let system = environment("XDG_DATA_DIRS") ?? "/usr/local/share:/usr/share"
        return ((home.map { [$0] } ?? []) + system.split(separator: ":").map(String.init)).map {
            $0 + "/sessiond/plugins"
        }
    }

    /// Read at each call, so installing a plugin needs no restart. An invalid manifest is ignored, with one line in the
    /// log.
    mutating func manifests() -> [PluginManifest] {
        var found: [PluginManifest] = []
        let known = complaints
        complaints = []
        for file in folders.flatMap({ filesIn($0, suffix: ".plugin") }) {
            guard let bytes = readFile(file, limit: KeyFile.maximumBytes + 1) else { continue }
            do throws(KeyFileError) {
                let manifest = try PluginManifest(bytes: bytes, file: file)
                if !found.contains(where: { $0.id == manifest.id }) { found.append(manifest) }
            } catch {
                complaints.insert(error.description)
                if !known.contains(error.description) { log.warning("plugin ignored: \(error.description)") }
            }
        }
        return found
    }

    /// The absolute path of a manifest's program: as given, next to this program, or in PATH; nil: not found.
    func executable(_ program: String) -> String? {
        if program.hasPrefix("/") { return access(program, X_OK) == 0 ? program : nil }
        let own = Process(id: UInt32(getpid())).executable ?? ""
        let beside = own.lastIndex(of: "/").map { String(own[..<$0]) }
        let path = (environment("PATH") ?? "/usr/local/bin:/usr/bin:/bin").split(separator: ":").map(String.init)
        return ((beside.map { [$0] } ?? []) + path).map { $0 + "/" + program }.first { access($0, X_OK) == 0 }
    }
}

/// The files in the folder with that extension, without hidden ones, sorted by name.
func filesIn(_ folder: String, suffix: String) -> [String] {
    guard let handle = opendir(folder) else { return [] }
    defer { closedir(handle) }
    var names: [String] = []
    while let entry = readdir(handle) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
            pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name.hasSuffix(suffix), !name.hasPrefix(".") { names.append(folder + "/" + name) }
    }
    return names.sorted()
}
