import PluginAPI

// Text from outside on a terminal: which characters must be escaped, and how many columns it needs.

extension Unicode.Scalar {
    /// Columns on a terminal, 0 to 2.
    var columns: Int {
        if value < 0x300 { return 1 }
        switch properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: return 0
        default: break
        }
        switch value {
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0x9FFF, 0xA000...0xA4CF,
            0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6,
            0x20000...0x3FFFD:
            return 2
        default: return properties.isEmojiPresentation ? 2 : 1
        }
    }
}

extension Character {
    /// Columns on a terminal: those of the widest scalar.
    var columns: Int {
        var widest = 0
        for scalar in unicodeScalars { widest = scalar.value == 0xFE0F ? 2 : max(widest, scalar.columns) }
        return widest
    }
}

extension Character {
    /// A replacement with the same number of columns, for a terminal that shows only ASCII.
    fileprivate var inASCII: String {
        switch self {
        case _ where isASCII: String(self)
        case "→": ">"
        case "←": "<"
        case "↑": "^"
        case "↓": "v"
        case "–", "─", "┄": "-"
        case "│": "|"
        case "└", "├": "`"
        case "█": "#"
        case "▄": "="
        case "×": "x"
        case "▲": "^"
        case "·", "▸": "*"
        case "…": "~"
        default: String(repeating: "?", count: columns)
        }
    }
}

extension String {
    /// The text for a terminal that shows only ASCII.
    var inASCII: String { utf8.allSatisfy { $0 < 0x80 } ? self : map(\.inASCII).joined() }

    /// The text with all unsafe characters escaped: `\n`, `\u{202E}`.
    var escaped: String {
        var result = ""
        var marks = MarkCount()
        var previous: Unicode.Scalar?
        for scalar in unicodeScalars {
            let isExcessive = marks.isExcessive(scalar)
            // The joiner is allowed between emoji.
            let joins = scalar.value == 0x200D && previous?.properties.isEmoji == true && previous?.value ?? 0 > 0xFF
            switch scalar {
            case "\n": result += "\\n"
            case "\t": result += "\\t"
            case "\r": result += "\\r"
            case _ where (scalar.isUnsafe && !joins) || isExcessive:
                result += "\\u{" + String(scalar.value, radix: 16, uppercase: true) + "}"
            default: result.unicodeScalars.append(scalar)
            }
            if scalar.value != 0xFE0F { previous = scalar }
        }
        return result
    }

    /// The lines of a message, each with all unsafe characters escaped. A message is written only in this form, whatever
    /// the texts in it are. To escape it again changes nothing.
    var escapedLines: String {
        split(separator: "\n", omittingEmptySubsequences: false).map { String($0).escaped }.joined(separator: "\n")
    }

    /// The same for output: colours and other styles of this program stay, and tabs. Names in it were escaped before
    /// they were styled.
    var escapedButStyled: String {
        var result = ""
        var plain = ""
        func flush() {
            result += plain.escaped
            plain = ""
        }
        var rest = unicodeScalars[...]
        while let scalar = rest.first {
            let length = scalar == "\u{1B}" ? Self.style(rest) : scalar == "\n" || scalar == "\t" ? 1 : 0
            if length > 0 {
                flush()
                result.unicodeScalars.append(contentsOf: rest.prefix(length))
                rest = rest.dropFirst(length)
            } else {
                plain.unicodeScalars.append(scalar)
                rest.removeFirst()
            }
        }
        flush()
        return result
    }

    /// The length of the sequence that sets a style (`ESC [ 1 ; 31 m`) at the beginning; 0: none.
    private static func style(_ text: Substring.UnicodeScalarView) -> Int {
        let parameters = text.dropFirst(2).prefix { ("0"..."9").contains($0) || $0 == ";" }
        guard text.dropFirst().first == "[", text[parameters.endIndex...].first == "m" else { return 0 }
        return parameters.count + 3
    }

    /// Columns on a terminal.
    var columns: Int { reduce(0) { $0 + $1.columns } }

    /// The text cut to this number of columns. If something was cut, the last one is an ellipsis.
    func truncated(to limit: Int) -> String {
        guard columns > limit else { return self }
        var result = ""
        var used = 0
        for character in self {
            guard used + character.columns < limit else { break }
            used += character.columns
            result.append(character)
        }
        return limit > 0 ? result + "…" : ""
    }

    /// The text filled with spaces to this number of columns.
    func padded(to width: Int) -> String { self + String(repeating: " ", count: Swift.max(0, width - columns)) }

    /// Splits the text into lines of at most this number of columns, between words if possible.
    func wrapped(to limit: Int) -> [String] {
        guard columns > limit, limit > 0 else { return [self] }
        var lines: [String] = []
        var line = ""
        for word in split(separator: " ", omittingEmptySubsequences: false).map(String.init) {
            if line.isEmpty {
                line = word
            } else if line.columns + 1 + word.columns <= limit {
                line += " " + word
            } else {
                lines.append(line)
                line = word
            }
            while line.columns > limit {
                let head = line.prefix(fitting: limit)
                lines.append(head)
                line = String(line.dropFirst(head.count))
            }
        }
        return lines + [line]
    }

    private func prefix(fitting limit: Int) -> String {
        var used = 0
        let head = prefix { character in
            used += character.columns
            return used <= limit
        }
        // Returns at least one character, so that the rest becomes shorter.
        return String(head.isEmpty ? self.prefix(1) : head)
    }
}
