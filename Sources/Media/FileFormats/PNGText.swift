/// The texts of a PNG picture (`tEXt`). In thumbnails they name the original file.
package enum PNGText {
    private static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
    /// The largest text in bytes; no text of a thumbnail is longer.
    private static let limit = 8_192

    /// The texts before the picture data; nil if it is not a PNG.
    package static func read(_ bytes: [UInt8]) -> [String: String]? {
        guard bytes.starts(with: signature) else { return nil }
        var texts: [String: String] = [:]
        var place = signature.count
        while place + 12 <= bytes.count {
            let length = bytes[place..<(place + 4)].reduce(0) { $0 << 8 | Int($1) }
            let kind = bytes[(place + 4)..<(place + 8)]
            if kind.elementsEqual("IDAT".utf8) { break }
            guard length <= bytes.count - place - 12 else { break }
            if kind.elementsEqual("tEXt".utf8), length <= limit {
                let parts = bytes[(place + 8)..<(place + 8 + length)].split(
                    separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
                if parts.count == 2 {
                    texts[String(decoding: parts[0], as: UTF8.self)] = String(decoding: parts[1], as: UTF8.self)
                }
            }
            place += length + 12
        }
        return texts
    }

    /// The picture with these texts added; nil if it is not a PNG.
    package static func adding(_ texts: [(String, String)], to bytes: [UInt8]) -> [UInt8]? {
        // The first chunk is the header, which has a fixed length.
        let header = signature.count + 25
        guard bytes.starts(with: signature), bytes.count > header else { return nil }
        var result = Array(bytes[..<header])
        for (key, text) in texts {
            let content = Array("tEXt".utf8) + Array(key.utf8) + [0] + Array(text.utf8)
            append(UInt32(content.count - 4), to: &result)
            result += content
            append(checksum(content), to: &result)
        }
        return result + bytes[header...]
    }

    private static func append(_ number: UInt32, to bytes: inout [UInt8]) {
        for index in 0..<4 { bytes.append(UInt8(truncatingIfNeeded: number >> (24 - 8 * UInt32(index)))) }
    }

    /// CRC-32 as PNG defines it.
    private static func checksum(_ bytes: [UInt8]) -> UInt32 {
        var sum: UInt32 = .max
        for byte in bytes {
            sum ^= UInt32(byte)
            for _ in 0..<8 { sum = sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1 }
        }
        return ~sum
    }
}
