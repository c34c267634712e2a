import Glibc

/// The length of a fragmented MP4 file, from the headers (`moof`) of its fragments. The data of the samples is not read.
package struct FragmentTimes {
    /// What the headers of a track state.
    private struct Track {
        /// Units per second; 0: unknown.
        var timescale = 0
        /// The duration of a sample for which its fragment states none.
        var usualDuration = 0
        /// The end of the latest fragment, in units of ``timescale``.
        var end = 0
    }

    /// The most headers that are read. A file of a day, with a fragment for every two seconds, has 43,200.
    private static let limit = 500_000
    private static let headerLimit = 8 << 20

    private var tracks: [Int: Track] = [:]

    /// The length in seconds, of the longest track; nil if it is unknown, because a header is damaged or missing.
    package private(set) var length: Double?

    /// Nil if the file cannot be opened.
    package init?(_ path: [UInt8]) {
        let file = open(path.map { CChar(bitPattern: $0) } + [0], O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        self.init(size: Int(lseek(file, 0, SEEK_END))) { FileContent.bytes(of: file, at: $0, count: $1) }
    }

    /// - Parameter read: reads bytes from a position; fewer at the end of the file.
    package init(size: Int, read: (_ place: Int, _ count: Int) -> [UInt8]) {
        var place = 0
        for _ in 0..<Self.limit where place < size {
            let head = read(place, 16)
            guard let box = MovieIndex.Box(head[...], 0) else { break }
            if box.kind == "moov" || box.kind == "moof" {
                guard box.length <= min(Self.headerLimit, size - place) else { break }
                let bytes = read(place, box.length)
                guard bytes.count == box.length else { break }
                let content = bytes[box.header...]
                if box.kind == "moov" { readMovie(content) } else { readFragment(content) }
            }
            place += box.length
        }
        length = tracks.values.compactMap {
            $0.timescale > 0 && $0.end > 0 ? Double($0.end) / Double($0.timescale) : nil
        }
        .max()
    }

    private mutating func readMovie(_ movie: ArraySlice<UInt8>) {
        MovieIndex.each(movie) { kind, content in
            switch kind {
            case "trak":
                var id = 0
                var timescale = 0
                MovieIndex.each(content) { kind, content in
                    if kind == "tkhd" { id = MovieIndex.number(content, content.first == 1 ? 20 : 12, 4) }
                    guard kind == "mdia" else { return }
                    MovieIndex.each(content) { kind, content in
                        if kind == "mdhd" { timescale = MovieIndex.number(content, content.first == 1 ? 20 : 12, 4) }
                    }
                }
                tracks[id, default: Track()].timescale = timescale
            case "mvex":
                MovieIndex.each(content) { kind, content in
                    guard kind == "trex" else { return }
                    tracks[MovieIndex.number(content, 4, 4), default: Track()].usualDuration = MovieIndex.number(
                        content, 12, 4)
                }
            default: break
            }
        }
    }

    private mutating func readFragment(_ fragment: ArraySlice<UInt8>) {
        MovieIndex.each(fragment) { kind, content in if kind == "traf" { readTrack(content) } }
    }

    private mutating func readTrack(_ fragment: ArraySlice<UInt8>) {
        var id = 0
        var time: Int?
        var usual: Int?
        var duration = 0
        MovieIndex.each(fragment) { kind, content in
            let flags = MovieIndex.number(content, 1, 3)
            switch kind {
            case "tfhd":
                id = MovieIndex.number(content, 4, 4)
                // The fields before the usual duration: the base of the data, and the description of the samples.
                let place = 8 + (flags & 0x1 != 0 ? 8 : 0) + (flags & 0x2 != 0 ? 4 : 0)
                if flags & 0x8 != 0 { usual = MovieIndex.number(content, place, 4) }
            case "tfdt": time = MovieIndex.number(content, 4, content.first == 1 ? 8 : 4)
            case "trun":
                let count = MovieIndex.number(content, 4, 4)
                let width = 4 * (flags >> 8 & 0xF).nonzeroBitCount
                let start = 8 + 4 * (flags & 0x5).nonzeroBitCount
                guard flags & 0x100 != 0 else {
                    let known = usual ?? tracks[id]?.usualDuration ?? 0
                    duration += min(count, content.count) * known
                    return
                }
                for sample in 0..<min(count, max(0, content.count - start) / width) {
                    duration += MovieIndex.number(content, start + sample * width, 4)
                }
            default: break
            }
        }
        guard let track = tracks[id] else { return }
        tracks[id]?.end = max(track.end, (time ?? track.end) &+ duration)
    }
}
