/// APEv2, at the end of Monkey's Audio, WavPack, Musepack and some MP3 files; and ID3v1 at the same place.
enum APETag {
    static func readEnd(_ source: SoundSource, into facts: inout SoundFacts) {
        var oldest = SoundFacts(wantsPicture: false)
        let hasOldest = ID3.readOldest(source, into: &oldest)
        let end = source.size - (hasOldest ? 128 : 0)
        if end >= 32 { read(source, footer: end - 32, into: &facts) }
        facts.addMissing(oldest)
    }

    private static func read(_ source: SoundSource, footer: UInt64, into facts: inout SoundFacts) {
        let bytes = source.bytes(footer, 32)
        guard bytes.starts(with: "APETAGEX".utf8) else { return }
        let size = bytes.littleNumber(12, 4)
        guard size >= 32, size <= footer + 32 else { return }
        var own = SoundFacts(wantsPicture: facts.wantsPicture)
        var reader = Bytes(source.bytes(footer + 32 - size, Int(size) - 32))
        for _ in 0..<min(bytes.littleNumber(16, 4), 4_096) where reader.count > 8 {
            let length = Int(clamping: reader.little(4))
            let flags = reader.little(4)
            let key = reader.take(reader.rest.firstIndex(of: 0).map { $0 - reader.rest.startIndex } ?? 0).utf8Text
            reader.skip(1)
            let value = reader.take(length)
            if flags >> 1 & 3 == 1 {
                if key.lowercased().hasPrefix("cover art") {
                    own.addPicture(isFront: key.lowercased().hasSuffix("(front)")) {
                        value.drop { $0 != 0 }.dropFirst()
                    }
                }
            } else {
                for text in value.prefix(65_536).split(separator: 0) { own.add(SoundFacts.name(key), text.utf8Text) }
            }
        }
        facts.addMissing(own)
    }
}

/// WAV (with its INFO lists and ID3) and AIFF: files that consist of chunks.
enum ChunkFile {
    private static func chunks(
        _ source: SoundSource, _ start: UInt64, _ end: UInt64, isBig: Bool,
        _ body: (_ name: String, _ place: UInt64, _ size: UInt64) -> Void
    ) {
        var place = start
        for _ in 0..<1_024 {
            let head = source.bytes(place, 8)
            guard head.count == 8, place < end else { return }
            let size = isBig ? head.bigNumber(4, 4) : head.littleNumber(4, 4)
            body(head.prefix(4).latinText, place + 8, min(size, source.size - min(source.size, place + 8)))
            place += 8 + size + size % 2
        }
    }

    /// The bytes of the sound in a file: of its chunk `data`, or `SSND`.
    static func sound(_ source: SoundSource, isBig: Bool) -> Range<UInt64>? {
        var range: Range<UInt64>?
        var longSize: UInt64 = 0
        chunks(source, 12, source.size, isBig: isBig) { name, place, size in
            guard range == nil else { return }
            switch name {
            // RF64: the sizes that do not fit into 32 bits.
            case "ds64": longSize = source.bytes(place + 8, 8).littleNumber(0, 8)
            case "data" where !isBig:
                let isLong = longSize > 0 && source.starts(0, with: "RF64")
                range = place..<place + (isLong ? min(longSize, source.size - min(source.size, place)) : size)
            case "SSND" where isBig && size >= 8: range = place + 8..<place + size
            default: break
            }
        }
        return range.flatMap { $0.isEmpty ? nil : $0 }
    }

