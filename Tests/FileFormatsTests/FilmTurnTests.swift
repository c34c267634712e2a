import FileFormats
import Testing

@Suite struct FilmTurnTests {
    private static func big(_ number: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * (count - 1 - $0))) }
    }
    private static func box(_ kind: String, _ content: [UInt8]) -> [UInt8] {
        big(content.count + 8, 4) + Array(kind.utf8) + content
    }
    private static func track(_ handler: String, _ version: UInt8) -> [UInt8] {
        let header =
            [version, 0, 0, 0] + [UInt8](repeating: 0, count: version == 1 ? 48 : 36) + [UInt8](repeating: 9, count: 36)
            + big(640 << 16, 4) + big(480 << 16, 4)
        let handler = [0, 0, 0, 0, 0, 0, 0, 0] + Array(handler.utf8) + [UInt8](repeating: 0, count: 12)
        return box("trak", box("tkhd", header) + box("mdia", box("hdlr", handler)))
    }

    @Test(
        arguments: [0 as UInt8, 1],
        [
            (0, [1, 0, 0, 1], [0, 0]), (90, [0, 1, -1, 0], [480, 0]), (180, [-1, 0, 0, -1], [640, 480]),
            (270, [0, -1, 1, 0], [0, 640]),
        ] as [(Int, [Int], [Int])])
    func matrix_isWrittenToTheTrackWithPictures(_ version: UInt8, _ turn: (Int, [Int], [Int])) throws {
        var film =
            Self.box("ftyp", Array("isom".utf8)) + Self.box("moov", Self.track("soun", 0) + Self.track("vide", version))
            + Self.box("moof", [1, 2, 3])
        let patches = FilmTurn.patches(film, degrees: turn.0)
        let patch = try #require(patches.first)
        #expect(patches.count == 1 && patch.bytes.count == 36)
        // It replaces exactly the matrix.
        #expect(film[patch.place..<patch.place + 36].allSatisfy { $0 == 9 })
        film.replaceSubrange(patch.place..<patch.place + 36, with: patch.bytes)
        let numbers = stride(from: 0, to: 36, by: 4).map { place in
            Int(Int32(bitPattern: patch.bytes[place..<place + 4].reduce(0) { $0 << 8 | UInt32($1) }))
        }
        #expect([numbers[0], numbers[1], numbers[3], numbers[4]].map { $0 >> 16 } == turn.1)
        #expect([numbers[6], numbers[7]].map { $0 >> 16 } == turn.2 && numbers[8] == 1 << 30)
    }

    @Test func fileWithoutAnIndex_isLeftAlone() {
        let film = Self.box("ftyp", Array("isom".utf8)) + Self.box("moov", Self.track("vide", 0))
        for count in 0..<film.count {
            #expect(FilmTurn.patches(Array(film.prefix(count)), degrees: 90).isEmpty, "\(count)")
        }
        #expect(FilmTurn.patches(Self.box("moov", Self.track("soun", 0)), degrees: 90).isEmpty)
    }

    @Test(arguments: [(90, 6 as UInt8), (180, 3), (270, 8)])
    func photo_getsASegmentOfEXIF(_ degrees: Int, _ orientation: UInt8) throws {
        let photo: [UInt8] = [0xff, 0xd8, 0xff, 0xe0, 0, 2, 0xff, 0xd9]
        let turned = try #require(PhotoTurn.jpeg(photo, degrees: degrees))
        #expect(turned.starts(with: [0xff, 0xd8, 0xff, 0xe1, 0, 34]) && turned.suffix(6) == photo.suffix(6))
        #expect(turned.count == photo.count + 36 && turned[31] == orientation, "\(turned)")
        #expect(PhotoTurn.jpeg(photo, degrees: 0) == photo)
        #expect(PhotoTurn.jpeg([0x89, 0x50], degrees: degrees) == nil)
    }
}
