/// The stored state of an upload until it ends, and its text form.
///
/// A text is valid only if it is complete: it ends with a special line. It contains the headers of the caller, which
/// may be credentials, so only the user may read the file.
public struct UploadRecord: Sendable, Hashable {
    public struct Pair: Sendable, Hashable {
        public var name: String
        public var value: String

        public init(_ name: String, _ value: String) { (self.name, self.value) = (name, value) }
    }

    /// The options of the caller.
    public struct Options: Sendable, Hashable {
        public var method = UploadMachine.Method.auto
        /// The name of the form field that contains the file.
        public var field = "file"
        /// More fields of a form; with tus, metadata.
        public var form: [Pair] = []
        public var headers: [Pair] = []
        public var contentType = ""
        public var chunkSize = UploadMachine.chunkSize
        /// The largest rate in bytes per second; 0: no limit.
        public var rate: UInt64 = 0
        /// Whether it may use a metered network.
        public var sendsOnMetered = false
        public var deletesWhenDone = false
        /// Whether each piece has a checksum (tus).
        public var hasChecksum = false
        public var tries = 5
        /// The longest time from the last byte of a whole file (put, post) to the answer, in seconds.
        public var answerTimeout = Options.answerTimeout
        public static let answerTimeout = 600

        public init() {}
    }

    /// The number of its job.
    public var number: UInt64
    public var path: String
    public var address: String
    public var options: Options
    public var identity: FileIdentity
    /// The method that is used.
    public var method: UploadMachine.Method
    /// The address for the whole file or for the creation, after redirects.
    public var target: String
    public var uploadAddress: String?
    public var confirmed: UInt64
    public var chunkSize: UInt64
    public var isPaused: Bool
    /// Whether the server may have the whole file, and has not answered.
    public var mayBeThere = false

    public init(number: UInt64, path: String, address: String, options: Options, identity: FileIdentity) {
        (self.number, self.path, self.address) = (number, path, address)
        (self.options, self.identity) = (options, identity)
        method = options.method
        target = address
        uploadAddress = nil
        confirmed = 0
        chunkSize = options.chunkSize
        isPaused = false
    }

    /// The size of the texts that the caller gave, in bytes.
    public var weight: Int {
        let texts = [path, address, options.field, options.contentType]
        return (options.form + options.headers).reduce(texts.reduce(0) { $0 + $1.utf8.count }) {
            $0 + $1.name.utf8.count + $1.value.utf8.count
        }
    }

    /// Updates the record from the machine.
    public mutating func take(_ machine: UploadMachine) {
        method = machine.method
        target = machine.address
        uploadAddress = machine.uploadAddress
        confirmed = machine.confirmed
        chunkSize = machine.chunkSize
        isPaused = machine.isPaused
        mayBeThere = machine.mayBeThere
    }

    /// A machine that continues the upload.
    public func machine(spread: Double) -> UploadMachine {
        UploadMachine(
            UploadMachine.Plan(
                method: method, size: identity.size, chunkSize: chunkSize, tries: options.tries, spread: spread),
            to: target, uploadAddress: uploadAddress, confirmed: confirmed, isPaused: isPaused,
            mayBeThere: mayBeThere)
    }

    // MARK: Text

    private static let head = "sessiond upload 1"
    private static let tail = "end"

    public var text: String {
        var lines = [UploadRecord.head]
        func add(_ key: String, _ values: String...) {
            lines.append(([key] + values.map(UploadRecord.escaped)).joined(separator: " "))
        }
        add("number", "\(number)")
        add("path", path)
        add("address", address)
        add("identity", "\(identity.inode)", "\(identity.size)", "\(identity.modified)")
        add("asked", options.method.rawValue)
        add("field", options.field)
        for pair in options.form { add("form", pair.name, pair.value) }
        for pair in options.headers { add("header", pair.name, pair.value) }
        add("type", options.contentType)
        add("rate", "\(options.rate)")
        add("metered", options.sendsOnMetered ? "send" : "wait")
        add("delete", "\(options.deletesWhenDone)")
        add("checksum", "\(options.hasChecksum)")
        add("tries", "\(options.tries)")
        add("largest", "\(options.chunkSize)")
        add("method", method.rawValue)
        add("target", target)
        if let uploadAddress { add("upload", uploadAddress) }
        add("confirmed", "\(confirmed)")
        add("chunk", "\(chunkSize)")
        add("paused", "\(isPaused)")
        // Only if they are not the defaults: a record of an earlier version has no such lines.
        if options.answerTimeout != Options.answerTimeout { add("answer", "\(options.answerTimeout)") }
        if mayBeThere { add("sent", "true") }
        lines.append(UploadRecord.tail)
        return lines.joined(separator: "\n") + "\n"
    }

