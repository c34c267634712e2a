/// Typed readers. Each refuses a value of another type; the error has the position and the expected type.
extension KeyFile.Entry {
    /// The text with its escapes resolved: `\s` space, `\n` newline, `\t` tab, `\r` return, `\\` backslash.
    public func text() throws(KeyFileError) -> String {
        try items(splitting: false).first ?? ""
    }

    /// The items between `;`; spaces around each item are removed, `\;` is a semicolon, and one `;` may end the list.
    ///
    /// An empty value is an empty list; an empty item is refused.
    public func list() throws(KeyFileError) -> [String] {
        rawValue.isEmpty ? [] : try items(splitting: true)
    }

    /// A decimal number in `range`, in `unit` (named in messages only). No exponent, no infinity, no NaN.
    public func real(in range: ClosedRange<Double>, unit: String) throws(KeyFileError) -> Double {
        let measure = unit.isEmpty ? "" : ", in \(unit)"
        let advice = "write a number from \(range.lowerBound) to \(range.upperBound)" + measure
        guard isDecimal(allowingFraction: true), let value = Double(rawValue) else {
            throw refusal("\(quoted(rawValue)) is not a number for \(key); \(advice)")
        }
        guard range.contains(value) else { throw refusal("\(key) cannot be \(quoted(rawValue)); \(advice)") }
        return value
    }

    /// A whole decimal number in `range`.
    public func integer(in range: ClosedRange<Int>) throws(KeyFileError) -> Int {
        let advice = "write a whole number from \(range.lowerBound) to \(range.upperBound)"
        guard isDecimal(allowingFraction: false) else {
            throw refusal("\(quoted(rawValue)) is not a whole number for \(key); \(advice)")
        }
        // Only digits: nil means too large for Int.
        guard let value = Int(rawValue), range.contains(value) else {
            throw refusal("\(key) cannot be \(quoted(rawValue)); \(advice)")
        }
        return value
    }

    /// `on` or `off`.
    public func isOn() throws(KeyFileError) -> Bool {
        switch rawValue {
        case "on": return true
        case "off": return false
        default: throw refusal("\(quoted(rawValue)) is neither on nor off; write \(key) = on or \(key) = off")
        }
    }

    /// One of the raw values of an enumeration.
    public func word<Word>(_: Word.Type = Word.self) throws(KeyFileError) -> Word
    where Word: RawRepresentable<String> & CaseIterable {
        guard let word = Word(rawValue: rawValue) else {
            let words = Word.allCases.map(\.rawValue).joined(separator: ", ")
            throw refusal("\(key) cannot be \(quoted(rawValue)); write one of \(words)")
        }
        return word
    }

    /// The error for this value, with that message.
    public func refusal(_ message: String) -> KeyFileError {
        KeyFileError(file: file, position: valuePosition, message)
    }

    /// The error for this key, with that message.
    func keyRefusal(_ message: String) -> KeyFileError {
        KeyFileError(file: file, position: position, message)
    }

    private func refusal(at offset: Int, _ message: String) -> KeyFileError {
        let position = KeyFile.Position(line: valuePosition.line, column: valuePosition.column + offset)
        return KeyFileError(file: file, position: position, message)
    }

    /// `[+-]digits[.digits]`: narrower than `Double.init`, which also reads `nan`, `inf` and hexadecimal.
    private func isDecimal(allowingFraction: Bool) -> Bool {
        var digits = Substring(rawValue)
        if digits.first == "-" || digits.first == "+" { digits = digits.dropFirst() }
        let parts = digits.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 1 || (allowingFraction && parts.count == 2) else { return false }
        return parts.allSatisfy { part in !part.isEmpty && part.utf8.allSatisfy { (0x30...0x39).contains($0) } }
    }

    private func items(splitting: Bool) throws(KeyFileError) -> [String] {
        var items: [String] = []
        var item: [Unicode.Scalar] = []
        // After the last character that must not be trimmed: an escaped space stays.
        var kept = 0
        var start = 0
        var escaped = false
        func finished() throws(KeyFileError) -> String {
            let text = string(item[..<kept])
            guard !splitting || !text.isEmpty else {
                throw refusal(at: start, "an empty item in the list; remove one ';'")
            }
            return text
        }
        for (offset, scalar) in rawValue.unicodeScalars.enumerated() {
            if escaped {
                escaped = false
                switch scalar {
                case "s": item.append(" ")
                case "n": item.append("\n")
                case "t": item.append("\t")
                case "r": item.append("\r")
                case "\\": item.append("\\")
                case ";" where splitting: item.append(";")
                default: throw refusal(at: offset - 1, "unknown escape; use \\s \\n \\t \\r \\\\, and \\; in a list")
                }
                kept = item.count
            } else if scalar == "\\" {
                escaped = true
            } else if splitting, scalar == ";" {
                items.append(try finished())
                item.removeAll()
                kept = 0
                start = offset + 1
            } else if splitting, scalar == " " || scalar == "\t" {
                if !item.isEmpty { item.append(scalar) }
            } else {
                item.append(scalar)
                kept = item.count
            }
        }
        guard !escaped else {
            throw refusal(at: rawValue.unicodeScalars.count - 1, "a backslash at the end; write \\\\ for one")
        }
        if !splitting || start < rawValue.unicodeScalars.count { items.append(try finished()) }
        return items
    }
}
