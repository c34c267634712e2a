import CCurl
import Glibc

/// The reason why there is no answer to a request.
public struct HTTPError: Error, Sendable, Hashable {
    public enum Kind: Sendable, Hashable, CaseIterable {
        /// The address is not a web address, or its protocol is not supported.
        case badAddress
        case hostNotFound
        case notReachable
        case timedOut
        /// The certificate is not valid for that host, or its authority is not trusted.
        case notTrusted
        /// The connection ended before the answer.
        case cut
        /// The answer is not HTTP.
        case notHTTP
        /// The file to send cannot be read.
        case unreadable
        /// The file to send has changed.
        case changed
        case cancelled
        /// Any other reason; see the message.
        case other

        /// Whether the same request may succeed later without any change by the user.
        public var isPassing: Bool {
            switch self {
            case .hostNotFound, .notReachable, .timedOut, .cut, .notHTTP: true
            case .badAddress, .notTrusted, .unreadable, .changed, .cancelled, .other: false
            }
        }
    }

    public let kind: Kind
    /// The problem and what to do about it, for people. Contains no credentials.
    public let message: String

    public init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    public static let cancelled = HTTPError(.cancelled, "cancelled")

    init(_ failure: SourceFailure) {
        switch failure {
        case .changed: self.init(.changed, "the file changed while it was sent; send it again when it is complete")
        case .unreadable(let number):
            self.init(.unreadable, "the file cannot be read: \(String(cString: strerror(number)))")
        }
    }

    /// The result of libcurl for a transfer to `host`.
    init(_ code: CURLcode, host: String) {
        let reason = String(cString: curl_easy_strerror(code))
        switch code {
        case CURLE_URL_MALFORMAT:
            self.init(.badAddress, "this is not a web address: write http:// or https://, a host and a path")
        case CURLE_COULDNT_RESOLVE_HOST:
            self.init(
                .hostNotFound, "the host \(host) was not found: check the address, and whether this machine is online")
        case CURLE_COULDNT_RESOLVE_PROXY:
            self.init(.hostNotFound, "the proxy cannot be found: check https_proxy, http_proxy and all_proxy")
        case CURLE_COULDNT_CONNECT:
            self.init(
                .notReachable, "\(host) accepts no connection: check the port, and whether the server is running")
        case CURLE_OPERATION_TIMEDOUT:
            self.init(.timedOut, "\(host) did not answer in time: check the network, or try again later")
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS,
            CURLE_SSL_PINNEDPUBKEYNOTMATCH:
            self.init(
                .notTrusted,
                "the certificate of \(host) is not trusted: check the address and the clock, or install the "
                    + "certificate of its authority")
        case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE, CURLE_HTTP2,
            CURLE_HTTP2_STREAM, CURLE_SSL_CONNECT_ERROR:
            self.init(.cut, "\(host) ended the connection (\(reason))")
        // The protocol of the address was checked before. So this result means an answer without a head (HTTP/0.9).
        case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL:
            self.init(.notHTTP, "the answer of \(host) is not HTTP: check the address and the port")
        // libcurl would have sent the request again on a new connection. Here, the caller decides that.
        case CURLE_SEND_FAIL_REWIND: self.init(.cut, "\(host) ended the connection")
        default: self.init(.other, "\(host): \(reason)")
        }
    }
}
