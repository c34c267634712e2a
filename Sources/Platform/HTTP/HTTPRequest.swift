/// A request to a web server.
public struct HTTPRequest {
    public var method: String
    /// An `http` or `https` address.
    public var address: WebAddress
    public var fields: [HTTPField]
    public var body: HTTPBody
    /// The largest rate of the body in bytes per second; 0: no limit.
    public var rate: UInt64 = 0
    /// The time limit for a connection, in seconds.
    public var connecting = 30.0
    /// The time limits of an answer, in seconds: the head of the answer must arrive within this time after the last
    /// byte of the request was sent, and its body within the same time again. A server that sends byte by byte does not
    /// extend it.
    public var silence = 60.0
    /// The time limit for the head of the answer after the server has acknowledged the last byte of the body, in seconds: a
    /// server may need long to store a large file. Nil: ``silence``. Until then, ``silence`` applies, so a transfer that stalls
    /// is noticed as early as any other.
    public var answering: Double?
    /// Whether the request may use no connection that was open before: such a connection may be closed already, and then it is
    /// unknown whether the server has the body.
    public var needsNewConnection = false
    /// The largest stored part of the answer's body, in bytes; the rest is not received.
    public var answerLimit = 64 << 10
    /// Receives the body of the answer, which is then not stored. Then ``silence`` is the longest time without a byte.
    public var sink: HTTPSink?
    /// Whether a server may refuse a large body before it is sent (`Expect: 100-continue`). With a server that does not
    /// support this, it costs one second.
    public var asksBeforeSending = false
    /// Whether libcurl may send the body a second time, if a reused connection turns out to be closed. Must be false if
    /// the server stores a part of the body.
    public var mayRepeat = true
    /// Whether user and password may be taken from `~/.netrc`.
    public var usesNetrc = true

    public init(_ method: String, _ address: WebAddress, _ fields: [HTTPField] = [], body: HTTPBody = HTTPBody()) {
        self.method = method
        self.address = address
        self.fields = fields
        self.body = body
    }
}

/// The answer of a web server.
public struct HTTPResponse: Sendable, Hashable {
    public let status: Int
    public let fields: [HTTPField]
    /// The first bytes of the body, limited by the request.
    public let body: [UInt8]
    /// The number of bytes of the request's body that were sent.
    public let bytesSent: UInt64

    /// The size of its texts and its body, in bytes.
    public var weight: Int {
        fields.reduce(body.count) { $0 + $1.name.utf8.count + $1.value.utf8.count }
    }

    public init(status: Int, fields: [HTTPField] = [], body: [UInt8] = [], bytesSent: UInt64 = 0) {
        self.status = status
        self.fields = fields
        self.body = body
        self.bytesSent = bytesSent
    }
}
