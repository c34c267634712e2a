import CCurl

/// A web address, checked by libcurl's own parser, so that the checked address is the one that is used.
public struct WebAddress: Sendable, Hashable {
    /// Includes user and password, if the address has them: not to be shown.
    public let text: String
    public let host: String
    /// Scheme, host and port. A secret of one origin must not be sent to another one.
    public let origin: String
    /// The largest address in bytes.
    public static let limit = 8 << 10
    public var isEncrypted: Bool { origin.hasPrefix("https:") }

    /// Nil if it is not an absolute address of `http` or `https` with a host, or longer than ``limit``.
    public init?(_ text: String) { self.init(text, below: nil, limit: WebAddress.limit) }

    /// Resolves an address that a server named: absolute, or relative to this one. It does not inherit user, password
    /// and query.
    public func resolving(_ reference: String) -> WebAddress? {
        WebAddress(reference, below: shown, limit: WebAddress.limit)
    }

    /// This address with the user and the password of another one, if the other has them and this one has not.
    public func authorized(like other: WebAddress) -> WebAddress {
        guard let theirs = curl_url(), let ours = curl_url() else { return self }
        defer {
            curl_url_cleanup(theirs)
            curl_url_cleanup(ours)
        }
        guard curl_url_set(theirs, CURLUPART_URL, other.text, 0) == CURLUE_OK,
            curl_url_set(ours, CURLUPART_URL, text, 0) == CURLUE_OK,
            let user = WebAddress.part(theirs, CURLUPART_USER), WebAddress.part(ours, CURLUPART_USER) == nil,
            curl_url_set(ours, CURLUPART_USER, user, 0) == CURLUE_OK
        else { return self }
        if let password = WebAddress.part(theirs, CURLUPART_PASSWORD) {
            curl_url_set(ours, CURLUPART_PASSWORD, password, 0)
        }
        return WebAddress.part(ours, CURLUPART_URL).flatMap { WebAddress($0, below: nil, limit: 3 * WebAddress.limit) }
            ?? self
    }

    /// The secret parts of the address: user, password and query.
    public var secrets: [String] {
        guard let parts = curl_url() else { return [] }
        defer { curl_url_cleanup(parts) }
        guard curl_url_set(parts, CURLUPART_URL, text, 0) == CURLUE_OK else { return [] }
        return [CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY].compactMap { WebAddress.part(parts, $0) }
    }

    private init?(_ text: String, below base: String?, limit: Int) {
        guard text.utf8.count <= limit, !text.utf8.contains(0), let parts = curl_url() else { return nil }
        defer { curl_url_cleanup(parts) }
        if let base, curl_url_set(parts, CURLUPART_URL, base, 0) != CURLUE_OK { return nil }
        guard curl_url_set(parts, CURLUPART_URL, text, UInt32(CURLU_URLENCODE)) == CURLUE_OK,
            // Escapes make an address longer.
            let whole = WebAddress.part(parts, CURLUPART_URL), whole.utf8.count <= limit,
            let scheme = WebAddress.part(parts, CURLUPART_SCHEME), scheme == "http" || scheme == "https",
            let host = WebAddress.part(parts, CURLUPART_HOST), !host.isEmpty,
            let port = WebAddress.part(parts, CURLUPART_PORT, UInt32(CURLU_DEFAULT_PORT))
        else { return nil }
        self.text = whole
        self.host = host
        origin = "\(scheme)://\(host.lowercased()):\(port)"
    }

    private static func part(_ parts: OpaquePointer, _ part: CURLUPart, _ flags: UInt32 = 0) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard curl_url_get(parts, part, &text, flags) == CURLUE_OK, let text else { return nil }
        defer { curl_free(text) }
        return String(cString: text)
    }

    /// The address without user, password, query and fragment, which often contain a secret: for messages and logs.
    public var shown: String {
        guard let parts = curl_url() else { return origin }
        defer { curl_url_cleanup(parts) }
        guard curl_url_set(parts, CURLUPART_URL, text, 0) == CURLUE_OK else { return origin }
        for part in [CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS, CURLUPART_QUERY, CURLUPART_FRAGMENT] {
            curl_url_set(parts, part, nil, 0)
        }
        return WebAddress.part(parts, CURLUPART_URL) ?? origin
    }
}
