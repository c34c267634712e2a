import MediaValues
public import PluginAPI

/// Where a live stream is sent. The key of a stream is a password: whoever knows it can send in its place, so only
/// ``location`` has it, for the element that connects; everything else gets ``shown`` and ``hidden(_:)``.
public struct LiveTarget: Sendable, Hashable {
    public enum Method: Sendable, Hashable {
        /// RTMP, also with TLS.
        case rtmp
        case srt
        /// WebRTC: the address of WHIP (RFC 9725).
        case whip
        /// A folder with segments and a playlist, for a web server.
        case hls
    }

    public let method: Method
    /// With the key. For HLS the path of the folder.
    public let location: String
    /// Without the key, user, password and everything after a question mark.
    public let shown: String
    /// What a server of WHIP wants to be shown; empty: nothing.
    public let token: String
    private let secrets: [String]

    /// The largest address in bytes.
    public static let limit = 2_048
    /// What an address of SRT may have after its question mark.
    private static let srtFields = ["streamid", "passphrase", "pbkeylen", "latency", "mode"]

    /// - Parameters:
    ///   - url: `rtmp://HOST/APP/KEY` or `rtmps:`, `srt://HOST:PORT?streamid=…`, `https://HOST/PATH` of WHIP, or a folder as a
    ///     path or `file:` URI.
    ///   - key: the key of the stream, if it is not in the address. For SRT it is the `streamid`, for WHIP the bearer token.
    /// - Throws: `BadParameter` that says what is wrong.
    public init(_ url: String, key: String = "") throws(SessionError) {
        guard url.utf8.count <= Self.limit, key.utf8.count <= Self.limit, !(url + key).utf8.contains(0) else {
            throw .badParameter("the address of a live stream and its key have at most \(Self.limit) bytes each")
        }
        // A space would begin another parameter of the connection.
        guard url.hasPrefix("/") || !url.unicodeScalars.contains(where: { $0.value < 33 }) else {
            throw .badParameter("an address of a live stream has no spaces: write %20")
        }
        guard let colon = url.firstIndex(of: ":"), !url.hasPrefix("/") else {
            try self.init(folder: url, key)
            return
        }
        switch url[..<colon].lowercased() {
        case "rtmp", "rtmps": try self.init(rtmp: url, key)
        case "srt": try self.init(srt: url, key)
        case "http", "https": try self.init(whip: url, key)
        case "file":
            let rest = url.dropFirst(5)
            let path = rest.hasPrefix("//") ? rest.dropFirst(2) : rest
            try self.init(folder: Self.unescaped(path), key)
        case let other:
            throw .badParameter(
                "\(quoted(other + ":")) is not known: a live stream goes to rtmp:, rtmps:, srt: or, by WHIP, https:, or as HLS to a folder"
            )
        }
    }

    private init(folder: String, _ key: String) throws(SessionError) {
        guard folder.hasPrefix("/") else {
            throw .badParameter(
                "\(quoted(folder)) is neither an address with rtmp:, rtmps:, srt: or https: nor an absolute path")
        }
        guard key.isEmpty else { throw .badParameter("a folder needs no key") }
        (method, location, shown, token, secrets) = (.hls, folder, folder, "", [])
    }

    private init(rtmp url: String, _ key: String) throws(SessionError) {
        let parts = try Parts(url)
        guard parts.fragment.isEmpty else { throw .badParameter("an address of RTMP has no '#': write %23") }
        var path = parts.path.split(separator: "/", omittingEmptySubsequences: true).map(String.init)
        let secret: String
        if key.isEmpty {
            guard path.count >= 2 else {
                throw .badParameter(
                    "the key is missing: the address is \(parts.scheme)://HOST/APPLICATION/KEY, or give the key apart")
            }
            secret = path.removeLast() + (parts.query.isEmpty ? "" : "?" + parts.query)
        } else {
            guard !key.unicodeScalars.contains(where: { $0.value < 33 }) else {
                throw .badParameter("a key of RTMP has no spaces")
            }
            guard !path.isEmpty, parts.query.isEmpty else {
                throw .badParameter("with a key apart, the address is \(parts.scheme)://HOST/APPLICATION")
            }
            secret = key
        }
        let place = "\(parts.host)\(parts.port.isEmpty ? "" : ":\(parts.port)")/\(path.joined(separator: "/"))"
        (method, token) = (.rtmp, "")
        location = "\(parts.scheme)://\(parts.user.isEmpty ? "" : parts.user + "@")\(place)/\(secret)"
        shown = "\(parts.scheme)://\(place)/…"
        secrets = Self.secrets(
            [secret, parts.user, parts.query] + secret.split(separator: "?").map(String.init)
                + parts.user.split(separator: ":").map(String.init))
    }

