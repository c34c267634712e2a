import Glibc

/// Paths as `file:` URIs.
public enum FileURI {
    /// The absolute path of `path`, relative to the current directory; nil if that no longer exists.
    public static func absolute(_ path: String) -> String? {
        path.hasPrefix("/") ? path : currentFolder.map { $0 + "/" + path }
    }

    /// Nil if it no longer exists.
    public static var currentFolder: String? {
        guard let folder = getcwd(nil, 0) else { return nil }
        defer { free(folder) }
        return String(cString: folder)
    }

    /// The URI of a file; a URI is returned unchanged.
    public static func uri(_ text: String) -> String {
        if let colon = text.firstIndex(of: ":"), colon != text.startIndex, text[..<colon].allSatisfy(isScheme) {
            return text
        }
        return "file://" + escaped(absolute(text) ?? text)
    }

    private static func isScheme(_ character: Character) -> Bool {
        character.isASCII && (character.isLetter || character.isNumber || "+-.".contains(character))
    }

    private static func escaped(_ path: String) -> String {
        var result = ""
        for byte in path.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"), UInt8(ascii: "~"):
                result.unicodeScalars.append(UnicodeScalar(byte))
            default: result += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return result
    }

    /// The last part of a URI's path for display, with escapes resolved; nil if there is none.
    package static func title(_ uri: String) -> String? {
        let path = uri.prefix { $0 != "?" && $0 != "#" }
        guard let last = path.split(separator: "/").last, path.contains("/") else { return nil }
        var bytes: [UInt8] = []
        var rest = Array(last.utf8)[...]
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
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Removes user and password before each host (RFC 3986, 3.2.1), in a URI or in a text that contains URIs.
    package static func withoutUser(_ text: String) -> String {
        let bytes = Array(text.utf8)
        var shown: [UInt8] = []
        var rest = bytes[...]
        while let byte = rest.popFirst() {
            shown.append(byte)
            guard byte == UInt8(ascii: "/"), shown.suffix(3).elementsEqual("://".utf8) else { continue }
            let authority = rest.prefix { $0 > 0x20 && !"/?#'\"".utf8.contains($0) }
            if let at = authority.lastIndex(of: UInt8(ascii: "@")) { rest = rest[(at + 1)...] }
        }
        return shown.count == bytes.count ? text : String(decoding: shown, as: UTF8.self)
    }
}
