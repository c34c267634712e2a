/// The texts of a file of subtitles, in the order of their beginnings: SubRip (`.srt`), WebVTT (`.vtt`), or SubStation Alpha
/// (`.ass`, `.ssa`).
///
/// What a file says about places, fonts and colours is ignored; bold, italic and underlined are kept.
public struct SubtitleFile: Sendable, Hashable {
    public struct Cue: Sendable, Hashable {
        /// Seconds of the film.
        public var start: Double
        public var end: Double
        /// With the tags `b`, `i` and `u`, and the entities of XML; lines are separated by a line feed.
        public var markup: String
    }

    public let cues: [Cue]

    /// The endings of the names of such files, without the dot.
    public static let endings = ["srt", "vtt", "ass", "ssa"]
    /// Larger files are refused, in bytes: the longest films have less than a hundredth of it.
    public static let sizeLimit = 16 << 20

    /// Nil if the bytes are none of these formats, or no text is in them.
    public init?(_ bytes: [UInt8]) {
        guard bytes.count <= SubtitleFile.sizeLimit else { return nil }
        // `split` by Character would take a carriage return and a line feed for one.
        let lines = SubtitleFile.text(bytes).unicodeScalars.split(omittingEmptySubsequences: false) {
            $0 == "\n"
        }.map { line in String(line.last == "\r" ? line.dropLast() : line) }
        let isStation = lines.contains { $0.lowercased() == "[events]" }
        let found = isStation ? SubtitleFile.station(lines) : SubtitleFile.blocks(lines)
        guard !found.isEmpty else { return nil }
        cues = found.enumerated().sorted { ($0.element.start, $0.offset) < ($1.element.start, $1.offset) }
            .map(\.element)
    }

    // MARK: Text

    /// UTF-8 or UTF-16 with a byte order mark; what is not UTF-8 is read as Windows-1252, in which most old files are.
    private static func text(_ bytes: [UInt8]) -> String {
        switch (bytes.first, bytes.dropFirst().first) {
        case (0xFF, 0xFE), (0xFE, 0xFF):
            let isLittle = bytes[0] == 0xFF
            let units = stride(from: 2, to: bytes.count - 1, by: 2).map { place in
                let (one, two) = (UInt16(bytes[place]), UInt16(bytes[place + 1]))
                return isLittle ? two << 8 | one : one << 8 | two
            }
            return String(decoding: units, as: UTF16.self)
        case (0xEF, 0xBB) where bytes.count > 2 && bytes[2] == 0xBF:
            return String(decoding: bytes.dropFirst(3), as: UTF8.self)
        case _:
            if let text = String(validating: bytes, as: UTF8.self) { return text }
            return String(String.UnicodeScalarView(bytes.map { windows[$0] ?? Unicode.Scalar($0) }))
        }
    }

    /// Where Windows-1252 differs from ISO 8859-1.
    private static let windows: [UInt8: Unicode.Scalar] = [
        0x80: "€", 0x82: "‚", 0x83: "ƒ", 0x84: "„", 0x85: "…", 0x86: "†", 0x87: "‡", 0x88: "ˆ", 0x89: "‰", 0x8A: "Š",
        0x8B: "‹", 0x8C: "Œ", 0x8E: "Ž", 0x91: "‘", 0x92: "’", 0x93: "“", 0x94: "”", 0x95: "•", 0x96: "–", 0x97: "—",
        0x98: "˜", 0x99: "™", 0x9A: "š", 0x9B: "›", 0x9C: "œ", 0x9E: "ž", 0x9F: "Ÿ",
    ]

