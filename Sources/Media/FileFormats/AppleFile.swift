/// Apple's sound files that GStreamer cannot read completely: the Core Audio Format (Core Audio Format Specification
/// 1.0), and AIFF-C with compressed samples.
package struct AppleFile {
    package let format: SampleFormat
    /// The position of the samples, and the maximal number of their bytes.
    package let place: Int
    package let size: Int
    /// The number of frames with sound in a compressed file. The last packet has padding after them.
    package let frames: Int

    /// The limit of chunks, because each needs a read. Real files have fewer.
    private static let partLimit = 64

    /// The reason why the file cannot be read.
    package struct Refusal: Error {
        package let reason: String
    }

    private static func isCompressible(_ head: [UInt8]) -> Bool {
        head.count >= 12 && head.starts(with: "FORM".utf8) && head[8..<12].elementsEqual("AIFC".utf8)
    }

    /// Nil for a file of another kind, or one that GStreamer can read. `read` returns bytes from a position, fewer at
    /// the end of the file.
    package static func read(
        head: [UInt8], _ read: (_ place: Int, _ count: Int) -> [UInt8]
    ) throws(Refusal) -> AppleFile? {
        if head.starts(with: "caff".utf8) { return try coreAudio(read) }
        return isCompressible(head) ? try compressedAIFF(read) : nil
    }

    private static func coreAudio(_ read: (Int, Int) -> [UInt8]) throws(Refusal) -> AppleFile {
        var place = 8
        var format: SampleFormat?
        var data: (place: Int, size: Int)?
        var frames = Int.max
        for _ in 0..<partLimit {
            let header = read(place, 12)
            guard header.count == 12 else { break }
            let size = Int64(bitPattern: header[4...].number)
            place += 12
            switch header[..<4].text {
            case "desc":
                format = SampleFormat(coreAudio: read(place, 32))
                guard format != nil else {
                    throw Refusal(reason: "only linear PCM, A-law, µ-law and IMA4 are supported in CAF; convert it")
                }
            case "pakt":
                let table = read(place, 24)
                if table.count == 24 { frames = Int(clamping: table[8..<16].number) }
            case "data":
                guard format != nil else { throw Refusal(reason: "the samples come before the format") }
                // The edit count is before the samples. A size of −1 means the rest of the file.
                data = (place + 4, size < 4 ? .max : Int(size - 4))
            default: break
            }
            if size < 0, data != nil { break }
            guard size >= 0, size < 1 << 40 else { throw Refusal(reason: "one of its chunks has no size") }
            place += Int(size)
        }
        guard let format, let data else {
            throw Refusal(reason: place > 8 ? "it has no samples" : "it is truncated")
        }
        return AppleFile(format: format, place: data.place, size: data.size, frames: frames)
    }

    /// Nil if the samples are not compressed.
    private static func compressedAIFF(_ read: (Int, Int) -> [UInt8]) throws(Refusal) -> AppleFile? {
        var place = 12
        var format: SampleFormat?
        for _ in 0..<partLimit {
            let header = read(place, 8)
            guard header.count == 8 else { break }
            let size = Int(header[4...].number)
            place += 8
            switch header[..<4].text {
            case "COMM":
                let common = read(place, 22)
                guard common.count == 22,
                    !["NONE", "sowt", "fl32", "FL32", "fl64", "FL64"].contains(common[18...].text)
                else { return nil }
                format = SampleFormat(compressedAIFF: common)
                guard format != nil else {
                    throw Refusal(reason: "only linear PCM, A-law, µ-law and IMA4 are supported in AIFF-C")
                }
            case "SSND":
                guard let format else { return nil }
                let offset = read(place, 4)
                guard offset.count == 4 else { break }
                let start = 8 + Int(offset[...].number)
                guard start <= size else { throw Refusal(reason: "it has no samples") }
                return AppleFile(format: format, place: place + start, size: size - start, frames: .max)
            default: break
            }
            // Chunks begin at even positions.
            place += size + size % 2
        }
        return nil
    }
}

extension ArraySlice<UInt8> {
    /// The big-endian number in at most eight bytes.
    var number: UInt64 { reduce(0) { $0 << 8 | UInt64($1) } }
    var text: String { String(decoding: self, as: UTF8.self) }
}
