/// ID3v2.2, 2.3 and 2.4 (id3.org), and ID3v1 at the end of a file.
enum ID3 {
    /// The start of the sound, after the tags that begin at `start`.
    static func skip(_ source: SoundSource, _ start: UInt64) -> UInt64 {
        var place = start
        // Some programs write a second tag before the first one.
        for _ in 0..<4 {
            guard let header = Header(source.bytes(place, 10)) else { return place }
            place += UInt64(header.size + (header.hasFooter ? 20 : 10))
        }
        return place
    }

    struct Header {
        let version: UInt8
        let isUnsynchronised: Bool
        let hasExtension: Bool
        let hasFooter: Bool
        let size: Int

        init?(_ bytes: ArraySlice<UInt8>) {
            let bytes = Array(bytes)
            guard bytes.count == 10, bytes.starts(with: "ID3".utf8), (2...4).contains(bytes[3]),
                bytes[6...].allSatisfy({ $0 < 0x80 })
            else { return nil }
            version = bytes[3]
            isUnsynchronised = bytes[5] & 0x80 != 0
            hasExtension = version > 2 && bytes[5] & 0x40 != 0
            hasFooter = version == 4 && bytes[5] & 0x10 != 0
            size = bytes[6...].syncsafe
        }
    }

    static func read(_ source: SoundSource, _ start: UInt64, into facts: inout SoundFacts) {
        guard let header = Header(source.bytes(start, 10)) else { return }
        // The whole tag is unsynchronised (up to 2.3): positions in the decoded tag differ from positions in the file.
        let isWhole = header.isUnsynchronised && header.version < 4
        var part = source
        var place = start + 10
        var end = place + UInt64(header.size)
        if isWhole {
            let bytes = synchronised(source.bytes(place, header.size))
            (part, place, end) = (source.part(bytes), 0, UInt64(bytes.count))
        }
        if header.hasExtension {
            let size = part.bytes(place, 4)
            place += UInt64(header.version == 4 ? max(4, size.syncsafe) : Int(size.number) + 4)
        }
        var frames = 0
        while frames < 4_096, place + 6 < end {
            frames += 1
            guard let frame = Frame(part, place, end, header) else { break }
            read(frame, part, into: &facts)
            place = frame.end
        }
        // The date of the release, if there is none of the recording.
        if let date = facts.tags["RELEASEDATE"], facts.tags["DATE"] == nil { facts.tags["DATE"] = date }
        // Up to version 2.3, the day and the month are in a separate frame.
        if let day = facts.tags.removeValue(forKey: "TDAT")?.first, day.utf8.count == 4,
            facts.first("DATE")?.utf8.count == 4,
            let year = facts.first("DATE")
        {
            facts.tags["DATE"] = ["\(year)-\(day.suffix(2))-\(day.prefix(2))"]
        }
    }

    /// Reverses the unsynchronisation: removes the zero bytes that keep players from reading a tag as sound.
    private static func synchronised(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var last: UInt8 = 0
        for byte in bytes {
            if last != 0xFF || byte != 0 { result.append(byte) }
            last = byte
        }
        return result
    }

    private struct Frame {
        let name: String
        let place: UInt64
        let size: Int
        let isUnsynchronised: Bool
        /// The frame is compressed or encrypted.
        let isHidden: Bool
        var end: UInt64 { place + UInt64(size) }

