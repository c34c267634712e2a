import PluginAPI
import Testing

@testable import FileFormats

/// Chapters in MP4 files, as bytes.
@Suite struct ChapterTests {
    private typealias Boxes = MovieIndexTests

    private static func reader(_ bytes: [UInt8]) -> (Int, Int) -> [UInt8] {
        { place, count in place < bytes.count ? Array(bytes[place...].prefix(count)) : [] }
    }

    private static func chapters(_ bytes: [UInt8]) -> [MediaChapter] {
        MovieIndex.chapters(size: bytes.count, read: reader(bytes))
    }

    private static func film(_ boxes: [UInt8], after: [UInt8] = []) -> [UInt8] {
        Boxes.film(Boxes.header(600, 1_200), boxes) + after
    }

    private static func changed(_ bytes: [UInt8], _ chapters: [MediaChapter]) -> [UInt8]? {
        MovieIndex.patch(size: bytes.count, chapters: chapters, read: reader(bytes)).map {
            Array(bytes[..<$0.place]) + $0.bytes
        }
    }

    private static let three = [
        MediaChapter(start: 0, title: "Beginning"), MediaChapter(start: 1.5, title: ""),
        MediaChapter(start: 3_600, title: "Ende — 中"),
    ]

    @Test func listOfChapters_isReadAsItWasWritten() throws {
        let film = Self.film(Boxes.box("udta", Boxes.box("meta", [1, 2, 3, 4])), after: Boxes.box("uuid", [9, 9]))
        let new = try #require(Self.changed(film, Self.three))
        #expect(Self.chapters(new) == Self.three)
        #expect(Array(new.suffix(10)) == Boxes.box("uuid", [9, 9]))
        // The other data of the user are still there, once, and a second list replaces the first one.
        let again = try #require(Self.changed(new, [MediaChapter(start: 2, title: "Only")]))
        #expect(Self.chapters(again) == [MediaChapter(start: 2, title: "Only")])
        let shorter = try #require(Self.changed(film, [MediaChapter(start: 2, title: "Only")]))
        #expect(again == shorter)
    }

    @Test func filmWhoseSamplesComeLast_isRefused() {
        let film = Self.film([], after: Boxes.box("mdat", [1, 2, 3]))
        #expect(Self.changed(film, Self.three) == nil)
        #expect(Self.changed(Array("no film at all".utf8), Self.three) == nil)
    }

    @Test func longTitles_areCutAtACharacter_andTheNumberIsLimited() throws {
        let many = (0..<300).map { MediaChapter(start: Double($0), title: String(repeating: "é", count: 200)) }
        let new = try #require(Self.changed(Self.film([]), many))
        let read = Self.chapters(new)
        #expect(read.count == 255)
        #expect(read.allSatisfy { $0.title == String(repeating: "é", count: 127) })
    }

    /// A track of texts, as QuickTime and Apple's audiobooks have it: two runs of times, two chunks, UTF-8 and UTF-16.
    @Test func trackOfChapters_isRead() {
        let first = [0, 3] + Array("One".utf8)
        let second: [UInt8] = [0, 6, 0xFE, 0xFF, 0x4E, 0x2D, 0, 0x21]
        let data = Boxes.box("mdat", first + second)
        func table(_ name: String, _ numbers: [UInt32]) -> [UInt8] {
            Boxes.box(name, Boxes.zeros(4) + numbers.flatMap(Boxes.big))
        }
        func film(_ place: UInt32) -> [UInt8] {
            let tables =
                table("stts", [2, 1, 250, 1, 100]) + table("stsz", [0, 2, UInt32(first.count), UInt32(second.count)])
                + table("stsc", [1, 1, 1, 1]) + table("stco", [2, place, place + UInt32(first.count)])
            func track(_ id: UInt32, _ kind: String, _ content: [UInt8], _ more: [UInt8] = []) -> [UInt8] {
                let head = Boxes.box("tkhd", [0, 0, 0, 7] + Boxes.zeros(8) + Boxes.big(id) + Boxes.zeros(68))
                let media =
                    Boxes.box("mdhd", Boxes.zeros(12) + Boxes.big(UInt32(100)) + Boxes.zeros(8))
                    + Boxes.box("hdlr", Boxes.zeros(8) + Array(kind.utf8) + Boxes.zeros(12))
                    + Boxes.box("minf", Boxes.box("stbl", content))
                return Boxes.box("trak", head + more + Boxes.box("mdia", media))
            }
            let reference = Boxes.box("tref", Boxes.box("chap", Boxes.big(UInt32(2))))
            return Self.film(track(1, "soun", [], reference) + track(2, "text", tables), after: data)
        }
        let place = UInt32(film(0).count - data.count + 8)
        #expect(
            Self.chapters(film(place)) == [MediaChapter(start: 0, title: "One"), MediaChapter(start: 2.5, title: "中!")])
        // A place behind the end gives no text, and no crash.
        #expect(Self.chapters(film(.max - 100)).map(\.title) == ["", ""])
    }

    @Test func partOfAFilm_hasItsChapters() {
        let all = [
            MediaChapter(start: 0, title: "a"), MediaChapter(start: 10, title: "b"),
            MediaChapter(start: 20, title: "c"),
        ]
        #expect(all.within(0, .infinity) == all)
        #expect(all.within(12, 20) == [MediaChapter(start: 0, title: "b")])
        #expect(
            all.within(10, 21) == [MediaChapter(start: 0, title: "b"), MediaChapter(start: 10, title: "c")])
        #expect([MediaChapter(start: 5, title: "late")].within(1, 9) == [MediaChapter(start: 4, title: "late")])
    }
}
