/// The metadata before the sound, in files whose parser reads all of them into memory.
package enum Preamble {
    /// The limit in bytes. Covers have a few megabytes each, so real metadata are smaller.
    package static let limit = 32 << 20

    /// The size of the headers of an Ogg stream or of the metadata of a FLAC; a number above ``limit`` if they are
    /// larger; 0 for other files. `read` returns bytes from a position, fewer at the end of the file.
    package static func size(head: [UInt8], read: (_ place: Int, _ count: Int) -> [UInt8]) -> Int {
        if head.starts(with: "OggS".utf8) { return ogg(read) }
        if head.starts(with: "fLaC".utf8) { return flac(read) }
        return 0
    }

    /// The size up to the end of the first stream's second packet, its comment (RFC 3533, RFC 7845, Vorbis I).
    private static func ogg(_ read: (Int, Int) -> [UInt8]) -> Int {
        var place = 0
        var packets = 0
        var stream: [UInt8]?
        while place <= limit, packets < 2 {
            let page = read(place, 27 + 255)
            guard page.count >= 27, page.starts(with: "OggS".utf8), page.count >= 27 + Int(page[26]) else { break }
            let sizes = page[27..<27 + Int(page[26])]
            let serial = Array(page[14..<18])
            if stream == nil { stream = serial }
            if stream == serial { packets += sizes.count { $0 < 255 } }
            place += 27 + sizes.count + sizes.reduce(0) { $0 + Int($1) }
        }
        return place
    }

    /// The size of all metadata blocks. Each has at most 16 MB, but their number is not limited (RFC 9639, section 8).
    private static func flac(_ read: (Int, Int) -> [UInt8]) -> Int {
        var place = 4
        while place <= limit {
            let block = read(place, 4)
            guard block.count == 4 else { break }
            place += 4 + block[1...].reduce(0) { $0 << 8 | Int($1) }
            if block[0] & 0x80 != 0 { break }
        }
        return place
    }
}
