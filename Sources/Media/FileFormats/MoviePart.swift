import Glibc

/// One of the files in which a server of HLS or DASH stores a film. Each alone is no film.
package enum MoviePart: Equatable {
    /// The description of the tracks, without any sound and pictures (initialization segment).
    case description
    /// Sound or pictures without their description (media segment).
    case segment

    /// Nil if it is no such file.
    package init?(_ path: [UInt8]) {
        let file = open(path.map { CChar(bitPattern: $0) } + [0], O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        self.init(size: Int(lseek(file, 0, SEEK_END))) { FileContent.bytes(of: file, at: $0, count: $1) }
    }

    /// - Parameter read: reads bytes from a position; fewer at the end of the file.
    init?(size: Int, read: (_ place: Int, _ count: Int) -> [UInt8]) {
        var kinds: Set<String> = []
        var place = 0
        for _ in 0..<MovieIndex.boxLimit where place < size {
            guard let box = MovieIndex.Box(read(place, 16)[...], 0) else { return nil }
            if kinds.isEmpty, !["ftyp", "styp", "sidx", "moof"].contains(box.kind) { return nil }
            if box.kind == "moov" {
                // The description of a whole film has no place for fragments.
                let content = read(place, min(box.length, MovieIndex.indexLimit)).dropFirst(box.header)
                MovieIndex.each(content) { kind, _ in kinds.insert(kind) }
            }
            kinds.insert(box.kind)
            place += box.length
        }
        if kinds.contains("moof"), !kinds.contains("moov") {
            self = .segment
        } else if kinds.isSuperset(of: ["moov", "mvex"]), kinds.isDisjoint(with: ["moof", "mdat"]) {
            self = .description
        } else {
            return nil
        }
    }
}
