import Glibc
import Installation
import Logging
import PluginAPI
import Processes

/// The installed manifests; an invalid one is ignored, with one line in the log.
struct PluginFolders {
    private let log: Logger
    private let manifestFiles: ManifestFiles
    /// The logged errors of manifests that still exist.
    private var complaints: Set<String> = []

    init(isSystem: Bool, log: Logger) {
        self.log = log
        manifestFiles = ManifestFiles(isSystem: isSystem)
    }

    /// Read at each call, so installing a plugin needs no restart.
    mutating func manifests() -> [PluginManifest] {
        let (manifests, errors) = manifestFiles.read()
        for error in errors where !complaints.contains(error) { log.warning("plugin ignored: \(error)") }
        complaints = Set(errors)
        return manifests
    }

    /// The absolute path of a manifest's program: as given, next to this program, or in PATH; nil: not found.
    func executable(_ program: String) -> String? {
        let own = Process(id: UInt32(getpid())).executable ?? ""
        return ManifestFiles.executable(program, beside: own.lastIndex(of: "/").map { String(own[..<$0]) })
    }
}
