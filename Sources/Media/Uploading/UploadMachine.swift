public import PluginAPI

/// The state machine of one upload. Its inputs are the answers of the server; its effects are the next requests.
///
/// A value without a network, a clock or a file. The owner passes every event (``Input``) to ``handle(_:at:)`` and
/// carries out the returned effects (``Effect``) in order. Rules for every sequence of inputs:
///
/// - At most one request is under way, and only while the upload is allowed to use the network.
/// - Only the server states how much it has. After each failure it is asked, and no byte before that offset is sent
///   again.
/// - It is done only if the server has confirmed the last byte, or has accepted the whole file.
/// - A whole file of which the server may have every byte is never sent again: without an answer, the upload fails, and says it.
/// - After a temporary failure, it waits and tries again. After five tries without progress, it fails.
/// - After the end there are no more effects.
///
/// Times are those of `MonotonicClock`, in microseconds.
public struct UploadMachine: Sendable, Hashable {
    /// The method by which the file is sent.
    public enum Method: String, Sendable, CaseIterable {
        /// The server is asked whether it supports tus; if not, ``put``.
        case auto
        /// tus 1.0.0: in pieces; after a cut, continued at the confirmed offset.
        case tus
        /// One request; after a cut, sent again from the start.
        case put
        /// A form with a file; after a cut, sent again from the start.
        case post
    }

    /// The parameters of an upload, before it starts.
    public struct Plan: Sendable, Hashable {
        public var method: Method
        /// The size of the file, in bytes.
        public var size: UInt64
        /// The largest piece in one request of tus, in bytes.
        public var chunkSize: UInt64
        /// How often it tries again without progress; 0: without limit.
        public var tries: Int
        /// 0…1. The waits of uploads differ by this, so that not all uploads come back at the same time.
        public var spread: Double

        public init(
            method: Method, size: UInt64, chunkSize: UInt64 = UploadMachine.chunkSize, tries: Int = 5,
            spread: Double = 0
        ) {
            self.method = method
            self.size = size
            self.chunkSize = max(1, chunkSize)
            self.tries = tries
            self.spread = spread
        }
    }

    /// The default of ``Plan/chunkSize``, and the smallest size to which it is reduced.
    public static let chunkSize: UInt64 = 8 << 20
    public static let leastChunkSize: UInt64 = 64 << 10

    /// A request to the server.
    public enum Request: Sendable, Hashable {
        /// `OPTIONS`: asks whether the server supports tus.
        case ask
        /// tus: creates an upload.
        case create
        /// tus: asks for the offset.
        case offset
        /// tus: sends the next piece.
        case send(offset: UInt64, count: UInt64)
        /// The whole file, by ``Method/put`` or ``Method/post``.
        case whole
        /// Asks for the size of the uploaded file, to check that it is there.
        case proof
    }

    /// The parts of the server's answer that matter here.
    public struct Answer: Sendable, Hashable {
        public var status: Int
        /// The seconds that the server asks the client to wait.
        public var retryAfter: Double?
        /// The absolute address that the server named; nil: none, or one that must not be used.
        public var location: String?
        /// `Upload-Offset`.
        public var offset: UInt64?
        /// `Upload-Length`; for a proof, `Content-Length`.
        public var length: UInt64?
        /// Whether the server supports tus 1.0.0 and the creation of uploads.
        public var speaksTus: Bool
        /// Whether the body is a web page.
        public var isPage: Bool
        /// The message of the server for people; may be empty.
        public var words: String

        public init(
            _ status: Int, retryAfter: Double? = nil, location: String? = nil, offset: UInt64? = nil,
            length: UInt64? = nil, speaksTus: Bool = false, isPage: Bool = false, words: String = ""
        ) {
            self.status = status
            self.retryAfter = retryAfter
            self.location = location
            self.offset = offset
            self.length = length
            self.speaksTus = speaksTus
            self.isPage = isPage
            self.words = words
        }
    }

    public enum Input: Sendable, Hashable {
        /// Whether the upload may use the network now.
        case allowed(Bool)
        /// The answer to the running request.
        case answered(Answer)
        /// The last byte of the running request was passed to the network.
        case sent
        /// There is no answer that HTTP allows: what answered does not store files. The rest is as for ``cut(_:counts:)``.
        case notStored(String, counts: Bool)
        /// There is no answer, for a temporary reason. `counts`: whether this counts as a try; false while this machine
        /// has no network.
        case cut(String, counts: Bool)
        /// There is no answer, for a permanent reason.
        case broke(SessionError)
        /// The file has changed.
        case sourceLost(SessionError)
        /// The time of ``Effect/wait(until:)`` has come.
        case timePassed
        /// The network has changed or is back: there is no reason to wait any more.
        case networkChanged
        case pause
        case resume
        case cancel
    }

