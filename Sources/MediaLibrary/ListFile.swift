import FileFormats
import MediaValues
import PluginAPI

/// Playlists as files: M3U, PLS and XSPF.
public enum ListFile {
    public static let sizeLimit = 4 << 20

    /// The absolute paths of the entries that are files on this machine; nil: it is no playlist.
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
            let location = unescaped(String(decoding: content, as: UTF8.self))
            if !location.isEmpty { found.append(location) }
        }
        return isList ? found : nil
    }

    private static func unescaped(_ text: String) -> String {
        var result = ""
        var rest = text[...]
        while let character = rest.first {
            if character == "&", let end = rest.prefix(12).firstIndex(of: ";") {
                let name = rest[rest.index(after: rest.startIndex)..<end]
                let known = ["amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'"][String(name)]
                let code =
                    name.hasPrefix("#x")
                    ? UInt32(name.dropFirst(2), radix: 16) : name.hasPrefix("#") ? UInt32(name.dropFirst()) : nil
                if let letter = known ?? code.flatMap(Unicode.Scalar.init).map({ String($0) }) {
                    result += letter
                    rest = rest[rest.index(after: end)...]
                    continue
                }
            }
            if !character.isNewline { result.append(character) }
            rest.removeFirst()
        }
        while result.first == " " { result.removeFirst() }
        while result.last == " " { result.removeLast() }
        return result
    }

    private static func absolute(_ location: String, _ path: [UInt8]) -> String {
        if location.prefix(12).contains(where: { $0 == ":" }), !location.hasPrefix("/") { return location }
        if location.hasPrefix("/") { return "file://" + location }
        let folder = path.lastIndex(of: UInt8(ascii: "/")).map { Array(path[...$0]) } ?? []
        return FileURI.shared(folder) + location
    }

    /// Without "." and "..".
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
