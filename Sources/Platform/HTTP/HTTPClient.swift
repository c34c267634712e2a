import CCurl
public import EventLoop

/// Sends requests to web servers on an event loop: libcurl's multi interface with watches and a timer of the loop.
///
/// Connections are kept open and reused. Everything runs on the loop's thread; handlers are called from the loop. If
/// the client is released, running transfers end without an answer.
public final class HTTPClient {
    public let loop: EventLoop
    private let multi: UnsafeMutableRawPointer
    private var watches: [curl_socket_t: IOWatch] = [:]
    private lazy var timer = Timer(on: loop) { [unowned self] in act(HTTPClient.noSocket, 0) }
    private var transfers: [ObjectIdentifier: HTTPTransfer] = [:]
    /// `CURL_SOCKET_TIMEOUT`: the time of libcurl's timer has come.
    private static let noSocket = curl_socket_t(-1)

    /// Once in a process, before another thread uses libcurl.
    private static let isReady = shim_global_init() == CURLE_OK

    public init(on loop: EventLoop) {
        // Fails only if no memory is left.
        guard HTTPClient.isReady, let multi = curl_multi_init() else { fatalError("curl_multi_init: out of memory") }
        self.multi = multi
        self.loop = loop
        let context = Unmanaged.passUnretained(self).toOpaque()
        shim_multi_set_socket(
            multi,
            { easy, socket, events, context, _ in
                HTTPClient.from(context).watch(socket, events, for: HTTPTransfer.of(easy))
                return 0
            }, context)
        shim_multi_set_timer(
            multi,
            { _, milliseconds, context in
                HTTPClient.from(context).wait(milliseconds)
                return 0
            }, context)
    }

    deinit {
        for transfer in transfers.values {
            curl_multi_remove_handle(multi, transfer.easy)
            transfer.isOver = true
        }
        // Without this, libcurl would call the socket callback for each connection that it closes.
        shim_multi_set_socket(multi, nil, nil)
        shim_multi_set_timer(multi, nil, nil)
        watches = [:]
        curl_multi_cleanup(multi)
    }

    private static func from(_ context: UnsafeMutableRawPointer?) -> HTTPClient {
        // The pointer is set in the initializer, and libcurl passes it back unchanged.
        Unmanaged<HTTPClient>.fromOpaque(context!).takeUnretainedValue()
    }

    /// The number of running transfers.
    public var count: Int { transfers.count }

    /// Starts a request.
    ///
    /// - Parameters:
    ///   - onProgress: called when bytes were sent, at most ten times a second.
    ///   - onDone: called once, from the loop, unless the transfer is cancelled.
    @discardableResult
    public func start(
        _ request: HTTPRequest, onProgress: @escaping (HTTPTransfer) -> Void = { _ in },
        onDone: @escaping (Result<HTTPResponse, HTTPError>) -> Void
    ) -> HTTPTransfer {
        let transfer = HTTPTransfer(request, self, onProgress: onProgress, onDone: onDone)
        transfers[ObjectIdentifier(transfer)] = transfer
        // Fails only if no memory is left, or in a callback of libcurl, from where this is never called.
        guard transfer.isPrepared, curl_multi_add_handle(multi, transfer.easy) == CURLM_OK else {
            loop.later { [weak self] in self?.end(transfer, .failure(HTTPError(.other, "out of memory"))) }
            return transfer
        }
        transfer.isAdded = true
        return transfer
    }

    /// Ends a transfer with an outcome; nil: without a call of its handler.
    func end(_ transfer: HTTPTransfer, _ outcome: Result<HTTPResponse, HTTPError>?) {
        guard transfers.removeValue(forKey: ObjectIdentifier(transfer)) != nil else { return }
        if transfer.isAdded { curl_multi_remove_handle(multi, transfer.easy) }
        transfer.end(outcome)
    }

    /// Receives the bytes that the kernel has of a transfer, but not those that arrive meanwhile for ever.
    func receiveArrived(_ transfer: HTTPTransfer, _ socket: curl_socket_t) {
        for _ in 0..<64 where !transfer.isOver && transfer.socket == socket && shim_arrived(socket) > 0 {
            act(socket, CURL_CSELECT_IN)
        }
    }

    // MARK: Requests of libcurl

    /// - Parameter transfer: the transfer for which libcurl watches the socket; nil: for itself.
    private func watch(_ socket: curl_socket_t, _ wish: Int32, for transfer: HTTPTransfer?) {
        guard wish != CURL_POLL_REMOVE else {
            watches[socket] = nil
            for transfer in transfers.values where transfer.socket == socket { transfer.socket = nil }
            return
        }
        transfer?.socket = socket
        var events: IOWatch.Events = []
        if wish & CURL_POLL_IN != 0 { events.insert(.readable) }
        if wish & CURL_POLL_OUT != 0 { events.insert(.writable) }
        if let watch = watches[socket] {
            watch.events = events
            return
        }
        watches[socket] = IOWatch(on: loop, descriptor: socket, events: events) { [unowned self] seen in
            var flags: Int32 = 0
            if seen.contains(.readable) { flags |= CURL_CSELECT_IN }
            if seen.contains(.writable) { flags |= CURL_CSELECT_OUT }
            if !seen.isDisjoint(with: [.hangUp, .error]) { flags |= CURL_CSELECT_ERR | CURL_CSELECT_IN }
            act(socket, flags)
        }
    }

    private func wait(_ milliseconds: Int) {
        if milliseconds < 0 { timer.disarm() } else { timer.arm(after: Double(milliseconds) / 1_000) }
    }

    private func act(_ socket: curl_socket_t, _ flags: Int32) {
        var running: Int32 = 0
        curl_multi_socket_action(multi, socket, flags, &running)
        // A handler may start and cancel transfers, so all results are collected before handlers are called.
        var ended: [(HTTPTransfer, CURLcode)] = []
        var left: Int32 = 0
        while let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let transfer = HTTPTransfer.of(message.pointee.easy_handle)
            else {
                continue
            }
            ended.append((transfer, message.pointee.data.result))
        }
        for (transfer, code) in ended { end(transfer, transfer.outcome(code)) }
        for transfer in Array(transfers.values) {
            // With HTTP/2, several transfers share a connection, which libcurl reports for only one of them.
            if socket != HTTPClient.noSocket, transfer.socket == nil, transfer.hasSentMore { transfer.socket = socket }
            transfer.tellProgress()
        }
    }
}
