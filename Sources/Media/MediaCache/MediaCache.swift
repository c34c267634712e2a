/// The cache of one web resource: which bytes are here, which are requested next, and who may read. A value without a
/// clock, a disk and a network: events in, effects out.
///
/// The rules are level-triggered: after each event, the requests that should run are computed from all readers, and the
/// difference to the running ones is returned.
///
/// - No byte of a version is requested twice, except after an origin refused ranges.
/// - Bytes of two versions never mix: when the origin has changed, all readers end and everything is dropped.
/// - A reader that waits is served, or its end is told; never neither.
/// - An origin that is silent is asked once more; any other trouble is told at once.
/// - An origin that does not have it is not asked again by the first reader.
public struct MediaCache: Sendable, Equatable {
    public typealias Reader = UInt64
    public typealias Request = UInt64

    public enum Event: Sendable, Equatable {
        /// A reader begins at that byte. It waits for it, or for the head.
        case asked(Reader, from: UInt64)
        /// A reader has read all bytes before this one, and waits for it.
        case waits(Reader, at: UInt64)
        /// A reader has read all bytes before this one.
        case read(Reader, to: UInt64)
        case left(Reader)
        case head(Request, OriginHead)
        /// That many bytes of the answer were stored at ``place(of:)``.
        case received(Request, UInt64)
        /// Bytes of a cancelled request that had already arrived, if the ``generation`` is still that of the request.
        case arrived(Range<UInt64>)
        /// The answer has ended as it should.
        case ended(Request)
        /// No byte came for too long.
        case timedOut(Request)
        case failed(Request, Trouble)
        /// Whether somebody wants the resource, also without reading it.
        case wanted(Bool)
        /// Somebody wants all of it, whatever the rules say about filling.
        case fetchAll
        /// Whether missing parts may be fetched now.
        case mayFill(Bool)
        /// The disk is full, or its folder is gone: from now on, bytes are only passed on.
        case cannotStore
    }

    public enum Effect: Sendable, Equatable {
        /// Request the bytes from `from` to before `to`, nil: to the end; only if the resource is still that version.
        case request(Request, from: UInt64, to: UInt64?, unless: OriginHead.Mark)
        /// End the request; its bytes that have arrived may still be received.
        case cancel(Request)
        case pause(Request)
        case resume(Request)
        /// The reader can go on: there are bytes at its place, or it is at the end, or the head is known.
        case serve(Reader)
        /// The reader ends with an error: nothing more comes.
        case end(Reader, Trouble)
        /// Everything that was received is of an older version.
        case discard
        /// These bytes are needed no more.
        case forget(Range<UInt64>)
        /// All bytes are here.
        case complete
        /// For people and programs; once for each trouble.
        case tell(Trouble)
    }

    /// Why a resource cannot be read on.
    public enum Trouble: Sendable, Hashable {
        /// Twice no byte within the time limit.
        case timedOut
        /// An answer with that status.
        case status(Int)
        /// The resource has changed while it was read.
        case changed
        /// The answer contradicts itself, the request or an earlier answer; the text tells how.
        case contradiction(String)
        /// The network, in words for people.
        case network(String)

        /// Whether the origin does not have the resource.
        var isMissing: Bool { self == .status(404) || self == .status(410) }
    }

    private struct Reading: Sendable, Equatable {
        var place: UInt64
        var isWaiting: Bool
        /// Whether it was told the size, or served: then it must not be served bytes of another version.
        var hasBegun: Bool
        /// Readers that began later come first.
        let order: UInt64
    }

    private struct Fetch: Sendable, Equatable {
        var start: UInt64
        var place: UInt64
        /// Where it ends; nil: at the end of the resource.
        var end: UInt64?
        /// The last byte that the answer has, plus one; nil: unknown.
        var answered: UInt64?
        var isRetry = false
        var hasHead = false
        var isPaused = false
    }

