import Glibc

/// Paths as `file:` URIs.
public enum FileURI {
    /// The absolute path of `path`, relative to the current directory; nil if that directory no longer exists.
    public static func absolute(_ path: String) -> String? {
        path.hasPrefix("/") ? path : currentFolder.map { $0 + "/" + path }
    }

    /// Nil if it no longer exists.
    public static var currentFolder: String? {
        guard let folder = getcwd(nil, 0) else { return nil }
        defer { free(folder) }
        return String(cString: folder)
    }

    /// The URI of a file; a URI is returned unchanged, but what no address of the web may have is escaped, as browsers do: spaces,
    /// umlauts, a percent sign alone. Names of files may have colons: `Alien: Romulus.mkv`, `10:30.mp4`.
    public static func uri(_ text: String) -> String {
        if let colon = text.firstIndex(of: ":"), text.first?.isLetter == true, text[..<colon].allSatisfy(isScheme),
            text[text.index(after: colon)...].hasPrefix("/") || access(text, F_OK) != 0
        {
            return ["http", "https"].contains(text[..<colon].lowercased()) ? escapedAddress(text) : text
        }
        return "file://" + escaped(absolute(text) ?? text)
    }

    private static func escapedAddress(_ text: String) -> String {
        let bytes = Array(text.utf8)
        func isHex(_ place: Int) -> Bool {
            place < bytes.count && UnicodeScalar(bytes[place]).properties.isASCIIHexDigit
        }
        let parts = bytes.indices.map { place in
            let byte = bytes[place]
            let isEscape = byte == UInt8(ascii: "%") && isHex(place + 1) && isHex(place + 2)
            let isPlain = byte > 0x20 && byte < 0x7f && byte != UInt8(ascii: "%") || isEscape
            return isPlain ? String(UnicodeScalar(byte)) : escaped([byte], leaving: table)
        }
        return parts.joined()
    }

    private static func isScheme(_ character: Character) -> Bool {
        character.isASCII && (character.isLetter || character.isNumber || "+-.".contains(character))
    }

    /// The path of a `file:` URI on this machine, which need not be UTF-8; nil for any other URI, and for one without
    /// an absolute path.
    public static func path(of uri: String) -> [UInt8]? {
        guard uri.prefix(5).lowercased() == "file:" else { return nil }
        var rest = uri.dropFirst(5)[...]
        if rest.hasPrefix("//") {
            rest = rest.dropFirst(2)
            let host = rest.prefix { $0 != "/" }
            guard host.isEmpty || host.lowercased() == "localhost" else { return nil }
            rest = rest.dropFirst(host.count)
        }
        let bytes = unescaped(rest.utf8)
        return bytes.first == UInt8(ascii: "/") && !bytes.contains(0) ? bytes : nil
    }

    /// The URI that the Thumbnail Managing Standard uses for a file: escaped as GLib does it.
    public static func shared(_ path: [UInt8]) -> String {
        "file://" + escaped(path, leaving: sharedTable)
    }

    /// With its escapes (`%20`) resolved; what is no escape stays.
    package static func unescaped(_ text: some Sequence<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = Array(text)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), rest.count > 1,
                let code = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            {
                bytes.append(code)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return bytes
    }

    /// Which bytes need no escape: letters, digits and these marks.
    private static func table(_ marks: String) -> [Bool] {
        let plain = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789\(marks)".utf8)
        return (0...255).map { plain.contains($0) }
    }
    private static let sharedTable = table("!$&'()*+,-./:=@_~")
    private static let table = table("/-._~")

    private static func escaped(_ path: some Collection<UInt8>, leaving plain: [Bool]) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var result: [UInt8] = []
        result.reserveCapacity(path.count + 16)
        for byte in path {
            if plain[Int(byte)] {
                result.append(byte)
            } else {
                result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static func escaped(_ path: String) -> String { escaped(path.utf8, leaving: table) }

    /// The last part of a URI's path for display, with escapes resolved; nil if there is none.
    package static func title(_ uri: String) -> String? {
        let path = uri.prefix { $0 != "?" && $0 != "#" }
        guard let last = path.split(separator: "/").last, path.contains("/") else { return nil }
        return String(decoding: unescaped(last.utf8), as: UTF8.self)
    }

    /// A URI for others: without user and password, query and fragment (RFC 3986, 3.2.1, 3.4 and 3.5), which may be
    /// secrets. The path of a file stays complete.
    package static func shown(_ uri: String) -> String {
        if let path = path(of: uri) {
            return uri.utf8.contains { "?#".utf8.contains($0) } ? shared(path) : uri
        }
        let isURI = uri.prefix { $0 != ":" }.allSatisfy(isScheme) && uri.utf8.contains(UInt8(ascii: ":"))
        let end = uri.utf8.firstIndex { "?#".utf8.contains($0) }
        return withoutSecrets(isURI ? String(uri[..<(end ?? uri.endIndex)]) : uri)
    }

    /// The same for every URI with a host in a text.
    package static func withoutSecrets(_ text: String) -> String {
        let bytes = Array(text.utf8)
        var shown: [UInt8] = []
        var rest = bytes[...]
        while let byte = rest.popFirst() {
            shown.append(byte)
            guard byte == UInt8(ascii: "/"), shown.suffix(3).elementsEqual("://".utf8) else { continue }
            let uri = rest.prefix { $0 > 0x20 && !"'\"<>".utf8.contains($0) }
            rest = rest[uri.endIndex...]
            let known = uri.prefix { !"?#".utf8.contains($0) }
            let authority = known.prefix { $0 != UInt8(ascii: "/") }
            let host = authority.lastIndex(of: UInt8(ascii: "@")).map { $0 + 1 } ?? known.startIndex
            shown += known[host...]
        }
        return shown.count == bytes.count ? text : String(decoding: shown, as: UTF8.self)
    }
}
