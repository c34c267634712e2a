import Glibc
import PluginAPI

/// The estimated size of an export, computed before it starts.
struct ExportEstimate {
    let bytes: Int
    /// Length of the exported part, in seconds.
    let length: Double
    /// In percent, 0 to 100.
    let confidence: Int
    private let movesIndex: Bool

    init(_ plan: ExportPlan, _ wish: ExportPlan.Wish, _ facts: FilmFacts) {
        let end = min(wish.to ?? .infinity, facts.duration > 0 ? facts.duration : .infinity)
        length = end.isFinite ? max(0, end - (wish.from ?? 0)) : 0
        movesIndex = wish.movesIndex
        if plan.isCopy, !plan.hasVideo, facts.video != nil {
            // Only the sound is copied. Its bitrate may not be stated.
            let known = facts.audio?.bitrate ?? 0
            bytes = Int(Double(known > 0 ? known : wish.preset.audioBitrate) * length / 8)
            confidence = known > 0 ? 80 : 30
            return
        }
        if plan.isCopy {
            bytes = facts.duration > 0 ? Int(Double(facts.file.size) * length / facts.duration) : facts.file.size
            confidence = 95
            return
        }
        var bits = 0.0
        if let size = plan.size {
            let usual = ExportPlan.bits(size, wish.preset)
            bits += Double(min(usual, wish.preset.largestBitrate.map { $0 * 1000 } ?? .max))
        }
        if !plan.sounds.isEmpty {
            bits += Double((facts.audio?.channels ?? 2) == 1 ? wish.preset.audioBitrate / 2 : wish.preset.audioBitrate)
        }
        bytes = Int(bits * length / 8)
        // The bitrate of encoded pictures depends on their content.
        confidence = plan.size == nil ? 90 : wish.preset.largestBitrate == nil ? 30 : 50
    }

    /// - Throws: `DiskFull` if the disk certainly has not enough free space.
    func check(_ output: Int32) throws(FilmError) {
        var space = statvfs()
        guard fstatvfs(output, &space) == 0 else { return }
        let free = Double(space.f_bavail) * Double(space.f_frsize)
        let least = Double(bytes) * (confidence > 80 ? 1 : 0.2) * (movesIndex ? 2 : 1)
        guard free < least else { return }
        throw FilmError(
            .diskFull,
            "\(Int(free / 1e6)) MB are free on the disk, and the new file needs about \(Int(least / 1e6)) MB")
    }
}
