public import DBus
import EventLoop
public import PluginAPI
import SessionBus

/// Sends a file to a web server, in the background (URLSession's upload task).
///
///     let upload = Upload("/home/me/film.mp4", to: "https://example.org/files/")
///     let progress = upload.progress
///     try await upload.start()
///     for await now in progress { print(now.fractionCompleted) }
///     print(try await upload.response.location)
///
/// The plugin for uploads sends the file. The upload continues after this program ends, unless ``Options/isDetached``
/// is false, and also after a restart of the plugin or of the machine.
public actor Upload {
    /// The thread of the loop: messages from the bus and calls from tasks run on it, one after the other.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { LoopExecutor.shared.asUnownedSerialExecutor() }

    public enum Method: String, Sendable, CaseIterable {
        /// `tus` if the server supports it, otherwise `put`.
        case auto
        /// tus 1.0.0; after a cut, continued at the confirmed offset.
        case tus
        /// One request; after a cut, sent again from the start.
        case put
        /// A form with a file; after a cut, sent again from the start.
        case post
    }

    public struct Options: Sendable, Hashable {
        public var method = Method.auto
        /// The name of the form field that contains the file; nil: `file`.
        public var field: String?
        /// More fields of a form; with tus, metadata.
        public var form: [String: String] = [:]
        /// May be credentials: they are sent only to the origin of the URL, and never shown.
        public var headers: [String: String] = [:]
        /// Nil: found by the file's extension.
        public var contentType: String?
        /// The largest piece in one request of tus, in bytes; nil: 8 MiB.
        public var chunkSize: UInt64?
        /// The largest rate in bytes per second; nil: no limit.
        public var rate: UInt64?
        /// Whether the upload may use a metered network.
        public var allowsMeteredNetwork = false
        /// Whether the file is deleted after the upload.
        public var deletesWhenDone = false
        /// Whether each request of tus has a checksum.
        public var hasChecksum = false
        /// How often the upload tries again without progress; nil: 5; 0: without limit.
        public var tries: UInt32?
        /// The longest time from the last byte of a whole file (put, post) to the answer, in seconds, 1 to 86,400; nil: 600.
        /// After it, the upload fails: the file may be there, and is not sent again.
        public var answerTimeout: UInt32?
        /// Whether the upload continues after this program ends.
        public var isDetached = true

        public init() {}
    }

    public enum State: String, Sendable {
        case waiting, running, paused, finished, failed, cancelled

        /// Whether this is a final state.
        public var isEnd: Bool {
            switch self {
            case .waiting, .running, .paused: false
            case .finished, .failed, .cancelled: true
            }
        }
    }

    public struct Progress: Sendable, Hashable {
        public var state = State.waiting
        /// 0…1; 1 only when the server has confirmed the whole file.
        public var fractionCompleted = 0.0
        public var completedBytes: UInt64 = 0
        public var totalBytes: UInt64 = 0
        /// The mean of the latest seconds.
        public var bytesPerSecond = 0.0
        /// Seconds; nil: unknown.
        public var estimatedTimeRemaining: Double?
        /// The reason why it waits or failed; otherwise empty.
        public var message = ""

        public init() {}
    }

    /// The last answer of the server.
    public struct Response: Sendable, Hashable {
        /// 0: unknown, because the answer was discarded.
        public let status: Int
        public let headers: [String: String]
        /// The start of the body, at most 64 KiB.
        public let body: [UInt8]
        /// The address of the file that the server named; otherwise the address to which it was sent.
        public let location: String
    }

    private let file: String
    private let url: String
    private let options: Options
    private let bus: BusAddress
    private var connection: Connection?
    private var client: UploadClient?
    private var starter: CheckedContinuation<Result<Void, SessionError>, Never>?
    private var waiters: [CheckedContinuation<Result<Response, SessionError>, Never>] = []
    private var result: Result<Response, SessionError>?
    private let broadcast = Broadcast<Progress>()

    /// Does not start the upload.
    ///
    /// - Parameters:
    ///   - file: an absolute path.
    ///   - url: `http` or `https`.
    ///   - bus: the bus of the daemon.
    public init(_ file: String, to url: String, options: Options = .init(), bus: BusAddress = .session) {
        (self.file, self.url, self.options, self.bus) = (file, url, options, bus)
    }

    isolated deinit {
        client = nil
        connection?.close()
        broadcast.finish()
    }

    /// Every change from now on, until the end. Get this sequence before ``start()``: earlier changes are not repeated.
    public nonisolated var progress: AsyncStream<Progress> { broadcast.stream() }

    /// Starts the upload; returns when the plugin has accepted the file.
    /// - Throws: the reason why the plugin refused it, such as `NotFound` or `BadParameter`. A second call throws
    ///   `IsBusy`.
    public func start() async throws(SessionError) {
        guard client == nil, result == nil else { throw SessionError(.isBusy, "the upload has already been started") }
        do throws(Failure) {
            let connection = try Connection(bus, loop: LoopExecutor.shared.loop)
            self.connection = connection
            connection.onDisconnect = { [weak self] in
                self?.assumeIsolated { $0.ended(.failure(SessionError(Failure.disconnected))) }
            }
            client = UploadClient(file, to: url, options: options, on: connection) { [weak self] event in
                self?.assumeIsolated { $0.heard(event) }
            }
        } catch {
            throw SessionError(error)
        }
        try await withCheckedContinuation { starter = $0 }.get()
    }

    /// The server's answer, when the upload has ended. Waits forever if ``start()`` is never called.
    /// - Throws: the reason why the upload failed; `Cancelled` if it was cancelled.
    public var response: Response {
        get async throws(SessionError) {
            if let result { return try result.get() }
            return try await withCheckedContinuation { waiters.append($0) }.get()
        }
    }

    /// Cancels the upload; does nothing before ``start()``. A server that supports tus also removes its part.
    public func cancel() { client?.cancel() }

    /// Pauses the upload; does nothing before ``start()``. With a method other than tus, it starts again when it resumes.
    public func pause() { client?.pause() }
    /// Continues a paused upload.
    public func resume() { client?.resume() }

    private func heard(_ event: UploadClient.Event) {
        switch event {
        case .began: started(.success(()))
        case .changed(let progress): broadcast.send(progress)
        case .interrupted: break
        case .ended(let result): ended(result)
        }
    }

    private func started(_ result: Result<Void, SessionError>) {
        starter?.resume(returning: result)
        starter = nil
    }

    private func ended(_ result: Result<Response, SessionError>) {
        guard self.result == nil else { return }
        self.result = result
        started(result.map { _ in })
        for waiter in waiters { waiter.resume(returning: result) }
        waiters = []
        broadcast.finish()
    }
}

