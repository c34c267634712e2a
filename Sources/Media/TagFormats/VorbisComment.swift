/// The comments of Vorbis, Opus, Speex and FLAC.
enum VorbisComment {
    /// - Parameter bytes: start at the size of the vendor's name.
    static func read(_ bytes: ArraySlice<UInt8>, into facts: inout SoundFacts) {
        var reader = Bytes(bytes)
        reader.skip(Int(clamping: reader.little(4)))
        let count = min(reader.little(4), 65_536)
        for _ in 0..<count where reader.count >= 4 {
            let comment = reader.take(Int(clamping: reader.little(4)))
            guard let sign = comment.firstIndex(of: UInt8(ascii: "=")) else { continue }
            let name = SoundFacts.name(comment[..<sign].utf8Text)
            let value = comment[(sign + 1)...]
            switch name {
            case "METADATA_BLOCK_PICTURE": picture(value, into: &facts)
            case "COVERART": facts.addPicture(isFront: false) { decoded(value)[...] }
            default: if value.count <= 4_096 { facts.add(name, value.utf8Text) }
            }
        }
    }

    /// The size of the comments in bytes, computed from their own sizes, if they do not fit into `size`; 0 if the sizes
    /// are impossible.
    static func size(_ source: SoundSource, _ place: UInt64, atLeast size: Int) -> Int {
        func end(_ bytes: ArraySlice<UInt8>) -> Int? {
            var place = 4 + Int(bytes.littleNumber(0, 4))
            guard place + 4 <= bytes.count else { return nil }
            let count = Int(bytes.littleNumber(place, 4))
            place += 4
            for _ in 0..<min(count, 65_536) {
                guard place + 4 <= bytes.count else { return nil }
                place += 4 + Int(bytes.littleNumber(place, 4))
            }
            return place <= bytes.count ? place : nil
        }
        if end(source.bytes(place, size)) != nil { return size }
        return end(source.bytes(place, 1 << 20)) ?? 0
    }

    private static func picture(_ base64: ArraySlice<UInt8>, into facts: inout SoundFacts) {
        guard facts.wantsPicture else {
            facts.hasPicture = true
            return
        }
        FLACFile.readPicture(decoded(base64)[...], into: &facts)
    }

    private static func decoded(_ base64: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(base64.count / 4 * 3)
        var (bits, count): (UInt32, Int) = (0, 0)
        for byte in base64 {
            let digit: UInt32
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): digit = UInt32(byte - UInt8(ascii: "A"))
            case UInt8(ascii: "a")...UInt8(ascii: "z"): digit = UInt32(byte - UInt8(ascii: "a")) + 26
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = UInt32(byte - UInt8(ascii: "0")) + 52
            case UInt8(ascii: "+"): digit = 62
            case UInt8(ascii: "/"): digit = 63
            default: continue
            }
            bits = bits << 6 | digit
            count += 6
            if count >= 8 {
                count -= 8
                result.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            }
        }
        return result
    }
}

/// FLAC (RFC 9639): its metadata blocks.
enum FLACFile {
    /// - Returns: the end of the blocks.
    @discardableResult
    static func read(_ source: SoundSource, _ start: UInt64, into facts: inout SoundFacts) -> UInt64 {
        var place = start + 4
        for _ in 0..<1_024 {
            let header = Array(source.bytes(place, 4))
            guard header.count == 4 else { return place }
            // Some programs write a size that is too small for the content of the block.
            var size = Int(header[1...].number)
            place += 4
            switch header[0] & 0x7F {
            case 0: if facts.duration == 0 { facts.duration = duration(source.bytes(place, 34)) }
            case 4:
                size = max(size, VorbisComment.size(source, place, atLeast: size))
                VorbisComment.read(source.bytes(place, size), into: &facts)
            case 6:
                size = max(size, pictureSize(source.bytes(place, 4_096)))
                if facts.wantsPicture { readPicture(source.bytes(place, size), into: &facts) }
                facts.hasPicture = true
            case 127: return place
            default: break
            }
            place += UInt64(size)
            if header[0] & 0x80 != 0 { return place }
        }
        return place
    }

    static func duration(_ info: ArraySlice<UInt8>) -> Double {
        let rate = info.bigNumber(10, 3) >> 4
        let samples = info.bigNumber(13, 5) & 0xF_FFFF_FFFF
        return rate > 0 ? Double(samples) / Double(rate) : 0
    }

    /// The size of the picture block, computed from the sizes of its parts.
    private static func pictureSize(_ start: ArraySlice<UInt8>) -> Int {
        let kind = Int(start.bigNumber(4, 4))
        guard kind < 1_024 else { return 0 }
        let text = Int(start.bigNumber(8 + kind, 4))
        guard text < 2_048 else { return 0 }
        let whole = 32 + kind + text + Int(start.bigNumber(28 + kind + text, 4))
        return whole <= SoundSource.limit ? whole : 0
    }

