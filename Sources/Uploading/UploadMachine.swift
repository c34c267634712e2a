public import PluginAPI

/// One upload: what the server answers goes in, and what it is asked next comes out.
///
/// A value without a network, a clock or a file. Whoever carries it out passes every event (``Input``) to
/// ``handle(_:at:)`` and carries out the returned effects (``Effect``) in order. Rules for every sequence of inputs:
///
/// - At most one request is under way, and only while the upload is allowed to use the network.
/// - What the server has is what it says it has: after any trouble it is asked, and nothing before that offset is sent
///   again.
/// - It is done only if the server has confirmed the last byte, or has accepted the whole file.
/// - After trouble that passes, it waits and tries again; five times without progress, and then it fails.
/// - After the end nothing comes out any more.
///
/// Times are those of `MonotonicClock`, in microseconds.
public struct UploadMachine: Sendable, Hashable {
    /// How the file gets to the server.
    public enum Method: String, Sendable, CaseIterable {
        /// The server is asked whether it speaks tus; if not, ``put``.
        case auto
        /// tus 1.0.0: in pieces, continued after a cut from where it was.
        case tus
        /// One request; after a cut from the beginning.
        case put
        /// A form with a file; after a cut from the beginning.
        case post
    }

    /// What the upload is, before anything has happened.
    public struct Plan: Sendable, Hashable {
        public var method: Method
        /// Of the file, in bytes.
        public var size: UInt64
        /// The largest piece that is sent by one request of tus, in bytes.
        public var chunkSize: UInt64
        /// How often it tries again without progress; 0: until it is cancelled.
        public var tries: Int
        /// 0…1, by which its waits differ from those of other uploads, so that not all come back at once.
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

    /// The default of ``Plan/chunkSize``, and the least that it is made smaller to.
    public static let chunkSize: UInt64 = 8 << 20
    public static let leastChunkSize: UInt64 = 64 << 10

    /// What the server is asked.
    public enum Request: Sendable, Hashable {
        /// `OPTIONS`: whether it speaks tus.
        case ask
        /// tus: a new upload.
        case create
        /// tus: how much it has.
        case offset
        /// tus: the next piece.
        case send(offset: UInt64, count: UInt64)
        /// The whole file, by ``Method/put`` or ``Method/post``.
        case whole
        /// Whether what was put is there: its size.
        case proof
    }

    /// What the server answered, as far as it matters here.
    public struct Answer: Sendable, Hashable {
        public var status: Int
        /// Seconds after which it wants to be asked again.
        public var retryAfter: Double?
        /// The address that it named, absolute; nil: none, or one that must not be used.
        public var location: String?
        /// `Upload-Offset`.
        public var offset: UInt64?
        /// `Upload-Length`; of a proof, `Content-Length`.
        public var length: UInt64?
        /// Whether it speaks tus 1.0.0 and creates uploads.
        public var speaksTus: Bool
        /// Whether its body is a page for people.
        public var isPage: Bool
        /// What it says about it, for people; may be empty.
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
        /// Whether it may use the network now.
        case allowed(Bool)
        /// The answer to the request under way.
        case answered(Answer)
        /// There is no answer, for a reason that may pass. `counts`: whether it is one of the tries; not while this machine
        /// has no network.
        case cut(String, counts: Bool)
        /// There is no answer, and the reason stays.
        case broke(SessionError)
        /// The file is not what it was.
        case sourceLost(SessionError)
        /// The time of ``Effect/wait(until:)``.
        case timePassed
        /// The network is another one, or back: waiting has no reason any more.
        case networkChanged
        case pause
        case resume
        case cancel
    }

    public enum Effect: Sendable, Hashable {
        case request(Request)
        /// The request under way is given up; no answer to it is passed.
        case abort
        /// ``Input/timePassed`` is expected then, unless another time is named before.
        case wait(until: UInt64)
        /// What is known has changed and is to be kept; `mustSurvive`: also if the machine loses its power now.
        case save(mustSurvive: Bool)
        /// The server is to remove what it has at that address.
        case remove(String)
        case end(End)
    }

    public enum End: Sendable, Hashable {
        case done
        case failed(SessionError)
        case cancelled
    }

    public enum Stage: Sendable, Hashable {
        /// To be asked as soon as it is allowed.
        case ready(Request)
        case working(Request)
        /// After trouble, for a reason that people can read.
        case waiting(Request, until: UInt64, why: String)
        case over(End)
    }