    static func readWave(_ source: SoundSource, into facts: inout SoundFacts) {
        var (rate, length): (UInt64, UInt64) = (0, 0)
        var own = SoundFacts(wantsPicture: facts.wantsPicture)
        var list = SoundFacts(wantsPicture: false)
        chunks(source, 12, source.size, isBig: false) { name, place, size in
            switch name {
            case "fmt ": rate = source.bytes(place, 16).littleNumber(8, 4)
            case "data": length = size
            case "id3 ", "ID3 ": ID3.read(source, place, into: &own)
            case "LIST" where source.starts(place, with: "INFO"):
                chunks(source, place + 4, place + size, isBig: false) { name, place, size in
                    guard let tag = names[name] else { return }
                    let text = source.bytes(place, Int(min(size, SoundFacts.longest))).prefix { $0 != 0 }
                    list.add(tag, String(validating: text, as: UTF8.self) ?? source.text(text))
                }
            default: break
            }
        }
        facts.addMissing(own)
        facts.addMissing(list)
        if rate > 0 { facts.duration = Double(length) / Double(rate) }
    }

    private static let names = [
        "INAM": "TITLE", "IART": "ARTIST", "IPRD": "ALBUM", "ICRD": "DATE", "IGNR": "GENRE", "ITRK": "TRACKNUMBER",
        "IPRT": "TRACKNUMBER", "IMUS": "COMPOSER",
    ]

    static func readAIFF(_ source: SoundSource, into facts: inout SoundFacts) {
        var own = SoundFacts(wantsPicture: facts.wantsPicture)
        var oldest = SoundFacts(wantsPicture: false)
        var duration = 0.0
        chunks(source, 12, source.size, isBig: true) { name, place, size in
            switch name {
            case "COMM":
                let common = source.bytes(place, 18)
                let rate = extended(common.dropFirst(8))
                if rate > 0 { duration = Double(common.bigNumber(2, 4)) / rate }
            case "ID3 ", "id3 ": ID3.read(source, place, into: &own)
            case "NAME": oldest.add("TITLE", source.text(source.bytes(place, Int(min(size, SoundFacts.longest)))))
            case "AUTH": oldest.add("ARTIST", source.text(source.bytes(place, Int(min(size, SoundFacts.longest)))))
            default: break
            }
        }
        facts.addMissing(own)
        facts.addMissing(oldest)
        facts.duration = duration
    }

    /// An 80-bit floating-point number.
    private static func extended(_ bytes: ArraySlice<UInt8>) -> Double {
        let exponent = Int(bytes.bigNumber(0, 2) & 0x7FFF) - 16_383 - 63
        guard (-200...200).contains(exponent) else { return 0 }
        var value = Double(bytes.bigNumber(2, 8))
        for _ in 0..<abs(exponent) { value *= exponent < 0 ? 0.5 : 2 }
        return value
    }
}

/// Windows Media (ASF).
enum ASFFile {
    static let identity: [UInt8] = [
        0x30, 0x26, 0xB2, 0x75, 0x8E, 0x66, 0xCF, 0x11, 0xA6, 0xD9, 0x00, 0xAA, 0x00, 0x62, 0xCE, 0x6C,
    ]
    // The first bytes of their ids are enough to distinguish these objects.
    private static let (properties, description, extended): ([UInt8], [UInt8], [UInt8]) = (
        [0xA1, 0xDC, 0xAB, 0x8C], [0x33, 0x26, 0xB2, 0x75], [0x40, 0xA4, 0xD0, 0xD2]
    )
    private static let (more, library): ([UInt8], [UInt8]) = ([0xB5, 0x03, 0xBF, 0x5F], [0x94, 0x1C, 0x23, 0x44])

