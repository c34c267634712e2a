import CCurl
import EventLoop
import Glibc

/// A running request (an easy handle of libcurl). What it knows is in three values: the answer (``AnswerReader``), the body
/// of the request (``BodyProgress``) and the silence of the connection (``SilenceLimit``).
public final class HTTPTransfer {
    let easy: UnsafeMutableRawPointer
    /// Whether libcurl accepted every option.
    let isPrepared: Bool
    var isAdded = false
    var isOver = false
    private let host: String
    private let sink: HTTPSink?
    private var isPaused = false
    private let onProgress: (HTTPTransfer) -> Void
    /// Called once, when the last byte of the body was passed to the network: from now on, the server may have all of it. It
    /// must not end the transfer.
    public var onBodySent: (() -> Void)?
    private let onDone: (Result<HTTPResponse, HTTPError>) -> Void
    private weak var client: HTTPClient?
    private var list: UnsafeMutablePointer<curl_slist>?

    private var answer: AnswerReader
    private var progress: BodyProgress
    private var silence: SilenceLimit
    /// The socket of its connection; nil: it has none yet. libcurl itself names the socket only when a transfer has
    /// ended.
    var socket: curl_socket_t?
    private var reader: HTTPBody.Reader
    private let mayRepeat: Bool
    private var hasRead = false
    /// The exact error, if it is known better than by libcurl's result.
    private var failure: HTTPError?

    /// libcurl's last count of sent bytes.
    private var counted: curl_off_t = 0
    private var silenceTimer: Timer?
    private lazy var progressTimer = client.map { Timer(on: $0.loop) { [unowned self] in tellProgress() } }

    /// The size of libcurl's send buffer, the only buffer.
    private static let block = 128 << 10
    private static let smallestBlock = 16 << 10

    init(
        _ request: HTTPRequest, _ client: HTTPClient, onProgress: @escaping (HTTPTransfer) -> Void,
        onDone: @escaping (Result<HTTPResponse, HTTPError>) -> Void
    ) {
        // Fails only if no memory is left.
        guard let easy = curl_easy_init() else { fatalError("curl_easy_init: out of memory") }
        self.easy = easy
        self.client = client
        self.onProgress = onProgress
        self.onDone = onDone
        host = request.address.host
        answer = AnswerReader(bodyLimit: request.answerLimit)
        progress = BodyProgress(length: request.body.length)
        sink = request.sink
        // With a rate limit, there is a pause between two blocks.
        let pause = request.rate > 0 ? Double(HTTPTransfer.smallestBlock) / Double(request.rate) : 0
        let moving = request.silence + pause
        silence = SilenceLimit(moving: moving, answering: request.answering ?? moving, at: MonotonicClock.now())
        reader = request.body.reader
        mayRepeat = request.mayRepeat
        var lines = request.fields.map { $0.value.isEmpty ? "\($0.name);" : "\($0.name): \($0.value)" }
        if !request.asksBeforeSending { lines.append("Expect:") }
        var list: UnsafeMutablePointer<curl_slist>?
        var isComplete = true
        for line in lines {
            guard let longer = curl_slist_append(list, line) else {
                isComplete = false
                break
            }
            list = longer
        }
        self.list = list
        isPrepared = isComplete && HTTPTransfer.prepare(easy, request, list)
        let context = Unmanaged.passUnretained(self).toOpaque()
        shim_set_context(easy, CURLOPT_PRIVATE, context)
        shim_set_reader(
            easy, { HTTPTransfer.from($3).read($0, $1 * $2) },
            { context, place, origin in
                HTTPTransfer.from(context).seek(place, origin) ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL
            }, context)
        shim_set_writers(
            easy, { HTTPTransfer.from($3).receive(field: UnsafeRawBufferPointer(start: $0, count: $1 * $2)) },
            { HTTPTransfer.from($3).receive(body: UnsafeRawBufferPointer(start: $0, count: $1 * $2)) }, context)
        shim_set_progress(
            easy,
            { context, _, _, _, sent in
                HTTPTransfer.from(context).note(sent: sent)
                return 0
            }, context)
        let timer = Timer(on: client.loop) { [unowned self] in checkSilence() }
        timer.arm(after: max(moving, request.connecting) + 0.01)
        silenceTimer = timer
    }

    deinit {
        curl_easy_cleanup(easy)
        curl_slist_free_all(list)
    }

