import Glibc
import Processes

extension Diagnosis {
    /// Whether the cache for media of the web can keep something. Says nothing before it was used.
    mutating func lookAtCache() {
        guard let folder = UserFolder.cache.path.map({ $0 + "/sessiond/media" }) else { return }
        var disk = statvfs()
        guard statvfs(folder, &disk) == 0, disk.f_blocks > 0 else { return }
        guard Double(disk.f_bavail) < Double(disk.f_blocks) * 0.05 else {
            return add(
                "cache", .ok, "\(Wording.size(Double(disk.f_bavail) * Double(disk.f_frsize))) free for \(folder)")
        }
        add(
            "cache", .warning,
            "the disk of \(folder) has less than a twentieth free: what players read from the web is not kept",
            remedy: "free some space, for example with: sessionctl cache clear")
    }
}