    public private(set) var rules: CacheRules
    /// The bytes that can be read.
    public private(set) var ranges = RangeSet<UInt64>()
    /// The bytes that stay here when they were only passed on since: those from before a disk was full.
    private var kept: RangeSet<UInt64>?
    /// Counts the versions: bytes of another version are not good.
    public private(set) var generation: UInt64 = 0
    /// The coding of an answer that is only passed on, such as `gzip`; empty: none.
    public private(set) var coding = ""
    /// Nil: unknown.
    public private(set) var size: UInt64?
    public private(set) var mark = OriginHead.Mark()
    public private(set) var type = ""
    /// Whether a head has arrived, or the resource was here before.
    public private(set) var isKnown = false
    /// Whether all bytes are here, of one version, and may be kept.
    public private(set) var isComplete = false
    /// Whether the head told that this is a playlist, which the reader must read at its origin.
    public private(set) var isPlaylist = false
    /// Whether the origin answers requests for a range; it is assumed until it does not.
    private var hasRanges = true
    private var readers: [Reader: Reading] = [:]
    private var fetches: [Request: Fetch] = [:]
    /// The last number of a request, and the last order of a reader.
    private var lastRequest: Request = 0
    private var lastOrder: UInt64 = 0
    private var isWanted = false
    private var mayFill = true
    /// Filling stops after trouble, until a reader asks again.
    private var fillFailed = false
    /// The origin does not have it, and no reader has been told.
    private var untold: Trouble?
    /// The number of requests, without repeated ones.
    private var requested = 0

    public init(_ rules: CacheRules = CacheRules()) { self.rules = rules }

    /// A resource of which parts are here from before.
    public init(
        _ rules: CacheRules, ranges: RangeSet<UInt64>, size: UInt64, mark: OriginHead.Mark, type: String
    ) {
        self.rules = rules
        (self.ranges, self.size, self.mark, self.type) = (ranges, size, mark, type)
        isKnown = true
        isComplete = Self.isAll(ranges, size)
        // An earlier process has asked.
        requested = isComplete ? 1 : 2
    }

    // MARK: What the shell needs to know

    /// Whether only passing on is possible or allowed.
    public var passes: Bool { !rules.keeps }

    /// Whether what is here stays when nobody wants it any more.
    public var isWorthKeeping: Bool {
        isComplete || (!rules.isLetter && size != nil && mark.condition != nil && !isPlaylist)
    }

    /// The end of the bytes that are here from `place` on; nil: that byte is missing.
    public func end(from place: UInt64) -> UInt64? { range(at: place)?.upperBound }

    /// Where the next byte of a request belongs; nil: the request has ended.
    public func place(of request: Request) -> UInt64? { fetches[request]?.place }

    /// How many of the next bytes of a request may be stored.
    public func room(of request: Request) -> UInt64 {
        guard let fetch = fetches[request] else { return 0 }
        return min(fetch.end ?? .max, size ?? .max) - fetch.place
    }

    public var isBusy: Bool { !fetches.isEmpty }
    public var hasReaders: Bool { !readers.isEmpty }

    // MARK: Events

    public mutating func handle(_ event: Event) -> [Effect] {
        var effects: [Effect] = []
        switch event {
        case .asked(let reader, let place):
            if let trouble = untold {
                untold = nil
                effects.append(.end(reader, trouble))
                break
            }
            lastOrder += 1
            // Whoever asks now is told the size of this version.
            readers[reader] = Reading(place: place, isWaiting: true, hasBegun: isKnown, order: lastOrder)
            fillFailed = false
        case .waits(let reader, let place):
            readers[reader]?.place = place
            readers[reader]?.isWaiting = true
        case .read(let reader, let place):
            readers[reader]?.place = place
            readers[reader]?.hasBegun = true
        case .left(let reader): readers[reader] = nil
        case .head(let request, let head): took(head, of: request, &effects)
        case .received(let request, let count): received(count, by: request, &effects)
        case .arrived(let range): if rules.keeps, !range.isEmpty { ranges.insert(contentsOf: range) }
        case .ended(let request): ended(request, &effects)
        case .timedOut(let request): timedOut(request, &effects)
        case .failed(let request, let trouble): fail(request, trouble, &effects)
        case .wanted(let isWanted):
            if isWanted != self.isWanted { (fillFailed, untold) = (false, nil) }
            self.isWanted = isWanted
        case .fetchAll:
            rules.fills = true
            (fillFailed, untold) = (false, nil)
        case .mayFill(let may): mayFill = may
        case .cannotStore: stopKeeping()
        }
        settle(&effects)
        return effects
    }

    private mutating func stopKeeping() {
        guard rules.keeps, !isComplete else { return }
        rules.keeps = false
        kept = ranges
    }

