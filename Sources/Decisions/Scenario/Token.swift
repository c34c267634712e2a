import PluginAPI

/// A word of a line, or a `key=value`; quotes taken off.
struct Token {
    /// From 1, in Unicode scalars.
    let column: Int
    /// The part before the `=`, or all of it.
    let word: String
    /// The part after the `=`; nil without one.
    let value: String?
    /// Whether the word was in quotes, so it is not a keyword.
    let isQuoted: Bool

    /// The words of a line, up to a comment.
    static func all(of line: String) throws(LineError) -> [Token] {
        var scanner = Scanner(scalars: Array(line.unicodeScalars))
        var tokens: [Token] = []
        while let token = try scanner.next() { tokens.append(token) }
        return tokens
    }

    private struct Scanner {
        let scalars: [Unicode.Scalar]
        var index = 0

        mutating func next() throws(LineError) -> Token? {
            while index < scalars.count, scalars[index] == " " || scalars[index] == "\t" { index += 1 }
            guard index < scalars.count, scalars[index] != "#" else { return nil }
            let column = index + 1
            let isQuoted = scalars[index] == "\""
            var parts = [String.UnicodeScalarView()]
            while index < scalars.count, scalars[index] != " ", scalars[index] != "\t" {
                switch scalars[index] {
                case "\"": try quoted(&parts[parts.count - 1])
                case "=" where parts.count == 1 && !isQuoted:
                    parts.append(String.UnicodeScalarView())
                    index += 1
                case let scalar:
                    guard scalar.value >= 0x20, scalar.value != 0x7F else {
                        throw LineError(
                            column: index + 1, "a control character; is this a text file? In a name write \\u{…}")
                    }
                    parts[parts.count - 1].append(scalar)
                    index += 1
                }
            }
            return Token(
                column: column, word: String(parts[0]), value: parts.count > 1 ? String(parts[1]) : nil,
                isQuoted: isQuoted)
        }

        private mutating func quoted(_ text: inout String.UnicodeScalarView) throws(LineError) {
            let start = index + 1
            index += 1
            while index < scalars.count {
                let scalar = scalars[index]
                index += 1
                if scalar == "\"" { return }
                text.append(scalar == "\\" ? try escape() : scalar)
            }
            throw LineError(column: start, "no closing '\"' in this line; add it")
        }

        private mutating func escape() throws(LineError) -> Unicode.Scalar {
            let start = index
            let rest = scalars[index...]
            switch rest.first {
            case "\""?, "\\"?:
                index += 1
                return scalars[index - 1]
            case "u"? where rest.dropFirst().first == "{":
                let digits = rest.dropFirst(2).prefix { $0 != "}" }.prefix(9)
                index += digits.count + 3
                let hex = String(String.UnicodeScalarView(digits))
                if index <= scalars.count, let number = UInt32(hex, radix: 16), let scalar = Unicode.Scalar(number) {
                    return scalar
                }
            default: break
            }
            throw LineError(column: start, "unknown escape; use \\\" or \\\\ or \\u{…} with a hexadecimal number")
        }
    }
}

/// Text in the form of a quoted word in a scenario; parsing it gives the same bytes.
func written(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\"": result += "\\\""
        case "\\": result += "\\\\"
        default:
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned, .surrogate:
                result += "\\u{" + String(scalar.value, radix: 16, uppercase: true) + "}"
            default: result.unicodeScalars.append(scalar)
            }
        }
    }
    return result + "\""
}

/// Microseconds as seconds with six digits, exactly.
func writtenTime(_ microseconds: UInt64) -> String {
    let rest = String(microseconds % 1_000_000)
    return "\(microseconds / 1_000_000)." + String(repeating: "0", count: 6 - rest.utf8.count) + rest
}

/// Seconds with at most six digits after the point, exactly; nil for anything else, or more than a million years.
func microseconds(_ text: String) -> UInt64? {
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    guard let first = parts.first, !first.isEmpty, first.utf8.count <= 14, first.utf8.allSatisfy(isDigit),
        let seconds = UInt64(first)
    else { return nil }
    var rest: UInt64 = 0
    if parts.count == 2 {
        let digits = parts[1].utf8
        guard !digits.isEmpty, digits.count <= 6, digits.allSatisfy(isDigit), let read = UInt64(parts[1]) else {
            return nil
        }
        rest = read
        for _ in digits.count..<6 { rest *= 10 }
    }
    let (whole, overflows) = seconds.multipliedReportingOverflow(by: 1_000_000)
    let (sum, overflowsAgain) = whole.addingReportingOverflow(rest)
    return overflows || overflowsAgain ? nil : sum
}

private func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }
