import Glibc

/// The structure of an MP4 or QuickTime file, as its boxes describe it.
package struct MovieIndex: Equatable {
    /// A number in the file: its position, its size in bytes and its value.
    package struct Number: Equatable {
        package var place: Int
        package var size: Int
        package var value: Int

        package init(place: Int, size: Int, value: Int) { (self.place, self.size, self.value) = (place, size, value) }
    }

    /// Reads bytes from a position; fewer at the end of the file.
    typealias Read = (_ place: Int, _ count: Int) -> [UInt8]

    /// Whether the file is fragmented: it has an index in each fragment.
    package private(set) var isFragmented = false
    /// The length of the film, in units of ``timescale``.
    package private(set) var length: Number?
    /// Units per second of ``length``.
    package private(set) var timescale = 0
    /// The time that edit lists cut off at the start of the tracks, in seconds; the largest value of all tracks.
    package private(set) var cut = 0.0

    /// The times of the first fragment in the table of fragments (`tfra`), one for each track.
    package private(set) var firstPieces: [Number] = []

    /// Whether the index of a fragmented film has samples, too: its first seconds are no fragment.
    package private(set) var hasPlainStart = false
    /// Whether GStreamer skips a track because it is shorter than a fifth of the film: it takes the track for a preview. Not if
    /// it is a short track with pictures beside a longer one.
    package private(set) var hasShortTrack = false

    /// The length of the film in seconds, as its header states it; nil: none.
    package var seconds: Double? { length.map { Double($0.value) / Double(timescale) } }

    static let indexLimit = 64 << 20
    static let boxLimit = 64

    /// The position of the rotation matrix of the first video track.
    package private(set) var matrix: Int?
    /// Whether its video is H.264 that every decoder of H.264 can decode.
    package private(set) var isCommonAVC = false
    /// Whether its video is HEVC that every decoder of HEVC can decode.
    package private(set) var isCommonHEVC = false

    /// The ids of the tracks whose samples are numbers with the lowest byte first, as QuickTime's `enda` says. The names of
    /// their formats (`fl32`, `fl64`, `in24`, `in32`) mean the highest byte first.
    package private(set) var lowByteFirst: Set<Int> = []

    /// The tracks with pictures that players do not show.
    package private(set) var hidden: [HiddenTrack] = []

    package init?(_ path: [UInt8]) {
        let file = open(path.map { CChar(bitPattern: $0) } + [0], O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        self.init(descriptor: file)
    }

    package init?(descriptor file: Int32) {
        self.init(size: Int(lseek(file, 0, SEEK_END))) { FileContent.bytes(of: file, at: $0, count: $1) }
    }

    /// Nil if it is not such a file.
    /// - Parameter read: reads bytes from a position; fewer at the end of the file.
    package init?(size: Int, read: (_ place: Int, _ count: Int) -> [UInt8]) {
        var place = 0
        for _ in 0..<Self.boxLimit {
            let head = read(place, 16)
            guard let box = Box(head[...], 0), place > 0 || box.kind == "ftyp" else { break }
            switch box.kind {
            case "moof": isFragmented = true
            case "moov" where box.length <= min(Self.indexLimit, size - place):
                let bytes = read(place, box.length)
                if bytes.count == box.length { readMovie(bytes[box.header...], place) }
            default: break
            }
            place += box.length
            if isFragmented || place >= size { break }
        }
        if place == 0 { return nil }
        if isFragmented { readPieces(size, read) }
    }

    /// Reads the table from the end of the file, where a box states how far before it the table begins.
    private mutating func readPieces(_ size: Int, _ read: Read) {
        let tail = size > 16 ? read(size - 16, 16) : []
        guard tail.count == 16, tail[4..<8].elementsEqual("mfro".utf8) else { return }
        let length = Self.number(tail[...], 12, 4)
        guard length > 16, length <= min(size, Self.indexLimit) else { return }
        let bytes = read(size - length, length)
        guard bytes.count == length, let box = Box(bytes[...], 0), box.kind == "mfra" else { return }
        Self.each(bytes[box.header...]) { kind, content in
            guard kind == "tfra", Self.number(content, 12, 4) > 0 else { return }
            let width = content.first == 1 ? 8 : 4
            guard content.count >= 16 + width else { return }
            firstPieces.append(
                Number(
                    place: size - length + content.startIndex + 16, size: width,
                    value: Self.number(content, 16, width)))
        }
    }

    struct Box {
        let kind: String
        let header: Int
        let length: Int

        init?(_ bytes: ArraySlice<UInt8>, _ place: Int) {
            let start = bytes.startIndex + place
            guard place >= 0, start + 8 <= bytes.endIndex else { return nil }
            kind = String(decoding: bytes[(start + 4)..<(start + 8)], as: UTF8.self)
            let short = MovieIndex.number(bytes, place, 4)
            if short == 1, start + 16 <= bytes.endIndex {
                (header, length) = (16, MovieIndex.number(bytes, place + 8, 8))
            } else {
                (header, length) = (8, short)
            }
            guard length >= header, length < 1 << 48 else { return nil }
        }
    }

    /// A number of at most 8 bytes, without its highest bit if it has 8; missing bytes are 0.
    static func number(_ bytes: ArraySlice<UInt8>, _ place: Int, _ count: Int) -> Int {
        let start = bytes.startIndex + place
        guard place >= 0, start + count <= bytes.endIndex else { return 0 }
        return bytes[start..<(start + count)].reduce(0) { ($0 & 0x7f_ffff_ffff_ffff) << 8 | Int($1) }
    }

    /// Calls `body` with the type and the content of each box.
    static func each(_ bytes: ArraySlice<UInt8>, _ body: (String, ArraySlice<UInt8>) -> Void) {
        var place = 0
        while let box = Box(bytes, place), bytes.startIndex + place + box.length <= bytes.endIndex {
            let start = bytes.startIndex + place
            body(box.kind, bytes[(start + box.header)..<(start + box.length)])
            place += box.length
        }
    }

    /// - Parameter origin: the position in the file of the base of the slice.
    private mutating func readMovie(_ movie: ArraySlice<UInt8>, _ origin: Int) {
        var tracks: [ArraySlice<UInt8>] = []
        var header: ArraySlice<UInt8>?
        Self.each(movie) { kind, content in
            switch kind {
            case "mvhd": header = content
            case "trak": tracks.append(content)
            case "mvex": isFragmented = true
            default: break
            }
        }
        for track in tracks { cut = max(cut, Self.cut(of: track)) }
        hasPlainStart = isFragmented && tracks.contains(where: Self.hasSamples)
        matrix = tracks.lazy.compactMap(Self.matrix).first.map { origin + $0 }
        lowByteFirst = Set(tracks.compactMap(Self.lowByteFirst))
        hidden = Self.hidden(tracks).map { track in
            var kind = track.kind
            kind.place += origin
            return HiddenTrack(id: track.id, kind: kind)
        }
        let parameters = tracks.compactMap(Self.parameters)
        isCommonAVC = !parameters.isEmpty && parameters.allSatisfy { !$0.isEmpty && $0.allSatisfy(\.isCommon) }
        let common = tracks.compactMap(Self.isCommonHEVC)
        isCommonHEVC = !common.isEmpty && common.allSatisfy { $0 }
        guard let header, let version = header.first else { return }
        let (scalePlace, lengthPlace, size) = version == 1 ? (20, 24, 8) : (12, 16, 4)
        timescale = Self.number(header, scalePlace, 4)
        let value = Self.number(header, lengthPlace, size)
        guard timescale > 0, value > 0, header.count >= lengthPlace + size else { return }
        length = Number(place: origin + header.startIndex + lengthPlace, size: size, value: value)
        hasShortTrack = Self.hasShortTrack(tracks, Double(value) / Double(timescale))
    }

    private static func hasShortTrack(_ tracks: [ArraySlice<UInt8>], _ whole: Double) -> Bool {
        let known = tracks.compactMap(kindAndLength)
        let limit = whole / 5
        let hasPictures = known.contains { $0.kind == "vide" && $0.seconds >= limit }
        return known.contains { track in
            track.seconds > 0 && track.seconds < limit
                && (track.kind == "vide" ? !hasPictures : ["soun", "text", "sbtl", "subt"].contains(track.kind))
        }
    }

    private static func hasSamples(_ track: ArraySlice<UInt8>) -> Bool {
        var count = 0
        func search(_ bytes: ArraySlice<UInt8>, _ path: ArraySlice<String>) {
            each(bytes) { kind, content in
                if path.isEmpty, kind == "stsz" || kind == "stz2" { count += number(content, 8, 4) }
                if kind == path.first { search(content, path.dropFirst()) }
            }
        }
        search(track, ["mdia", "minf", "stbl"])
        return count > 0
    }

    private static func kindAndLength(of track: ArraySlice<UInt8>) -> (kind: String, seconds: Double)? {
        var (kind, scale, units) = ("", 0, 0)
        each(track) { name, content in
            each(name == "mdia" ? content : content.prefix(0)) { name, content in
                switch name {
                case "hdlr": kind = String(decoding: content.dropFirst(8).prefix(4), as: UTF8.self)
                case "mdhd":
                    let isLong = content.first == 1
                    scale = number(content, isLong ? 20 : 12, 4)
                    units = number(content, isLong ? 24 : 16, isLong ? 8 : 4)
                default: break
                }
            }
        }
        return scale > 0 ? (kind, Double(units) / Double(scale)) : nil
    }

    /// The position of the matrix in a video track; nil for other tracks.
    private static func matrix(of track: ArraySlice<UInt8>) -> Int? {
        var place: Int?
        var isVideo = false
        each(track) { kind, content in
            if kind == "tkhd", let version = content.first, content.count >= (version == 1 ? 96 : 84) {
                place = content.startIndex + (version == 1 ? 52 : 40)
            }
            guard kind == "mdia" else { return }
            each(content) { kind, content in
                if kind == "hdlr", content.count >= 12, content.dropFirst(8).prefix(4).elementsEqual("vide".utf8) {
                    isVideo = true
                }
            }
        }
        return isVideo ? place : nil
    }

    /// The parameters of H.264 in a video track; empty if it has another codec or several; nil for other tracks.
    private static func parameters(of track: ArraySlice<UInt8>) -> [AVCParameters]? {
        guard matrix(of: track) != nil else { return nil }
        var found: [AVCParameters] = []
        // Only these boxes in each other: a hostile file can nest boxes a million times.
        func search(_ bytes: ArraySlice<UInt8>, _ path: ArraySlice<String>) {
            each(bytes) { kind, content in
                guard kind == path.first else { return }
                switch kind {
                case "stsd": if number(content, 4, 4) == 1 { search(content.dropFirst(8), path.dropFirst()) }
                case "avc1": search(content.dropFirst(78), path.dropFirst())
                case "avcC": found = AVCParameters.sets(ofConfiguration: content)
                default: search(content, path.dropFirst())
                }
            }
        }
        search(track, ["mdia", "minf", "stbl", "stsd", "avc1", "avcC"])
        return found
    }

    /// The id of a track whose samples have the lowest byte first; nil for other tracks.
    private static func lowByteFirst(of track: ArraySlice<UInt8>) -> Int? {
        var id: Int?
        var isLow = false
        func search(_ bytes: ArraySlice<UInt8>, _ path: ArraySlice<String>) {
            each(bytes) { kind, content in
                switch kind {
                case "fl32", "fl64", "in24", "in32":
                    guard path.first == "format" else { return }
                    // The fields before the inner boxes, by the version of the description.
                    let lengths = [28, 44, 64]
                    let version = number(content, 8, 2)
                    guard version < lengths.count else { return }
                    search(content.dropFirst(lengths[version]), ["wave", "enda"])
                case "enda": if path.first == kind { isLow = number(content, 0, 2) == 1 }
                case "stsd": if path.first == kind { search(content.dropFirst(8), path.dropFirst()) }
                default: if path.first == kind { search(content, path.dropFirst()) }
                }
            }
        }
        each(track) { kind, content in
            if kind == "tkhd" { id = number(content, content.first == 1 ? 20 : 12, 4) }
        }
        search(track, ["mdia", "minf", "stbl", "stsd", "format"])
        return isLow ? id : nil
    }

    /// The nine numbers of the matrix that rotates the pictures as a value of videoflip's `video-direction` does.
    package static func matrix(direction: Int, width: Int, height: Int) -> [UInt8] {
        let (a, b, c, d) =
            switch direction {
            case 1: (0, 1, -1, 0)
            case 2: (-1, 0, 0, -1)
            case 3: (0, -1, 1, 0)
            case 4: (-1, 0, 0, 1)
            case 5: (1, 0, 0, -1)
            case 6: (0, 1, 1, 0)
            case 7: (0, -1, -1, 0)
            default: (1, 0, 0, 1)
            }
        // The rotation moves the picture out of its frame; the offset moves it back.
        let x = (a < 0 ? width : 0) + (c < 0 ? height : 0)
        let y = (b < 0 ? width : 0) + (d < 0 ? height : 0)
        let rows = [a << 16, b << 16, 0, c << 16, d << 16, 0, x << 16, y << 16, 1 << 30]
        return rows.flatMap { number in
            (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
        }
    }

    /// The time that the edit list cuts off at the start of a track, in seconds.
    private static func cut(of track: ArraySlice<UInt8>) -> Double {
        var scale = 0
        var begin = 0
        each(track) { kind, content in
            each(kind == "edts" || kind == "mdia" ? content : content.prefix(0)) { kind, content in
                switch kind {
                case "mdhd": scale = number(content, content.first == 1 ? 20 : 12, 4)
                case "elst":
                    let isLong = content.first == 1
                    let count = min(number(content, 4, 4), content.count / (isLong ? 20 : 12))
                    for entry in 0..<count {
                        let time =
                            isLong ? number(content, 8 + entry * 20 + 8, 8) : number(content, 8 + entry * 12 + 4, 4)
                        // A media time of -1 is an empty edit.
                        let isNothing = isLong ? time >= 1 << 55 : time >= 1 << 31
                        if !isNothing { begin = max(begin, time) }
                    }
                default: break
                }
            }
        }
        return scale > 0 ? Double(begin) / Double(scale) : 0
    }
}