    private mutating func took(_ head: OriginHead, of request: Request, _ effects: inout [Effect]) {
        guard let fetch = fetches[request] else { return }
        switch head.status {
        case 206:
            guard let range = head.range, range.lowerBound == fetch.place else {
                return fail(request, .contradiction("it sent other bytes than it was asked for"), &effects)
            }
            guard size == nil || head.size == nil || head.size == size, !isKnown || head.mark.mayEqual(mark) else {
                return change(to: head, keeping: nil, &effects)
            }
            learn(head)
            fetches[request]?.answered = range.upperBound + 1
        case 200:
            let isSame = !isKnown || (head.mark.mayEqual(mark) && (size == nil || head.size == size))
            guard isSame else { return change(to: head, keeping: request, &effects) }
            learn(head)
            // Rule 1 asks for a range, too: the whole one.
            hasRanges = false
            fetches[request]?.answered = head.size
            guard fetch.place > 0 else { break }
            if let other = fetches.first(where: { $0.key != request && $0.value.start == 0 }) {
                fetches[request] = nil
                fetches[other.key]?.end = nil
                effects.append(.cancel(request))
            } else {
                fetches[request] = Fetch(start: 0, place: 0, end: nil, answered: head.size)
            }
        case 416:
            guard size == nil || head.size == nil || head.size == size else {
                return change(to: head, keeping: nil, &effects)
            }
            guard let total = head.size, fetch.place >= total else {
                return fail(request, .contradiction("it refuses bytes that it said it has"), &effects)
            }
            fetches[request] = nil
            effects.append(.cancel(request))
            learn(head)
        default: return fail(request, .status(head.status), &effects)
        }
        fetches[request]?.hasHead = true
    }

    /// Bytes of the version with this head are good.
    private mutating func learn(_ head: OriginHead) {
        if !isKnown { (mark, type) = (head.mark, head.type) }
        if mark.tag == nil { mark.tag = head.mark.tag }
        if mark.modified == nil { mark.modified = head.mark.modified }
        isKnown = true
        coding = head.coding
        size = size ?? head.size
        isPlaylist = isPlaylist || head.isPlaylist
        if !head.mayKeep || size == nil || size ?? 0 > rules.limit { stopKeeping() }
    }

    /// The origin has another version: nothing that is here is good.
    /// - Parameter request: one whose answer is the whole new version; nil: none is.
    private mutating func change(to head: OriginHead, keeping request: Request?, _ effects: inout [Effect]) {
        generation += 1
        effects.append(.discard)
        for other in fetches.keys.sorted() where other != request {
            fetches[other] = nil
            effects.append(.cancel(other))
        }
        ranges = RangeSet()
        kept = kept.map { _ in RangeSet() }
        (isKnown, isComplete, size, mark, type) = (false, false, nil, OriginHead.Mark(), "")
        requested = request == nil ? 0 : 1
        for (reader, reading) in readers.sorted(by: { $0.key < $1.key }) where reading.hasBegun {
            readers[reader] = nil
            effects.append(.end(reader, .changed))
        }
        effects.append(.tell(.changed))
        fillFailed = true
        guard let request else { return }
        learn(head)
        fetches[request] = Fetch(start: 0, place: 0, end: nil, answered: head.size, hasHead: true)
    }

    private mutating func received(_ count: UInt64, by request: Request, _ effects: inout [Effect]) {
        guard let fetch = fetches[request], count > 0 else { return }
        let count = min(count, room(of: request))
        let (place, _) = fetch.place.addingReportingOverflow(count)
        if count > 0 { ranges.insert(contentsOf: fetch.place..<place) }
        fetches[request]?.place = place
        fetches[request]?.isRetry = false
        // It has come to bytes that are here, or that another request fetches.
        if let end = fetch.end, place >= end, place < fetch.answered ?? .max {
            fetches[request] = nil
            effects.append(.cancel(request))
        }
    }

    private mutating func ended(_ request: Request, _ effects: inout [Effect]) {
        guard let fetch = fetches[request] else { return }
        guard fetch.hasHead else { return fail(request, .network("it ended the connection"), &effects) }
        if let answered = fetch.answered, fetch.place < answered, fetch.place < fetch.end ?? .max {
            return fail(request, .network("it sent less than it said"), &effects)
        }
        // An answer of unknown size has ended: only now its size is known.
        if size == nil { size = fetch.place }
        fetches[request] = nil
    }

