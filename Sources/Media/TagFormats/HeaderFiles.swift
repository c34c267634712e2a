/// Sun's and NeXT's format (AU): a header with a text.
enum AUFile {
    /// The bytes of one sample by the number of the encoding; others are compressed.
    private static let widths: [UInt64: UInt64] = [1: 1, 2: 1, 3: 2, 4: 3, 5: 4, 6: 4, 7: 8, 27: 1]

    static func read(_ source: SoundSource, into facts: inout SoundFacts) {
        let header = source.bytes(0, 24)
        let range = sound(source)
        let (rate, channels) = (header.bigNumber(16, 4), header.bigNumber(20, 4))
        if let width = widths[header.bigNumber(12, 4)], rate > 0, channels > 0, let range {
            facts.duration = Double(range.count) / Double(width * channels) / Double(rate)
        }
        // The text has no rules. Programs write lines such as `title=Song`.
        let length = min(header.bigNumber(4, 4), source.size, 16 * SoundFacts.longest)
        guard length > 24 else { return }
        for line in source.bytes(24, Int(length) - 24).prefix(while: { $0 != 0 }).split(separator: UInt8(ascii: "\n")) {
            guard let sign = line.firstIndex(of: UInt8(ascii: "=")) else { continue }
            facts.add(SoundFacts.name(line[..<sign].utf8Text), line[(sign + 1)...].utf8Text)
        }
    }

    static func sound(_ source: SoundSource) -> Range<UInt64>? {
        let header = source.bytes(0, 24)
        let (start, size) = (header.bigNumber(4, 4), header.bigNumber(8, 4))
        // A recorder that cannot seek does not know the size.
        let end = size == 0xFFFF_FFFF ? source.size : min(source.size, start + size)
        return header.count == 24 && start >= 24 && start < end ? start..<end : nil
    }
}

/// Apple's Core Audio Format (CAF).
enum CAFFile {
    private static let names = [
        "title": "TITLE", "artist": "ARTIST", "album": "ALBUM", "composer": "COMPOSER", "genre": "GENRE",
        "tracknumber": "TRACKNUMBER", "year": "DATE", "recordeddate": "DATE",
    ]

    /// The place and the size of each chunk.
    private static func chunks(_ source: SoundSource, _ body: (_ name: String, _ place: UInt64, _ size: UInt64) -> Void)
    {
        var place: UInt64 = 8
        for _ in 0..<256 {
            let head = source.bytes(place, 12)
            guard head.count == 12 else { return }
            let rest = source.size - min(source.size, place + 12)
            let stated = head.bigNumber(4, 8)
            // −1: the rest of the file.
            let size = stated == .max ? rest : min(stated, rest)
            body(head.prefix(4).latinText, place + 12, size)
            place += 12 + size
        }
    }

    static func read(_ source: SoundSource, into facts: inout SoundFacts) {
        var rate = 0.0
        var (frames, packet, sound): (UInt64, (bytes: UInt64, frames: UInt64), UInt64) = (0, (0, 0), 0)
        var own = SoundFacts(wantsPicture: false)
        chunks(source) { name, place, size in
            switch name {
            case "desc":
                let format = source.bytes(place, 32)
                rate = Double(bitPattern: format.bigNumber(0, 8))
                packet = (format.bigNumber(16, 4), format.bigNumber(20, 4))
            case "pakt": frames = source.bytes(place, 16).bigNumber(8, 8)
            case "data": sound = size - min(size, 4)
            case "info": readNames(source.bytes(place, Int(min(size, 1 << 20))), into: &own)
            default: break
            }
        }
        facts.addMissing(own)
        guard rate.isFinite, rate >= 1 else { return }
        if frames == 0, packet.bytes > 0 {
            frames = (sound / packet.bytes).multipliedReportingOverflow(by: packet.frames).partialValue
        }
        facts.duration = Double(frames) / rate
    }

    /// The number of entries (4 bytes), then pairs of texts that end with a zero.
    private static func readNames(_ content: ArraySlice<UInt8>, into facts: inout SoundFacts) {
        let texts = content.dropFirst(4).split(separator: 0, maxSplits: 2_048, omittingEmptySubsequences: false)
        for index in stride(from: 0, to: texts.count - 1, by: 2) {
            // `track number` and `recorded date` are words of the specification, ffmpeg writes other spellings.
            let key = texts[index].utf8Text.lowercased().filter { $0.isLetter }
            facts.add(names[key] ?? SoundFacts.name(texts[index].utf8Text), texts[index + 1].utf8Text)
        }
    }

    static func sound(_ source: SoundSource) -> Range<UInt64>? {
        var range: Range<UInt64>?
        chunks(source) { name, place, size in
            // The number of edits is before the samples.
            if name == "data", size > 4 { range = place + 4..<place + size }
        }
        return range
    }
}

/// Flash Video (FLV): its first message of metadata, an object with names and values (AMF 0).
enum FLVFile {
    static func read(_ source: SoundSource, into facts: inout SoundFacts) {
        var place = UInt64(source.bytes(0, 9).bigNumber(5, 4)) + 4
        for _ in 0..<16 {
            let tag = source.bytes(place, 11)
            guard tag.count == 11 else { return }
            let size = tag.bigNumber(1, 3)
            if tag.first == 18 { return readObject(source.bytes(place + 11, Int(min(size, 1 << 20))), into: &facts) }
            place += 11 + size + 4
        }
    }

    private static func readObject(_ message: ArraySlice<UInt8>, into facts: inout SoundFacts) {
        var reader = Bytes(message)
        guard reader.byte() == 2, reader.take(Int(reader.big(2))).utf8Text == "onMetaData" else { return }
        // A list with names has its length first; an object has none.
        switch reader.byte() {
        case 8: reader.skip(4)
        case 3: break
        default: return
        }
        for _ in 0..<1_024 where !reader.isEmpty {
            let name = reader.take(Int(reader.big(2))).utf8Text
            switch reader.byte() {
            case 0:
                let number = Double(bitPattern: reader.big(8))
                if name == "duration", number.isFinite, number > 0 { facts.duration = number }
            case 1: reader.skip(1)
            case 2: facts.add(SoundFacts.name(name), reader.take(Int(reader.big(2))).utf8Text)
            case 11: reader.skip(10)
            // An object inside this one: what follows is the table of key frames, as a rule.
            default: return
            }
        }
    }
}
