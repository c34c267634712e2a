/// The head of an origin's answer: what it says about the bytes that follow.
public struct OriginHead: Sendable, Hashable {
    /// What tells two versions of a resource apart. Two versions without any mark can only differ in their size.
    public struct Mark: Sendable, Hashable {
        public var tag: String?
        public var modified: String?

        public init(tag: String? = nil, modified: String? = nil) { (self.tag, self.modified) = (tag, modified) }

        /// What `If-Range` may contain (RFC 9110, 13.1.5): a strong tag, otherwise the date. Nil: neither is there.
        public var condition: String? { tag.flatMap { $0.hasPrefix("W/") ? nil : $0 } ?? modified }

        /// Whether both may describe the same version: what only one of them has says nothing.
        func mayEqual(_ other: Mark) -> Bool {
            if let tag, let theirs = other.tag { return tag == theirs }
            if let modified, let theirs = other.modified { return modified == theirs }
            return true
        }
    }

    public var status: Int
    /// The bytes that follow, as `Content-Range` says.
    public var range: ClosedRange<UInt64>?
    /// The size of the whole resource; nil: unknown.
    public var size: UInt64?
    public var mark: Mark
    /// Whether the answer may be kept: no `no-store`, no coding such as gzip.
    public var mayKeep: Bool
    public var type: String
    /// Such as `gzip`; empty: none.
    public var coding = ""

    public init(
        status: Int, range: ClosedRange<UInt64>? = nil, size: UInt64?, mark: Mark = Mark(), mayKeep: Bool = true,
        type: String = ""
    ) {
        (self.status, self.range, self.size, self.mark) = (status, range, size, mark)
        (self.mayKeep, self.type) = (mayKeep, type)
    }

    /// Reads the fields of an answer.
    public init(status: Int, fields: [(name: String, value: String)]) {
        func value(_ name: String) -> String? { fields.last { $0.name.lowercased() == name }?.value }
        let words = fields.filter { $0.name.lowercased() == "cache-control" }
            .flatMap { $0.value.lowercased().split(separator: ",") }
        let coding = value("content-encoding")?.lowercased() ?? ""
        let part = value("content-range").flatMap(Self.part)
        self.init(
            status: status, range: part?.range,
            size: part != nil ? part?.size : status == 200 ? value("content-length").flatMap { UInt64($0) } : nil,
            mark: Mark(tag: value("etag"), modified: value("last-modified")),
            mayKeep: !words.contains { $0.drop { $0 == " " }.hasPrefix("no-store") }
                && ["", "identity"].contains(coding),
            type: value("content-type") ?? "")
        guard !["", "identity"].contains(coding) else { return }
        // The size is that of the coded bytes, and so would be every range.
        (size, self.coding) = (nil, coding)
    }

    /// `bytes 0-9/100`, `bytes 0-9/*`, `bytes */100`.
    private static func part(_ text: String) -> (range: ClosedRange<UInt64>?, size: UInt64?)? {
        let words = text.split(separator: " ")
        guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let halves = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard halves.count == 2 else { return nil }
        let size = UInt64(halves[1])
        if halves[0] == "*" { return (nil, size) }
        let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false).map { UInt64($0) }
        guard ends.count == 2, let first = ends[0], let last = ends[1], first <= last, last < .max,
            size.map({ last < $0 }) ?? true
        else { return nil }
        return (first...last, size)
    }

    /// Whether the content names other files relative to its own address (HLS, DASH, M3U, PLS): it must come from there.
    public var isPlaylist: Bool {
        let kind = type.lowercased().prefix { $0 != ";" && $0 != " " }
        return [
            "application/vnd.apple.mpegurl", "application/x-mpegurl", "audio/mpegurl", "audio/x-mpegurl",
            "application/dash+xml", "audio/x-scpls", "application/vnd.ms-sstr+xml", "application/xspf+xml",
        ].contains(String(kind))
    }
}