    public enum Effect: Sendable, Hashable {
        case request(Request)
        /// Cancel the running request; its answer is not passed.
        case abort
        /// Pass ``Input/timePassed`` at this time, unless an earlier time is requested later.
        case wait(until: UInt64)
        /// Store the state. `mustSurvive`: it must also survive a power failure now.
        case save(mustSurvive: Bool)
        /// Ask the server to remove the upload at that address.
        case remove(String)
        case end(End)
    }

    public enum End: Sendable, Hashable {
        case done
        case failed(SessionError)
        case cancelled
    }

    public enum Stage: Sendable, Hashable {
        /// The request will be sent as soon as the upload is allowed.
        case ready(Request)
        case working(Request)
        /// After a failure, with a reason for people.
        case waiting(Request, until: UInt64, why: String)
        case over(End)
    }

    /// The method that is used: `auto` until the server has answered.
    public private(set) var method: Method
    /// The address for the whole file or for the creation.
    public private(set) var address: String
    /// The address of the upload that the server named (tus).
    public private(set) var uploadAddress: String?
    public private(set) var chunkSize: UInt64
    /// The number of bytes that the server has confirmed (tus).
    public private(set) var confirmed: UInt64
    public private(set) var stage: Stage
    public private(set) var isPaused = false
    /// Whether the upload may use the network.
    public private(set) var isAllowed = false
    /// Whether the server may have the whole file, by ``Method/put`` or ``Method/post``, and has not answered.
    public private(set) var mayBeThere = false
    /// The number of tries without progress.
    public private(set) var troubles = 0
    /// The number of waits since the last progress or change of the network. Each wait is longer than the one before.
    private var waits = 0
    public let size: UInt64
    private let tries: Int
    private let spread: Double
    /// The largest offset that was ever confirmed: if a server loses data and gets them again, this is no progress.
    private var best: UInt64
    private var redirects = 0

    /// The waits before the first, second … try, in seconds.
    static let delays = [1.0, 3, 8, 22, 60]
    /// The longest wait that a server may request, in seconds.
    static let longestWait = 3_600.0
    private static let redirectLimit = 5

    /// - Parameters:
    ///   - uploadAddress: the address of an upload that was started before (tus).
    ///   - confirmed: the number of bytes that the server had of it.
    ///   - mayBeThere: whether the last process ended after the last byte of the whole file, and before the answer.
    public init(
        _ plan: Plan, to address: String, uploadAddress: String? = nil, confirmed: UInt64 = 0, isPaused: Bool = false,
        mayBeThere: Bool = false
    ) {
        method = plan.method
        size = plan.size
        chunkSize = plan.chunkSize
        tries = plan.tries
        spread = min(max(0, plan.spread), 1)
        self.address = address
        self.uploadAddress = uploadAddress
        self.confirmed = min(confirmed, plan.size)
        best = self.confirmed
        self.isPaused = isPaused
        self.mayBeThere = mayBeThere
        stage =
            switch plan.method {
            case .auto: .ready(.ask)
            case .tus: .ready(uploadAddress == nil ? .create : .offset)
            case .put, .post: .ready(.whole)
            }
    }

    /// Whether it would use the network if it were allowed to.
    public var wantsNetwork: Bool {
        guard !isPaused else { return false }
        return switch stage {
        case .ready, .working: true
        case .waiting, .over: false
        }
    }

    public var isOver: Bool {
        switch stage {
        case .ready, .working, .waiting: false
        case .over: true
        }
    }