    /// `1:02:03,450`, `02:03.450` or `1:02:03.45`; nil for anything else.
    static func time(_ text: some StringProtocol) -> Double? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard (2...3).contains(parts.count), let last = parts.last else { return nil }
        let split = last.split(omittingEmptySubsequences: false) { $0 == "." || $0 == "," }
        guard (1...2).contains(split.count) else { return nil }
        let digits = parts.dropLast().map { String($0) } + split.map { String($0) }
        let isNumber = digits.allSatisfy { part in
            (1...9).contains(part.utf8.count) && part.utf8.allSatisfy { (0x30...0x39).contains($0) }
        }
        guard isNumber else { return nil }
        let numbers = digits.compactMap { Double($0) }
        var fraction = 0.0
        if split.count == 2, let value = numbers.last {
            fraction = split[1].utf8.reduce(value) { rest, _ in rest / 10 }
        }
        return numbers.prefix(parts.count).reduce(0) { $0 * 60 + $1 } + fraction
    }

    // MARK: SubRip and WebVTT

    /// Blocks with a line of times such as `00:00:01,000 --> 00:00:02,000`, and the text up to an empty line.
    private static func blocks(_ lines: [String]) -> [Cue] {
        var cues: [Cue] = []
        var place = 0
        while place < lines.count {
            guard let times = times(lines[place]) else {
                place += 1
                continue
            }
            place += 1
            var text: [String] = []
            while place < lines.count, !lines[place].allSatisfy(\.isWhitespace) {
                // Some files have no empty line between two blocks: then the line before the times is a number.
                if SubtitleFile.times(lines[place]) != nil {
                    if text.last.map({ $0.allSatisfy(\.isNumber) }) == true { text.removeLast() }
                    break
                }
                text.append(lines[place])
                place += 1
            }
            append(times, markup(text.joined(separator: "\n")), to: &cues)
        }
        return cues
    }

    private static func times(_ line: String) -> (start: Double, end: Double)? {
        // After the times, WebVTT has settings.
        let words = line.split { $0 == " " || $0 == "\t" }
        guard words.count >= 3, words[1] == "-->", let start = time(words[0]), let end = time(words[2]) else {
            return nil
        }
        return (start, end)
    }

    private static func append(_ times: (start: Double, end: Double), _ markup: String, to cues: inout [Cue]) {
        guard times.end > times.start, !markup.allSatisfy(\.isWhitespace) else { return }
        cues.append(Cue(start: times.start, end: times.end, markup: markup))
    }

    /// Keeps the tags `<b>`, `<i>`, `<u>` in pairs, drops all others and `{\an8}`, and escapes what is left.
    static func markup(_ text: String) -> String {
        var result = ""
        var open: [String] = []
        var rest = Substring(text)
        while let first = rest.first {
            if first == "<", let end = rest.firstIndex(of: ">") {
                let tag = rest[rest.index(after: rest.startIndex)..<end].lowercased()
                rest = rest[rest.index(after: end)...]
                if tag.hasPrefix("/"), open.last == String(tag.dropFirst()) {
                    open.removeLast()
                    result += "<\(tag)>"
                } else if ["b", "i", "u"].contains(tag), !open.contains(tag) {
                    open.append(tag)
                    result += "<\(tag)>"
                }
            } else if rest.hasPrefix("{\\"), let end = rest.firstIndex(of: "}") {
                rest = rest[rest.index(after: end)...]
            } else if first == "&", let (scalar, after) = entity(rest) {
                result += escaped(scalar)
                rest = after
            } else {
                result += escaped(first)
                rest = rest.dropFirst()
            }
        }
        for tag in open.reversed() { result += "</\(tag)>" }
        return result
    }

    private static let entities: [(name: String, meaning: Character)] = [
        ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&nbsp;", "\u{A0}"), ("&lrm;", "\u{200E}"),
        ("&rlm;", "\u{200F}"),
    ]

    private static func entity(_ text: Substring) -> (Character, Substring)? {
        for (name, meaning) in entities where text.hasPrefix(name) { return (meaning, text.dropFirst(name.count)) }
        return nil
    }

    private static func escaped(_ character: Character) -> String {
        switch character {
        case "&": "&amp;"
        case "<": "&lt;"
        case ">": "&gt;"
        // A zero would end the text in C, and others are not allowed in XML.
        case _ where character.unicodeScalars.contains { $0.value < 0x20 && $0 != "\n" && $0 != "\t" }: ""
        case _: String(character)
        }
    }

    // MARK: SubStation Alpha

    /// The lines `Dialogue:` below `[Events]`, whose fields a line `Format:` names.
    private static func station(_ lines: [String]) -> [Cue] {
        var cues: [Cue] = []
        var fields = ["layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text"]
        var isIn = false
        for line in lines {
            if line.hasPrefix("[") {
                isIn = line.lowercased() == "[events]"
            } else if isIn, let format = value(of: "format", line) {
                fields = format.split(separator: ",").map { $0.filter { !$0.isWhitespace }.lowercased() }
            } else if isIn, let dialogue = value(of: "dialogue", line) {
                // The text is the last field, and may have commas.
                let values = dialogue.split(
                    separator: ",", maxSplits: max(0, fields.count - 1), omittingEmptySubsequences: false)
                func field(_ name: String) -> Substring? {
                    fields.firstIndex(of: name).flatMap { values.indices.contains($0) ? values[$0] : nil }
                }
                guard let start = field("start").flatMap({ time($0.filter { $0 != " " }) }),
                    let end = field("end").flatMap({ time($0.filter { $0 != " " }) }), let text = field("text")
                else { continue }
                append((start, end), stationMarkup(text), to: &cues)
            }
        }
        return cues
    }

    private static func value(of key: String, _ line: String) -> Substring? {
        guard let colon = line.firstIndex(of: ":"), line[..<colon].lowercased() == key else { return nil }
        return line[line.index(after: colon)...]
    }

    /// `{\i1}` becomes `<i>`; drawings, such as `{\p1}m 0 0 l 100 0`, are left out.
    private static func stationMarkup(_ text: Substring) -> String {
        var plain = ""
        var isDrawing = false
        var rest = text
        while let first = rest.first {
            if first == "{", let end = rest.firstIndex(of: "}") {
                for code in rest[..<end].dropFirst().split(separator: "\\") {
                    switch code {
                    case "i1", "b1", "u1": plain += "<\(code.prefix(1))>"
                    case "i0", "b0", "u0": plain += "</\(code.prefix(1))>"
                    case _ where code.first == "p" && code.dropFirst().allSatisfy(\.isNumber): isDrawing = code != "p0"
                    case _: break
                    }
                }
                rest = rest[rest.index(after: end)...]
            } else if rest.hasPrefix("\\N") || rest.hasPrefix("\\n") {
                plain += "\n"
                rest = rest.dropFirst(2)
            } else if rest.hasPrefix("\\h") {
                plain += "\u{A0}"
                rest = rest.dropFirst(2)
            } else {
                if !isDrawing { plain += first == "<" ? "&lt;" : first == "&" ? "&amp;" : String(first) }
                rest = rest.dropFirst()
            }
        }
        return markup(plain)
    }
}
