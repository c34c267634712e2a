/// Reads an answer, line by line of its head and piece by piece of its body, within limits. It is a value: it knows no
/// connection.
struct AnswerReader {
    /// The most bytes of all heads of an answer, preliminary ones included.
    static let headLimit = 64 << 10

    /// What a line of the head has shown.
    enum Head {
        case more
        /// It was the last line of the final head.
        case isWhole
        case isTooLong
    }

    private let bodyLimit: Int
    private(set) var status = 0
    private(set) var fields: [HTTPField] = []
    private(set) var body: [UInt8] = []
    /// Whether the complete final head has arrived, not only a preliminary one.
    private(set) var isHeadWhole = false
    /// Whether the rest of the body is not received.
    private(set) var isBodyCut = false
    private var headBytes = 0

    /// - Parameter bodyLimit: the most bytes of the body.
    init(bodyLimit: Int) { self.bodyLimit = bodyLimit }

    /// A line of the head, with its end.
    mutating func read(line bytes: UnsafeRawBufferPointer) -> Head {
        headBytes += bytes.count
        guard headBytes <= Self.headLimit else { return .isTooLong }
        let line = String(decoding: bytes, as: UTF8.self).prefix { $0 != "\r\n" && $0 != "\n" && $0 != "\r" }
        if line.hasPrefix("HTTP/") {
            // The head of an answer; an earlier head was only preliminary (100).
            status = line.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
            fields = []
        } else if let colon = line.firstIndex(of: ":"),
            let field = HTTPField(String(line[..<colon]), Self.trimmed(line[line.index(after: colon)...]))
        {
            fields.append(field)
        } else if line.isEmpty, status >= 200, !isHeadWhole {
            isHeadWhole = true
            return .isWhole
        }
        return .more
    }

    private static func trimmed(_ text: Substring) -> String {
        var text = text.drop { $0 == " " || $0 == "\t" }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return String(text)
    }

    /// A piece of the body. An answer may be endless, so what comes after the limit is cut.
    mutating func read(body bytes: UnsafeRawBufferPointer) {
        body += bytes.prefix(max(0, bodyLimit - body.count))
        isBodyCut = body.count == bodyLimit
    }

    /// Somebody else reads the body, and wants no more of it.
    mutating func cutBody() { isBodyCut = true }
}