    static func read(_ source: SoundSource, into facts: inout SoundFacts) -> Bool {
        let header = source.bytes(0, 30)
        let end = min(source.size, header.littleNumber(16, 8))
        var place: UInt64 = 30
        // For values that occur several times, the first value is in another object, which may come later.
        var further = SoundFacts(wantsPicture: facts.wantsPicture)
        for _ in 0..<min(header.littleNumber(24, 4), 256) where place + 24 <= end {
            let head = source.bytes(place, 24)
            let size = head.littleNumber(16, 8)
            guard size >= 24, size <= end - place else { break }
            if head.starts(with: properties) {
                let body = source.bytes(place + 24, 80)
                let seconds = Double(body.littleNumber(40, 8)) / 1e7 - Double(body.littleNumber(56, 8)) / 1e3
                facts.duration = max(0, seconds)
            } else if head.starts(with: description) {
                var reader = Bytes(source.bytes(place + 24, Int(clamping: size - 24)))
                let sizes = (0..<5).map { _ in Int(reader.little(2)) }
                facts.add("TITLE", text(reader.take(sizes[0])))
                facts.add("ARTIST", text(reader.take(sizes[1])))
            } else if head.starts(with: extended) {
                readExtended(source.bytes(place + 24, Int(clamping: size - 24)), into: &facts)
            } else if head.starts(with: more) {
                readMore(source, place + 46, place + size, into: &further)
            }
            place += size
        }
        for (name, values) in further.tags { for value in values { facts.add(name, value) } }
        further.tags = [:]
        facts.addMissing(further)
        return true
    }

    /// The first and the last bytes of the payloads in the packets.
    static func sound(_ source: SoundSource, part: Int) -> (first: [UInt8], last: [UInt8]) {
        let header = source.bytes(0, 30).littleNumber(16, 8)
        let data = source.bytes(header, 50)
        guard data.count == 50, data.starts(with: [0x36, 0x26, 0xB2, 0x75]) else { return ([], []) }
        let size = packetSize(source, header)
        guard size > 0 else { return ([], []) }
        let begin = header + 50
        let end = header + min(source.size - header, max(50, data.littleNumber(16, 8)))
        let count = (end - begin) / size
        var (first, last): ([UInt8], [UInt8]) = ([], [])
        var packet: UInt64 = 0
        while packet < count, first.count < part {
            first += payloads(source.bytes(begin + packet * size, Int(size)))
            packet += 1
        }
        packet = count
        while packet > 0, last.count < part {
            packet -= 1
            last = payloads(source.bytes(begin + packet * size, Int(size))) + last
        }
        return (Array(first.prefix(part)), Array(last.suffix(part)))
    }

    /// The size of all packets in bytes; 0: unknown.
    private static func packetSize(_ source: SoundSource, _ end: UInt64) -> UInt64 {
        var place: UInt64 = 30
        for _ in 0..<256 where place + 24 <= end {
            let head = source.bytes(place, 24)
            let size = head.littleNumber(16, 8)
            guard size >= 24, size <= end - place else { return 0 }
            if head.starts(with: properties) {
                let packet = source.bytes(place + 92, 4).littleNumber(0, 4)
                return packet <= 1 << 20 ? packet : 0
            }
            place += size
        }
        return 0
    }

