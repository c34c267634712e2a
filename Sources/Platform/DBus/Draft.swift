/// A message before it is sent: its header as values, its body as bytes.
struct Draft {
    /// The numbers of the wire (`DBUS_MESSAGE_TYPE_*`).
    enum Kind: UInt8 {
        case methodCall = 1
        case methodReturn = 2
        case error = 3
        case signal = 4
    }

    /// The numbers of the wire (`DBUS_HEADER_FIELD_*`).
    private enum Field: UInt8 {
        case path = 1
        case interface = 2
        case member = 3
        case errorName = 4
        case replySerial = 5
        case destination = 6
        case signature = 8
    }

    private static let littleEndian = UInt8(ascii: "l")
    private static let protocolVersion: UInt8 = 1
    /// A body's signature may not be longer.
    private static let signatureLimit = 255

    let kind: Kind
    var path: String?
    var interface: String?
    var member: String?
    var errorName: String?
    var replySerial: UInt32?
    var destination: String?
    /// Set on everything but calls, as libdbus does.
    var noReplyExpected: Bool
    var noAutoStart = false
    private(set) var signature = ""
    private var body: WireWriter?

    init(_ kind: Kind) {
        self.kind = kind
        noReplyExpected = kind != .methodCall
    }

    init(signal member: String, path: String, interface: String) {
        self.init(.signal)
        self.path = path
        self.interface = interface
        self.member = member
    }

    mutating func append(_ values: [Value]) throws(Failure) {
        var body = body.take() ?? WireWriter(reserving: 256)
        for value in values {
            try body.append(value)
            signature += value.signature
        }
        self.body = consume body
        guard signature.utf8.count <= Self.signatureLimit else { throw .limitsExceeded("Too many arguments") }
    }

    /// Appends the whole message to `bytes`. The names must be valid: the bus disconnects a sender of invalid ones.
    func write(serial: UInt32, to bytes: inout [UInt8]) throws(Failure) {
        // Enough for most messages: five names.
        var header = WireWriter(reserving: 224)
        header.integer(Self.littleEndian)
        header.integer(kind.rawValue)
        header.integer(UInt8((noReplyExpected ? 1 : 0) | (noAutoStart ? 2 : 0)))
        header.integer(Self.protocolVersion)
        header.integer(UInt32(body?.bytes.count ?? 0))
        header.integer(serial)
        let start = header.bytes.count
        header.integer(UInt32(0))
        if let path { try Self.field(.path, "o", path, to: &header) }
        if let interface { try Self.field(.interface, "s", interface, to: &header) }
        if let member { try Self.field(.member, "s", member, to: &header) }
        if let errorName { try Self.field(.errorName, "s", errorName, to: &header) }
        if let replySerial {
            Self.begin(.replySerial, "u", &header)
            header.integer(replySerial)
        }
        if let destination { try Self.field(.destination, "s", destination, to: &header) }
        if !signature.isEmpty {
            Self.begin(.signature, "g", &header)
            header.append(signature: signature)
        }
        header.patch(UInt32(header.bytes.count - start - 4), at: start)
        header.align(8)
        bytes.append(contentsOf: header.bytes)
        if let body { bytes.append(contentsOf: body.bytes) }
    }

    private static func begin(_ field: Field, _ type: String, _ header: inout WireWriter) {
        header.align(8)
        header.integer(field.rawValue)
        header.append(signature: type)
    }

    private static func field(
        _ field: Field, _ type: String, _ text: String, to header: inout WireWriter
    ) throws(Failure) {
        begin(field, type, &header)
        try header.append(text)
    }
}
