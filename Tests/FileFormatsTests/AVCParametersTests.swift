import Testing

@testable import FileFormats

/// Parameter sets of H.264, as x264 writes them for 320×180 pixels.
@Suite struct AVCParametersTests {
    private static let sets: [(name: String, hex: String, isCommon: Bool)] = [
        ("high", "6764000dacd941419f9f0110000003001000000303c0f1429960", true),
        ("baseline", "6742c00dda05067e7c0440000003004000000f03c50aa8", true),
        ("interlaced", "67640015acd941433f260220000003002000000783e28532c0", false),
        ("10 bits", "676e000da6cd941419f9f0110000030001000003003c0f142996", false),
        ("4:2:2", "677a000dbcd941419f8dc044000003000400000300f03c50a658", false),
    ]

    private static func bytes(_ hex: String) -> [UInt8] {
        var rest = hex[...]
        var bytes: [UInt8] = []
        while let byte = UInt8(rest.prefix(2), radix: 16) {
            bytes.append(byte)
            rest = rest.dropFirst(2)
        }
        return bytes
    }

    /// The `avcC` box that has these parameter sets.
    private static func configuration(_ sets: [[UInt8]]) -> [UInt8] {
        var record: [UInt8] = [1, 100, 0, 13, 0xff, 0xe0 | UInt8(sets.count)]
        for set in sets { record += MovieIndexTests.big(UInt16(set.count)) + set }
        return record + [1, 0, 0]
    }

    private static func film(_ sets: [[UInt8]], codec: String = "avc1") -> MovieIndex? {
        typealias Boxes = MovieIndexTests
        let entry = Boxes.box(codec, Boxes.zeros(78) + Boxes.box("avcC", configuration(sets)))
        let table = Boxes.box("stbl", Boxes.box("stsd", Boxes.zeros(4) + Boxes.big(UInt32(1)) + entry))
        let handler = Boxes.box("hdlr", Boxes.zeros(8) + Array("vide".utf8) + Boxes.zeros(12))
        let head = Boxes.box("tkhd", [0, 0, 0, 7] + Boxes.zeros(80))
        let track = Boxes.box("trak", head + Boxes.box("mdia", handler + Boxes.box("minf", table)))
        let bytes = Boxes.film(Boxes.header(600, 1_200), track)
        return MovieIndex(size: bytes.count) { place, count in
            place < bytes.count ? Array(bytes[place...].prefix(count)) : []
        }
    }

    @Test(arguments: sets.indices)
    func parameters_tellWhetherEveryDecoderCanDecode(_ number: Int) throws {
        let (_, hex, isCommon) = Self.sets[number]
        let parameters = try #require(AVCParameters(Self.bytes(hex)[...]))
        // 180 lines are 12 rows of 16; two fields have 6 each.
        #expect((parameters.width, parameters.height) == (20, parameters.isProgressive ? 12 : 6))
        #expect(parameters.isCommon == isCommon)
        #expect(Self.film([Self.bytes(hex)])?.isCommonAVC == isCommon)
    }

    @Test func films_needCommonParametersInEachSet() {
        let (high, interlaced) = (Self.bytes(Self.sets[0].hex), Self.bytes(Self.sets[2].hex))
        #expect(Self.film([high, high])?.isCommonAVC == true)
        #expect(Self.film([high, interlaced])?.isCommonAVC == false)
        #expect(Self.film([])?.isCommonAVC == false)
        #expect(Self.film([high], codec: "avc3")?.isCommonAVC == false)
        #expect(Self.film([high], codec: "hvc1")?.isCommonAVC == false)
    }

    @Test func boxesNestedAMillionTimes_areLeftOut() {
        typealias Boxes = MovieIndexTests
        let nested = (0..<1_000_000).flatMap { Boxes.big(UInt32(8_000_000 - 8 * $0)) + Array("mdia".utf8) }
        let handler = Boxes.box("mdia", Boxes.box("hdlr", Boxes.zeros(8) + Array("vide".utf8) + Boxes.zeros(12)))
        let head = Boxes.box("tkhd", [0, 0, 0, 7] + Boxes.zeros(80))
        let bytes = Boxes.film(Boxes.header(600, 1_200), Boxes.box("trak", head + handler + nested))
        let index = MovieIndex(size: bytes.count) { place, count in
            place < bytes.count ? Array(bytes[place...].prefix(count)) : []
        }
        #expect(index?.matrix != nil && index?.isCommonAVC == false)
    }

    @Test func cutParameters_areRefused() {
        for (_, hex, _) in Self.sets {
            let bytes = Self.bytes(hex)
            for length in 0..<8 { #expect(AVCParameters(bytes.prefix(length)) == nil) }
        }
        #expect(AVCParameters([0x68] + Self.bytes(Self.sets[0].hex).dropFirst()) == nil)
        #expect(AVCParameters([UInt8](repeating: 0xff, count: 2_000)[...]) == nil)
        #expect(AVCParameters(([0x67, 100, 0, 13] + [UInt8](repeating: 0, count: 2_000))[...]) == nil)
    }
}
