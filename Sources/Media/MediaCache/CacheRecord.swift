/// What is recorded about a cached resource, as text: lines, of which more may be appended. A line that was cut short by a
/// crash is ignored.
public struct CacheRecord: Sendable, Equatable {
    /// The address without user, password and query.
    public var shown: String
    public var size: UInt64
    public var mark: OriginHead.Mark
    public var type: String
    /// The bytes that were stored.
    public var ranges: RangeSet<UInt64>

    public init(shown: String, size: UInt64, mark: OriginHead.Mark, type: String, ranges: RangeSet<UInt64>) {
        (self.shown, self.size, self.mark, self.type, self.ranges) = (shown, size, mark, type, ranges)
    }

    private static let first = "sessiond media cache 1"
    /// The largest record that is read, in bytes.
    public static let limit = 4 << 20

    /// The whole text.
    /// - Parameter boot: names the current run of the machine. The ranges after it are valid only until its end, because the
    ///   disk may not have them yet; nil: the disk has all of them.
    public func text(boot: String?) -> String {
        var lines = [Self.first, "url \(Self.line(shown))", "size \(size)"]
        if let tag = mark.tag { lines.append("tag \(Self.line(tag))") }
        if let modified = mark.modified { lines.append("modified \(Self.line(modified))") }
        if !type.isEmpty { lines.append("type \(Self.line(type))") }
        if let boot { lines.append("boot \(Self.line(boot))") }
        lines += ranges.ranges.map(Self.addition)
        return lines.joined(separator: "\n") + "\n"
    }

    /// The line to append for a range that was stored.
    public static func addition(_ range: Range<UInt64>) -> String { "+ \(range.lowerBound) \(range.upperBound)" }

    /// The line to append before ranges of this run of the machine.
    public static func boot(_ name: String) -> String { "boot \(line(name))" }

    /// Values are of one line.
    private static func line(_ text: String) -> String {
        String(text.unicodeScalars.prefix(2_048).map { $0.value < 0x20 || $0.value == 0x7F ? " " : Character($0) })
    }

    /// Nil if it is no record.
    /// - Parameter boot: names the current run of the machine.
    public init?(text: String, boot: String) {
        // The last piece is what follows the last line end: a cut line, or nothing.
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        guard lines.first == Self.first[...] else { return nil }
        var fields: [Substring: String] = [:]
        var isValid = true
        ranges = RangeSet()
        for line in lines.dropFirst() {
            let parts = line.split(separator: " ", maxSplits: 1)
            guard parts.count == 2 else { return nil }
            if parts[0] == "boot" {
                isValid = parts[1] == boot
            } else if parts[0] == "+" {
                let ends = parts[1].split(separator: " ").map { UInt64($0) }
                guard ends.count == 2, let low = ends[0], let high = ends[1], low < high else { return nil }
                if isValid { ranges.insert(contentsOf: low..<high) }
            } else {
                fields[parts[0]] = String(parts[1])
            }
        }
        guard let shown = fields["url"], let size = fields["size"].flatMap({ UInt64($0) }),
            ranges.ranges.last.map({ $0.upperBound <= size }) ?? true
        else { return nil }
        (self.shown, self.size, type) = (shown, size, fields["type"] ?? "")
        mark = OriginHead.Mark(tag: fields["tag"], modified: fields["modified"])
    }
}
