import Foundation
import Testing

@testable import FileFormats

/// Files of subtitles as programs and people write them.
@Suite struct SubtitleFileTests {
    private func cues(_ text: String) -> [SubtitleFile.Cue] { SubtitleFile(Array(text.utf8))?.cues ?? [] }

    private func cue(_ start: Double, _ end: Double, _ markup: String) -> SubtitleFile.Cue {
        SubtitleFile.Cue(start: start, end: end, markup: markup)
    }

    @Test func subRip_isRead_withAllLineEndings() {
        let text = "1\n00:00:01,500 --> 00:00:02,750\nOne\n<i>two</i>\n\n2\n01:00:00,000 --> 01:00:01,000\nLater\n"
        let expected = [cue(1.5, 2.75, "One\n<i>two</i>"), cue(3_600, 3_601, "Later")]
        #expect(cues(text) == expected)
        #expect(cues(text.replacingOccurrences(of: "\n", with: "\r\n")) == expected)
        #expect(cues("\u{FEFF}" + text) == expected)
        // Without the empty line, without the last line end, and out of order.
        let tight = "2\n0:00:03,0 --> 0:00:04,0\nB\n1\n0:00:01,0 --> 0:00:02,0\nA"
        #expect(cues(tight) == [cue(1, 2, "A"), cue(3, 4, "B")])
    }

    @Test func webVTT_isRead_withoutItsSettings() {
        let text = """
            WEBVTT - title

            NOTE 00:00:01.000 is no time

            intro
            00:01.000 --> 00:02.000 align:start line:0%
            <v Anna>Hello &amp; <b>goodbye</b>

            00:00:03.250 --> 00:00:04.000
            - second
            """
        #expect(cues(text) == [cue(1, 2, "Hello &amp; <b>goodbye</b>"), cue(3.25, 4, "- second")])
    }

    @Test func subStationAlpha_isRead_byTheNamesOfItsFields() {
        let text = """
            [Script Info]
            Title: x
            [V4+ Styles]
            Style: Default,Arial,20
            [Events]
            Format: Start, End, Style, Text
            Dialogue: 0:00:01.00,0:00:02.50,Default,{\\an8\\i1}Up, and{\\i0} down\\Nnext & <last>
            Comment: 0:00:03.00,0:00:04.00,Default,not shown
            Dialogue: 0:00:05.00,0:00:06.00,Default,{\\p1}m 0 0 l 100 0{\\p0}
            """
        #expect(cues(text) == [cue(1, 2.5, "<i>Up, and</i> down\nnext &amp; &lt;last&gt;")])
    }

    @Test(arguments: [
        ("<i>a", "<i>a</i>"), ("a</i>", "a"), ("<font color=\"red\">a</font>", "a"),
        ("<b><i>a</b>b</i>", "<b><i>ab</i></b>"), ("a < b", "a &lt; b"),
        ("a & b &amp; c &lt;", "a &amp; b &amp; c &lt;"), ("{\\an8}top", "top"), ("a\u{0}b", "ab"),
    ]) func markup_isAlwaysWellFormed(text: String, markup: String) { #expect(SubtitleFile.markup(text) == markup) }

    @Test(arguments: [
        ("00:00:01,000", 1.0), ("1:02:03.45", 3_723.45), ("02:03.5", 123.5), ("100:00:00,000", 360_000), ("1:2", 62),
    ]) func times_areRead(text: String, seconds: Double) {
        #expect(SubtitleFile.time(text).map { abs($0 - seconds) < 1e-6 } == true)
    }

    @Test(arguments: ["", "1", "a:b", "1:-2", "1:2:3:4", "1:2.3.4", "::", "9999999999:00"])
    func otherTimes_areNone(text: String) { #expect(SubtitleFile.time(text) == nil) }

    @Test func encodings_areRead() {
        let text = "1\n00:00:01,000 --> 00:00:02,000\nété €\n"
        var little: [UInt8] = [0xFF, 0xFE]
        var big: [UInt8] = [0xFE, 0xFF]
        for unit in text.utf16 {
            little += [UInt8(unit & 0xFF), UInt8(unit >> 8)]
            big += [UInt8(unit >> 8), UInt8(unit & 0xFF)]
        }
        let windows: [UInt8] = text.unicodeScalars.map { $0 == "€" ? 0x80 : UInt8($0.value) }
        for bytes in [Array(text.utf8), little, big, windows] {
            #expect(SubtitleFile(bytes)?.cues == [cue(1, 2, "été €")])
        }
    }

    @Test func otherFiles_areNone() {
        for text in ["", "no times", "00:00:02,000 --> 00:00:01,000\nbackwards", "[Events]\nDialogue: x"] {
            #expect(SubtitleFile(Array(text.utf8)) == nil, "\(text)")
        }
        #expect(SubtitleFile((0..<4_096).map { UInt8(truncatingIfNeeded: $0 &* 73) }) == nil)
    }
}
