import FileFormats
import MediaValues
import PluginAPI

/// Reads playlist files: M3U, PLS and XSPF.
public enum ListFile {
    public static let sizeLimit = 4 << 20
    /// The largest entry in bytes; longer than any path.
    private static let locationLimit = 16_384

    /// The absolute paths of those entries that are files on this machine; nil: the file is not a playlist.
    public static func entries(_ bytes: [UInt8], path: [UInt8]) -> [[UInt8]]? {
        let base = FileURI.shared(path)
        let uris: [String]
        if path.suffix(5).map({ $0 | 0x20 }).elementsEqual(".xspf".utf8) {
            guard let found = locations(bytes) else { return nil }
            uris = found.map { absolute($0, path) }
        } else {
            guard let entries = Playlist.entries(bytes, base: base) else { return nil }
            uris = entries.map(\.uri)
        }
        return uris.prefix(Playlist.entryLimit).compactMap { FileURI.path(of: $0) }.map(plain)
    }

    /// The text of each `location` in an XSPF file (XSPF version 1).
    private static func locations(_ bytes: [UInt8]) -> [String]? {
        let text = Array(String(decoding: bytes, as: UTF8.self).utf8)
        var found: [String] = []
        var isList = false
        var index = 0
        while index < text.count {
            guard text[index] == UInt8(ascii: "<") else {
                index += 1
                continue
            }
            if text[index...].starts(with: "<!--".utf8) {
                while index < text.count, !text[index...].starts(with: "-->".utf8) { index += 1 }
                continue
            }
            let tag = text[(index + 1)...].prefix { $0 > 0x20 && $0 != UInt8(ascii: ">") && $0 != UInt8(ascii: "/") }
            let name = String(decoding: tag, as: UTF8.self).split(separator: ":").last ?? ""
            while index < text.count, text[index] != UInt8(ascii: ">") { index += 1 }
            index += 1
            if name == "playlist" { isList = true }
            guard name == "location", isList, index <= text.count else { continue }
            let content = text[min(index, text.count)...].prefix { $0 != UInt8(ascii: "<") }
            guard content.count <= locationLimit else { continue }
            let location = unescaped(content)
            if !location.isEmpty { found.append(location) }
        }
        return isList ? found : nil
    }

    private static func unescaped(_ content: ArraySlice<UInt8>) -> String {
        var result: [UInt8] = []
        var rest = content
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "&"), let end = rest.prefix(11).firstIndex(of: UInt8(ascii: ";")),
                let letter = letter(String(decoding: rest[..<end], as: UTF8.self))
            {
                result += Array(letter.utf8)
                rest = rest[(end + 1)...]
            } else if byte != 10, byte != 13 {
                result.append(byte)
            }
        }
        let space = UInt8(ascii: " ")
        guard let first = result.firstIndex(where: { $0 != space }), let last = result.lastIndex(where: { $0 != space })
        else { return "" }
        return String(decoding: result[first...last], as: UTF8.self)
    }

    /// The character of the XML entity `&name;`.
    private static func letter(_ name: String) -> String? {
        if let known = ["amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'"][name] { return known }
        guard name.hasPrefix("#") else { return nil }
        let code = name.hasPrefix("#x") ? UInt32(name.dropFirst(2), radix: 16) : UInt32(name.dropFirst())
        return code.flatMap(Unicode.Scalar.init).map { String($0) }
    }

    private static func absolute(_ location: String, _ path: [UInt8]) -> String {
        if location.prefix(12).contains(where: { $0 == ":" }), !location.hasPrefix("/") { return location }
        if location.hasPrefix("/") { return "file://" + location }
        let folder = path.lastIndex(of: UInt8(ascii: "/")).map { Array(path[...$0]) } ?? []
        return FileURI.shared(folder) + location
    }

    /// The path with "." and ".." resolved, without following links.
    private static func plain(_ path: [UInt8]) -> [UInt8] {
        var parts: [ArraySlice<UInt8>] = []
        for part in path.split(separator: UInt8(ascii: "/")) {
            if part.elementsEqual(".".utf8) { continue }
            if part.elementsEqual("..".utf8) {
                _ = parts.popLast()
            } else {
                parts.append(part)
            }
        }
        return parts.flatMap { [UInt8(ascii: "/")] + $0 }
    }
}
