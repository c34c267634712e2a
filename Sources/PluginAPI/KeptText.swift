extension String {
    /// As much of a stranger's text as is kept: itself, or its first bytes where it has more than that many.
    ///
    /// Bytes and not characters: one character may be megabytes. What is cut ends in a number made of the whole, so that
    /// two long texts that differ late stay two.
    public func kept(bytes limit: Int) -> String {
        guard utf8.count > limit else { return self }
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        let tail = "…" + String(hash, radix: 36)
        return prefix(bytes: max(0, limit - tail.utf8.count)) + tail
    }

    /// Its first bytes, at most that many, that are whole characters of UTF-8.
    public func prefix(bytes limit: Int) -> String {
        guard utf8.count > limit else { return self }
        var end = utf8.index(utf8.startIndex, offsetBy: limit)
        while end > startIndex, !UTF8.isLeading(utf8[end]) { end = utf8.index(before: end) }
        return String(unicodeScalars[..<end])
    }
}

extension UTF8 {
    fileprivate static func isLeading(_ byte: UInt8) -> Bool { byte & 0b1100_0000 != 0b1000_0000 }
}