    /// Nil unless the text is complete and every value is valid.
    public init?(text: String) {
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.popLast() == "", lines.popLast() == UploadRecord.tail[...], lines.first == UploadRecord.head[...]
        else {
            return nil
        }
        var values: [String: [String]] = [:]
        var (form, headers): ([Pair], [Pair]) = ([], [])
        for line in lines.dropFirst() {
            let words = line.split(separator: " ", omittingEmptySubsequences: false)
            let texts = words.dropFirst().compactMap(UploadRecord.unescaped)
            guard let key = words.first, texts.count == words.count - 1 else { return nil }
            switch key {
            case "form", "header":
                guard texts.count == 2 else { return nil }
                let pair = Pair(texts[0], texts[1])
                if key == "form" { form.append(pair) } else { headers.append(pair) }
            default: guard values.updateValue(texts, forKey: String(key)) == nil else { return nil }
            }
        }
        func one(_ key: String) -> String? { values[key]?.count == 1 ? values[key]?[0] : nil }
        func number(_ key: String) -> UInt64? { one(key).flatMap { UInt64($0) } }
        func flag(_ key: String) -> Bool? { one(key).flatMap { Bool($0) } }
        func method(_ key: String) -> UploadMachine.Method? { one(key).flatMap(UploadMachine.Method.init(rawValue:)) }
        guard let own = number("number"), let path = one("path"), let address = one("address"),
            let identity = values["identity"], identity.count == 3, let inode = UInt64(identity[0]),
            let size = UInt64(identity[1]), let modified = Int64(identity[2]),
            let asked = method("asked"), let field = one("field"), let type = one("type"), let rate = number("rate"),
            let metered = one("metered"), metered == "send" || metered == "wait", let deletes = flag("delete"),
            let checksum = flag("checksum"), let tries = one("tries").flatMap({ Int($0) }), tries >= 0,
            let largest = number("largest"), largest > 0, let current = method("method"), let target = one("target"),
            let confirmed = number("confirmed"), confirmed <= size, let chunk = number("chunk"), chunk > 0,
            let isPaused = flag("paused")
        else { return nil }
        var options = Options()
        if values["answer"] != nil {
            guard let seconds = number("answer"), 1...86_400 ~= seconds else { return nil }
            options.answerTimeout = Int(seconds)
        }
        options.method = asked
        options.field = field
        options.form = form
        options.headers = headers
        options.contentType = type
        options.chunkSize = largest
        options.rate = rate
        options.sendsOnMetered = metered == "send"
        options.deletesWhenDone = deletes
        options.hasChecksum = checksum
        options.tries = tries
        self.init(
            number: own, path: path, address: address, options: options,
            identity: FileIdentity(inode: inode, size: size, modified: modified))
        self.method = current
        self.target = target
        uploadAddress = one("upload")
        self.confirmed = confirmed
        chunkSize = chunk
        self.isPaused = isPaused
        if values["sent"] != nil {
            guard let sent = flag("sent") else { return nil }
            mayBeThere = sent
        }
    }

    /// The text with every byte escaped that is not a visible ASCII character.
    private static func escaped(_ text: String) -> String {
        var escaped = ""
        for byte in text.utf8 {
            if byte > 0x20, byte != UInt8(ascii: "%"), byte < 0x7F {
                escaped.unicodeScalars.append(UnicodeScalar(byte))
            } else {
                escaped += byte < 16 ? "%0" : "%"
                escaped += String(byte, radix: 16)
            }
        }
        return escaped
    }

    private static func unescaped(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2, let code = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else {
                return nil
            }
            bytes.append(code)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