    private mutating func timedOut(_ request: Request, _ effects: inout [Effect]) {
        guard let fetch = fetches[request] else { return }
        // The bytes of a live stream come once: what it sends next is something else.
        guard !fetch.isRetry, hasRanges || fetch.place == 0 || size != nil else {
            return fail(request, .timedOut, &effects)
        }
        fetches[request] = nil
        effects.append(.cancel(request))
        // All of its bytes are here, only its end did not come.
        guard fetch.place < fetch.end ?? size ?? .max else { return }
        begin(from: hasRanges ? fetch.place : 0, to: fetch.end, isRetry: true, &effects)
    }

    private mutating func fail(_ request: Request, _ trouble: Trouble, _ effects: inout [Effect]) {
        guard let fetch = fetches.removeValue(forKey: request) else { return }
        effects.append(.cancel(request))
        var isTold = false
        for (reader, reading) in readers.sorted(by: { $0.key < $1.key })
        where reading.isWaiting && covers(fetch, reading.place) && end(from: reading.place) == nil {
            readers[reader] = nil
            effects.append(.end(reader, trouble))
            isTold = true
        }
        fillFailed = true
        if !isTold, !isKnown, trouble.isMissing { untold = trouble }
        effects.append(.tell(trouble))
    }

    // MARK: What should be requested

    private func range(at place: UInt64) -> Range<UInt64>? {
        let all = ranges.ranges
        var (low, high) = (all.startIndex, all.endIndex)
        while low < high {
            let middle = low + (high - low) / 2
            if all[middle].upperBound <= place { low = middle + 1 } else { high = middle }
        }
        return low < all.endIndex && all[low].contains(place) ? all[low] : nil
    }

    private static func isAll(_ ranges: RangeSet<UInt64>, _ size: UInt64) -> Bool {
        size == 0 || ranges.ranges.first == 0..<size
    }

    /// Where the next part begins that is here, or that is being fetched.
    private func boundary(after place: UInt64) -> UInt64? {
        let here = ranges.ranges.first { $0.lowerBound > place }?.lowerBound
        let fetched = fetches.values.filter { $0.start > place }.map(\.start).min()
        return [here, fetched].compactMap { $0 }.min()
    }

    /// Whether that byte comes soon with this request: then nobody asks for it again.
    private func covers(_ fetch: Fetch, _ place: UInt64) -> Bool {
        guard place >= fetch.place, place < fetch.end ?? .max else { return false }
        return !hasRanges || place - fetch.place <= rules.reach
    }

    /// Whether somebody reads what this request fetches.
    private func isFollowed(_ fetch: Fetch) -> Bool { readers.values.contains { follows($0, fetch) } }

    private func follows(_ reader: Reading, _ fetch: Fetch) -> Bool {
        covers(fetch, reader.place) || (fetch.start..<max(fetch.start, fetch.place)).contains(reader.place)
    }

    private mutating func settle(_ effects: inout [Effect]) {
        serve(&effects)
        guard !completed(&effects) else { return }
        if isPlaylist || (!isWanted && readers.isEmpty) {
            for request in fetches.keys.sorted() { cancel(request, &effects) }
            return
        }
        let waiting = readers.values.filter(\.isWaiting).sorted { $0.order > $1.order }
        var needed: Set<Request> = []
        for reader in waiting {
            if let found = fetches.first(where: { covers($0.value, reader.place) })?.key {
                needed.insert(found)
            } else if makeRoom(for: reader, needed, &effects) {
                let place = hasRanges ? reader.place : 0
                let end = rules.isBounded && hasRanges ? boundary(after: place) : nil
                needed.insert(begin(from: place, to: end, isRetry: false, &effects))
            }
        }
        // Rules 2 and 4: what nobody reads must not slow down what somebody waits for.
        for (request, fetch) in fetches.sorted(by: { $0.key < $1.key }) where !needed.contains(request) {
            let isFill = rules.fills && rules.keeps && isWanted && mayFill && needed.isEmpty
            if !isFollowed(fetch), !isFill { cancel(request, &effects) }
        }
        fill(&effects)
        hold(&effects)
    }

    private mutating func serve(_ effects: inout [Effect]) {
        for (reader, reading) in readers.sorted(by: { $0.key < $1.key }) where reading.isWaiting {
            let isAtEnd = size.map { reading.place >= $0 } ?? false
            guard isKnown, isAtEnd || (isPlaylist && !reading.hasBegun) || end(from: reading.place) != nil else {
                continue
            }
            readers[reader]?.isWaiting = false
            readers[reader]?.hasBegun = true
            effects.append(.serve(reader))
        }
    }

