/// Base64 with padding (RFC 4648, section 4).
public enum Base64 {
    private static let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    public static func text(of bytes: some Collection<UInt8>) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        var rest = bytes[...]
        while !rest.isEmpty {
            let group = Array(rest.prefix(3))
            rest = rest.dropFirst(3)
            let bits = group.reduce(0) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
            for place in 0..<4 {
                text.append(
                    place <= group.count ? letters[Int(bits >> UInt32(18 - 6 * place) & 63)] : UInt8(ascii: "="))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// `Upload-Metadata` of tus: names without spaces and commas, values in Base64.
    public static func metadata(_ pairs: [(name: String, value: String)]) -> String {
        pairs.map { pair in pair.value.isEmpty ? pair.name : "\(pair.name) \(text(of: Array(pair.value.utf8)))" }
            .joined(separator: ",")
    }
}
