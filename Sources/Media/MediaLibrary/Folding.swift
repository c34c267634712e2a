@_spi(_Unicode) import Swift

/// Converts texts to the form in which they are compared and searched: without case, diacritics and typographic
/// punctuation.
public enum Folding {
    /// After folding, `Björk` and `BJORK` are equal, `Sigur Rós` and `sigur ros`, `ﬁ` and `fi`.
    public static func fold(_ text: String) -> String {
        if text.utf8.allSatisfy({ $0 < 0x80 }) { return text.lowercased() }
        var folded = String.UnicodeScalarView()
        for scalar in text.lowercased()._nfd where scalar.properties.canonicalCombiningClass == .notReordered {
            if let letters = letters[scalar] { folded += letters.unicodeScalars } else { folded.append(scalar) }
        }
        return String(folded)
    }

    /// Letters that Unicode decomposition does not convert to a letter of the alphabet.
    private static let letters: [Unicode.Scalar: String] = [
        "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h", "ı": "i",
        "’": "'", "‘": "'", "“": "\"", "”": "\"", "–": "-", "—": "-", "…": "...", "ﬁ": "fi", "ﬂ": "fl", "\u{A0}": " ",
    ]

    /// The words of a folded text.
    public static func words(_ folded: String) -> [String] {
        var words: [String] = []
        var word = String.UnicodeScalarView()
        func end() {
            if !word.isEmpty { words.append(String(word)) }
            word = String.UnicodeScalarView()
        }
        for scalar in folded.unicodeScalars {
            // "don't" is one word, equal to "dont".
            if scalar == "'" { continue }
            if isPartOfWord(scalar) {
                word.append(scalar)
            } else {
                end()
            }
        }
        end()
        return words
    }

    private static func isPartOfWord(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9": true
        // The tables of Unicode are slow.
        case "\0"..."\u{7F}": false
        default: scalar.properties.isAlphabetic || scalar.properties.numericType != nil
        }
    }

    /// The key by which a title or a name is sorted: folded, without an article.
    public static func sortKey(_ folded: String) -> String {
        for article in ["the ", "a ", "an "] where folded.hasPrefix(article) && folded.utf8.count > article.utf8.count {
            return String(folded.dropFirst(article.count))
        }
        return folded
    }
}
