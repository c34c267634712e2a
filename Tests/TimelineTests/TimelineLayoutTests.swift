import Foundation
import Testing
import Timeline

/// The bars, the axis, the picture and the page.
@Suite struct TimelineLayoutTests {
    private static func seconds(_ number: Double) -> UInt64 { UInt64(number * 1_000_000) }

    private static let measure = TimelineText.Measure(
        columns: \.count,
        fitted: { text, width in
            let cut = text.count <= width ? text : text.prefix(max(0, width - 1)) + "…"
            return cut + String(repeating: " ", count: width - cut.count)
        })

    /// Ten minutes with a call over music, a prompt that ducks, the silent switch and an unplugged headphone; at two.
    static let sample: Timeline = {
        func span(_ state: Timeline.State, _ start: Double, _ end: Double, _ note: String = "") -> Timeline.Span {
            Timeline.Span(state, seconds(start), seconds(end), note: note)
        }
        return Timeline(
            rows: [
                Timeline.Row(
                    name: "Music", kind: "Music",
                    spans: [
                        span(.heard, 12, 140), span(.ducked, 140, 146, "ducked 12 dB"), span(.heard, 146, 240),
                        span(.waiting, 240, 400, "interrupted by Phone"), span(.heard, 400, 600),
                    ]),
                Timeline.Row(
                    name: "A navigation with a very long name", kind: "Prompt",
                    spans: [span(.heard, 140, 146), span(.heard, 300, 300.2)]),
                Timeline.Row(name: "Phone", kind: "Call", spans: [span(.heard, 240, 400)]),
                Timeline.Row(
                    name: "Game", kind: "App sounds", spans: [span(.heard, 200, 450), span(.muted, 450, 600)]),
            ],
            marks: [
                Timeline.Mark(seconds(450), "silent switch on"),
                Timeline.Mark(seconds(520), "Headphones unplugged → Speaker"),
            ], start: 0, end: seconds(600), offset: 14 * 3_600_000_000)
    }()

    private func text(_ timeline: Timeline, _ width: Int) -> [String] {
        TimelineText(timeline, width: width, Self.measure).lines().map { $0.map(\.text).joined() }
    }

    @Test func terminalOf60And80And120Columns_showsTheGoldenText() throws {
        let sections = [60, 80, 120].map { width in
            "\(width) columns\n" + text(Self.sample, width).joined(separator: "\n")
        }
        let printed = sections.joined(separator: "\n\n") + "\n"
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Golden/timeline.txt")
        if ProcessInfo.processInfo.environment["SESSIOND_GOLDEN"] == "write" {
            return try printed.write(to: file, atomically: true, encoding: .utf8)
        }
        #expect(try printed == String(contentsOf: file, encoding: .utf8))
    }

    @Test(arguments: [1, 24, 40, 59, 60, 80, 119, 200]) func terminalOfAnyWidth_hasNoLongerLine(width: Int) {
        for line in text(Self.sample, width) { #expect(line.count <= max(24, width), "\(line)") }
    }

    @Test func everyState_hasAnotherCharacter() {
        #expect(Set(Timeline.State.allCases.map(TimelineText.character)).count == Timeline.State.allCases.count)
    }

    @Test func shortSpan_isSeenInItsCell_andTheLongestOfSeveralWins() {
        let row = Self.sample.rows[1]
        #expect(Self.sample.cells(of: row, 100).filter { $0 == .heard }.count == 3)
        let music = Self.sample.cells(of: Self.sample.rows[0], 10)
        #expect(music == [.heard, .heard, .heard, .heard, .waiting, .waiting, .waiting, .heard, .heard, .heard])
    }

    @Test func cellsOfNoColumns_areEmpty() { #expect(Self.sample.cells(of: Self.sample.rows[0], 0).isEmpty) }

    @Test(arguments: [1, 3, 8, 40]) func ticks_areRoundTimesInside_andNotMoreThanWanted(limit: Int) {
        let ticks = Self.sample.ticks(atMost: limit)
        #expect(!ticks.isEmpty && ticks.count <= limit)
        for tick in ticks {
            #expect(tick.time >= Self.sample.start && tick.time <= Self.sample.end)
            #expect(Self.sample.clock(tick.time).hasPrefix(tick.label))
        }
    }

    @Test func clock_isTheLocalTimeOfDay() {
        #expect(Self.sample.clock(Self.seconds(61)) == "14:01:01")
        let night = Timeline(rows: [], marks: [], start: 0, end: 10, offset: -1_000_000)
        #expect(night.clock(0) == "23:59:59")
    }

    @Test(arguments: [
        (0 as UInt64, "0 s"), (240_000, "0.2 s"), (9_960_000, "10 s"), (12_000_000, "12 s"), (180_000_000, "3 min"),
        (7_200_000_000, "2 h"), (200_000_000_000, "2 d"),
    ]) func duration_isForPeople(microseconds: UInt64, text: String) {
        #expect(Timeline.duration(microseconds) == text)
    }

    /// A name from outside can neither end an element nor begin one.
    @Test(arguments: [
        "<script>alert(1)</script>", "</title></svg><img src=x onerror=y>", "\" onload=\"x", "' & ]]>",
        "a\u{1}b\u{FFFE}",
    ]) func evilName_isOnlyText(name: String) throws {
        func timeline(_ text: String) -> Timeline {
            let span = Timeline.Span(.waiting, 1, 2, note: text)
            return Timeline(
                rows: [Timeline.Row(name: text, kind: text, spans: [span])], marks: [Timeline.Mark(1, text)], start: 0,
                end: 3, offset: 0)
        }
        func shapes(_ text: String) -> [Character] { text.filter { "<>\"'".contains($0) } }
        // As long, so that the same labels have room.
        let usual = String(repeating: "x", count: name.count)
        func picture(_ text: String) -> String { TimelinePicture(timeline(text), title: text).svg }
        func page(_ text: String) -> String { TimelinePage(timeline(text), title: text, note: text).html }
        #expect(shapes(picture(name)) == shapes(picture(usual)))
        #expect(shapes(page(name)) == shapes(page(usual)))
        #expect(!page(name).contains("\u{1}"))
    }

    @Test func picture_isWellFormedXML_andHasDarkColours() throws {
        let svg = TimelinePicture(Self.sample, title: "Who was heard").svg
        let checker = try Process.run(
            URL(fileURLWithPath: "/usr/bin/python3"),
            arguments: ["-c", "import sys, xml.dom.minidom as m; m.parseString(sys.argv[1])", svg])
        checker.waitUntilExit()
        #expect(checker.terminationStatus == 0)
        #expect(svg.contains("prefers-color-scheme: dark"))
        #expect(svg.contains("<title>Music: interrupted by Phone, 14:04:00, 2 min</title>"))
    }

    @Test func page_loadsNothing() {
        let html = TimelinePage(Self.sample, title: "Who was heard", note: "").html
        #expect(html.contains("default-src 'none'"))
        #expect(!html.contains("src=") && !html.contains("href=") && !html.contains("<script"))
        #expect(html.contains("waited once"))
    }
}
