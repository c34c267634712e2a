extension String {
    /// The text, or its first bytes if it is longer than that. Used to store text of other programs.
    ///
    /// Counts bytes, not characters: one character may have megabytes. A cut text ends with a hash of the whole text,
    /// so that two long texts that differ only at the end stay different.
    public func kept(bytes limit: Int) -> String {
        guard utf8.count > limit else { return self }
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        let tail = "…" + String(hash, radix: 36)
        return prefix(bytes: max(0, limit - tail.utf8.count)) + tail
    }

    /// Its first bytes, at most that many, ending at a complete UTF-8 character.
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
