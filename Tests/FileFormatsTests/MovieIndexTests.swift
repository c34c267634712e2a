import FileFormats
import Glibc
import Testing

/// The shape of MP4 files, from boxes that are made here.
@Suite struct MovieIndexTests {
    static func big(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.bigEndian) { Array($0) }
    }

    static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

    static func box(_ kind: String, _ content: [UInt8]) -> [UInt8] {
        big(UInt32(content.count + 8)) + Array(kind.utf8) + content
    }

    /// With its size in 64 bits.
    static func wide(_ kind: String, _ content: [UInt8]) -> [UInt8] {
        big(UInt32(1)) + Array(kind.utf8) + big(UInt64(content.count + 16)) + content
    }

    static let type = box("ftyp", Array("isom".utf8) + zeros(4))

    /// The header of a film: units in a second, and its length in them.
    static func header(_ scale: UInt32, _ length: UInt64, isLong: Bool = false) -> [UInt8] {
        let times = isLong ? zeros(16) + big(scale) + big(length) : zeros(8) + big(scale) + big(UInt32(length))
        return box("mvhd", [isLong ? 1 : 0, 0, 0, 0] + times + zeros(80))
    }

    private struct Edit {
        var length: UInt64 = 1_000
        /// -1: nothing is shown.
        var time: Int64
    }

    private static func edits(_ list: [Edit], isLong: Bool = false, count: UInt32? = nil) -> [UInt8] {
        let entries = list.flatMap { edit in
            (isLong ? big(edit.length) + big(edit.time) : big(UInt32(edit.length)) + big(Int32(edit.time)))
                + big(UInt32(0x1_0000))
        }
        return box("edts", box("elst", [isLong ? 1 : 0, 0, 0, 0] + big(count ?? UInt32(list.count)) + entries))
    }

    static func track(
        _ scale: UInt32, _ edits: [UInt8] = [], kind: String = "vide", isLong: Bool = false
    ) -> [UInt8] {
        let media = box("mdhd", [isLong ? 1 : 0, 0, 0, 0] + zeros(isLong ? 16 : 8) + big(scale) + zeros(12))
        let handler = box("hdlr", zeros(8) + Array(kind.utf8) + zeros(12))
        let head = box("tkhd", [isLong ? 1 : 0, 0, 0, 7] + zeros(isLong ? 92 : 80))
        return box("trak", head + edits + box("mdia", media + handler))
    }

    static func film(_ parts: [UInt8]...) -> [UInt8] { type + box("moov", parts.flatMap { $0 }) }

    private static func index(_ bytes: [UInt8]) -> MovieIndex? {
        MovieIndex(size: bytes.count) { place, count in
            place < bytes.count ? Array(bytes[place...].prefix(count)) : []
        }
    }

    private static func number(_ bytes: [UInt8], _ number: MovieIndex.Number) -> Int {
        bytes[number.place..<(number.place + number.size)].reduce(0) { $0 << 8 | Int($1) }
    }

    @Test(arguments: [false, true]) func length_isWhereTheHeaderHasIt(isLong: Bool) throws {
        let bytes = Self.film(Self.header(600, 7_200, isLong: isLong), Self.track(25))
        let index = try #require(Self.index(bytes))
        let length = try #require(index.length)
        #expect(index.timescale == 600)
        #expect((length.value, length.size) == (7_200, isLong ? 8 : 4))
        #expect(Self.number(bytes, length) == 7_200)
        #expect(index.cut == 0 && !index.isFragmented && index.firstPieces.isEmpty)
    }

    @Test func indexAtTheEnd_isFoundBehindContentOf64BitSize() throws {
        let bytes =
            Self.type + Self.wide("mdat", Self.zeros(100)) + Self.wide("moov", Self.header(1_000, 5) + Self.track(25))
        let index = try #require(Self.index(bytes))
        #expect(try Self.number(bytes, #require(index.length)) == 5)
        // As players, no further than to the content whose size is not known.
        let open = Self.type + Self.big(UInt32(0)) + Array("mdat".utf8) + Self.box("moov", Self.header(1_000, 5))
        #expect(try #require(Self.index(open)).length == nil)
    }

    /// Times in units of a 25th of a second, and the seconds that they cut off.
    private static let cuts: [([Int64], Double)] = [([0], 0), ([50], 2), ([-1, 25], 1), ([75, 25], 3), ([], 0)]

    @Test(arguments: cuts) func edits_cutOffTheBeginOfTheirTrack(times: [Int64], cut: Double) throws {
        let list = times.map { Edit(time: $0) }
        for isLong in [false, true] {
            let bytes = Self.film(
                Self.header(1_000, 5_000), Self.track(25, Self.edits(list, isLong: isLong), isLong: isLong))
            #expect(try #require(Self.index(bytes)).cut == cut, "\(isLong)")
        }
    }

    @Test func trackThatLosesMost_counts() throws {
        let bytes = Self.film(
            Self.header(1_000, 5_000), Self.track(25, Self.edits([Edit(time: 50)])),
            Self.track(44_100, Self.edits([Edit(time: 132_300)]), kind: "soun"),
            // Of no scale.
            Self.track(0, Self.edits([Edit(time: 900)])))
        #expect(try #require(Self.index(bytes)).cut == 3)
    }

    @Test func matrix_isThatOfTheFirstTrackOfPictures() throws {
        for isLong in [false, true] {
            let sound = Self.track(44_100, kind: "soun", isLong: isLong)
            let before = Self.type.count + 8 + Self.header(600, 1).count + sound.count
            let bytes = Self.film(Self.header(600, 1), sound, Self.track(25, isLong: isLong), Self.track(30))
            // trak, tkhd, and what comes before.
            #expect(try #require(Self.index(bytes)).matrix == before + 8 + 8 + (isLong ? 52 : 40))
        }
        #expect(try #require(Self.index(Self.film(Self.track(1, kind: "soun")))).matrix == nil)
    }

    /// A table of pieces at the end, with the first time of each track.
    private static func table(_ firsts: [UInt64], isLong: Bool, count: UInt32 = 1, length: UInt32? = nil) -> [UInt8] {
        let tables = firsts.flatMap { first in
            box(
                "tfra",
                [isLong ? 1 : 0, 0, 0, 0] + zeros(8) + big(count)
                    + (isLong ? big(first) + zeros(8) : big(UInt32(first)) + zeros(4)) + zeros(3))
        }
        let whole = UInt32(tables.count + 8 + 16)
        return box("mfra", tables + box("mfro", zeros(4) + big(length ?? whole)))
    }

    @Test(arguments: [false, true]) func filmInPieces_hasTheTimesOfItsTable(isLong: Bool) throws {
        let pieces = Self.box("moof", Self.zeros(20)) + Self.box("mdat", Self.zeros(50))
        let bytes = Self.film(Self.header(1_000, 0), Self.box("mvex", [])) + pieces + pieces
        let bare = try #require(Self.index(bytes))
        #expect(bare.isFragmented && bare.firstPieces.isEmpty && bare.length == nil)
        let whole = bytes + Self.table([1_024, 7], isLong: isLong)
        let index = try #require(Self.index(whole))
        #expect(index.firstPieces.map(\.value) == [1_024, 7])
        #expect(index.firstPieces.map(\.size) == [isLong ? 8 : 4, isLong ? 8 : 4])
        #expect(index.firstPieces.map { Self.number(whole, $0) } == [1_024, 7])
        // Without `mvex`, by the pieces.
        #expect(try #require(Self.index(Self.film(Self.header(1_000, 9)) + pieces)).isFragmented)
    }

    private static let whole =
        film(
            header(600, 7_200, isLong: true), track(25, edits([Edit(time: -1), Edit(time: 50)], isLong: true)),
            box("mvex", []))
        + wide("moof", zeros(8)) + box("mdat", zeros(9)) + table([512], isLong: false)

    @Test func everyPrefix_isReadAsFarAsItGoes() throws {
        for count in 0...Self.whole.count {
            let part = Array(Self.whole.prefix(count))
            let index = Self.index(part)
            #expect((index == nil) == (count < 8), "\(count)")
            if let length = index?.length { #expect(Self.number(part, length) == length.value) }
            if count < Self.whole.count { #expect(index?.firstPieces.isEmpty ?? true) }
        }
        #expect(try #require(Self.index(Self.whole)).firstPieces.map(\.value) == [512])
    }

    @Test func everyByteThatLies_isReadOrRefused() throws {
        for place in Self.whole.indices {
            for value: UInt8 in [0, 1, 0x7F, 0x80, 0xFF] {
                var bytes = Self.whole
                bytes[place] = value
                guard let index = Self.index(bytes) else { continue }
                #expect(index.cut.isFinite && index.cut >= 0 && index.timescale >= 0)
                for number in [index.length].compactMap({ $0 }) + index.firstPieces {
                    #expect(number.place + number.size <= bytes.count)
                }
            }
        }
    }

    @Test func countsAndSizesThatLie_areNotBelieved() throws {
        func cut(_ edits: [UInt8]) throws -> Double {
            try #require(Self.index(Self.film(Self.header(600, 1), Self.track(25, edits)))).cut
        }
        for isLong in [false, true] {
            #expect(try cut(Self.edits([Edit(time: 25)], isLong: isLong, count: .max)) == 1)
            #expect(try cut(Self.edits([Edit(time: 25)], isLong: isLong, count: 0)) == 0)
        }
        // A list that ends in its head.
        #expect(try cut(Self.box("edts", Self.box("elst", [0, 0, 0, 0, 0xFF]))) == 0)
        let film = Self.film(Self.header(1_000, 5), Self.box("mvex", []))
        for length: UInt32 in [0, 1, 15, 16, 17, .max] {
            let bytes = film + Self.table([3], isLong: true, length: length)
            #expect(try #require(Self.index(bytes)).firstPieces == [])
        }
        #expect(try #require(Self.index(film + Self.table([3], isLong: false, count: 0))).firstPieces == [])
        // Sizes of a box: less than its head, more than there is, and more than there can be.
        for size: UInt32 in [0, 2, 7, 0x7FFF_FFFF, .max] {
            let bytes = Self.type + Self.big(size) + Array("moov".utf8) + Self.header(600, 1)
            #expect(try #require(Self.index(bytes)).length == nil, "\(size)")
        }
        for size: UInt64 in [0, 15, 1 << 47, 1 << 48, 1 << 63, .max] {
            let bytes = Self.type + Self.big(UInt32(1)) + Array("moov".utf8) + Self.big(size) + Self.header(600, 1)
            #expect(try #require(Self.index(bytes)).length == nil, "\(size)")
        }
    }

    @Test func otherFiles_haveNoIndex() {
        for bytes in [
            [], Array("RIFF".utf8), Array("This is no film at all.".utf8), Self.box("moov", Self.header(1, 1)),
        ] {
            #expect(Self.index(bytes) == nil)
        }
        #expect(MovieIndex(Array("/nothing/film.mp4".utf8)) == nil)
    }

    @Test func fileOfManyBoxes_isGivenUp() throws {
        let index = Self.box("moov", Self.header(600, 9))
        func film(_ count: Int) -> [UInt8] {
            Self.type + (0..<count).flatMap { _ in Self.box("free", []) } + index
        }
        #expect(try #require(Self.index(film(62))).length?.value == 9)
        #expect(try #require(Self.index(film(100_000))).length == nil)
    }

    @Test func numbersOfAMatrix_turnThePictureBackIntoItself() {
        // Of nine numbers: the first five turn, and the two before the last move.
        func numbers(_ direction: Int) -> [Int32] {
            let bytes = MovieIndex.matrix(direction: direction, width: 320, height: 180)
            return stride(from: 0, to: bytes.count, by: 4).map { start in
                bytes[start..<(start + 4)].reduce(Int32(0)) { $0 << 8 | Int32($1) }
            }
        }
        for direction in 0...7 {
            let matrix = numbers(direction)
            #expect(matrix.count == 9 && matrix[8] == 1 << 30)
            let corners = [(0, 0), (320, 0), (0, 180), (320, 180)].map { x, y in
                (
                    x * Int(matrix[0] >> 16) + y * Int(matrix[3] >> 16) + Int(matrix[6] >> 16),
                    x * Int(matrix[1] >> 16) + y * Int(matrix[4] >> 16) + Int(matrix[7] >> 16)
                )
            }
            #expect(corners.map(\.0).min() == 0 && corners.map(\.1).min() == 0, "\(direction)")
            let isTurned = [1, 3, 6, 7].contains(direction)
            #expect(corners.map(\.0).max() == (isTurned ? 180 : 320))
        }
    }

    /// A film whose only track is Opus; the numbers are those of its description.
    private static func opus(_ numbers: [UInt8]) -> [UInt8] {
        let description = box("Opus", zeros(28) + box("dOps", [0, 2] + numbers + [0]))
        let table = box("stsd", zeros(8) + description)
        return type + box("moov", box("trak", box("mdia", box("minf", box("stbl", table)))))
    }

    @Test func opusWithTheLowestByteFirst_isTurned() {
        let low: [UInt8] = [0x38, 0x01, 0x80, 0xBB, 0, 0, 0x02, 0x01]
        let high: [UInt8] = [0x01, 0x38, 0, 0, 0xBB, 0x80, 0x01, 0x02]
        func patched(_ numbers: [UInt8]) -> [UInt8] {
            var file = Self.opus(numbers)
            let patches = MovieIndex.opusPatches(size: file.count) { Array(file.dropFirst($0).prefix($1)) }
            for patch in patches {
                file.replaceSubrange(patch.place..<patch.place + patch.bytes.count, with: patch.bytes)
            }
            return file
        }
        #expect(patched(low) == Self.opus(high))
        #expect(patched(high) == Self.opus(high))
        // Without a rate.
        #expect(patched([0x38, 0x01, 0, 0, 0, 0, 0, 0]) == Self.opus([0x01, 0x38, 0, 0, 0, 0, 0, 0]))
        #expect(patched([0x01, 0x38, 0, 0, 0, 0, 0, 0]) == Self.opus([0x01, 0x38, 0, 0, 0, 0, 0, 0]))
    }
}
