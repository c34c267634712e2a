import EventLoop
import HTTP
import MediaCache

/// One request to the origin of a resource, over redirects.
final class OriginRequest {
    struct Handlers {
        var head: (OriginHead) -> Void
        /// False: the request ends.
        var body: (UnsafeRawBufferPointer) -> Bool
        var end: (Outcome) -> Void
    }

    enum Outcome {
        case ended
        case timedOut
        case failed(MediaCache.Trouble)
    }

    private static let redirects = 10
    /// The longest time without a byte, and for a connection, in seconds.
    static let silence = 20.0

    private let client: HTTPClient
    private let origin: WebAddress
    private let fields: [HTTPField]
    private let own: [HTTPField]
    private let silence: Double
    private var handlers: Handlers?
    private var transfer: HTTPTransfer?
    private var hops = 0
    /// Where a redirect leads; nil: this answer is none.
    private var target: String?
    private var isHeadTold = false

    /// - Parameters:
    ///   - fields: of the caller. They are sent only to the origin's scheme, host and port.
    ///   - end: before the byte with that number; nil: to the end of the resource.
    init(
        _ client: HTTPClient, _ origin: WebAddress, _ fields: [HTTPField], from start: UInt64, to end: UInt64?,
        unless mark: OriginHead.Mark, silence: Double, _ handlers: Handlers
    ) {
        (self.client, self.origin, self.fields, self.silence, self.handlers) = (
            client, origin, fields, silence, handlers
        )
        var own = [
            HTTPField(known: "Range", "bytes=\(start)-" + (end.map { "\($0 - 1)" } ?? "")),
            HTTPField(known: "Accept-Encoding", "identity"),
        ]
        if let condition = mark.condition.flatMap({ HTTPField("If-Range", $0) }) { own.append(condition) }
        self.own = own
        send(to: origin)
    }

    private func send(to address: WebAddress) {
        let theirs = address.origin == origin.origin ? fields : []
        var request = HTTPRequest("GET", address, theirs + own)
        (request.connecting, request.silence) = (silence, silence)
        request.sink = HTTPSink(
            onHead: { [weak self] in self?.took($0) },
            onBody: { [weak self] bytes in
                guard let self, let handlers, isHeadTold else { return .stop }
                return handlers.body(bytes) ? .taken : .stop
            })
        transfer = client.start(request) { [weak self] in self?.ended($0) }
    }

    private func took(_ answer: HTTPResponse) {
        if [301, 302, 303, 307, 308].contains(answer.status), let place = answer.fields["Location"] {
            target = place
            return
        }
        // The body of an error is of no use.
        isHeadTold = answer.status == 200 || answer.status == 206
        handlers?.head(OriginHead(status: answer.status, fields: answer.fields.map { ($0.name, $0.value) }))
    }

    private func ended(_ result: Result<HTTPResponse, HTTPError>) {
        if let target { return follow(target) }
        let handlers = handlers
        self.handlers = nil
        switch result {
        case .success: handlers?.end(.ended)
        case .failure(let error) where error.kind == .timedOut: handlers?.end(.timedOut)
        case .failure(let error): handlers?.end(.failed(.network(error.message)))
        }
    }

    private func follow(_ place: String) {
        target = nil
        hops += 1
        guard hops <= OriginRequest.redirects else {
            return refuse("\(origin.host) redirects more than \(OriginRequest.redirects) times")
        }
        guard let next = origin.resolving(place) else {
            return refuse("\(origin.host) redirects to an address that is not http or https; this is refused")
        }
        send(to: next.origin == origin.origin ? next.authorized(like: origin) : next)
    }

    private func refuse(_ reason: String) {
        let handlers = handlers
        self.handlers = nil
        handlers?.end(.failed(.contradiction(reason)))
    }

    /// Ends it; bytes that have arrived already come before this returns. Its end is not told.
    func cancel() {
        guard handlers != nil else { return }
        // No head and no redirect counts any more.
        handlers?.head = { _ in }
        handlers?.end = { _ in }
        transfer?.cancelAfterArrived()
        handlers = nil
        transfer = nil
    }

    /// Receives the bytes that have arrived already.
    func receiveArrived() { transfer?.receiveArrived() }

    func pause() { transfer?.pause() }
    func resume() { transfer?.resume() }
}
