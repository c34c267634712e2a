import Testing

@testable import FileFormats

/// What the tracks of an MP4 file say of themselves.
@Suite struct MovieTrackTests {
    private typealias Boxes = MovieIndexTests

    private static func index(_ bytes: [UInt8]) -> MovieIndex? {
        MovieIndex(size: bytes.count) { place, count in
            place < bytes.count ? Array(bytes[place...].prefix(count)) : []
        }
    }

    private static func track(_ id: UInt32, enabled: Bool, kind: String = "vide", _ table: [UInt8] = []) -> [UInt8] {
        let head = Boxes.box("tkhd", [0, 0, 0, enabled ? 7 : 6] + Boxes.zeros(8) + Boxes.big(id) + Boxes.zeros(68))
        let handler = Boxes.box("hdlr", Boxes.zeros(8) + Array(kind.utf8) + Boxes.zeros(12))
        return Boxes.box("trak", head + Boxes.box("mdia", handler + Boxes.box("minf", Boxes.box("stbl", table))))
    }

    private static func film(_ tracks: [UInt8]...) -> [UInt8] {
        Boxes.film(Boxes.header(600, 1_200), tracks.flatMap { $0 })
    }

    @Test func tracksThatAreNotEnabled_areHiddenIfAnotherIsShown() throws {
        let bytes = Self.film(
            Self.track(1, enabled: false), Self.track(2, enabled: true), Self.track(3, enabled: false, kind: "soun"))
        let hidden = try #require(Self.index(bytes)).hidden
        #expect(hidden.map(\.id) == [1])
        let place = try #require(hidden.first).kind.place
        #expect(Array(bytes[place..<place + 4]) == Array("vide".utf8))
        #expect(Self.index(Self.film(Self.track(1, enabled: false)))?.hidden == [])
        #expect(Self.index(Self.film(Self.track(1, enabled: true), Self.track(2, enabled: true)))?.hidden == [])
    }

    /// The first 23 bytes of a configuration of HEVC: profile main, progressive, 4:2:0, 8 bits, and what differs.
    @Test(
        arguments: [
            ([:], true), ([6: 0x40], false), ([16: 0xFE], false), ([17: 0xFA], false), ([18: 0xFA], false),
            ([0: 0], false),
        ] as [([Int: UInt8], Bool)])
    func configurationOfHEVC_tellsWhetherEveryDecoderCanDecode(_ changes: [Int: UInt8], _ isCommon: Bool) {
        var bytes: [UInt8] = [1, 1, 0x60, 0, 0, 0, 0x90, 0, 0, 0, 0, 0, 60, 0xF0, 0, 0xFC, 0xFD]
        bytes += [0xF8, 0xF8, 0, 0, 0xF, 0]
        for (place, byte) in changes { bytes[place] = byte }
        func film(_ codec: String) -> MovieIndex? {
            let entry = Boxes.box(codec, Boxes.zeros(78) + Boxes.box("hvcC", bytes))
            let table = Boxes.box("stsd", Boxes.zeros(4) + Boxes.big(UInt32(1)) + entry)
            return Self.index(Self.film(Self.track(1, enabled: true, table)))
        }
        #expect(film("hvc1")?.isCommonHEVC == isCommon)
        #expect(film("hev1")?.isCommonHEVC == isCommon)
        #expect(film("avc1")?.isCommonHEVC == false)
    }

    @Test func filesOfAServer_areRecognised() {
        func part(_ bytes: [UInt8]) -> MoviePart? {
            MoviePart(size: bytes.count) { place, count in
                place < bytes.count ? Array(bytes[place...].prefix(count)) : []
            }
        }
        let description = Boxes.film(Boxes.header(600, 0), Boxes.box("mvex", []))
        let segment = Boxes.box("styp", Boxes.zeros(8)) + Boxes.box("moof", []) + Boxes.box("mdat", [1])
        #expect(part(description) == .description)
        #expect(part(segment) == .segment)
        #expect(part(Array(segment.dropFirst(16))) == .segment)
        #expect(part(description + segment) == nil)
        #expect(part(Boxes.film(Boxes.header(600, 0))) == nil)
        #expect(part(Array("no film at all".utf8)) == nil)
        #expect(part([]) == nil)
    }
}
