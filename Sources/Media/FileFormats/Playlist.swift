package import PluginAPI

/// Playlist files: M3U (and M3U8, which is M3U in UTF-8) and PLS.
package enum Playlist {
    /// The limit in bytes. Real playlists are smaller.
    package static let sizeLimit = 1 << 20
    /// The limit of entries, which is also the limit of a queue.
    package static let entryLimit = 10_000

    /// The entries in order; nil if the bytes are not a playlist. HLS looks like M3U, but it is a stream.
    ///
    /// - Parameter base: the URI of the playlist, for relative entries. If it is on the network, entries with local files
    ///   are left out.
    package static func entries(_ bytes: [UInt8], base: String) -> [PlaylistEntry]? {
        let text = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes[...]
        let lines = text.prefix(sizeLimit).split { $0 == 10 || $0 == 13 }.map(trimmed).filter { !$0.isEmpty }
        guard let first = lines.first, !text.prefix(4_096).contains(0) else { return nil }
        if lines.contains(where: { $0.starts(with: "#EXT-X-".utf8) }) { return nil }
        if string(first).lowercased() == "[playlist]" { return fromPLS(lines, base) }
        let isMarked = first.starts(with: "#EXTM3U".utf8)
        return isMarked || isNamed(base, ["m3u", "m3u8"]) ? fromM3U(lines, base) : nil
    }

    /// Whether the URI's path has the extension of a playlist.
    package static func isNamedAsList(_ uri: String) -> Bool { isNamed(uri, ["m3u", "m3u8", "pls"]) }

    /// Whether a file begins like a playlist.
    package static func looksLikeList(_ head: [UInt8]) -> Bool {
        let start = head.starts(with: [0xEF, 0xBB, 0xBF]) ? head.dropFirst(3) : head[...]
        return start.starts(with: "#EXTM3U".utf8) || string(start.prefix(10)).lowercased() == "[playlist]"
    }

    private static func isNamed(_ uri: String, _ endings: [String]) -> Bool {
        let path = uri.prefix { $0 != "?" && $0 != "#" }.lowercased()
        return endings.contains { path.hasSuffix("." + $0) }
    }

    private static func fromM3U(_ lines: [ArraySlice<UInt8>], _ base: String) -> [PlaylistEntry] {
        var entries: [PlaylistEntry] = []
        var title: String?
        var duration: Double?
        for line in lines {
            if entries.count == entryLimit { break }
            if line.starts(with: "#EXTINF:".utf8) {
                let info = line.dropFirst(8).split(separator: UInt8(ascii: ","), maxSplits: 1)
                duration = info.first.flatMap { Double(string($0.prefix { $0 != UInt8(ascii: " ") })) }
                title = info.count == 2 ? string(trimmed(info[1])) : nil
            } else if line.first != UInt8(ascii: "#") {
                add(line, title, duration, base, to: &entries)
                (title, duration) = (nil, nil)
            }
        }
        return entries
    }

    private static func fromPLS(_ lines: [ArraySlice<UInt8>], _ base: String) -> [PlaylistEntry] {
        var fields: [String: ArraySlice<UInt8>] = [:]
        var numbers: [Int] = []
        for line in lines.prefix(3 * entryLimit) {
            guard let equals = line.firstIndex(of: UInt8(ascii: "=")) else { continue }
            let key = string(trimmed(line[..<equals])).lowercased()
            fields[key] = trimmed(line[(equals + 1)...])
            if key.hasPrefix("file"), let number = Int(key.dropFirst(4)) { numbers.append(number) }
        }
        var entries: [PlaylistEntry] = []
        for number in Set(numbers).sorted().prefix(entryLimit) {
            guard let place = fields["file\(number)"], !place.isEmpty else { continue }
            add(
                place, fields["title\(number)"].map(string), fields["length\(number)"].flatMap { Double(string($0)) },
                base, to: &entries)
        }
        return entries
    }

    private static func add(
        _ place: ArraySlice<UInt8>, _ title: String?, _ duration: Double?, _ base: String,
        to entries: inout [PlaylistEntry]
    ) {
        guard let uri = resolve(place, base), base.hasPrefix("file:") || !uri.lowercased().hasPrefix("file:") else {
            return
        }
        let isLength = duration.map { $0 > 0 && $0 < 1e9 } ?? false
        entries.append(
            PlaylistEntry(
                uri: uri, title: title.flatMap { $0.isEmpty ? nil : String($0.prefix(1_000)) },
                duration: isLength ? duration : nil))
    }

    /// The URI of an entry: a URI, an absolute path, or a path relative to the playlist.
    static func resolve(_ place: ArraySlice<UInt8>, _ base: String) -> String? {
        guard place.count <= 16_384 else { return nil }
        // "Alien: Romulus.mkv" is a file.
        if let colon = place.firstIndex(of: UInt8(ascii: ":")), colon - place.startIndex > 1,
            place[..<colon].allSatisfy(isScheme), place[(colon + 1)...].first == UInt8(ascii: "/")
        {
            return escaped(place, isPath: false)
        }
        let path = String(base.prefix { $0 != "?" && $0 != "#" })
        let isFile = path.hasPrefix("file:")
        let text = escaped(place, isPath: isFile)
        let parts = path.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        let origin = "\(parts[0])//\(parts[2])"
        if text.hasPrefix("//"), !isFile { return parts[0] + text }
        if text.hasPrefix("/") { return origin + text }
        guard let slash = path.lastIndex(of: "/") else { return nil }
        return path[...slash] + text
    }

    /// Escapes the bytes for a URI. A path may have any bytes. A URI may already contain escapes, which are kept.
    private static func escaped(_ bytes: ArraySlice<UInt8>, isPath: Bool) -> String {
        var result = ""
        for byte in bytes {
            let isPlain = byte > 0x20 && byte < 0x7F && !"\"<>\\^`{|}".utf8.contains(byte)
            if isPlain, !isPath || !"%?#".utf8.contains(byte) {
                result.unicodeScalars.append(UnicodeScalar(byte))
            } else {
                result += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return result
    }

    private static func isScheme(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."):
            true
        default: false
        }
    }

    /// Decodes UTF-8 or, for old M3U files, Latin-1.
    private static func string(_ bytes: ArraySlice<UInt8>) -> String {
        String(validating: bytes, as: UTF8.self) ?? String(String.UnicodeScalarView(bytes.map { UnicodeScalar($0) }))
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let isSpace: (UInt8) -> Bool = { $0 == 32 || $0 == 9 }
        var rest = bytes.drop(while: isSpace)
        while let last = rest.last, isSpace(last) { rest = rest.dropLast() }
        return rest
    }
}