    static func readPicture(_ block: ArraySlice<UInt8>, into facts: inout SoundFacts) {
        var reader = Bytes(block)
        let kind = reader.big(4)
        reader.skip(Int(clamping: reader.big(4)))
        reader.skip(Int(clamping: reader.big(4)))
        reader.skip(16)
        let size = Int(clamping: reader.big(4))
        facts.addPicture(isFront: kind == 3) { reader.take(size) }
    }
}

/// Ogg (RFC 3533) with Vorbis, Opus, Speex or FLAC: reads the first packets of the first audio stream, and the end of
/// the file.
enum OggFile {
    private struct Page {
        let serial: UInt32
        let granule: UInt64
        let body: UInt64
        let segments: [UInt8]
        /// The first packet begins on an earlier page.
        let isContinued: Bool
        var end: UInt64 { body + segments.reduce(0) { $0 + UInt64($1) } }

        init?(_ source: SoundSource, _ place: UInt64) {
            let head = source.bytes(place, 27)
            guard head.count == 27, head.starts(with: "OggS".utf8) else { return nil }
            isContinued = head.littleNumber(5, 1) & 1 != 0
            granule = head.littleNumber(6, 8)
            serial = UInt32(head.littleNumber(14, 4))
            let count = Int(head.littleNumber(26, 1))
            segments = Array(source.bytes(place + 27, count))
            guard segments.count == count else { return nil }
            body = place + 27 + UInt64(count)
        }
    }

    static func read(_ source: SoundSource, _ start: UInt64, into facts: inout SoundFacts) -> Bool {
        var streams: [UInt32: (rate: UInt64, skip: UInt64)] = [:]
        var packets: [UInt32: [UInt8]] = [:]
        var place = start
        for _ in 0..<4_096 {
            guard let page = Page(source, place) else { break }
            var body = source.bytes(page.body, Int(page.end - page.body))
            if streams[page.serial] == nil, packets[page.serial] == nil {
                if let stream = stream(body) { streams[page.serial] = stream } else { packets[page.serial] = [] }
            } else if streams[page.serial] != nil {
                var packet = packets[page.serial] ?? []
                for (index, size) in page.segments.enumerated() {
                    packet += body.prefix(Int(size))
                    body = body.dropFirst(Int(size))
                    guard size < 255 else { continue }
                    if readComments(packet, into: &facts) {
                        let stream = streams[page.serial] ?? (0, 0)
                        let begin = begin(source, page.end, page.serial, isOpus: packet.starts(with: "OpusTags".utf8))
                        facts.duration = duration(source, page.serial, stream, from: begin)
                        return true
                    }
                    packet = []
                    if index == page.segments.count - 1 { break }
                }
                guard packet.count <= SoundSource.limit else { return false }
                packets[page.serial] = packet
            }
            place = page.end
        }
        return !streams.isEmpty
    }

    /// The first and the last bytes of the sound of the first audio stream, without its header packets and its pages:
    /// programs that copy the sound distribute its packets to other pages.
    static func sound(_ source: SoundSource, _ start: UInt64, part: Int) -> (first: [UInt8], last: [UInt8]) {
        var isHeader: ((ArraySlice<UInt8>) -> Bool)?
        var serial: UInt32 = 0
        var begin: UInt64?
        var first: [UInt8] = []
        var place = start
        while place < source.size, first.count < part, let page = Page(source, place) {
            if let isHeader {
                // The sound begins on a page of its own.
                let mayBegin = page.serial == serial && (begin != nil || !page.isContinued)
                if mayBegin, begin != nil || !isHeader(source.bytes(page.body, 8)) {
                    begin = begin ?? place
                    first += source.bytes(page.body, Int(page.end - page.body))
                }
            } else {
                isHeader = headers(after: source.bytes(page.body, 80))
                serial = page.serial
            }
            place = page.end
        }
        guard let begin else { return ([], []) }
        // Enough bytes for this part without the headers of the pages, even if a page begins before them.
        let size = min(source.size - begin, UInt64(2 * part) + 65_536)
        let tail = source.bytes(source.size - size, Int(size))
        var last: [UInt8] = []
        var index = tail.startIndex
        while index + 27 <= tail.endIndex {
            guard tail[index] == 0x4F, let page = Page(source, source.size - size + UInt64(index - tail.startIndex))
            else {
                index += 1
                continue
            }
            if page.serial == serial { last += source.bytes(page.body, Int(page.end - page.body)) }
            index = tail.startIndex + Int(page.end - (source.size - size))
        }
        return (Array(first.prefix(part)), Array(last.suffix(part)))
    }

