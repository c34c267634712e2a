/// The image file in a folder that is the cover of its music.
enum CoverFile {
    private static let names = ["cover", "folder", "front", "albumart", "album"]
    private static let endings: Set<Substring> = ["jpg", "jpeg", "png", "webp"]

    /// The name of the image file; nil: there is none.
    static func name(in folder: [UInt8]) -> [UInt8]? {
        var best: (rank: Int, name: [UInt8])?
        for name in FolderWalk.names(folder) {
            guard let rank = rank(name) else { continue }
            if let best, (best.rank, best.name.count) <= (rank, name.count) { continue }
            best = (rank, name)
        }
        return best?.name
    }

    private static func rank(_ name: [UInt8]) -> Int? {
        // Most files are music, and need not be decoded.
        guard name.count <= 16 else { return nil }
        let parts = String(decoding: name, as: UTF8.self).lowercased().split(separator: ".")
        guard parts.count == 2, endings.contains(parts[1]) else { return nil }
        return names.firstIndex { $0 == parts[0] }
    }
}
