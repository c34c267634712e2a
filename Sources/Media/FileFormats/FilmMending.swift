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

    /// The size of the file without an incomplete end, in bytes. The index begins there.
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
    static let sampleLimit = 30_000_000

    /// A track of the film's first header.
    struct Track {
        var header: ArraySlice<UInt8>
        var timescale: Int
        var defaults = FilmSamples.Defaults()
        var samples = FilmSamples()
    }

    var tracks: [Int: Track] = [:]
    private(set) var order: [Int] = []
    var sampleCount = 0
    /// Whether the first header says that fragments follow.
    private var isFragmented = false

    package static func == (left: FilmMending, right: FilmMending) -> Bool {
        (left.end, left.unused, left.lost) == (right.end, right.unused, right.lost) && left.index == right.index
    }

    /// - Parameters:
    ///   - soundDelay: the samples that the encoder put before the sound, which players are told to leave out.
    ///   - read: reads bytes from a position; fewer at the end of the file.
    package init(size: Int, soundDelay: Int = 0, read: (_ place: Int, _ count: Int) -> [UInt8]) throws(Refusal) {
        var walk = Walk()
        while walk.place < size, let box = MovieIndex.Box(read(walk.place, 16)[...], 0),
            box.length <= size - walk.place
        {
            try take(box, &walk, read)
            walk.place += box.length
        }
        guard walk.place > 0 else {
            throw read(4, 4).elementsEqual("ftyp".utf8) ? .unknown("its first header is missing") : .otherFormat
        }
        if walk.place < size { try checkEnd(from: walk.place, size: size, read) }
        if let fragment = walk.fragment, fragment.end < walk.place { throw Self.missing(before: fragment.end) }
        guard let movie = walk.movie else { throw .unknown("its first header is missing") }
        guard isFragmented else {
            throw walk.place < size
                ? .unknown("it is an ordinary film whose end is missing, and no index can bring that back") : .ordinary
        }
        guard !walk.fragments.isEmpty, tracks.values.contains(where: { $0.samples.count > 0 }) else { throw .empty }
        // A header without its data is a part of the incomplete end.
        end = walk.last?.place ?? walk.fragment?.place ?? walk.place
        // An index that was not written whole is no sound and no picture.
        let isIndex = read(walk.place + 4, 4).elementsEqual("moov".utf8) && walk.fragment == nil
        lost = walk.last != nil || isIndex ? 0 : size - end
        (index, seconds) = makeIndex(movie.content, soundDelay)
        // What an earlier attempt has marked is not marked again: the film plays after every step of this one, too.
        unused = walk.fragments + walk.indices + [movie.place + 4]
        if let last = walk.last {
            // The index was on the disk before anything was marked.
            guard index.elementsEqual(FilmBox.box("moov", Array(last.content))), walk.place == size else {
                throw .unknown("it has two indices that differ, like two films in one file")
            }
            index = []
        } else if walk.freed > 0 {
            throw .unknown("an earlier repair of it was damaged")
        }
    }

    /// What was found up to a position.
    private struct Walk {
        var place = 0
        var movie: (place: Int, content: ArraySlice<UInt8>)?
        /// The index that an earlier attempt wrote to the end.
        var last: (place: Int, content: ArraySlice<UInt8>)?
        /// The header of a fragment whose data follows.
        var fragment: (place: Int, end: Int, content: ArraySlice<UInt8>)?
        /// Where the types of the headers are.
        var fragments: [Int] = []
        /// Where the types of the tables of the fragments are.
        var indices: [Int] = []
        /// The headers that an earlier attempt marked as unused.
        var freed = 0
    }

    /// - Throws: where the film is damaged before its end: what follows would be lost.
    private mutating func take(
        _ box: MovieIndex.Box, _ walk: inout Walk, _ read: (Int, Int) -> [UInt8]
    ) throws(Refusal) {
        let place = walk.place
        if place == 0, box.kind != "ftyp" { throw .otherFormat }
        if walk.last != nil { throw .unknown("it has two headers, like two films in one file") }
        var kind = box.kind
        if kind == "free", walk.movie != nil, isFragmented, read(place + box.header + 4, 4).elementsEqual("mfhd".utf8) {
            // An earlier attempt marked it as unused.
            kind = "moof"
            walk.freed += 1
        }
        switch kind {
        case "ftyp": if place > 0 { throw .unknown("it is two films in one file") }
        case "moov":
            let content = try Self.content(box, place, read)
            if walk.movie != nil {
                walk.last = (place, content)
            } else {
                walk.movie = (place, content)
                try readMovie(content)
            }
        case "moof":
            guard walk.fragment == nil else { throw Self.missing(before: place) }
            walk.fragment = (place, place + box.length, try Self.content(box, place, read))
        case "mdat":
            guard let header = walk.fragment else {
                // Data before the first fragment may be anything; later it is that of a header which was damaged.
                guard walk.fragments.isEmpty else { throw .unknown("the header before byte \(place) is damaged") }
                break
            }
            walk.fragment = nil
            guard walk.movie != nil else { throw .unknown("its first header is missing") }
            guard isFragmented else { break }
            guard try readFragment(header.content, at: header.place, end: place + box.length) else {
                throw .unknown("the fragment at byte \(header.place) is damaged")
            }
            walk.fragments.append(header.place + 4)
        case "mfra", "sidx": walk.indices.append(place + 4)
        default: break
        }
    }

    private static func missing(before place: Int) -> Refusal {
        .unknown("the data of the fragment before byte \(place) is missing")
    }

    private static func content(
        _ box: MovieIndex.Box, _ place: Int, _ read: (Int, Int) -> [UInt8]
    ) throws(Refusal) -> ArraySlice<UInt8> {
        guard box.length <= headerLimit else { throw .unknown("a header of it is too large") }
        return read(place, box.length).dropFirst(box.header)
    }

    /// The boxes that a recording may end in.
    private static let growing = [
        "moof", "mdat", "moov", "mfra", "free", "skip", "sidx", "styp", "uuid", "udta", "meta",
    ]

    /// What is no whole box may be cut off only if it is the end: of one box, or of a file whose last bytes never reached
    /// the disk, which are 0.
    private func checkEnd(from place: Int, size: Int, _ read: (Int, Int) -> [UInt8]) throws(Refusal) {
        let damage = Refusal.unknown("it is damaged at byte \(place), before its end")
        let step = 1 << 20
        let head = MovieIndex.Box(read(place, 16)[...], 0)
        let isCut = size - place < 8 || (head.map { Self.growing.contains($0.kind) } ?? false)
        var isZero = true
        var start = place
        while start < size {
            let bytes = read(start, min(step + 16, size - start))
            guard !bytes.isEmpty else { break }
            if isZero { isZero = bytes.allSatisfy { $0 == 0 } }
            if bytes.count >= 16 {
                for number in 4...(bytes.count - 12) where bytes[number] == UInt8(ascii: "m") {
                    // The header of another fragment.
                    if start + number - 4 > place, bytes[number..<(number + 4)].elementsEqual("moof".utf8),
                        bytes[(number + 8)..<(number + 12)].elementsEqual("mfhd".utf8)
                    {
                        throw damage
                    }
                }
            }
            start += step
        }
        guard isCut || isZero else { throw damage }
    }

    // MARK: The first header

    private mutating func readMovie(_ movie: ArraySlice<UInt8>) throws(Refusal) {
        var found: [(id: Int, track: Track)] = []
        var defaults: [Int: FilmSamples.Defaults] = [:]
        var problem: String?
        var hasFragments = false
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
                hasFragments = true
                MovieIndex.each(content) { kind, content in
                    guard kind == "trex" else { return }
                    defaults[MovieIndex.number(content, 4, 4)] = FilmSamples.Defaults(
                        description: MovieIndex.number(content, 8, 4), duration: MovieIndex.number(content, 12, 4),
                        size: MovieIndex.number(content, 16, 4), flags: MovieIndex.number(content, 20, 4))
                }
            default: break
            }
        }
        isFragmented = hasFragments
        guard isFragmented else { return }
        if let problem { throw .unknown(problem) }
        for (id, var track) in found {
            track.defaults = defaults[id] ?? FilmSamples.Defaults()
            guard tracks.updateValue(track, forKey: id) == nil else { throw .unknown("two tracks have one number") }
            order.append(id)
        }
    }
}
