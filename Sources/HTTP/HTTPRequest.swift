/// A request to a web server.
public struct HTTPRequest {
    public var method: String
    /// `http` or `https`; nothing else is spoken.
    public var address: WebAddress
    public var fields: [HTTPField]
    public var body: HTTPBody
    /// At most so many bytes of the body in a second; 0: as many as the network takes.
    public var rate: UInt64 = 0
    /// Seconds until there must be a connection.
    public var connecting = 30.0
    /// Seconds until the transfer fails: after the last byte of the request that was sent, until the head of the answer is
    /// there, and then until its body is. What the server sends bit by bit does not make it longer.
    public var silence = 60.0
    /// The bytes of the answer's body that are kept; what follows is not received.
    public var answerLimit = 64 << 10
    /// Whether a server may refuse a large body before it is sent (`Expect: 100-continue`). A server that does not know
    /// that costs a second.
    public var asksBeforeSending = false
    /// Whether the body may be sent a second time: libcurl does so when a kept connection turns out to be gone. Not where the
    /// server keeps what it has of it.
    public var mayRepeat = true
    /// Whether user and password may come from `~/.netrc`.
    public var usesNetrc = true

    public init(_ method: String, _ address: WebAddress, _ fields: [HTTPField] = [], body: HTTPBody = HTTPBody()) {
        self.method = method
        self.address = address
        self.fields = fields
        self.body = body
    }
}

/// What a web server answered.
public struct HTTPResponse: Sendable, Hashable {
    public let status: Int
    public let fields: [HTTPField]
    /// Its first bytes, at most as many as the request allows.
    public let body: [UInt8]
    /// The bytes of the request's body that were sent.
    public let bytesSent: UInt64

    /// The bytes of its texts and its body.
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
