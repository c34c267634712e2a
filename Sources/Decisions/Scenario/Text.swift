extension String {
    /// Letters, digits, `-` and `_`, starting with a letter, at most 64.
    var isLabel: Bool {
        guard let first = utf8.first, utf8.count <= 64, first | 0x20 >= 0x61, first | 0x20 <= 0x7A else { return false }
        return utf8.allSatisfy {
            ($0 >= 0x30 && $0 <= 0x39) || ($0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7A) || $0 == 0x2D || $0 == 0x5F
        }
    }

    /// 12 for `s12`.
    var numbered: UInt64? { utf8.first == UInt8(ascii: "s") ? UInt64(dropFirst()) : nil }

    /// Without spaces and tabs around it.
    var trimmed: String {
        var scalars = unicodeScalars[...]
        while let first = scalars.first, first == " " || first == "\t" { scalars.removeFirst() }
        while let last = scalars.last, last == " " || last == "\t" { scalars.removeLast() }
        return String(scalars)
    }
}