    private init(srt url: String, _ key: String) throws(SessionError) {
        let parts = try Parts(url)
        guard !parts.port.isEmpty else { throw .badParameter("the port is missing: the address is srt://HOST:PORT") }
        guard parts.user.isEmpty, parts.path.isEmpty || parts.path == "/" else {
            throw .badParameter("an address of SRT is srt://HOST:PORT?streamid=…, without a user and a path")
        }
        var fields: [(name: String, value: String)] = []
        for field in parts.query.split(separator: "&") {
            let pair = field.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard pair.count == 2, Self.srtFields.contains(pair[0]) else {
                throw .badParameter(
                    "\(quoted(pair[0])) is not known: an address of SRT may have \(Self.srtFields.joined(separator: ", "))"
                )
            }
            fields.append((pair[0], pair[1]))
        }
        func value(_ name: String) -> String? { fields.first { $0.name == name }?.value }
        if let mode = value("mode"), mode != "caller" {
            throw SessionError(.notSupported, "a live stream calls its server: leave out mode=\(mode)")
        }
        if let latency = value("latency"), UInt32(latency).map({ $0 <= 60_000 }) != true {
            throw .badParameter("latency must be milliseconds, 0 to 60000, not \(quoted(latency))")
        }
        if let phrase = value("passphrase"), !(10...79).contains(Self.unescaped(phrase[...]).utf8.count) {
            throw .badParameter("the passphrase of SRT has 10 to 79 characters")
        }
        if !key.isEmpty {
            guard value("streamid") == nil else { throw .badParameter("the address has a streamid already") }
            fields.append(("streamid", Self.escaped(key)))
        }
        let query = fields.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
        (method, token) = (.srt, "")
        location = "srt://\(parts.host):\(parts.port)" + (query.isEmpty ? "" : "?" + query)
        shown = "srt://\(parts.host):\(parts.port)"
        secrets = Self.secrets([value("streamid"), value("passphrase"), key].compactMap(\.self))
    }

    private init(whip url: String, _ key: String) throws(SessionError) {
        let parts = try Parts(url)
        guard parts.user.isEmpty else {
            throw .badParameter("an address of WHIP has no user: give the server's token as the key")
        }
        guard parts.fragment.isEmpty else { throw .badParameter("an address of WHIP has no '#': write %23") }
        guard key.unicodeScalars.allSatisfy({ (0x21...0x7E).contains($0.value) }) else {
            throw .badParameter("a token of WHIP has only letters, digits and signs of ASCII")
        }
        (method, location, token) = (.whip, url, key)
        // Some services have the key in the path.
        shown = "\(parts.scheme)://\(parts.host)\(parts.port.isEmpty ? "" : ":\(parts.port)")/…"
        secrets = Self.secrets([key, parts.query] + parts.path.split(separator: "/").map(String.init))
    }

    /// The latency that an address of SRT names, in milliseconds; nil: none.
    public var latency: Int? {
        guard method == .srt, let query = location.split(separator: "?").dropFirst().first else { return nil }
        return query.split(separator: "&").first { $0.hasPrefix("latency=") }.flatMap { Int($0.dropFirst(8)) }
    }

    /// A text of a server or of the system without the key.
    public func hidden(_ text: String) -> String {
        guard method != .hls else { return text }
        var text = Self.replacing(location, in: text, by: shown)
        for secret in secrets { text = Self.replacing(secret, in: text, by: "…") }
        return text
    }

    /// Those that can be told from the words of a sentence, as written and without escapes, the longest first.
    private static func secrets(_ texts: [String]) -> [String] {
        Set(texts.flatMap { [$0, unescaped($0[...])] }).filter { $0.utf8.count >= 4 }
            .sorted { ($0.utf8.count, $0) > ($1.utf8.count, $1) }
    }

    private static func replacing(_ part: String, in text: String, by other: String) -> String {
        guard !part.isEmpty else { return text }
        var (result, rest) = ([UInt8](), Array(text.utf8)[...])
        let part = Array(part.utf8)
        while !rest.isEmpty {
            if rest.starts(with: part) {
                result += Array(other.utf8)
                rest = rest.dropFirst(part.count)
            } else {
                result.append(rest.removeFirst())
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static func unescaped(_ text: Substring) -> String {
        String(decoding: FileURI.unescaped(text.utf8), as: UTF8.self)
    }

    private static func escaped(_ text: String) -> String {
        text.utf8.reduce(into: "") { result, byte in
            let isPlain =
                Character(UnicodeScalar(byte)).isASCII
                && (UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte
                    || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || "-._~".utf8.contains(byte))
            let digits = String(byte, radix: 16, uppercase: true)
            result += isPlain ? String(UnicodeScalar(byte)) : "%" + (digits.count < 2 ? "0" : "") + digits
        }
    }

    /// An address of a scheme with a host.
    private struct Parts {
        let scheme, user, host, port, path, query, fragment: String

        init(_ url: String) throws(SessionError) {
            func cut(_ text: inout Substring, from mark: Character) -> String {
                guard let index = text.firstIndex(of: mark) else { return "" }
                defer { text = text[..<index] }
                return String(text[text.index(after: index)...])
            }
            let colon = url.firstIndex(of: ":") ?? url.startIndex
            scheme = url[..<colon].lowercased()
            var rest = url[colon...].dropFirst()
            guard rest.hasPrefix("//") else { throw .badParameter("after \(scheme): come two slashes and the host") }
            rest = rest.dropFirst(2)
            fragment = cut(&rest, from: "#")
            query = cut(&rest, from: "?")
            let slash = rest.firstIndex(of: "/") ?? rest.endIndex
            path = String(rest[slash...])
            rest = rest[..<slash]
            let sign = rest.lastIndex(of: "@")
            user = sign.map { String(rest[..<$0]) } ?? ""
            if let sign { rest = rest[rest.index(after: sign)...] }
            // An address of IPv6 is in brackets.
            let end = rest.lastIndex(of: "]").map { rest.index(after: $0) } ?? rest.startIndex
            let mark = rest[end...].firstIndex(of: ":")
            host = String(rest[..<(mark ?? rest.endIndex)])
            port = mark.map { String(rest[rest.index(after: $0)...]) } ?? ""
            guard !host.isEmpty else { throw .badParameter("the host is missing after \(scheme)://") }
            guard port.isEmpty || UInt16(port).map({ $0 > 0 }) == true else {
                throw .badParameter("a port is a number from 1 to 65535, not \(quoted(port))")
            }
        }
    }
}
