/// A session's number: part of its bus path, ascending, and never reused while the daemon runs.
public struct SessionID: Hashable, Comparable, Sendable, CustomStringConvertible, Codable {
    public let number: UInt64
    public init(_ number: UInt64) { self.number = number }
    public static func < (a: SessionID, b: SessionID) -> Bool { a.number < b.number }
    public var description: String { String(number) }

    public init(from decoder: any Decoder) throws { number = try decoder.singleValueContainer().decode(UInt64.self) }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(number)
    }
}
