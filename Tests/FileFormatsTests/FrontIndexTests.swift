import FileFormats
import Testing

/// The index of a film before its content.
@Suite struct FrontIndexTests {
    private typealias Part = MovieIndex.Part

    private static func parts(_ bytes: [UInt8]) -> [Part]? {
        MovieIndex.partsWithIndexFirst(size: bytes.count) { place, count in
            place < bytes.count ? Array(bytes[place...].prefix(count)) : []
        }
    }

    private static func assembled(_ parts: [Part], _ bytes: [UInt8]) -> [UInt8] {
        parts.flatMap { part in
            switch part {
            case .bytes(let new): new
            case .range(let place, let count): Array(bytes[place..<(place + count)])
            }
        }
    }

    /// Where the pieces of a track begin.
    private static func places(_ places: [Int], isLong: Bool = false) -> [UInt8] {
        let entries = places.flatMap { isLong ? MovieIndexTests.big(UInt64($0)) : MovieIndexTests.big(UInt32($0)) }
        return MovieIndexTests.box(
            isLong ? "co64" : "stco", MovieIndexTests.zeros(4) + MovieIndexTests.big(UInt32(places.count)) + entries)
    }

    private static func index(_ tables: [UInt8]..., behind: [UInt8] = []) -> [UInt8] {
        let box = MovieIndexTests.box
        let tracks = tables.flatMap { table in
            let others = box("stts", MovieIndexTests.zeros(8))
            return box(
                "trak", box("tkhd", MovieIndexTests.zeros(84)) + box("mdia", box("minf", box("stbl", others + table))))
        }
        return box("moov", MovieIndexTests.header(600, 1_200) + tracks + behind)
    }

    /// The first `count` bytes at each place that the tables name, and how wide the tables are.
    private static func content(_ bytes: [UInt8], _ count: Int) -> (texts: [String], widths: [Int]) {
        var (texts, widths): ([String], [Int]) = ([], [])
        for start in 0..<max(0, bytes.count - 8) {
            let kind = String(decoding: bytes[start..<(start + 4)], as: UTF8.self)
            guard kind == "stco" || kind == "co64" else { continue }
            let width = kind == "co64" ? 8 : 4
            func number(_ place: Int, _ count: Int) -> Int {
                bytes[place..<(place + count)].reduce(0) { $0 << 8 | Int($1) }
            }
            widths.append(width)
            for entry in 0..<number(start + 8, 4) {
                let place = number(start + 12 + entry * width, width)
                texts.append(String(decoding: bytes[place..<(place + count)], as: UTF8.self))
            }
        }
        return (texts, widths)
    }

    @Test(arguments: [false, true]) func indexBehindTheContent_comesBeforeItAndPointsToTheSame(isLong: Bool) throws {
        let type = MovieIndexTests.type
        let content = MovieIndexTests.box("mdat", Array("onetwosix".utf8))
        let start = type.count + 8
        let tail = MovieIndexTests.box("free", [1, 2, 3])
        // A box whose name is no text, as those of iTunes are, and bytes that are no box.
        let odd = MovieIndexTests.big(UInt32(9)) + [0xA9, 0x6E, 0x61, 0x6D, 7] + [0, 0]
        let index = Self.index(
            Self.places([start, start + 3], isLong: isLong), Self.places([start + 6], isLong: isLong), behind: odd)
        let bytes = type + content + index + tail
        let parts = try #require(Self.parts(bytes))
        let film = Self.assembled(parts, bytes)
        #expect(film.count == bytes.count)
        #expect(Array(film[type.count..<(type.count + 8)]) == Array(index.prefix(8)))
        #expect(Array(film.suffix(content.count + tail.count)) == content + tail)
        #expect(Array(film[..<(film.count - content.count - tail.count)].suffix(odd.count)) == odd)
        let found = Self.content(film, 3)
        #expect(found.texts == ["one", "two", "six"] && found.widths == (isLong ? [8, 8] : [4, 4]))
        // A second time, nothing is left to do.
        #expect(Self.parts(film) == [.range(place: 0, count: film.count)])
    }

    @Test func contentBehindTheIndex_staysWhereItIs() throws {
        let (type, first) = (MovieIndexTests.type, MovieIndexTests.box("mdat", Array("one".utf8)))
        let length = Self.index(Self.places([0, 0])).count
        let second = type.count + first.count + length + 8
        let bytes =
            type + first + Self.index(Self.places([type.count + 8, second]))
            + MovieIndexTests.box("mdat", Array("two".utf8))
        let film = Self.assembled(try #require(Self.parts(bytes)), bytes)
        #expect(Self.content(film, 3).texts == ["one", "two"])
    }

    @Test func placesThatPass4GiB_getTablesOf64Bits() throws {
        let type = MovieIndexTests.type
        let start = type.count + 16
        let content = Int(UInt32.max) - start - 40
        let index = Self.index(Self.places([start, start + content - 1]))
        let head =
            type + MovieIndexTests.big(UInt32(1)) + Array("mdat".utf8) + MovieIndexTests.big(UInt64(content + 16))
        let end = start + content
        let parts = try #require(
            MovieIndex.partsWithIndexFirst(size: end + index.count) { place, count in
                place >= end
                    ? Array(index[min(index.count, place - end)...].prefix(count))
                    : Array(head[min(head.count, place)...].prefix(count))
            })
        guard case .bytes(let front) = parts[1] else {
            Issue.record("no index")
            return
        }
        #expect(front.count == index.count + 8)
        let wide = Self.index(Self.places([start + front.count, start + content - 1 + front.count], isLong: true))
        #expect(front == wide)
        #expect(parts.reduce(0) { $0 + $1.count } == end + front.count)
    }

    @Test func otherFiles_haveNoParts() {
        let type = MovieIndexTests.type
        for bytes in [
            [], Array("RIFF".utf8), type, type + MovieIndexTests.box("mdat", [1]), Self.index(),
            type + Self.index().dropLast(1),
        ] {
            #expect(Self.parts(bytes) == nil)
        }
    }

    @Test func damagedTables_areReadOnlyAsFarAsTheyGo() throws {
        let type = MovieIndexTests.type
        let table = MovieIndexTests.box("stco", MovieIndexTests.zeros(4) + [0xFF, 0xFF, 0xFF, 0xFF] + [0, 0, 0, 30])
        let bytes = type + MovieIndexTests.box("mdat", Array("a".utf8)) + Self.index(table)
        let film = Self.assembled(try #require(Self.parts(bytes)), bytes)
        #expect(film.count == bytes.count)
    }
}