        init?(_ source: SoundSource, _ start: UInt64, _ limit: UInt64, _ header: Header) {
            let isShort = header.version == 2
            let head = Array(source.bytes(start, isShort ? 6 : 10))
            let nameSize = isShort ? 3 : 4
            guard head.count == (isShort ? 6 : 10), Self.isName(head[..<nameSize]) else { return nil }
            // iTunes writes the names of version 2.2 with a zero byte into later versions.
            name = head[..<nameSize].prefix { $0 != 0 }.utf8Text
            var size = isShort ? Int(head[3...].number) : Int(head[4..<8].number)
            if header.version == 4 {
                let safe = head[4..<8].syncsafe
                // iTunes wrote sizes that are not syncsafe. Such a size is used if only it leads to another frame or to
                // the end.
                if safe != size,
                    Self.leads(source, start + 10 + UInt64(safe), limit)
                        || !Self.leads(source, start + 10 + UInt64(size), limit)
                {
                    size = safe
                }
            }
            var place = start + UInt64(head.count)
            guard place + UInt64(size) <= limit else { return nil }
            var isUnsynchronised = false
            var isHidden = false
            if header.version == 4 {
                isUnsynchronised = head[9] & 0x02 != 0
                isHidden = head[9] & 0x0C != 0
                var extra = 0
                if head[9] & 0x40 != 0 { extra += 1 }
                if head[9] & 0x01 != 0 { extra += 4 }
                extra = min(extra, size)
                place += UInt64(extra)
                size -= extra
            } else if header.version == 3 {
                isHidden = head[9] & 0xC0 != 0
                if head[9] & 0x20 != 0, size > 0 {
                    place += 1
                    size -= 1
                }
            }
            (self.place, self.size, self.isUnsynchronised, self.isHidden) = (place, size, isUnsynchronised, isHidden)
        }

