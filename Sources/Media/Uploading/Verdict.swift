/// The meaning of an answer's status for an upload; the only table of it.
enum Verdict: Sendable, Hashable {
    case accepted
    /// Send the same request to another address.
    case elsewhere
    /// Send the same request later.
    case again
    /// The server has another offset than expected.
    case otherOffset
    /// The server no longer knows the upload.
    case forgotten
    /// The server may accept a smaller piece.
    case tooLarge
    /// The server does not support tus.
    case notTus
    /// The upload fails; with a hint for the user, if there is one.
    case refused(String)

    init(of status: Int, to request: UploadMachine.Request, by method: UploadMachine.Method) {
        switch status {
        case 200...299: self = .accepted
        case 300...399: self = Verdict.redirection(status, request, method)
        // The server was not ready or too busy, or another request uses the upload.
        case 408, 423, 425, 429: self = .again
        case 501, 505:
            self = request == .ask ? .notTus : .refused("the server cannot store files this way; try another method")
        case 500...599: self = .again
        default: self = Verdict.refusal(status, request)
        }
    }

    private static func redirection(
        _ status: Int, _ request: UploadMachine.Request, _ method: UploadMachine.Method
    ) -> Verdict {
        switch (status, request) {
        // A server often answers a form with a redirect to a page.
        case (302, .whole) where method == .post, (303, .whole): .accepted
        case (301, _), (302, _), (307, _), (308, _): .elsewhere
        case (_, .ask): .notTus
        default: .refused("this redirect cannot be followed")
        }
    }

    private static func refusal(_ status: Int, _ request: UploadMachine.Request) -> Verdict {
        switch (request, status) {
        case (.ask, _): .notTus
        case (.offset, 404), (.offset, 410), (.send, 404), (.send, 410): .forgotten
        // 460: wrong checksum (tus).
        case (.send, 409), (.send, 460): .otherOffset
        case (.send, 413): .tooLarge
        case (.proof, _): .refused("the server answered with a web page and has not stored the file; check the address")
        case (_, 401), (_, 407), (_, 403):
            .refused("check the user, the password or the token, and its right to write there")
        case (_, 404), (_, 410): .refused("check the address")
        case (.create, 405), (.create, 412): .refused("the server does not support tus 1.0.0 there; use put or post")
        case (_, 405): .refused("the server does not store files this way; try another method")
        case (_, 413): .refused("the server does not accept a file of this size")
        default: .refused("")
        }
    }
}
