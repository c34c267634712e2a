/// A session's number: part of its bus path, ascending, and never reused while the daemon runs.
public struct SessionID: Hashable, Comparable, Sendable, CustomStringConvertible {
    public let number: UInt64
    public init(_ number: UInt64) { self.number = number }
    public static func < (a: SessionID, b: SessionID) -> Bool { a.number < b.number }
    public var description: String { String(number) }
}