    /// Ends everything when all bytes are here.
    private mutating func completed(_ effects: inout [Effect]) -> Bool {
        if isComplete { return true }
        guard let size, Self.isAll(ranges, size), kept == nil else { return false }
        for request in fetches.keys.sorted() { cancel(request, &effects) }
        // Rule 5, to the letter: an asset of several requests is not kept.
        guard rules.keeps, !rules.isLetter || requested <= 1 else { return true }
        isComplete = true
        effects.append(.complete)
        return true
    }

    private mutating func cancel(_ request: Request, _ effects: inout [Effect]) {
        fetches[request] = nil
        effects.append(.cancel(request))
    }

    /// Whether a request may begin for a reader. If there are as many as may be, one ends that only older readers follow.
    private mutating func makeRoom(for reader: Reading, _ needed: Set<Request>, _ effects: inout [Effect]) -> Bool {
        guard fetches.count >= (hasRanges ? rules.requests : 1) else { return true }
        let others = fetches.keys.filter { !needed.contains($0) }.sorted()
        let orders = others.map { (request: $0, order: newestFollower(fetches[$0])) }
        guard let oldest = orders.min(by: { $0.order < $1.order }), oldest.order < reader.order else { return false }
        cancel(oldest.request, &effects)
        return true
    }

    private func newestFollower(_ fetch: Fetch?) -> UInt64 {
        guard let fetch else { return 0 }
        return readers.values.filter { follows($0, fetch) }.map(\.order).max() ?? 0
    }

    @discardableResult
    private mutating func begin(
        from place: UInt64, to end: UInt64?, isRetry: Bool, _ effects: inout [Effect]
    ) -> Request {
        lastRequest += 1
        if !isRetry { requested += 1 }
        // Another request that comes here ends here.
        if rules.isBounded {
            for (request, fetch) in fetches where fetch.place <= place && fetch.end ?? .max > place {
                fetches[request]?.end = place
            }
        }
        fetches[lastRequest] = Fetch(start: place, place: place, end: end, isRetry: isRetry)
        effects.append(.request(lastRequest, from: place, to: end, unless: mark))
        return lastRequest
    }

    /// Fetches the first gap after the newest reader, otherwise the first one.
    private mutating func fill(_ effects: inout [Effect]) {
        guard rules.fills, rules.keeps, isWanted, mayFill, !fillFailed, fetches.isEmpty, hasRanges || ranges.isEmpty
        else { return }
        let newest = readers.values.max { $0.order < $1.order }?.place ?? 0
        guard let gap = gap(after: newest) ?? gap(after: 0) else { return }
        begin(from: gap, to: boundary(after: gap), isRetry: false, &effects)
    }

    private func gap(after place: UInt64) -> UInt64? {
        let gap = end(from: place) ?? place
        return gap < size ?? .max ? gap : nil
    }

    /// What is only passed on waits for its readers, and is forgotten behind them.
    private mutating func hold(_ effects: inout [Effect]) {
        guard !rules.keeps else { return }
        for (request, fetch) in fetches.sorted(by: { $0.key < $1.key }) {
            let slowest = readers.values.filter { $0.place >= fetch.start && $0.place < fetch.place }.map(\.place).min()
            let ahead = slowest.map { fetch.place - $0 } ?? 0
            let isAwaited = readers.values.contains { $0.isWaiting && covers(fetch, $0.place) }
            let isPaused =
                isAwaited ? false : fetch.isPaused ? ahead > CacheRules.window / 2 : ahead >= CacheRules.window
            guard isPaused != fetch.isPaused else { continue }
            fetches[request]?.isPaused = isPaused
            effects.append(isPaused ? .pause(request) : .resume(request))
        }
        var passed = ranges
        if let kept { passed.subtract(kept) }
        for range in passed.ranges {
            // Readers that went back a little find it: a player reads the head of a file twice.
            let places = readers.values.map(\.place).filter { range.contains($0) }
            let low =
                places.min() ?? (fetches.values.contains { $0.place == range.upperBound } ? range.upperBound : nil)
            let behind = low.map { $0 - min($0, CacheRules.window / 4) } ?? range.upperBound
            // A reader that stands still does not hold another one's bytes for ever.
            let keptFrom = max(behind, range.upperBound - min(range.upperBound, 2 * CacheRules.window))
            guard keptFrom > range.lowerBound else { continue }
            let gone = range.lowerBound..<min(keptFrom, range.upperBound)
            ranges.remove(contentsOf: gone)
            effects.append(.forget(gone))
        }
    }
}
