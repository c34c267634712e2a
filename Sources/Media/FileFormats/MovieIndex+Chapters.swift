import Glibc
package import PluginAPI

/// Chapters in MP4 and QuickTime files. There are two forms: a track with texts, to which other tracks refer (QuickTime), and a
/// list beside the tags (`chpl`, by Nero), which is also the form that ffmpeg writes.
extension MovieIndex {
    /// The number of chapters is a byte.
    package static let mostChapters = 255
    /// The number of bytes of a title is a byte, too.
    static let longestTitle = 255
    /// Units per second of the times in the list.
    private static let listScale = 10_000_000.0
    /// Later times are not believed, in seconds.
    private static let latest = 1e9

    /// The chapters, in the order of their times; empty: there are none, or it is not such a file.
    package static func chapters(_ path: [UInt8]) -> [MediaChapter] {
        let file = open(path.map { CChar(bitPattern: $0) } + [0], O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return [] }
        defer { close(file) }
        return chapters(size: Int(lseek(file, 0, SEEK_END))) { FileContent.bytes(of: file, at: $0, count: $1) }
    }

    /// - Parameter read: reads bytes from a position; fewer at the end of the file. The tables of the other tracks, which may be
    ///   large, are not read.
    package static func chapters(size: Int, read: (_ place: Int, _ count: Int) -> [UInt8]) -> [MediaChapter] {
        guard Box(read(0, 16)[...], 0)?.kind == "ftyp" else { return [] }
        var tracks: [TextTrack] = []
        var wanted: Set<Int> = []
        var listed: [MediaChapter] = []
        walk(0..<size, read) { kind, movie in
            guard kind == "moov" else { return }
            walk(movie, read) { kind, place in
                switch kind {
                case "trak":
                    let track = TextTrack(place, read)
                    wanted.formUnion(track.chapterTracks)
                    tracks.append(track)
                case "udta":
                    walk(place, read) { kind, place in
                        if kind == "chpl" { listed = list(read(place.lowerBound, min(place.count, longestList))[...]) }
                    }
                default: break
                }
            }
        }
        let texts = tracks.first { wanted.contains($0.id) && $0.kind != "vide" }?.chapters(read) ?? []
        return (texts.isEmpty ? listed : texts).sorted { $0.start < $1.start }
    }

    /// The largest list: each chapter has a time, a length and a title.
    private static let longestList = 9 + mostChapters * (9 + longestTitle)

    /// Calls `body` with the type of each box in a part of the file, and with the place of its content.
    fileprivate static func walk(
        _ part: Range<Int>, _ read: (_ place: Int, _ count: Int) -> [UInt8], _ body: (String, Range<Int>) -> Void
    ) {
        var place = part.lowerBound
        for _ in 0..<boxLimit where place < part.upperBound {
            guard let box = Box(read(place, 16)[...], 0), box.length <= part.upperBound - place else { return }
            body(box.kind, place + box.header..<place + box.length)
            place += box.length
        }
    }

    /// The list: a version and flags (4 bytes), in version 1 four unused bytes, the number of chapters (1 byte), and for each its
    /// time (8 bytes), and the length and the bytes of its title.
    private static func list(_ content: ArraySlice<UInt8>) -> [MediaChapter] {
        var place = content.first == 0 ? 4 : 8
        let count = number(content, place, 1)
        place += 1
        var chapters: [MediaChapter] = []
        while chapters.count < count, place + 9 <= content.count {
            let start = Double(number(content, place, 8)) / listScale
            let length = number(content, place + 8, 1)
            let title = content.dropFirst(place + 9).prefix(length)
            guard title.count == length else { break }
            chapters.append(MediaChapter(start: start, title: String(decoding: title, as: UTF8.self)))
            place += 9 + length
        }
        return chapters
    }

    // MARK: Writing

    /// The change that gives chapters to a film whose index comes after its samples. An earlier list of chapters is replaced.
    ///
    /// - Returns: nil: it is no such film.
    package static func patch(descriptor file: Int32, chapters: [MediaChapter]) -> Patch? {
        patch(size: Int(lseek(file, 0, SEEK_END)), chapters: chapters) {
            FileContent.bytes(of: file, at: $0, count: $1)
        }
    }

    /// - Parameter read: reads bytes from a position; fewer at the end of the file.
    package static func patch(
        size: Int, chapters: [MediaChapter], read: (_ place: Int, _ count: Int) -> [UInt8]
    ) -> Patch? {
        guard let index = contents(size: size, read: read) else { return nil }
        let end = index.place + index.boxes.endIndex
        guard size - end <= indexLimit else { return nil }
        // The boxes behind the index move: no sample may be in them.
        let behind = read(end, size - end)
        var isMovable = behind.count == size - end
        each(behind[...]) { kind, _ in if ["mdat", "moof", "moov"].contains(kind) { isMovable = false } }
        guard isMovable else { return nil }
        var boxes: [UInt8] = []
        var user: [UInt8] = []
        var rest = index.boxes
        while let box = Box(rest, 0), box.length <= rest.count {
            let whole = rest.prefix(box.length)
            if box.kind == "udta" {
                each(whole.dropFirst(box.header)) { kind, content in
                    if kind != "chpl" { user += FilmBox.box(kind, Array(content)) }
                }
            } else {
                boxes += whole
            }
            rest = rest.dropFirst(box.length)
        }
        let changed = FilmBox.box("moov", boxes + FilmBox.box("udta", user + list(chapters)))
        return Patch(place: index.place, bytes: changed + behind)
    }