        private static func isName(_ bytes: some Collection<UInt8>) -> Bool {
            let letters = bytes.prefix { $0 != 0 }
            return letters.count >= max(3, bytes.count - 1)
                && bytes.dropFirst(letters.count).allSatisfy { $0 == 0 }
                && letters.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) }
        }

        private static func leads(_ source: SoundSource, _ place: UInt64, _ limit: UInt64) -> Bool {
            if place == limit { return true }
            guard place + 10 <= limit else { return false }
            let next = source.bytes(place, 4)
            return next.count == 4 && (isName(next) || next.allSatisfy { $0 == 0 })
        }
    }

    private static func read(_ frame: Frame, _ source: SoundSource, into facts: inout SoundFacts) {
        guard !frame.isHidden, frame.size > 1 else { return }
        func content() -> ArraySlice<UInt8> {
            let bytes = source.bytes(frame.place, frame.size)
            return frame.isUnsynchronised ? synchronised(bytes)[...] : bytes
        }
        switch frame.name {
        case "APIC", "PIC": readPicture(content(), isShort: frame.name == "PIC", into: &facts)
        case "TXXX", "TXX":
            let texts = texts(content(), source)
            guard texts.count > 1 else { return }
            for text in texts.dropFirst() { facts.add(SoundFacts.name(texts[0]), text) }
        case "UFID", "UFI":
            let parts = content().split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2, parts[0].elementsEqual("http://musicbrainz.org".utf8) {
                facts.add("MUSICBRAINZ_TRACKID", parts[1].utf8Text)
            }
        case "TCON", "TCO":
            for text in texts(content(), source) { for genre in genres(text) { facts.add("GENRE", genre) } }
        case "PCST", "PCS": facts.add("PODCAST", "1")
        default:
            guard let name = names[frame.name] else { return }
            for text in texts(content(), source) { facts.add(name, text) }
        }
    }

    /// The texts of a frame: an encoding byte, and texts separated by zeros.
    private static func texts(_ content: ArraySlice<UInt8>, _ source: SoundSource) -> [String] {
        guard let encoding = content.first else { return [] }
        let rest = content.dropFirst()
        let text: String
        switch encoding {
        case 0: text = source.text(rest)
        case 1: return wide(rest).map { $0.utf16Text(isBig: false) }
        case 2: text = rest.utf16Text(isBig: true)
        case 3: text = rest.utf8Text
        default: return []
        }
        return text.unicodeScalars.split(separator: "\0", omittingEmptySubsequences: false).map { String($0) }
    }

    /// Splits UTF-16 texts. Each text may have a byte order mark; a text without one has the order of the first text.
    private static func wide(_ bytes: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
        var parts: [ArraySlice<UInt8>] = []
        var start = bytes.startIndex
        var index = start
        let mark = bytes.prefix(2)
        func part(_ range: Range<Int>) -> ArraySlice<UInt8> {
            let part = bytes[range]
            if [[0xFF, 0xFE], [0xFE, 0xFF]].contains(Array(part.prefix(2))) || parts.isEmpty { return part }
            return (Array(mark) + part)[...]
        }
        while index + 1 < bytes.endIndex {
            if bytes[index] == 0, bytes[index + 1] == 0 {
                parts.append(part(start..<index))
                start = index + 2
            }
            index += 2
        }
        if start < bytes.endIndex { parts.append(part(start..<bytes.endIndex)) }
        return parts
    }

    private static func readPicture(_ content: ArraySlice<UInt8>, isShort: Bool, into facts: inout SoundFacts) {
        var rest = content.dropFirst()
        if isShort {
            rest = rest.dropFirst(3)
        } else {
            rest = rest.drop { $0 != 0 }.dropFirst()
        }
        let kind = rest.first ?? 0
        rest = rest.dropFirst()
        if content.first == 1 || content.first == 2 {
            while rest.count > 1, !(rest[rest.startIndex] == 0 && rest[rest.startIndex + 1] == 0) {
                rest = rest.dropFirst(2)
            }
            rest = rest.dropFirst(2)
        } else {
            rest = rest.drop { $0 != 0 }.dropFirst()
        }
        if !rest.isEmpty { facts.addPicture(isFront: kind == 3) { rest } }
    }

    /// The genres in `(17)`, `(51)(39)Text`, `17`, `((text)` or `Text`.
    static func genres(_ text: String) -> [String] {
        var result: [String] = []
        var rest = text[...]
        func add(_ word: Substring) {
            if word == "RX" {
                result.append("Remix")
            } else if word == "CR" {
                result.append("Cover")
            } else if let name = Genres.name(word) {
                result.append(name)
            }
        }
        while rest.hasPrefix("("), !rest.hasPrefix("(("), let end = rest.firstIndex(of: ")") {
            let word = rest[rest.index(after: rest.startIndex)..<end]
            guard word == "RX" || word == "CR" || word.allSatisfy(\.isNumber), !word.isEmpty else { break }
            add(word)
            rest = rest[rest.index(after: end)...]
        }
        if rest.hasPrefix("((") { rest = rest.dropFirst() }
        if rest.isEmpty { return result }
        if let name = Genres.name(rest) { return result + [name] }
        // The text after a number is often the name of the same genre.
        return result.contains(String(rest)) ? result : result + [String(rest)]
    }

    private static let names = [
        "TIT2": "TITLE", "TPE1": "ARTIST", "TPE2": "ALBUMARTIST", "TALB": "ALBUM", "TCOM": "COMPOSER",
        "TDRC": "DATE", "TYER": "DATE", "TDRL": "RELEASEDATE", "TDAT": "TDAT", "TDA": "TDAT", "TRCK": "TRACKNUMBER",
        "TPOS": "DISCNUMBER", "TCMP": "COMPILATION",
        "TSOT": "TITLESORT", "TSOP": "ARTISTSORT", "TSOA": "ALBUMSORT", "TSO2": "ALBUMARTISTSORT",
        "TSOC": "COMPOSERSORT", "TT2": "TITLE", "TP1": "ARTIST", "TP2": "ALBUMARTIST", "TAL": "ALBUM",
        "TCM": "COMPOSER", "TYE": "DATE", "TRK": "TRACKNUMBER", "TPA": "DISCNUMBER", "TCP": "COMPILATION",
        "TST": "TITLESORT", "TSP": "ARTISTSORT", "TSA": "ALBUMSORT", "TS2": "ALBUMARTISTSORT", "TSC": "COMPOSERSORT",
    ]

    /// ID3v1 and 1.1, in the last 128 bytes.
    static func readOldest(_ source: SoundSource, into facts: inout SoundFacts) -> Bool {
        guard source.size >= 128, source.starts(source.size - 128, with: "TAG") else { return false }
        var tag = Bytes(source.bytes(source.size - 125, 125))
        for (name, size) in [("TITLE", 30), ("ARTIST", 30), ("ALBUM", 30), ("DATE", 4)] {
            facts.add(name, source.text(tag.take(size).prefix { $0 != 0 }))
        }
        let comment = Array(tag.take(30))
        if comment.count == 30, comment[28] == 0, comment[29] != 0 { facts.add("TRACKNUMBER", "\(comment[29])") }
        if let genre = tag.rest.first, let name = Genres.name(Int(genre)) { facts.add("GENRE", name) }
        return true
    }
}