    /// The address of a file that is stored by ``Method/put``: an address that ends with `/` is that of a folder, so the name is
    /// added, as `curl -T` does it.
    public static func placeOfFile(named name: String, at address: String) -> String {
        let path = address.prefix { $0 != "?" && $0 != "#" }
        guard path.last == "/" else { return address }
        var escaped = ""
        for byte in name.utf8 {
            let scalar = UnicodeScalar(byte)
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9", "-", ".", "_", "~": escaped.unicodeScalars.append(scalar)
            default: escaped += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return path + escaped + address.dropFirst(path.count)
    }

    public mutating func handle(_ input: Input, at now: UInt64) -> [Effect] {
        if isOver { return [] }
        switch input {
        case .allowed(let allowed):
            isAllowed = allowed
            return allowed ? next() : holdBack()
        case .answered(let answer):
            guard case .working(let request) = stage else { return [] }
            // A proxy that lost the server behind it does not know what that server has.
            if mayBeThere, answer.status == 502 || answer.status == 504 {
                return uncertain("the server answered \(answer.status)")
            }
            let wasUncertain = mayBeThere
            mayBeThere = false
            let effects = answered(request, answer, now)
            return wasUncertain && !isOver ? [.save(mustSurvive: false)] + effects : effects
        case .notStored(let why, let counts):
            guard case .working(let request) = stage else { return [] }
            let wasUncertain = mayBeThere
            mayBeThere = false
            let effects = retry(afterTrouble(request), why, counts: counts, now)
            return wasUncertain && !isOver ? [.save(mustSurvive: false)] + effects : effects
        case .sent:
            guard case .working(.whole) = stage, !mayBeThere else { return [] }
            mayBeThere = true
            return [.save(mustSurvive: true)]
        case .cut(let why, let counts):
            guard case .working(let request) = stage else { return [] }
            if mayBeThere { return uncertain(why) }
            return retry(afterTrouble(request), why, counts: counts, now)
        case .broke(let error):
            guard case .working = stage else { return [] }
            return end(.failed(error))
        case .sourceLost(let error): return abortion + removal + end(.failed(error))
        case .timePassed:
            guard case .waiting(let request, let until, _) = stage, now >= until else { return [] }
            stage = .ready(request)
            return next()
        case .networkChanged:
            guard case .waiting(let request, _, _) = stage else { return [] }
            waits = 0
            stage = .ready(request)
            return next()
        case .pause:
            guard !isPaused else { return [] }
            isPaused = true
            return holdBack() + [.save(mustSurvive: false)]
        case .resume:
            guard isPaused else { return [] }
            isPaused = false
            return [.save(mustSurvive: false)] + next()
        case .cancel: return abortion + removal + end(.cancelled)
        }
    }

    // MARK: Steps

    private mutating func next() -> [Effect] {
        guard case .ready(let request) = stage, isAllowed, !isPaused else { return [] }
        if mayBeThere { return uncertain("the upload was interrupted before the server answered") }
        stage = .working(request)
        return [.request(request)]
    }

    private mutating func go(to request: Request) -> [Effect] {
        stage = .ready(request)
        return next()
    }

    /// The upload may not use the network any more.
    private mutating func holdBack() -> [Effect] {
        // Nothing is sent any more: only the answer is missing.
        guard case .working(let request) = stage, !mayBeThere else { return [] }
        stage = .ready(afterTrouble(request))
        return [.abort]
    }

    private var abortion: [Effect] {
        if case .working = stage { [.abort] } else { [] }
    }

    private var removal: [Effect] { uploadAddress.map { [.remove($0)] } ?? [] }

    private mutating func end(_ end: End) -> [Effect] {
        stage = .over(end)
        return [.end(end)]
    }

    /// The server may have the file. A second one could be stored beside it, or could replace a newer one.
    private mutating func uncertain(_ why: String) -> [Effect] {
        end(
            fail(
                .networkFailed,
                "\(why), after the whole file was sent: it may be there; check before you upload it again"))
    }

    private func fail(_ code: SessionError.Code, _ reason: String) -> End { .failed(SessionError(code, reason)) }

    /// The next request after a request whose result is unknown.
    private func afterTrouble(_ request: Request) -> Request {
        switch request {
        case .send: .offset
        case .ask, .create, .offset, .whole, .proof: request
        }
    }

    private mutating func retry(
        _ request: Request, _ why: String, counts: Bool = true, atLeast seconds: Double = 0, _ now: UInt64
    ) -> [Effect] {
        if counts { troubles += 1 }
        if tries > 0, troubles > tries {
            return end(fail(.networkFailed, "\(why); tried \(troubles) times without progress. Upload it again later"))
        }
        waits += 1
        let delay = UploadMachine.delays[min(waits, UploadMachine.delays.count) - 1] * (1 + spread / 5)
        let wait = max(delay, min(seconds, UploadMachine.longestWait))
        let until = now &+ UInt64(wait * 1_000_000)
        stage = .waiting(request, until: until, why: why)
        return [.wait(until: until)]
    }

    private mutating func confirm(_ offset: UInt64) {
        confirmed = offset
        guard offset > best else { return }
        best = offset
        (troubles, waits) = (0, 0)
    }

    private var piece: Request { .send(offset: confirmed, count: min(chunkSize, size - confirmed)) }

    // MARK: Answers

    private mutating func answered(_ request: Request, _ answer: Answer, _ now: UInt64) -> [Effect] {
        let words = answer.words.isEmpty ? "" : ": \(answer.words)"
        let said = "the server answered \(answer.status)\(words)"
        switch Verdict(of: answer.status, to: request, by: method) {
        case .accepted: return accepted(request, answer, now)
        case .elsewhere: return redirected(request, answer)
        case .again: return retry(afterTrouble(request), said, atLeast: answer.retryAfter ?? 0, now)
        case .otherOffset: return retry(.offset, said, now)
        case .forgotten:
            uploadAddress = nil
            confirmed = 0
            return [.save(mustSurvive: false)]
                + retry(.create, "the server no longer knows the upload (\(answer.status))", now)
        case .tooLarge:
            guard chunkSize > UploadMachine.leastChunkSize else {
                return removal + end(fail(.networkFailed, "\(said): it does not accept a file of this size"))
            }
            chunkSize = max(UploadMachine.leastChunkSize, chunkSize / 4)
            return [.save(mustSurvive: false)] + go(to: .offset)
        case .notTus:
            method = .put
            return [.save(mustSurvive: false)] + go(to: .whole)
        case .refused(let advice): return end(fail(.networkFailed, said + (advice.isEmpty ? "" : ": \(advice)")))
        }
    }

    private mutating func redirected(_ request: Request, _ answer: Answer) -> [Effect] {
        redirects += 1
        guard let location = answer.location, redirects <= UploadMachine.redirectLimit else {
            let why =
                answer.location == nil
                ? "the server redirects to an address that cannot be used" : "the server redirects without end"
            return end(fail(.networkFailed, "\(why) (\(answer.status)): check the address"))
        }
        switch request {
        case .ask, .create, .whole, .proof: address = location
        case .offset, .send: uploadAddress = location
        }
        return [.save(mustSurvive: false)] + go(to: afterTrouble(request))
    }

    private mutating func accepted(_ request: Request, _ answer: Answer, _ now: UInt64) -> [Effect] {
        // The question for the offset follows each redirection of a piece, so its answer is no progress.
        if request != .offset { redirects = 0 }
        switch request {
        case .ask:
            method = answer.speaksTus ? .tus : .put
            return [.save(mustSurvive: false)] + go(to: method == .tus ? .create : .whole)
        case .create:
            guard let location = answer.location else {
                let why = "the server created an upload without a usable address (\(answer.status))"
                return end(fail(.networkFailed, "\(why): check whether it supports tus"))
            }
            uploadAddress = location
            confirmed = 0
            guard size > 0 else { return end(.done) }
            return [.save(mustSurvive: true)] + go(to: piece)
        case .offset:
            // Another server may have answered, such as the login page of a network.
            guard let offset = answer.offset else {
                return retry(.offset, "the server's answer is not tus (\(answer.status))", now)
            }
            guard offset <= size, answer.length ?? size == size else {
                return end(
                    fail(.invalidSource, "the server has another file at the address of this upload: upload it again"))
            }
            return came(to: offset)
        case .send(let start, let count):
            guard let offset = answer.offset, offset > start, offset <= start + count else {
                return retry(.offset, "the server did not confirm the bytes that were sent (\(answer.status))", now)
            }
            return came(to: offset)
        case .whole:
            // A file store does not answer with a web page. The login page of a network answers every request like
            // this.
            guard method == .put, answer.status == 200, answer.isPage else { return end(.done) }
            return go(to: .proof)
        case .proof:
            guard answer.length == size, !answer.isPage || size == 0 else {
                return end(
                    fail(
                        .networkFailed,
                        "the server answered with a web page and has not stored the file: check the address"
                    ))
            }
            return end(.done)
        }
    }

    private mutating func came(to offset: UInt64) -> [Effect] {
        let isOther = offset != confirmed
        confirm(offset)
        guard offset < size else { return end(.done) }
        return (isOther ? [.save(mustSurvive: false)] : []) + go(to: piece)
    }
}
