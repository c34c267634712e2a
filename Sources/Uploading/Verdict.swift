/// What the status of an answer means for an upload: the only table of it.
enum Verdict: Sendable, Hashable {
    case accepted
    /// The same request at another address.
    case elsewhere
    /// The same later.
    case again
    /// The server has another amount than was thought.
    case otherOffset
    /// The server does not know the upload any more.
    case forgotten
    /// A smaller piece may be accepted.
    case tooLarge
    /// The server does not speak tus.
    case notTus
    /// With what can be done, if anything.
    case refused(String)

    init(of status: Int, to request: UploadMachine.Request, by method: UploadMachine.Method) {
        switch status {
        case 200...299: self = .accepted
        case 300...399: self = Verdict.redirection(status, request, method)
        // It was not ready, or somebody else is at it, or it has too much to do.
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
        // A form is often answered with the address of a page to show.
        case (302, .whole) where method == .post, (303, .whole): .accepted
        case (301, _), (302, _), (307, _), (308, _): .elsewhere
        case (_, .ask): .notTus
        default: .refused("it cannot be followed")
        }
    }

    private static func refusal(_ status: Int, _ request: UploadMachine.Request) -> Verdict {
        switch (request, status) {
        case (.ask, _): .notTus
        case (.offset, 404), (.offset, 410), (.send, 404), (.send, 410): .forgotten
        // 460: the checksum of tus.
        case (.send, 409), (.send, 460): .otherOffset
        case (.send, 413): .tooLarge
        case (.proof, _): .refused("it answered with a page before and has not stored the file; check the address")
        case (_, 401), (_, 407), (_, 403):
            .refused("check the user, the password or the token, and whether they may write there")
        case (_, 404), (_, 410): .refused("check the address")
        case (.create, 405), (.create, 412): .refused("the server does not speak tus 1.0.0 there; use put or post")
        case (_, 405): .refused("the server does not store files this way; try another method")
        case (_, 413): .refused("it takes no file of this size")
        default: .refused("")
        }
    }
}