    /// The payloads of a packet, one after the other (section 5.2 of the specification).
    private static func payloads(_ packet: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var reader = Bytes(packet)
        func number(_ kind: UInt8) -> Int { Int(reader.little([0, 1, 2, 4][Int(kind & 3)])) }
        var flags = reader.byte()
        if flags & 0x80 != 0 {
            reader.skip(Int(flags & 0xF))
            flags = reader.byte()
        }
        let kinds = reader.byte()
        _ = number(flags >> 5)
        _ = number(flags >> 1)
        let padding = number(flags >> 3)
        reader.skip(6)
        let hasMany = flags & 1 != 0
        let shape = hasMany ? reader.byte() : 1
        var result: ArraySlice<UInt8> = []
        for _ in 0..<(shape & 0x3F) where !reader.isEmpty {
            reader.skip(1)
            _ = number(kinds >> 4)
            _ = number(kinds >> 2)
            let replicated = number(kinds)
            reader.skip(replicated)
            let size = hasMany ? number(shape >> 6) : max(0, reader.count - padding)
            result += reader.take(size)
        }
        return result
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String { bytes.utf16Text(isBig: false) }

    /// Reads the objects in the extension of the header; one of them contains the values that occur several times.
    private static func readMore(_ source: SoundSource, _ start: UInt64, _ end: UInt64, into facts: inout SoundFacts) {
        var place = start
        for _ in 0..<256 where place + 24 <= end {
            let head = source.bytes(place, 24)
            let size = head.littleNumber(16, 8)
            guard size >= 24, size <= end - place else { return }
            if head.starts(with: library) {
                var reader = Bytes(source.bytes(place + 24, Int(clamping: size - 24)))
                for _ in 0..<reader.little(2) where !reader.isEmpty {
                    reader.skip(4)
                    let length = Int(reader.little(2))
                    let kind = reader.little(2)
                    let count = Int(clamping: reader.little(4))
                    let name = text(reader.take(length))
                    let value = reader.take(count)
                    read(name, kind, value, into: &facts)
                }
            }
            place += size
        }
    }

    private static func read(_ name: String, _ kind: UInt64, _ value: ArraySlice<UInt8>, into facts: inout SoundFacts) {
        let name = String(name.unicodeScalars.prefix { $0 != "\0" })
        switch kind {
        case 0:
            let tag = ["Title": "TITLE", "Author": "ARTIST"][name] ?? SoundFacts.name(name)
            facts.add(tag, text(value))
        case 1 where name == "WM/Picture":
            var picture = Bytes(value)
            let isFront = picture.byte() == 3
            picture.skip(4)
            for _ in 0..<2 { while picture.count > 1, picture.little(2) != 0 {} }
            facts.addPicture(isFront: isFront) { picture.rest }
        case 2...5: facts.add(SoundFacts.name(name), "\(value.littleNumber(0, 8))")
        default: break
        }
    }

    private static func readExtended(_ bytes: ArraySlice<UInt8>, into facts: inout SoundFacts) {
        var reader = Bytes(bytes)
        for _ in 0..<reader.little(2) where !reader.isEmpty {
            let name = text(reader.take(Int(reader.little(2))))
            let kind = reader.little(2)
            read(name, kind, reader.take(Int(reader.little(2))), into: &facts)
        }
    }
}

/// The durations of rarer formats, computed from their first bytes.
enum OtherFiles {
    static func readDSF(_ source: SoundSource, into facts: inout SoundFacts) {
        let place = source.bytes(20, 8).littleNumber(0, 8)
        if place > 0 { ID3.read(source, place, into: &facts) }
        let format = source.bytes(28, 52)
        let rate = format.littleNumber(28, 4)
        if rate > 0 { facts.duration = Double(format.littleNumber(36, 8)) / Double(rate) }
    }

    static func wavPackDuration(_ source: SoundSource, _ start: UInt64) -> Double {
        let head = source.bytes(start, 32)
        let rates = [
            6_000, 8_000, 9_600, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 64_000, 88_200, 96_000,
            192_000,
        ]
        let index = Int(head.littleNumber(24, 4) >> 23 & 15)
        guard index < rates.count else { return 0 }
        var samples = head.littleNumber(12, 4)
        if samples == 0xFFFF_FFFF {
            // It was written to a pipe: the last block ends the sound.
            let end = source.size - min(source.size, 262_144)
            let tail = source.bytes(max(start, end), 262_144)
            let block = tail.indices.last { index in
                let block = tail[index...]
                return block.starts(with: "wvpk".utf8) && block.count >= 32 && block.bigNumber(9, 1) == 4
            }
            guard let block else { return 0 }
            samples = tail[block...].littleNumber(16, 4) + tail[block...].littleNumber(20, 4)
        }
        return Double(samples) / Double(rates[index])
    }

    /// The chunks of DSDIFF, whose sizes have 64 bits.
    private static func chunks(
        _ source: SoundSource, _ start: UInt64, _ end: UInt64, _ body: (String, UInt64, UInt64) -> Void
    ) {
        var place = start
        for _ in 0..<256 where place + 12 <= end {
            let head = source.bytes(place, 12)
            let size = head.bigNumber(4, 8)
            guard head.count == 12, size < 1 << 48 else { return }
            body(head.prefix(4).latinText, place + 12, min(size, source.size - min(source.size, place + 12)))
            place += 12 + size + size % 2
        }
    }