extension Upload.Options {
    /// The options of `org.sessiond1.Uploads`.
    var value: Value {
        var values: [(String, Value)] = [
            ("method", .string(method.rawValue)), ("metered", .string(allowsMeteredNetwork ? "send" : "wait")),
            ("delete-when-done", .bool(deletesWhenDone)), ("checksum", .bool(hasChecksum)),
            ("detached", .bool(isDetached)), ("form", Self.texts(form)), ("headers", Self.texts(headers)),
        ]
        if let field { values.append(("field", .string(field))) }
        if let contentType { values.append(("content-type", .string(contentType))) }
        if let chunkSize { values.append(("chunk-size", .uint64(chunkSize))) }
        if let rate { values.append(("rate", .uint64(rate))) }
        if let tries { values.append(("tries", .uint32(tries))) }
        if let answerTimeout { values.append(("answer-timeout", .uint32(answerTimeout))) }
        return .properties(values)
    }

    private static func texts(_ pairs: [String: String]) -> Value {
        .dictionary(
            key: "s", value: "s",
            pairs.sorted { $0.key < $1.key }.map { DictionaryEntry(key: .string($0.key), value: .string($0.value)) })
    }
}

extension Upload.Progress {
    /// From the properties of a job.
    init(_ fields: [String: Value]) {
        self.init()
        state = fields["State"]?.stringValue.flatMap(Upload.State.init(rawValue:)) ?? .waiting
        fractionCompleted = max(0, fields["Progress"]?.doubleValue ?? 0)
        completedBytes = fields["Done"]?.uint64Value ?? 0
        totalBytes = fields["Total"]?.uint64Value ?? 0
        bytesPerSecond = fields["Speed"]?.doubleValue ?? 0
        estimatedTimeRemaining = fields["Remaining"]?.doubleValue.flatMap { $0 < 0 ? nil : $0 }
        message = fields["Message"]?.stringValue ?? ""
    }
}

extension Upload.Response {
    /// From the answer of `Answer`.
    init(_ values: [Value]) {
        let isWhole = values.count == 4
        status = isWhole ? Int(values[0].uint32Value ?? 0) : 0
        let pairs = isWhole ? values[1].dictionaryValue ?? [] : []
        headers = Dictionary(
            pairs.compactMap { pair in pair.key.stringValue.flatMap { key in pair.value.stringValue.map { (key, $0) } }
            },
            uniquingKeysWith: { first, _ in first })
        body = isWhole ? values[2].arrayValue?.compactMap(\.byteValue) ?? [] : []
        location = isWhole ? values[3].stringValue ?? "" : ""
    }
}
