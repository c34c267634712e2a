import CGStreamer
import CWebRTC
import EventLoop
import GStreamerBackend
import HTTP
import LiveStreaming

/// The conversation with a server of WebRTC about one connection, by WHIP (RFC 9725): our offer goes to its address, its answer
/// comes back, and a request to the address that it names ends the connection.
final class WebRTCSender {
    enum Event: Sendable, Hashable {
        /// The server takes the stream.
        case connected
        /// In the words of the server or the system.
        case lost(LiveLink.Trouble, String)
    }

    var onEvent: ((Event) -> Void)?

    /// The element; the branch owns it.
    private let element: UnsafeMutablePointer<GstElement>
    private let target: LiveTarget
    private let client: HTTPClient
    private var transfer: HTTPTransfer?
    /// The address of the connection at the server.
    private var resource: WebAddress?

    /// Seconds until the server must answer the offer. It may have to ask others whether the key is right.
    private static let answerTime = 8.0
    /// The longest answer of a server, in bytes.
    private static let answerLimit = 256 << 10

    /// - Parameter element: a webrtcbin.
    init(_ element: UnsafeMutablePointer<GstElement>, _ target: LiveTarget, _ client: HTTPClient) {
        (self.element, self.target, self.client) = (element, target, client)
    }

    /// The element is starting.
    func begin(in pipeline: Pipeline) {
        pipeline.perform { [element] in shim_webrtc_offer(element) }
    }

    /// How many packets the server has sent since it is connected. It reports what it receives at least every few seconds.
    var received: UInt64 { UInt64(shim_webrtc_received(element)) }

    /// Looks at a message of the pipeline's bus.
    /// - Returns: whether it was from the element.
    func take(_ message: UnsafeMutablePointer<GstMessage>) -> Bool {
        let isOurs = element.withMemoryRebound(to: GstObject.self, capacity: 1) { message.pointee.src == $0 }
        guard isOurs else { return false }
        var pointer: UnsafePointer<CChar>?
        let kind = shim_webrtc_read(message, &pointer)
        let text = pointer.map { String(cString: $0) } ?? ""
        switch kind {
        case SHIM_WEBRTC_OFFER: send(offer: text)
        case SHIM_WEBRTC_CONNECTED: onEvent?(.connected)
        case SHIM_WEBRTC_LOST:
            onEvent?(.lost(resource == nil ? .unreachable : .closed, "the connection of WebRTC does not hold"))
        case SHIM_WEBRTC_FAILED: onEvent?(.lost(.refused, text))
        case _: return false
        }
        return true
    }

    /// The token is for the server that the user has named, and for no other one that this names.
    private func authorization(at address: WebAddress) -> [HTTPField] {
        guard !target.token.isEmpty, address.origin == WebAddress(target.location)?.origin else { return [] }
        return [HTTPField(known: "Authorization", "Bearer " + target.token)]
    }

    private func send(offer: String) {
        guard transfer == nil, resource == nil, let address = WebAddress(target.location) else { return }
        let kind = HTTPField(known: "Content-Type", "application/sdp")
        var request = HTTPRequest(
            "POST", address, [kind] + authorization(at: address),
            body: HTTPBody([.bytes(Array(SessionOffer.sending(offer).utf8))]))
        (request.connecting, request.silence) = (Self.answerTime, Self.answerTime)
        (request.answerLimit, request.usesNetrc) = (Self.answerLimit, false)
        // The server would make a second connection.
        request.mayRepeat = false
        transfer = client.start(request) { [unowned self] in answered($0, address) }
    }

    private func answered(_ result: Result<HTTPResponse, HTTPError>, _ address: WebAddress) {
        transfer = nil
        switch result {
        case .failure(let error): onEvent?(.lost(Self.trouble(error.kind), error.message))
        case .success(let response) where response.status == 201:
            resource = response.fields["Location"].flatMap { address.resolving($0) }
            let isTaken = response.body.withUnsafeBytes {
                shim_webrtc_answer(element, $0.baseAddress?.assumingMemoryBound(to: CChar.self), gsize($0.count)) != 0
            }
            if !isTaken { onEvent?(.lost(.refused, "its answer is no description of a session")) }
        case .success(let response): onEvent?(.lost(Self.trouble(response.status), Self.words(response.status)))
        }
    }

    private static func trouble(_ kind: HTTPError.Kind) -> LiveLink.Trouble {
        switch kind {
        case .timedOut: .stalled
        case .notTrusted: .insecure
        case .badAddress, .hostNotFound, .notReachable, .cut, .notHTTP, .unreadable, .changed, .cancelled, .other:
            .unreachable
        }
    }

    private static func trouble(_ status: Int) -> LiveLink.Trouble {
        [401, 403].contains(status) ? .refused : .unreachable
    }

    private static func words(_ status: Int) -> String {
        switch status {
        case 401, 403: "it answers \(status); its token is the key"
        case 404, 405: "it answers \(status): the address is not one of WHIP"
        case 307, 308: "it answers \(status): another server is in charge, give its address"
        case 200..<300: "it answers \(status) instead of 201: the address is not one of WHIP"
        case _: "it answers \(status)"
        }
    }

    /// Ends the connection at the server, which would notice the end only later.
    func close() {
        onEvent = nil
        transfer?.cancel()
        transfer = nil
        guard let resource else { return }
        self.resource = nil
        var request = HTTPRequest("DELETE", resource, authorization(at: resource))
        (request.connecting, request.silence, request.usesNetrc) = (2, 2, false)
        // The request outlives this object and its owner.
        client.start(request) { [client] _ in client.loop.later { withExtendedLifetime(client) {} } }
    }
}
