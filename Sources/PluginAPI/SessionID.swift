/// A session's number: its place in the bus path, ascending with creation, never used again while the daemon lives.
public struct SessionID: Hashable, Comparable, Sendable, CustomStringConvertible {
    public let number: UInt64
    public init(_ number: UInt64) { self.number = number }
    public static func < (a: SessionID, b: SessionID) -> Bool { a.number < b.number }
    public var description: String { String(number) }
}