    /// The place and the size of the sound of DSDIFF.
    static func soundOfDFF(_ source: SoundSource) -> Range<UInt64>? {
        var range: Range<UInt64>?
        chunks(source, 16, source.size) { name, place, size in
            if name == "DSD " || name == "DST ", size > 0 { range = range ?? place..<place + size }
        }
        return range
    }

    static func readDFF(_ source: SoundSource, into facts: inout SoundFacts) {
        var (rate, channels, bytes, seconds): (UInt64, UInt64, UInt64, Double) = (0, 0, 0, 0)
        chunks(source, 16, source.size) { name, place, size in
            switch name {
            case "PROP":
                chunks(source, place + 4, place + size) { name, place, _ in
                    if name == "FS  " { rate = source.bytes(place, 4).number }
                    if name == "CHNL" { channels = source.bytes(place, 2).number }
                }
            case "DSD ": bytes = size
            case "DST ":
                let frames = source.bytes(place + 12, 6)
                let rate = frames.bigNumber(4, 2)
                if source.starts(place, with: "FRTE"), rate > 0 {
                    seconds = Double(frames.bigNumber(0, 4)) / Double(rate)
                }
            case "ID3 ": ID3.read(source, place, into: &facts)
            default: break
            }
        }
        facts.duration = rate > 0 && channels > 0 && bytes > 0 ? Double(bytes * 8 / channels) / Double(rate) : seconds
    }

    static func monkeyDuration(_ head: ArraySlice<UInt8>) -> Double {
        let version = head.littleNumber(4, 2)
        let (blocks, last, frames, rate): (UInt64, UInt64, UInt64, UInt64)
        if version >= 3_980 {
            let start = Int(head.littleNumber(8, 4))
            (blocks, last, frames) = (
                head.littleNumber(start + 4, 4), head.littleNumber(start + 8, 4), head.littleNumber(start + 12, 4)
            )
            rate = head.littleNumber(start + 20, 4)
        } else {
            // Older headers do not state the samples in a frame.
            let isExtraHigh = head.littleNumber(6, 2) >= 4_000
            blocks =
                version >= 3_950
                ? 294_912 : version >= 3_900 || (version >= 3_800 && isExtraHigh) ? 73_728 : 9_216
            (rate, frames, last) = (head.littleNumber(12, 4), head.littleNumber(24, 4), head.littleNumber(28, 4))
        }
        return rate > 0 && frames > 0 ? Double((frames - 1) * blocks + last) / Double(rate) : 0
    }

    static func trueAudioDuration(_ head: ArraySlice<UInt8>) -> Double {
        let rate = head.littleNumber(10, 4)
        return rate > 0 ? Double(head.littleNumber(14, 4)) / Double(rate) : 0
    }

    /// The duration of Musepack files of stream versions 8 and 7.
    static func musepackDuration(_ source: SoundSource, _ start: UInt64) -> Double {
        let rates = [44_100.0, 48_000, 37_800, 32_000]
        let head = source.bytes(start, 64)
        if head.starts(with: "MP+".utf8) {
            return Double(head.littleNumber(4, 4)) * 1_152 / rates[Int(head.littleNumber(10, 1) & 3)]
        }
        guard head.dropFirst(4).starts(with: "SH".utf8) else { return 0 }
        var reader = Bytes(head.dropFirst(6))
        func size() -> UInt64 {
            var value: UInt64 = 0
            for _ in 0..<9 {
                let byte = reader.byte()
                value = value << 7 | UInt64(byte & 0x7F)
                if byte & 0x80 == 0 { break }
            }
            return value
        }
        _ = size()
        reader.skip(5)
        let samples = size()
        _ = size()
        return Double(samples) / rates[Int(reader.byte() >> 5) & 3]
    }
}
