/// The bytes that a player asks for (RFC 9110, 14.2).
public enum RangeAsk: Sendable, Equatable {
    /// No range, several ranges, or one that is not understood: all bytes.
    case whole
    /// To the end, or to the last byte.
    case from(UInt64, last: UInt64?)
    /// The last bytes.
    case suffix(UInt64)

    public init(_ text: String?) {
        self = .whole
        guard let text, text.lowercased().hasPrefix("bytes="), !text.contains(",") else { return }
        let ends = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false).map {
            $0.filter { $0 != " " }
        }
        guard ends.count == 2, ends.allSatisfy({ $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }) else { return }
        if ends[0].isEmpty {
            if let count = UInt64(ends[1]) { self = .suffix(count) }
        } else if let first = UInt64(ends[0]), ends[1].isEmpty {
            self = .from(first, last: nil)
        } else if let first = UInt64(ends[0]), let last = UInt64(ends[1]), first <= last {
            self = .from(first, last: last)
        }
    }

    /// Where a reader begins when the size is not known yet.
    public var likelyStart: UInt64 {
        switch self {
        case .whole, .suffix: 0
        case .from(let first, _): first
        }
    }

    /// The bytes of a resource of that size; nil: there are none (416).
    public func bytes(of size: UInt64) -> Range<UInt64>? {
        switch self {
        case .whole: return 0..<size
        case .from(let first, let last):
            guard first < size else { return nil }
            return first..<min(size, last.map { $0 == .max ? $0 : $0 + 1 } ?? size)
        case .suffix(let count):
            guard count > 0, size > 0 else { return nil }
            return size - min(size, count)..<size
        }
    }
}
