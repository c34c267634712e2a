/// An answer to a player on this machine.
public struct LoopbackAnswer {
    /// What comes after the head.
    public enum Body {
        case bytes([UInt8])
        /// A part of a file, which the kernel sends. The descriptor stays the caller's.
        case file(Int32, offset: UInt64, count: UInt64)
        /// Read piece by piece; nil: the size is unknown.
        case stream(count: UInt64?, read: (_ place: UInt64, _ buffer: UnsafeMutableRawBufferPointer) -> Supply)
    }

    /// The next piece of a stream.
    public enum Supply: Sendable, Equatable {
        /// At least 1.
        case bytes(Int)
        /// None yet: ``LoopbackExchange/resume()`` tells when there are.
        case wait
        case end
        /// The connection ends, so that the client notices that bytes are missing.
        case failed
    }

    public let status: Int
    public let fields: [(name: String, value: String)]
    public let body: Body

    public init(_ status: Int, _ fields: [(name: String, value: String)] = [], _ body: Body = .bytes([])) {
        (self.status, self.fields, self.body) = (status, fields, body)
    }
}