    private static func list(_ chapters: [MediaChapter]) -> [UInt8] {
        let written = chapters.prefix(mostChapters)
        var content = [UInt8](repeating: 0, count: 4) + [UInt8(written.count)]
        for chapter in written {
            var title = ""
            // A cut inside a character would make the whole title unreadable.
            for character in chapter.title {
                if title.utf8.count + character.utf8.count > longestTitle { break }
                title.append(character)
            }
            content +=
                big(Int((min(max(0, chapter.start), latest) * listScale).rounded()), 8) + [UInt8(title.utf8.count)]
                + title.utf8
        }
        return FilmBox.full("chpl", content, version: 1)
    }
}

/// What is needed of a track to read its samples as texts.
private struct TextTrack {
    private(set) var id = 0
    private(set) var kind = ""
    /// The tracks that have the chapters of this one.
    private(set) var chapterTracks: [Int] = []
    private var timescale = 0
    private var tables: [String: ArraySlice<UInt8>] = [:]

    /// Larger tables are not believed.
    private static let mostSamples = 4096
    private static let longestSample = 2048
    private static let largestTable = 12 + mostSamples * 12

    init(_ track: Range<Int>, _ read: (_ place: Int, _ count: Int) -> [UInt8]) {
        var (id, kind, timescale) = (0, "", 0)
        var references: [Int] = []
        var tables: [String: ArraySlice<UInt8>] = [:]
        func bytes(_ place: Range<Int>, _ limit: Int) -> ArraySlice<UInt8> {
            read(place.lowerBound, min(place.count, limit))[...]
        }
        func search(_ part: Range<Int>, _ path: ArraySlice<String>) {
            MovieIndex.walk(part, read) { name, place in
                switch name {
                case "tkhd":
                    let head = bytes(place, 32)
                    id = MovieIndex.number(head, head.first == 1 ? 20 : 12, 4)
                case "mdhd":
                    let head = bytes(place, 32)
                    timescale = MovieIndex.number(head, head.first == 1 ? 20 : 12, 4)
                case "hdlr":
                    // The handler of the media comes before the one for its data.
                    if kind.isEmpty { kind = String(decoding: bytes(place, 12).dropFirst(8), as: UTF8.self) }
                case "stts", "stsz", "stsc", "stco", "co64":
                    if path.isEmpty { tables[name] = bytes(place, Self.largestTable) }
                case "tref":
                    MovieIndex.walk(place, read) { name, place in
                        guard name == "chap" else { return }
                        let list = bytes(place, 64)
                        references += (0..<list.count / 4).map { MovieIndex.number(list, $0 * 4, 4) }
                    }
                // The tables of pictures and sound are not needed.
                case path.first:
                    if name != "minf" || !["vide", "soun"].contains(kind) { search(place, path.dropFirst()) }
                default: break
                }
            }
        }
        search(track, ["mdia", "minf", "stbl"])
        (self.id, self.kind, self.timescale, chapterTracks, self.tables) = (id, kind, timescale, references, tables)
    }

    /// One chapter for each sample: the length of the text (2 bytes), and the text in UTF-8, or in UTF-16 with a byte order mark.
    func chapters(_ read: (_ place: Int, _ count: Int) -> [UInt8]) -> [MediaChapter] {
        guard timescale > 0 else { return [] }
        return zip(times, samples).map { time, sample in
            let bytes = read(sample.place, min(sample.size, Self.longestSample))[...]
            let length = min(MovieIndex.number(bytes, 0, 2), max(0, bytes.count - 2))
            return MediaChapter(
                start: Double(time) / Double(timescale), title: Self.text(bytes.dropFirst(2).prefix(length)))
        }
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        let isBig = bytes.starts(with: [0xFE, 0xFF])
        guard isBig || bytes.starts(with: [0xFF, 0xFE]) else { return String(decoding: bytes, as: UTF8.self) }
        let content = Array(bytes.dropFirst(2))
        let units = stride(from: 0, to: content.count - 1, by: 2).map {
            UInt16(content[$0 + (isBig ? 0 : 1)]) << 8 | UInt16(content[$0 + (isBig ? 1 : 0)])
        }
        return String(decoding: units, as: UTF16.self)
    }

    private func entry(_ table: String, _ place: Int, _ size: Int = 4) -> Int {
        tables[table].map { MovieIndex.number($0, place, size) } ?? 0
    }

    /// The number of entries of a table that are there.
    private func count(_ table: String, width: Int, header: Int = 8) -> Int {
        min(entry(table, header - 4), max(0, (tables[table]?.count ?? 0) - header) / width)
    }

    private var times: [Int] {
        var times: [Int] = []
        var time = 0
        for run in 0..<min(Self.mostSamples, count("stts", width: 8)) {
            let (number, duration) = (entry("stts", 8 + run * 8), entry("stts", 12 + run * 8))
            for _ in 0..<min(number, Self.mostSamples - times.count) {
                times.append(time)
                time += duration
            }
        }
        return times
    }

    private var samples: [(place: Int, size: Int)] {
        let constant = entry("stsz", 4)
        let number = min(Self.mostSamples, constant > 0 ? entry("stsz", 8) : count("stsz", width: 4, header: 12))
        let (places, width) = tables["stco"] == nil ? ("co64", 8) : ("stco", 4)
        var samples: [(place: Int, size: Int)] = []
        var run = 0
        for chunk in 0..<count(places, width: width) where samples.count < number {
            while run + 1 < count("stsc", width: 12), entry("stsc", 8 + (run + 1) * 12) <= chunk + 1 { run += 1 }
            // Sums stay far below the largest number.
            var place = min(entry(places, 8 + chunk * width, width), 1 << 56)
            for _ in 0..<min(entry("stsc", 12 + run * 12), number - samples.count) {
                let size = constant > 0 ? constant : entry("stsz", 12 + samples.count * 4)
                samples.append((place, size))
                place += size
            }
        }
        return samples
    }
}
