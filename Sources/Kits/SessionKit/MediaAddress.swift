/// Where a file or a stream is: a path, a URI, or the URL type of another library.
///
/// Foundation's `URL` becomes one with one line in the app:
///
///     extension URL: @retroactive MediaAddress {}
public protocol MediaAddress: Sendable {
    /// A URI such as `file:///tmp/note.wav`, or the path of a file.
    var absoluteString: String { get }
}

extension String: MediaAddress {
    public var absoluteString: String { self }
}

/// The forms of an address that the plugins understand.
enum MediaPath {
    /// A URI. A path is made absolute and encoded.
    static func uri(_ address: some MediaAddress) -> String {
        let text = address.absoluteString
        if hasScheme(text) { return text }
        let path = text.hasPrefix("/") ? text : OwnProcess.workingFolder + "/" + text
        return "file://" + path.utf8.map(encoded).joined()
    }

    /// The absolute path of a file; nil for a URI that is not `file:`.
    static func file(_ address: some MediaAddress) -> String? {
        let text = address.absoluteString
        guard hasScheme(text) else { return text.hasPrefix("/") ? text : OwnProcess.workingFolder + "/" + text }
        guard text.lowercased().hasPrefix("file:") else { return nil }
        var rest = text.dropFirst("file:".count)
        if rest.hasPrefix("//") {
            rest = rest.dropFirst(2)
            rest = rest.firstIndex(of: "/").map { rest[$0...] } ?? "/"
        }
        return decoded(rest)
    }

    private static func hasScheme(_ text: String) -> Bool {
        guard let colon = text.firstIndex(of: ":") else { return false }
        let scheme = text[..<colon]
        return scheme.first?.isLetter == true
            && scheme.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "+-.".contains($0)) }
    }

    private static func encoded(_ byte: UInt8) -> String {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "_"), UInt8(ascii: "~"):
            return String(UnicodeScalar(byte))
        case _:
            let digits = String(byte, radix: 16, uppercase: true)
            return "%" + (digits.count < 2 ? "0" : "") + digits
        }
    }

    private static func decoded(_ text: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), rest.count >= 2,
                let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
