/// An address at which the cache for media of the web serves a resource to players of this machine:
/// `http://127.0.0.1:PORT/TOKEN/NAME`.
package enum CacheAddress {
    /// The digits of a token: 128 random bits.
    private static let digits = 32

    /// - Parameters:
    ///   - token: 32 hexadecimal digits.
    ///   - name: the last part of the path, as it stands in an address.
    package static func text(port: UInt16, token: String, name: String) -> String {
        "http://127.0.0.1:\(port)/\(token)/\(name)"
    }

    /// Whether an address has this form. Other servers on this machine hardly have it.
    package static func isOne(_ address: String) -> Bool {
        let parts = address.split(separator: "/", maxSplits: 4, omittingEmptySubsequences: false)
        guard parts.count == 5, parts[0] == "http:", parts[1].isEmpty, parts[3].utf8.count == digits,
            parts[3].allSatisfy({ $0.isHexDigit })
        else { return false }
        let host = parts[2].split(separator: ":", omittingEmptySubsequences: false)
        return host.count == 2 && host[0] == "127.0.0.1" && UInt16(host[1]) != nil
    }
}