    /// Whether a packet is one of the headers after the first packet of an audio stream; nil: it is no audio stream.
    private static func headers(after first: ArraySlice<UInt8>) -> ((ArraySlice<UInt8>) -> Bool)? {
        guard stream(first) != nil else { return nil }
        switch first.first {
        case 1: return { $0.first.map { $0 & 1 == 1 } ?? true }
        case UInt8(ascii: "O"): return { $0.starts(with: "OpusTags".utf8) }
        case 0x7F: return { $0.first != 0xFF }
        default:
            // Speex: the second packet has the comments.
            var count = 0
            return { _ in
                count += 1
                return count == 1
            }
        }
    }

    /// The sample rate of an audio stream, and the number of samples to skip.
    private static func stream(_ first: ArraySlice<UInt8>) -> (rate: UInt64, skip: UInt64)? {
        if first.starts(with: "\u{1}vorbis".utf8) { return (first.littleNumber(12, 4), 0) }
        if first.starts(with: "OpusHead".utf8) { return (48_000, first.littleNumber(10, 2)) }
        if first.starts(with: "Speex   ".utf8) { return (first.littleNumber(36, 4), 0) }
        if first.starts(with: "\u{7F}FLAC".utf8) { return (first.bigNumber(27, 3) >> 4, 0) }
        return nil
    }

    private static func readComments(_ packet: [UInt8], into facts: inout SoundFacts) -> Bool {
        if packet.starts(with: "\u{3}vorbis".utf8) {
            VorbisComment.read(packet.dropFirst(7), into: &facts)
        } else if packet.starts(with: "OpusTags".utf8) {
            VorbisComment.read(packet.dropFirst(8), into: &facts)
        } else if packet.first.map({ $0 & 0x7F == 4 }) == true, packet.count > 4,
            packet[1..<4].number == UInt64(packet.count - 4)
        {
            VorbisComment.read(packet.dropFirst(4), into: &facts)
        } else if packet.count >= 8, packet.prefix(4).littleCount <= packet.count, !packet.starts(with: "OggS".utf8) {
            // In Speex no name precedes the comments.
            VorbisComment.read(packet[...], into: &facts)
        } else {
            return false
        }
        return true
    }

    /// The position of the first sample. It is not 0 in a part that was cut out of a longer stream, such as a recording of a
    /// radio.
    private static func begin(_ source: SoundSource, _ start: UInt64, _ serial: UInt32, isOpus: Bool) -> UInt64 {
        var place = start
        for _ in 0..<64 {
            guard let page = Page(source, place) else { return 0 }
            if page.serial == serial, page.granule != 0, page.granule != .max {
                let packets = page.segments.filter { $0 < 255 }.count
                // Other codecs do not state the samples of a packet in its first byte.
                let samples =
                    isOpus ? opusSamples(source, page) : UInt64(packets) * OggFile.mostSamples
                return page.granule > samples ? page.granule - (isOpus ? samples : 0) : 0
            }
            place = page.end
        }
        return 0
    }

    /// The most samples in a packet of Vorbis, Speex or FLAC.
    private static let mostSamples: UInt64 = 65_536

    /// The samples of the packets that end in a page, at 48 kHz (RFC 6716, 3.1 and 3.2).
    private static func opusSamples(_ source: SoundSource, _ page: Page) -> UInt64 {
        var samples: UInt64 = 0
        var place = page.body
        var isNew = true
        for size in page.segments {
            if isNew {
                let head = Array(source.bytes(place, 2))
                guard let first = head.first else { return samples }
                let configuration = Int(first >> 3)
                // The length of a frame in units of 2.5 ms.
                let length =
                    configuration < 12
                    ? [4, 8, 16, 24][configuration & 3]
                    : configuration < 16 ? [4, 8][configuration & 1] : [1, 2, 4, 8][configuration & 3]
                let frames = [1, 2, 2, head.count > 1 ? Int(head[1] & 0x3F) : 0][Int(first & 3)]
                samples += UInt64(120 * length * frames)
            }
            place += UInt64(size)
            isNew = size < 255
        }
        return samples
    }

    private static func duration(
        _ source: SoundSource, _ serial: UInt32, _ stream: (rate: UInt64, skip: UInt64), from begin: UInt64
    ) -> Double {
        guard stream.rate > 0 else { return 0 }
        // The last page of the stream is searched in the last bytes of the file.
        let size = min(source.size, 65_536)
        let from = source.size - size
        let tail = Array(source.bytes(from, Int(size)))
        var index = tail.count - 27
        while index >= 0 {
            if tail[index] == 0x4F, tail[index...].starts(with: "OggS".utf8),
                let page = Page(source, from + UInt64(index)),
                page.serial == serial, page.granule != .max
            {
                return Double(page.granule - min(page.granule, begin + stream.skip)) / Double(stream.rate)
            }
            index -= 1
        }
        return 0
    }
}

extension ArraySlice<UInt8> {
    fileprivate var littleCount: Int { Int(littleNumber(0, 4)) }
}
