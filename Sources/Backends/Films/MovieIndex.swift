import Glibc

/// What the boxes of an MP4 or QuickTime file say of its shape; nothing of its pictures.
struct MovieIndex: Equatable {
    /// A number in the file: where it is, and how many bytes it has.
    struct Number: Equatable {
        var place: Int
        var size: Int
        var value: Int
    }

    /// It comes in pieces, with an index in each.
    private(set) var isFragmented = false
    /// The length of the film, in units of ``timescale``.
    private(set) var length: Number?
    /// Units in a second, for ``length``.
    private(set) var timescale = 0
    /// Seconds by which edit lists cut off the begin of the tracks, of the track that loses most.
    private(set) var cut = 0.0

    /// The times in the table of pieces (`tfra`) of the first piece, one of each track.
    private(set) var firstPieces: [Number] = []

    private static let indexLimit = 64 << 20
    private static let boxLimit = 64

    /// Where the first track of pictures says how they are turned.
    private(set) var matrix: Int?

    init?(_ path: [UInt8]) {
        let file = open(path.map { CChar(bitPattern: $0) } + [0], O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        self.init(descriptor: file)
    }

    /// Nil if it is no such file.
    init?(descriptor file: Int32) {
        var place = 0
        for _ in 0..<Self.boxLimit {
            guard let head = Self.read(file, place, 16), head.count == 16, let box = Box(head[...], 0) else { break }
            if place == 0, box.kind != "ftyp" { return nil }
            switch box.kind {
            case "moof": isFragmented = true
            case "moov" where box.length <= Self.indexLimit:
                if let bytes = Self.read(file, place, box.length) { readMovie(bytes[box.header...], place) }
            default: break
            }
            place += box.length
            if isFragmented { break }
        }
        if place == 0 { return nil }
        if isFragmented { readPieces(file) }
    }

    /// From the end of the file, where a box says how far before it the table begins.
    private mutating func readPieces(_ file: Int32) {
        let end = Int(lseek(file, 0, SEEK_END))
        guard end > 16, let tail = Self.read(file, end - 16, 16), tail[4..<8].elementsEqual("mfro".utf8) else { return }
        let length = Self.number(tail[...], 12, 4)
        guard length > 16, length <= min(end, Self.indexLimit), let bytes = Self.read(file, end - length, length),
            let box = Box(bytes[...], 0), box.kind == "mfra", bytes.count == length
        else { return }
        Self.each(bytes[box.header...]) { kind, content in
            guard kind == "tfra", Self.number(content, 12, 4) > 0 else { return }
            let size = content.first == 1 ? 8 : 4
            guard content.count >= 16 + size else { return }
            firstPieces.append(
                Number(
                    place: end - length + content.startIndex + 16, size: size, value: Self.number(content, 16, size)))
        }
    }

    private static func read(_ file: Int32, _ place: Int, _ count: Int) -> [UInt8]? {
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { bytes, read in
            read = 0
            while read < count {
                let more = pread(file, bytes.baseAddress.map { $0 + read }, count - read, off_t(place + read))
                guard more > 0 else { break }
                read += more
            }
        }
        return bytes.isEmpty ? nil : bytes
    }

    private struct Box {
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

    /// A number of at most 8 bytes; what is larger than 2^56 is cut, and what is not there is 0.
    private static func number(_ bytes: ArraySlice<UInt8>, _ place: Int, _ count: Int) -> Int {
        let start = bytes.startIndex + place
        guard place >= 0, start + count <= bytes.endIndex else { return 0 }
        return bytes[start..<(start + count)].reduce(0) { ($0 & 0xff_ffff_ffff_ffff) << 8 | Int($1) }
    }

    /// The boxes one after the other, with what is in each.
    private static func each(_ bytes: ArraySlice<UInt8>, _ body: (String, ArraySlice<UInt8>) -> Void) {
        var place = 0
        while let box = Box(bytes, place), bytes.startIndex + place + box.length <= bytes.endIndex {
            let start = bytes.startIndex + place
            body(box.kind, bytes[(start + box.header)..<(start + box.length)])
            place += box.length
        }
    }

    /// - Parameter origin: where the slice's base begins in the file.
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
        matrix = tracks.lazy.compactMap(Self.matrix).first.map { origin + $0 }
        guard let header, let version = header.first else { return }
        let (scalePlace, lengthPlace, size) = version == 1 ? (20, 24, 8) : (12, 16, 4)
        timescale = Self.number(header, scalePlace, 4)
        let value = Self.number(header, lengthPlace, size)
        guard timescale > 0, value > 0, header.count >= lengthPlace + size else { return }
        length = Number(place: origin + header.startIndex + lengthPlace, size: size, value: value)
    }

    /// Where it is in a track of pictures; nil for other tracks.
    private static func matrix(of track: ArraySlice<UInt8>) -> Int? {
        var place: Int?
        var isVideo = false
        each(track) { kind, content in
            if kind == "tkhd", content.count >= 84 { place = content.startIndex + (content.first == 1 ? 52 : 40) }
            guard kind == "mdia" else { return }
            each(content) { kind, content in
                if kind == "hdlr", content.count >= 12, content.dropFirst(8).prefix(4).elementsEqual("vide".utf8) {
                    isVideo = true
                }
            }
        }
        return isVideo ? place : nil
    }

    /// The nine numbers by which players turn pictures: those of a value of videoflip's `video-direction`.
    static func matrix(direction: Int, width: Int, height: Int) -> [UInt8] {
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
        // What is turned out of the picture comes back into it.
        let x = (a < 0 ? width : 0) + (c < 0 ? height : 0)
        let y = (b < 0 ? width : 0) + (d < 0 ? height : 0)
        let rows = [a << 16, b << 16, 0, c << 16, d << 16, 0, x << 16, y << 16, 1 << 30]
        return rows.flatMap { number in
            (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
        }
    }

    /// Seconds of a track before the place at which its film begins.
    private static func cut(of track: ArraySlice<UInt8>) -> Double {
        var scale = 0
        var begin = 0
        each(track) { kind, content in
            each(kind == "edts" || kind == "mdia" ? content : content.prefix(0)) { kind, content in
                switch kind {
                case "mdhd": scale = number(content, content.first == 1 ? 20 : 12, 4)
                case "elst":
                    let isLong = content.first == 1
                    let count = min(number(content, 4, 4), content.count / 12)
                    for entry in 0..<count {
                        let time =
                            isLong ? number(content, 8 + entry * 20 + 8, 8) : number(content, 8 + entry * 12 + 4, 4)
                        // -1: nothing is shown.
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
