/// How a fragmented MP4 becomes an ordinary film, in place: what is cut off its end, the index that follows its data, and
/// the boxes that are no longer needed.
///
/// A recording is written in fragments, each with its own header, so that what was written plays when its process is killed.
/// Ordinary players seek and tell the length better with one index. Nothing of the sound and the pictures is moved or copied.
/// The film plays after every step of the change, and the change can be begun again after each of them.
package struct FilmMending: Equatable {
    package enum Refusal: Error, Equatable {
        /// It is no MP4 or QuickTime file.
        case otherFormat
        /// It has one index already.
        case ordinary
        /// No fragment is whole: there is nothing to play.
        case empty
        /// It is damaged, or made in a way that this does not know; the text tells which.
        case unknown(String)
    }

    /// The size of the file without an incomplete last fragment, in bytes. The index begins there.
    package private(set) var end = 0
    /// The new index; empty: it is in the file already, from an earlier attempt.
    package private(set) var index: [UInt8] = []
    /// The positions of the types of the boxes to mark as unused, in the order in which this is done. The last one is that of the
    /// film's first header: until then the fragments count.
    package private(set) var unused: [Int] = []
    /// The length of the film in seconds.
    package private(set) var seconds = 0.0
    /// The bytes that are cut off.
    package private(set) var lost = 0

    /// The type of an unused box.
    package static let unusedType = Array("free".utf8)

    private static let headerLimit = 64 << 20
    /// Four days of pictures and sound.
    private static let sampleLimit = 30_000_000

    /// A track of the film's first header.
    struct Track {
        var header: ArraySlice<UInt8>
        var timescale: Int
        var defaults = FilmSamples.Defaults()
        var samples = FilmSamples()
    }

    private(set) var tracks: [Int: Track] = [:]
    private(set) var order: [Int] = []
    private var sampleCount = 0

    package static func == (left: FilmMending, right: FilmMending) -> Bool {
        (left.end, left.unused, left.lost) == (right.end, right.unused, right.lost) && left.index == right.index
    }

    /// - Parameter read: reads bytes from a position; fewer at the end of the file.
    package init(size: Int, read: (_ place: Int, _ count: Int) -> [UInt8]) throws(Refusal) {
        var place = 0
        var movie: (place: Int, content: ArraySlice<UInt8>)?
        var fragment: (place: Int, content: ArraySlice<UInt8>)?
        var fragments: [Int] = []
        var freed = 0
        var second: Int?
        walk: while place < size, let box = MovieIndex.Box(read(place, 16)[...], 0) {
            if place == 0, box.kind != "ftyp" { throw .otherFormat }
            guard box.length <= size - place else { break }
            switch box.kind {
            case "moov":
                let content = try Self.content(box, place, read)
                if movie == nil {
                    movie = (place, content)
                    try readMovie(content)
                } else {
                    second = place
                }
            case "moof": fragment = (place, try Self.content(box, place, read))
            case "free":
                // A header of a fragment that an earlier attempt marked as unused.
                if movie != nil, read(place + box.header + 4, 4).elementsEqual("mfhd".utf8) { freed += 1 }
            case "mdat":
                guard let header = fragment else { break }
                fragment = nil
                guard try readFragment(header.content, at: header.place, end: place + box.length) else { break walk }
                fragments.append(header.place + 4)
                end = place + box.length
            default: break
            }
            place += box.length
        }
        guard let movie else { throw place == 0 ? .otherFormat : .unknown("its first header is missing") }
        unused = fragments + [movie.place + 4]
        if let second, freed > 0 {
            // The index is whole: it was on the disk before the first header was marked.
            (end, index) = (second, [])
            return
        }
        guard freed == 0 else { throw .unknown("an earlier repair was damaged") }
        guard !fragments.isEmpty, tracks.values.contains(where: { $0.samples.count > 0 }) else { throw .empty }
        // An index at the end, of the fragments or of an earlier attempt, is not lost sound.
        lost = Self.isIndex(size: size, from: end, read) ? 0 : size - end
        (index, seconds) = makeIndex(movie.content)
    }

    private static func content(
        _ box: MovieIndex.Box, _ place: Int, _ read: (Int, Int) -> [UInt8]
    ) throws(Refusal) -> ArraySlice<UInt8> {
        guard box.length <= headerLimit else { throw .unknown("a header of it is too large") }
        return read(place, box.length).dropFirst(box.header)
    }

    /// Whether only whole indices follow.
    private static func isIndex(size: Int, from start: Int, _ read: (Int, Int) -> [UInt8]) -> Bool {
        var place = start
        while place < size {
            guard let box = MovieIndex.Box(read(place, 16)[...], 0), ["mfra", "moov", "free"].contains(box.kind),
                box.length <= size - place
            else { return false }
            place += box.length
        }
        return true
    }

    // MARK: The first header

    private mutating func readMovie(_ movie: ArraySlice<UInt8>) throws(Refusal) {
        var isFragmented = false
        var found: [(id: Int, track: Track)] = []
        var defaults: [Int: FilmSamples.Defaults] = [:]
        var problem: String?
        MovieIndex.each(movie) { kind, content in
            switch kind {
            case "trak":
                var (id, timescale, samples) = (0, 0, 0)
                MovieIndex.each(content) { kind, content in
                    if kind == "tkhd" { id = MovieIndex.number(content, content.first == 1 ? 20 : 12, 4) }
                    MovieIndex.each(kind == "mdia" ? content : content.prefix(0)) { kind, content in
                        if kind == "mdhd" { timescale = MovieIndex.number(content, content.first == 1 ? 20 : 12, 4) }
                        MovieIndex.each(kind == "minf" ? content : content.prefix(0)) { kind, content in
                            MovieIndex.each(kind == "stbl" ? content : content.prefix(0)) { kind, content in
                                if kind == "stsz" { samples += MovieIndex.number(content, 8, 4) }
                            }
                        }
                    }
                }
                if samples > 0 { problem = "its first seconds are no fragment" }
                if timescale == 0 { problem = "a track has no scale of time" }
                found.append((id, Track(header: content, timescale: timescale)))
            case "mvex":
                isFragmented = true
                MovieIndex.each(content) { kind, content in
                    guard kind == "trex" else { return }
                    defaults[MovieIndex.number(content, 4, 4)] = FilmSamples.Defaults(
                        description: MovieIndex.number(content, 8, 4), duration: MovieIndex.number(content, 12, 4),
                        size: MovieIndex.number(content, 16, 4), flags: MovieIndex.number(content, 20, 4))
                }
            default: break
            }
        }
        guard isFragmented else { throw .ordinary }
        if let problem { throw .unknown(problem) }
        for (id, var track) in found {
            track.defaults = defaults[id] ?? FilmSamples.Defaults()
            guard tracks.updateValue(track, forKey: id) == nil else { throw .unknown("two tracks have one number") }
            order.append(id)
        }
    }

    // MARK: Fragments

    /// False if a sample of the fragment is not in the file.
    private mutating func readFragment(
        _ fragment: ArraySlice<UInt8>, at origin: Int, end: Int
    ) throws(Refusal) -> Bool {
        let before = tracks
        var next = origin
        var isWhole = true
        var problem: Refusal?
        MovieIndex.each(fragment) { kind, content in
            guard kind == "traf", isWhole, problem == nil else { return }
            do throws(Refusal) {
                isWhole = try readTrack(content, origin, &next, end)
            } catch {
                problem = error
            }
        }
        if let problem { throw problem }
        if !isWhole { tracks = before }
        return isWhole
    }

    private mutating func readTrack(
        _ fragment: ArraySlice<UInt8>, _ origin: Int, _ next: inout Int, _ end: Int
    ) throws(Refusal) -> Bool {
        var track: Track?
        var id = 0
        var base = next
        var values = FilmSamples.Defaults()
        var isWhole = true
        var problem: Refusal?
        var place = next
        let known = tracks
        var added = sampleCount
        MovieIndex.each(fragment) { kind, content in
            let flags = MovieIndex.number(content, 1, 3)
            switch kind {
            case "tfhd":
                id = MovieIndex.number(content, 4, 4)
                track = known[id]
                values = track?.defaults ?? values
                var field = 8
                func take(_ flag: Int, _ count: Int) -> Int? {
                    guard flags & flag != 0 else { return nil }
                    defer { field += count }
                    return MovieIndex.number(content, field, count)
                }
                if flags & 0x2_0000 != 0 { base = origin }
                if let stated = take(0x1, 8) { base = stated }
                values.description = take(0x2, 4) ?? values.description
                values.duration = take(0x8, 4) ?? values.duration
                values.size = take(0x10, 4) ?? values.size
                values.flags = take(0x20, 4) ?? values.flags
                place = base
            case "tfdt": track?.samples.continue(at: MovieIndex.number(content, 4, content.first == 1 ? 8 : 4))
            case "trun":
                guard problem == nil, isWhole, var samples = track?.samples else { return }
                let count = MovieIndex.number(content, 4, 4)
                var field = 8
                if flags & 0x1 != 0 {
                    let offset = Int(Int32(truncatingIfNeeded: MovieIndex.number(content, field, 4)))
                    place = base &+ offset
                    field += 4
                }
                var first: Int?
                if flags & 0x4 != 0 {
                    first = MovieIndex.number(content, field, 4)
                    field += 4
                }
                let width = 4 * (flags >> 8 & 0xF).nonzeroBitCount
                // A sample has at least one byte, so a claim of more samples than bytes is wrong.
                guard count <= end, field + count * width <= content.count, place >= 0, place <= end else {
                    isWhole = false
                    return
                }
                added += count
                guard added <= Self.sampleLimit else {
                    problem = .unknown("it has too many samples")
                    return
                }
                if count > 0 {
                    samples.begin(.init(place: place, count: count, description: max(1, values.description)))
                }
                for number in 0..<count {
                    func take(_ flag: Int) -> Int? {
                        guard flags & flag != 0 else { return nil }
                        defer { field += 4 }
                        return MovieIndex.number(content, field, 4)
                    }
                    let duration = take(0x100) ?? values.duration
                    let size = take(0x200) ?? values.size
                    let stated = take(0x400)
                    let offset = Int(Int32(truncatingIfNeeded: take(0x800) ?? 0))
                    let kind = stated ?? (number == 0 ? first : nil) ?? values.flags
                    samples.append(duration: duration, size: size, offset: offset, isKey: kind & 0x1_0000 == 0)
                    place += size
                    guard size > 0, place <= end else {
                        isWhole = false
                        return
                    }
                }
                track?.samples = samples
            // Encryption, whose tables would be lost.
            case "senc", "saiz", "saio": problem = .unknown("it is encrypted")
            default: break
            }
        }
        if let problem { throw problem }
        sampleCount = added
        if isWhole, let track { tracks[id] = track }
        next = place
        return isWhole
    }
}
