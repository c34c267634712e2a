import Testing

@testable import FileFormats

@Suite struct CutFileTests {
    private static func isCut(_ bytes: [UInt8], size: Int? = nil) -> Bool {
        CutFile.isCut(size: size ?? bytes.count) { place, count in
            place < bytes.count ? Array(bytes[place...].prefix(count)) : []
        }
    }

    private static func box(_ kind: String, _ content: [UInt8]) -> [UInt8] { MovieIndexTests.box(kind, content) }

    @Test func movieIsCut_ifItsLastBoxIsLongerThanTheFile() {
        let film =
            Self.box("ftyp", [1, 2, 3, 4]) + Self.box("moov", [1]) + Self.box("mdat", [UInt8](repeating: 1, count: 40))
        #expect(!Self.isCut(film))
        for size in [film.count - 1, film.count - 40] { #expect(Self.isCut(Array(film.prefix(size)))) }
        // A box without a length goes to the end of the file.
        #expect(!Self.isCut(Self.box("ftyp", []) + [0, 0, 0, 0] + Array("mdat".utf8) + [1, 2, 3]))
    }

    @Test(
        arguments: [
            ([0x01, 0, 0, 0, 0, 0, 0, 10], true), ([0x8A], true), ([0xFF], false),
            ([0x01] + [UInt8](repeating: 0xFF, count: 7), false),
        ] as [([UInt8], Bool)])
    func matroskaIsCut_ifItsSegmentIsLongerThanTheFile(_ length: [UInt8], _ isKnown: Bool) {
        let head: [UInt8] = [0x1A, 0x45, 0xDF, 0xA3, 0x84, 1, 2, 3, 4, 0x18, 0x53, 0x80, 0x67] + length
        let film = head + [UInt8](repeating: 1, count: 10)
        #expect(!Self.isCut(film))
        #expect(Self.isCut(film, size: film.count - 1) == isKnown)
    }

    @Test func waveIsCut_ifItStatesMore() {
        let head = Array("RIFF".utf8) + [100, 0, 0, 0] + Array("WAVE".utf8)
        #expect(Self.isCut(head + [UInt8](repeating: 0, count: 95)))
        #expect(!Self.isCut(head + [UInt8](repeating: 0, count: 96)))
        #expect(!Self.isCut(Array("RIFF".utf8) + [0xFF, 0xFF, 0xFF, 0xFF] + Array("WAVE".utf8)))
        #expect(!Self.isCut([]) && !Self.isCut(Array("RIFF".utf8)) && !Self.isCut([0x1A, 0x45, 0xDF, 0xA3]))
    }
}