    private static func prepare(
        _ easy: UnsafeMutableRawPointer, _ request: HTTPRequest, _ list: UnsafeMutablePointer<curl_slist>?
    ) -> Bool {
        var codes = [
            shim_set_text(easy, CURLOPT_URL, request.address.text),
            // Also applies to addresses of redirects and proxies.
            shim_set_text(easy, CURLOPT_PROTOCOLS_STR, "http,https"),
            shim_set_text(easy, CURLOPT_CUSTOMREQUEST, request.method),
            shim_set_text(easy, CURLOPT_USERAGENT, "sessiond"),
            shim_set_list(easy, CURLOPT_HTTPHEADER, list),
            shim_set_long(easy, CURLOPT_NETRC, request.usesNetrc ? Int(CURL_NETRC_OPTIONAL.rawValue) : 0),
            // libcurl would use signals for timeouts of name lookups.
            shim_set_long(easy, CURLOPT_NOSIGNAL, 1),
            shim_set_long(easy, CURLOPT_TCP_KEEPALIVE, 1),
            shim_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, Int(max(0.001, request.connecting) * 1_000)),
            // The answer of a proxy that opens a connection is not the answer.
            shim_set_long(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1),
            shim_set_long(easy, CURLOPT_FRESH_CONNECT, request.needsNewConnection ? 1 : 0),
            shim_set_unsent_limit(easy),
            shim_set_private_sockets(easy),
        ]
        switch request.method {
        case "HEAD": codes.append(shim_set_long(easy, CURLOPT_NOBODY, 1))
        case "GET", "OPTIONS", "DELETE": break
        default:
            codes += [
                shim_set_long(easy, CURLOPT_UPLOAD, 1),
                shim_set_size(easy, CURLOPT_INFILESIZE_LARGE, Int64(clamping: request.body.length)),
                shim_set_long(
                    easy, CURLOPT_UPLOAD_BUFFERSIZE,
                    request.rate == 0 ? block : min(block, max(smallestBlock, Int(clamping: request.rate / 4)))),
                shim_set_size(easy, CURLOPT_MAX_SEND_SPEED_LARGE, Int64(clamping: request.rate)),
            ]
        }
        return codes.allSatisfy { $0 == CURLE_OK }
    }

    private static func from(_ context: UnsafeMutableRawPointer?) -> HTTPTransfer {
        // The pointer is set in the initializer, and libcurl passes it back unchanged.
        Unmanaged<HTTPTransfer>.fromOpaque(context!).takeUnretainedValue()
    }

    static func of(_ easy: UnsafeMutableRawPointer?) -> HTTPTransfer? {
        var context: UnsafeMutableRawPointer?
        guard let easy, shim_get_context(easy, &context) == CURLE_OK, let context else { return nil }
        return from(context)
    }

    /// The number of bytes of the request's body that were passed to the network.
    public var bytesSent: UInt64 { progress.sent }

    /// The number of bytes of the request's body that the peer has acknowledged, as far as the kernel knows: bytes in
    /// the send queue do not count. With encryption, the number is slightly too small.
    public var bytesDelivered: UInt64 {
        if !isOver { lookAtConnection() }
        return isOver ? progress.sent : progress.delivered
    }

    private func lookAtConnection() {
        guard let socket else { return }
        noteSent()
        if progress.acknowledged(waiting: UInt64(shim_unacknowledged(socket))) { noteMoved() }
    }

    /// Whether the last byte of the request's body was passed to the network. False for a request without a body.
    public var isBodySent: Bool { progress.isSent }

    /// Ends the transfer at once, without an answer.
    public func cancel() { client?.end(self, nil) }

    /// Receives what this machine has received already. Its sink may be called before this returns, and the transfer may end.
    /// Must not be called by a sink.
    public func receiveArrived() {
        if sink != nil, !isOver, !isPaused, let socket { client?.receiveArrived(self, socket) }
    }

    /// Receives what this machine has received already, then ends the transfer without an answer. Its sink may be called
    /// before this returns.
    public func cancelAfterArrived() {
        guard !isOver else { return }
        receiveArrived()
        // The server notices it with its next byte, not only after its next bytes.
        if let socket { shim_close_at_once(socket) }
        cancel()
    }

    /// Receives no more until ``resume()``; the server has to wait. Time limits do not count meanwhile.
    public func pause() {
        guard !isOver, !isPaused else { return }
        isPaused = true
        curl_easy_pause(easy, CURLPAUSE_RECV)
    }

    /// May call the sink.
    public func resume() {
        guard !isOver, isPaused else { return }
        isPaused = false
        noteMoved()
        silenceTimer?.arm(after: silence.moving)
        curl_easy_pause(easy, CURLPAUSE_CONT)
    }

    // MARK: The end

    func end(_ outcome: Result<HTTPResponse, HTTPError>?) {
        guard !isOver else { return }
        isOver = true
        socket = nil
        silenceTimer = nil
        progressTimer = nil
        if let outcome { onDone(outcome) }
    }

    /// The outcome for libcurl's result.
    func outcome(_ code: CURLcode) -> Result<HTTPResponse, HTTPError> {
        noteSent()
        if let failure { return .failure(failure) }
        let response = HTTPResponse(
            status: answer.status, fields: answer.fields, body: answer.body, bytesSent: progress.sent)
        // A server that refuses a body may close the connection before it has read all of it. Its answer is still
        // valid.
        if code == CURLE_OK || answer.isBodyCut || answer.status >= 400 { return .success(response) }
        return .failure(HTTPError(code, host: host))
    }

    /// Fails the transfer if the server has sent nothing for too long.
    private func checkSilence() {
        guard !isPaused else { return }
        lookAtConnection()
        switch silence.verdict(on: progress, isHeadWhole: answer.isHeadWhole, at: MonotonicClock.now()) {
        case .tooLong: client?.end(self, .failure(HTTPError(CURLE_OPERATION_TIMEDOUT, host: host)))
        case .look(let due): silenceTimer?.arm(at: due)
        }
    }

    private func noteMoved() { silence.moved(at: MonotonicClock.now()) }

    // MARK: Callbacks from libcurl

    private func read(_ buffer: UnsafeMutablePointer<CChar>?, _ room: Int) -> Int {
        hasRead = true
        switch reader.read(UnsafeMutableRawBufferPointer(start: buffer, count: room)) {
        case .bytes(let count): return count
        case .failed(let reason):
            failure = HTTPError(reason)
            return shim_read_abort
        }
    }

    private func seek(_ place: curl_off_t, _ origin: Int32) -> Bool {
        origin == SEEK_SET && place >= 0 && (mayRepeat || !hasRead) && reader.seek(to: UInt64(place))
    }

    private func receive(field bytes: UnsafeRawBufferPointer) -> Int {
        switch answer.read(line: bytes) {
        case .more: break
        case .isWhole:
            noteMoved()
            sink?.onHead(HTTPResponse(status: answer.status, fields: answer.fields))
        case .isTooLong:
            failure = HTTPError(
                .other, "\(host) answered with more than \(AnswerReader.headLimit >> 10) kB of header")
            return 0
        }
        return bytes.count
    }

    private func receive(body bytes: UnsafeRawBufferPointer) -> Int {
        if let sink {
            noteMoved()
            switch sink.onBody(bytes) {
            case .taken: return bytes.count
            case .stop:
                answer.cutBody()
                // Another number than it passed ends the transfer.
                return bytes.count - 1
            }
        }
        answer.read(body: bytes)
        return answer.isBodyCut ? 0 : bytes.count
    }

    private func note(sent: curl_off_t) {
        noteSent()
        guard sent != counted else { return }
        counted = sent
        noteMoved()
    }

    private func noteSent() {
        var sent: Int64 = 0
        guard shim_get_size(easy, CURLINFO_SIZE_UPLOAD_T, &sent) == CURLE_OK, progress.passed(UInt64(max(0, sent)))
        else { return }
        if silence.answering != silence.moving { silenceTimer?.arm(after: min(silence.answering, 1)) }
        onBodySent?()
    }

    /// Whether more bytes were sent than at the last report.
    var hasSentMore: Bool { progress.hasSentMore }

    /// Reports the newly acknowledged bytes.
    func tellProgress() {
        guard !isOver else { return }
        let now = MonotonicClock.now()
        if let due = progress.allowed(at: now) {
            if progress.hasSentMore { progressTimer?.arm(at: due) }
            return
        }
        lookAtConnection()
        let hasReported = progress.report(at: now)
        if hasReported { onProgress(self) }
        guard !isOver, let due = progress.nextLook(hasReported: hasReported, at: now) else { return }
        progressTimer?.arm(at: due)
    }
}
