/// The size of a compressed picture, from its first bytes.
///
/// A file of kilobytes may state a picture of gigabytes. So the size is checked before the picture is decoded.
package enum PictureHeader {
    /// The number of pixels of the largest picture that is decoded: 40 million, more than any camera of a telephone makes
    /// and any cover has. Decoded, it needs 160 MB.
    package static let mostPixels = 40_000_000

    /// The width and the height in pixels of a PNG, JPEG, GIF or WebP picture; nil: it is none of them, or damaged.
    package static func size(_ bytes: some RandomAccessCollection<UInt8>) -> (width: Int, height: Int)? {
        let bytes = Bytes(bytes)
        if bytes.has([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A], at: 0) {
            return bytes.has("IHDR".utf8, at: 12) ? bytes.pair(bytes.big(4, at: 16), bytes.big(4, at: 20)) : nil
        }
        if bytes.has("GIF8".utf8, at: 0) { return bytes.pair(bytes.little(2, at: 6), bytes.little(2, at: 8)) }
        if bytes.has("RIFF".utf8, at: 0), bytes.has("WEBP".utf8, at: 8) { return webP(bytes) }
        return bytes.has([0xFF, 0xD8], at: 0) ? jpeg(bytes) : nil
    }

    /// Whether a picture may be decoded; false also if its size is unknown.
    package static func isModest(_ bytes: some RandomAccessCollection<UInt8>) -> Bool {
        size(bytes).map { !isTooLarge($0) } ?? false
    }

    package static func isTooLarge(_ size: (width: Int, height: Int)) -> Bool {
        size.width > 0 && size.height > mostPixels / size.width
    }

    private static func webP(_ bytes: Bytes<some RandomAccessCollection<UInt8>>) -> (width: Int, height: Int)? {
        if bytes.has("VP8X".utf8, at: 12) {
            return bytes.pair(bytes.little(3, at: 24).map { $0 + 1 }, bytes.little(3, at: 27).map { $0 + 1 })
        }
        if bytes.has("VP8L".utf8, at: 12), bytes.has([0x2F], at: 20), let bits = bytes.little(4, at: 21) {
            return (bits & 0x3FFF + 1, bits >> 14 & 0x3FFF + 1)
        }
        guard bytes.has("VP8 ".utf8, at: 12), bytes.has([0x9D, 0x01, 0x2A], at: 23) else { return nil }
        return bytes.pair(bytes.little(2, at: 26).map { $0 & 0x3FFF }, bytes.little(2, at: 28).map { $0 & 0x3FFF })
    }

    /// The size is in the first frame header (SOF), behind other segments.
    private static func jpeg(_ bytes: Bytes<some RandomAccessCollection<UInt8>>) -> (width: Int, height: Int)? {
        var place = 2
        while let mark = bytes.big(1, at: place), mark == 0xFF, let kind = bytes.big(1, at: place + 1) {
            switch kind {
            case 0xFF: place += 1
            case 0x01, 0xD0...0xD7: place += 2
            case 0xC0...0xCF where kind != 0xC4 && kind != 0xC8 && kind != 0xCC:
                return bytes.pair(bytes.big(2, at: place + 7), bytes.big(2, at: place + 5))
            default:
                guard let length = bytes.big(2, at: place + 2), length >= 2 else { return nil }
                place += 2 + length
            }
        }
        return nil
    }

    private struct Bytes<Content: RandomAccessCollection<UInt8>> {
        let content: Content
        init(_ content: Content) { self.content = content }

        /// Nil if there are too few bytes.
        private func part(_ count: Int, at place: Int) -> Content.SubSequence? {
            guard place >= 0, place <= content.count - count else { return nil }
            return content.dropFirst(place).prefix(count)
        }

        func has(_ other: some Collection<UInt8>, at place: Int) -> Bool {
            part(other.count, at: place)?.elementsEqual(other) ?? false
        }

        func big(_ count: Int, at place: Int) -> Int? { part(count, at: place)?.reduce(0) { $0 << 8 | Int($1) } }

        func little(_ count: Int, at place: Int) -> Int? {
            part(count, at: place)?.reversed().reduce(0) { $0 << 8 | Int($1) }
        }

        func pair(_ width: Int?, _ height: Int?) -> (width: Int, height: Int)? {
            guard let width, let height, width > 0, height > 0 else { return nil }
            return (width, height)
        }
    }
}