    /// As it is carried out: `auto` until the server has been asked.
    public private(set) var method: Method
    /// Where the whole file or the creation goes.
    public private(set) var address: String
    /// The address of the upload, as the server named it (tus).
    public private(set) var uploadAddress: String?
    public private(set) var chunkSize: UInt64
    /// How much the server has confirmed (tus).
    public private(set) var confirmed: UInt64
    public private(set) var stage: Stage
    public private(set) var isPaused = false
    /// Whether it may use the network.
    public private(set) var isAllowed = false
    /// Tries without progress so far.
    public private(set) var troubles = 0
    /// Waits since the last progress or change of the network: each is longer than the one before.
    private var waits = 0
    public let size: UInt64
    private let tries: Int
    private let spread: Double
    /// The most that was ever confirmed: a server that forgets what it has makes no progress when it has it again.
    private var best: UInt64
    private var redirects = 0

    /// Seconds before the first, second … try.
    static let delays = [1.0, 3, 8, 22, 60]
    /// The longest wait that a server may ask for, in seconds.
    static let longestWait = 3_600.0
    private static let redirectLimit = 5

    /// - Parameters:
    ///   - uploadAddress: that of an upload that was begun before (tus).
    ///   - confirmed: what the server had of it.
    public init(
        _ plan: Plan, to address: String, uploadAddress: String? = nil, confirmed: UInt64 = 0, isPaused: Bool = false
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
        stage =
            switch plan.method {
            case .auto: .ready(.ask)
            case .tus: .ready(uploadAddress == nil ? .create : .offset)
            case .put, .post: .ready(.whole)
            }
    }

    /// Whether it would use the network if it were allowed.
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

    public mutating func handle(_ input: Input, at now: UInt64) -> [Effect] {
        if isOver { return [] }
        switch input {
        case .allowed(let allowed):
            isAllowed = allowed
            return allowed ? next() : holdBack()
        case .answered(let answer):
            guard case .working(let request) = stage else { return [] }
            return answered(request, answer, now)
        case .cut(let why, let counts):
            guard case .working(let request) = stage else { return [] }
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
        stage = .working(request)
        return [.request(request)]
    }

    private mutating func go(to request: Request) -> [Effect] {
        stage = .ready(request)
        return next()
    }

    /// It is not allowed any more.
    private mutating func holdBack() -> [Effect] {
        guard case .working(let request) = stage else { return [] }
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

    private func fail(_ code: SessionError.Code, _ reason: String) -> End { .failed(SessionError(code, reason)) }

    /// What is asked after a request that nobody knows the result of.
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
                + retry(.create, "the server has forgotten the upload (\(answer.status))", now)
        case .tooLarge:
            guard chunkSize > UploadMachine.leastChunkSize else {
                return removal + end(fail(.networkFailed, "\(said): it takes no file of this size"))
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
                ? "the server sends the upload to an address that cannot be used" : "the server redirects without end"
            return end(fail(.networkFailed, "\(why) (\(answer.status)): check the address"))
        }
        switch request {
        case .ask, .create, .whole, .proof: address = location
        case .offset, .send: uploadAddress = location
        }
        return [.save(mustSurvive: false)] + go(to: afterTrouble(request))
    }

    private mutating func accepted(_ request: Request, _ answer: Answer, _ now: UInt64) -> [Effect] {
        redirects = 0
        switch request {
        case .ask:
            method = answer.speaksTus ? .tus : .put
            return [.save(mustSurvive: false)] + go(to: method == .tus ? .create : .whole)
        case .create:
            guard let location = answer.location else {
                let why = "the server created an upload without a usable address (\(answer.status))"
                return end(fail(.networkFailed, "\(why): does it speak tus?"))
            }
            uploadAddress = location
            confirmed = 0
            guard size > 0 else { return end(.done) }
            return [.save(mustSurvive: true)] + go(to: piece)
        case .offset:
            // Somebody else may have answered, such as a network that wants a password first.
            guard let offset = answer.offset else {
                return retry(.offset, "the answer to tus was none of tus (\(answer.status))", now)
            }
            guard offset <= size, answer.length ?? size == size else {
                return end(
                    fail(.invalidSource, "the server has another file at the address of this upload: upload it anew"))
            }
            return came(to: offset)
        case .send(let start, let count):
            guard let offset = answer.offset, offset > start, offset <= start + count else {
                return retry(.offset, "the server did not confirm what was sent (\(answer.status))", now)
            }
            return came(to: offset)
        case .whole:
            // Not what stores files say; a network that wants a password first says it to everything.
            guard method == .put, answer.status == 200, answer.isPage else { return end(.done) }
            return go(to: .proof)
        case .proof:
            guard answer.length == size, !answer.isPage || size == 0 else {
                return end(
                    fail(
                        .networkFailed, "the server answered with a page and has not stored the file: check the address"
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
