import FileFormats
import Testing

@Suite struct PictureHeaderTests {
    private static func png(_ width: UInt32, _ height: UInt32) -> [UInt8] {
        func big(_ number: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) } }
        return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13] + Array("IHDR".utf8) + big(width)
            + big(height) + [8, 2, 0, 0, 0]
    }

    private static let pictures: [(bytes: [UInt8], width: Int, height: Int)] = [
        (png(640, 480), 640, 480),
        (Array("GIF89a".utf8) + [0x40, 0x01, 0xF0, 0x00, 0, 0, 0], 320, 240),
        // A segment of four bytes, then a progressive frame.
        ([0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 1, 2, 0xFF, 0xFF, 0xC2, 0, 17, 8, 0x01, 0xE0, 0x02, 0x80, 3], 640, 480),
        (
            Array("RIFF\0\0\0\0WEBPVP8 \0\0\0\0".utf8) + [0, 0, 0, 0x9D, 0x01, 0x2A, 0x80, 0x42, 0xE0, 0x81], 640, 480
        ),
        (Array("RIFF\0\0\0\0WEBPVP8L\0\0\0\0".utf8) + [0x2F, 0x7F, 0xC2, 0x77, 0x00], 640, 480),
        (
            Array("RIFF\0\0\0\0WEBPVP8X\0\0\0\0".utf8) + [0, 0, 0, 0, 0x7F, 0x02, 0, 0xDF, 0x01, 0], 640, 480
        ),
    ]

    @Test func size_isInTheFirstBytes() throws {
        for (bytes, width, height) in Self.pictures {
            let size = try #require(PictureHeader.size(bytes))
            #expect(size == (width, height))
            #expect(PictureHeader.isModest(bytes))
            // A slice of more bytes, and less than a whole header.
            let padded = [1, 2, 3] + bytes + [0]
            #expect(PictureHeader.size(padded[3...]).map { $0 == (width, height) } ?? false)
            for count in 0..<8 { #expect(PictureHeader.size(bytes.prefix(count)) == nil) }
            for count in bytes.indices { _ = PictureHeader.size(bytes.prefix(count)) }
        }
    }

    @Test func bomb_isTooLarge() throws {
        #expect(!PictureHeader.isModest(Self.png(23_000, 23_000)))
        #expect(!PictureHeader.isModest(Self.png(.max, .max)))
        #expect(!PictureHeader.isModest(Self.png(0, 5)))
        #expect(!PictureHeader.isModest(Array("text".utf8)))
        #expect(PictureHeader.isModest(Self.png(6_000, 6_000)))
    }

    /// Any bytes: it neither crashes nor loops.
    @Test func damagedHeaders_endTheReader() {
        for (bytes, _, _) in Self.pictures {
            for index in bytes.indices {
                for value in [0, 1, 0x7F, 0xFF] as [UInt8] {
                    var damaged = bytes
                    damaged[index] = value
                    _ = PictureHeader.size(damaged)
                }
            }
        }
    }
}
