/// What a list of HLS (RFC 8216) says about its stream.
package enum SegmentList: Sendable, Hashable {
    /// A film that is there as a whole.
    case whole
    /// More segments follow; the longest one has that many seconds.
    case live(segment: Double)
    /// A list of the same stream with several bit rates: the address of the first.
    case variants(first: String)

    /// Nil: it is no list of HLS.
    /// - Parameter base: the address of the list.
    package init?(_ bytes: [UInt8], base: String) {
        let text = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes[...]
        guard text.starts(with: "#EXTM3U".utf8) else { return nil }
        let lines = text.prefix(Playlist.sizeLimit).split { $0 == 10 || $0 == 13 }
        let (length, variant, end) = ("#EXT-X-TARGETDURATION:", "#EXT-X-STREAM-INF", "#EXT-X-ENDLIST")
        if lines.contains(where: { $0.starts(with: variant.utf8) }) {
            guard let first = lines.first(where: { $0.first != UInt8(ascii: "#") }),
                let uri = Playlist.resolve(first, base)
            else { return nil }
            self = .variants(first: uri)
            return
        }
        guard let found = lines.first(where: { $0.starts(with: length.utf8) }) else { return nil }
        let word = found.dropFirst(length.utf8.count).prefix { $0 != 32 && $0 != 9 }
        // The list of a film that is still being made may say that it never loses a segment; it is played from its beginning.
        let isWhole = lines.contains { $0.starts(with: end.utf8) || $0.starts(with: "#EXT-X-PLAYLIST-TYPE:".utf8) }
        let seconds = Double(String(decoding: word, as: UTF8.self)) ?? 0
        self = isWhole ? .whole : .live(segment: seconds >= 0.1 && seconds <= 60 ? seconds : 6)
    }
}
