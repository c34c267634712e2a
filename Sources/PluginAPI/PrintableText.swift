// Text from outside for people: on a terminal, in a log.

extension Unicode.Scalar {
    /// Whether a terminal would interpret or hide it, or reverse the line, instead of showing it.
    public var isUnsafe: Bool {
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: true
        default: false
        }
    }
}

/// Counts the combining marks on a letter. With too many, a text could overwrite the lines above.
public struct MarkCount: Sendable {
    private static let most = 4
    private var count = 0

    public init() {}

    /// Whether the next character of a text is one mark too many.
    public mutating func isExcessive(_ scalar: Unicode.Scalar) -> Bool {
        guard scalar.value >= 0x300 else {
            count = 0
            return false
        }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: count += 1
        default: count = 0
        }
        return count > Self.most
    }
}

/// Text of a caller for use in a message: quoted, control characters escaped, cut at 64 characters.
public func quoted(_ text: String) -> String {
    "'" + printable(text.unicodeScalars.prefix(64)) + (text.unicodeScalars.count > 64 ? "…'" : "'")
}

/// A message for a log or a terminal, in one line: control characters of the texts in it are escaped.
public func printable(_ text: String) -> String { printable(text.unicodeScalars) }

/// The same for a message of several lines.
public func printableLines(_ text: String) -> String {
    text.split(separator: "\n", omittingEmptySubsequences: false).map { printable($0.unicodeScalars) }
        .joined(separator: "\n")
}

private func printable(_ scalars: some Sequence<Unicode.Scalar>) -> String {
    var result = ""
    var marks = MarkCount()
    for scalar in scalars {
        let isExcessive = marks.isExcessive(scalar)
        if isExcessive || scalar.isUnsafe {
            result += "\\u{" + String(scalar.value, radix: 16) + "}"
        } else {
            result.unicodeScalars.append(scalar)
        }
    }
    return result
}
