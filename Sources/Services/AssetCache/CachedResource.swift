import EventLoop
import Glibc
import HTTP
import LoopbackHTTP
import MediaCache
import PluginAPI

/// One web resource that somebody has open: its rules, its file, its requests to the origin, and its readers.
final class CachedResource {
    let name: String
    let address: WebAddress
    private let fields: [HTTPField]
    private let client: HTTPClient
    private let loop: EventLoop
    private let silence: Double
    private(set) var cache: MediaCache
    private var file: CacheFile
    private var requests: [MediaCache.Request: OriginRequest] = [:]
    private var readers: [UInt64: CacheReader] = [:]
    private var lastReader: UInt64 = 0
    /// Effects that wait until libcurl has returned.
    private var pending: [MediaCache.Effect] = []
    private var isReceiving = false
    private var tag: String?
    /// The bytes that came from the origin, and that went to players.
    private(set) var fetched: UInt64 = 0
    private(set) var served: UInt64 = 0
    private(set) var isStalled = false
    /// Whether bytes are only passed on because the disk is full.
    private(set) var isDiskFull = false
    private lazy var stallTimer = Timer(on: loop) { [unowned self] in noteStall() }
    private lazy var progressTimer = Timer(on: loop) { [unowned self] in onProgress() }

    /// Handlers of the plugin.
    var onProgress: () -> Void = {}
    var onStalled: (Bool) -> Void = { _ in }
    var onComplete: (_ path: String) -> Void = { _ in }
    var onTrouble: (MediaCache.Trouble) -> Void = { _ in }
    /// A reader has begun or left.
    var onReaders: () -> Void = {}
    /// The disk is full: from now on, bytes are only passed on.
    var onFullDisk: () -> Void = {}
    /// Whether so many more bytes may be stored.
    var hasRoom: (UInt64) -> Bool = { _ in true }

    /// A player without bytes for longer than this shows that it waits, in seconds.
    private static let patience = 1.0
    /// The least time between two reports of progress, in seconds.
    private static let interval = 0.25
    /// How many bytes are stored between two looks at the free space.
    private static let spaceStep: UInt64 = 16 << 20
    private var unchecked: UInt64 = 0

    init(
        _ name: String, _ address: WebAddress, _ fields: [HTTPField], _ rules: CacheRules, in folder: CacheFolder?,
        _ client: HTTPClient, silence: Double
    ) {
        (self.name, self.address, self.fields, self.client, self.silence) = (name, address, fields, client, silence)
        loop = client.loop
        let entry = folder?.entry(name)
        // The record is good only if everything in it is.
        if entry == nil { folder?.remove(name) }
        folder?.make()
        file = CacheFile(
            rules.keeps ? folder?.base(name) : nil, address.shown, isComplete: entry?.isComplete ?? false,
            boot: folder?.boot ?? "", on: loop)
        var rules = rules
        if !file.isUsable { rules.keeps = false }
        if let entry, file.isUsable {
            let record = entry.record
            cache = MediaCache(
                rules, ranges: record.ranges, size: record.size, mark: record.mark, type: record.type)
            file.begin(record)
            // An earlier process ended just before.
            if cache.isComplete, !file.isComplete { file.settle(record, isComplete: true) }
        } else {
            cache = MediaCache(rules)
        }
        renew()
    }

    /// Whether all bytes are in a file of their own: then its path.
    var completePath: String? { file.isComplete ? file.path : nil }
    var isOpen: Bool { !readers.isEmpty }
    var isPlaylist: Bool { cache.isPlaylist }

    /// The tag that readers get: another one for each version.
    private func renew() {
        let mark = "\(cache.mark.tag ?? "")|\(cache.mark.modified ?? "")|\(cache.size ?? 0)|\(cache.generation)"
        tag = "\"\(SHA256.hex(name + mark).prefix(32))\""
    }

    var record: CacheRecord? {
        guard let size = cache.size else { return nil }
        return CacheRecord(
            shown: address.shown, size: size, mark: cache.mark, type: cache.type, ranges: cache.ranges)
    }

    // MARK: Events

    func want(_ isWanted: Bool) { take(.wanted(isWanted)) }
    func fetchAll() { take(.fetchAll) }
    func mayFill(_ may: Bool) { take(.mayFill(may)) }

    /// Nobody wants it any more: what is worth it is kept.
    func close() {
        take(.wanted(false))
        runPending()
        for reader in Array(readers.values) { end(reader.number, .changed) }
        guard !file.isComplete, !file.isRemoved else { return }
        if !cache.passes, cache.isWorthKeeping, let record, !record.ranges.isEmpty {
            file.settle(record, isComplete: cache.isComplete)
        } else {
            file.remove()
        }
    }

    /// Removes all bytes; what reads them ends.
    func remove() {
        for reader in Array(readers.values) { end(reader.number, .changed) }
        take(.wanted(false))
        runPending()
        file.remove()
    }

    private func take(_ event: MediaCache.Event) {
        let effects = cache.handle(event)
        pending += effects
        if isReceiving {
            if !effects.isEmpty { loop.later { [weak self] in self?.runPending() } }
        } else {
            runPending()
        }
    }

    private func runPending() {
        guard !isReceiving else { return }
        while !pending.isEmpty { run(pending.removeFirst()) }
    }

    private func run(_ effect: MediaCache.Effect) {
        switch effect {
        case .request(let request, let from, let to, let mark): begin(request, from, to, mark)
        case .cancel(let request):
            requests.removeValue(forKey: request)?.cancel()
            file.note()
        case .pause(let request): requests[request]?.pause()
        case .resume(let request): requests[request]?.resume()
        case .serve(let reader): serve(reader)
        case .end(let reader, let trouble): end(reader, trouble)
        case .discard:
            file.empty()
            renew()
        case .forget(let range): file.forget(range)
        case .complete:
            guard let record else { return }
            file.settle(record, isComplete: true) { [weak self] in
                guard let self, let path = completePath else { return }
                onProgress()
                onComplete(path)
            }
        case .tell(let trouble): onTrouble(trouble)
        }
    }

    // MARK: The origin

    private func begin(_ request: MediaCache.Request, _ from: UInt64, _ to: UInt64?, _ mark: OriginHead.Mark) {
        let start = cache.generation
        // Where the bytes of a cancelled request go that arrive nevertheless.
        var late: UInt64?
        requests[request] = OriginRequest(
            client, address, fields, from: from, to: to, unless: mark, silence: silence,
            .init(
                head: { [weak self] head in
                    self?.receiving { $0.took(head, of: request) }
                },
                body: { [weak self] bytes in
                    guard let self else { return false }
                    var goesOn = false
                    receiving { $0.received(bytes, by: request, since: start, &late, &goesOn) }
                    return goesOn
                },
                end: { [weak self] outcome in
                    guard let self else { return }
                    requests[request] = nil
                    switch outcome {
                    case .ended: take(.ended(request))
                    case .timedOut: take(.timedOut(request))
                    case .failed(let trouble): take(.failed(request, trouble))
                    }
                    file.note()
                }))
    }

    /// libcurl must not be called until the body has returned.
    private func receiving(_ body: (CachedResource) -> Void) {
        let before = isReceiving
        isReceiving = true
        body(self)
        isReceiving = before
        if !before, !pending.isEmpty { loop.later { [weak self] in self?.runPending() } }
    }

    private func took(_ head: OriginHead, of request: MediaCache.Request) {
        let wasKnown = cache.isKnown
        let before = (cache.mark, cache.size)
        take(.head(request, head))
        guard cache.isKnown, !wasKnown || before != (cache.mark, cache.size) else { return }
        // The older bytes must be gone before newer ones are stored.
        if pending.contains(.discard) {
            pending.removeAll { $0 == .discard }
            run(.discard)
        }
        renew()
        if !cache.passes, let record { file.begin(record) }
        progressTimer.arm(after: 0)
    }

    private func received(
        _ bytes: UnsafeRawBufferPointer, by request: MediaCache.Request, since start: UInt64, _ late: inout UInt64?,
        _ goesOn: inout Bool
    ) {
        fetched += UInt64(bytes.count)
        guard let place = cache.place(of: request) else {
            guard start == cache.generation, !cache.passes, let place = late else { return }
            // Only what is missing: up to the next byte that is here.
            let next = cache.ranges.ranges.first { $0.upperBound > place }?.lowerBound ?? .max
            let count = min(
                UInt64(bytes.count), next > place ? next - place : 0, (cache.size ?? 0) - min(place, cache.size ?? 0))
            guard count > 0, file.store(.init(rebasing: bytes[..<Int(count)]), at: place, inMemory: false) else {
                return
            }
            late = place + count
            goesOn = count == bytes.count
            return take(.arrived(place..<place + count))
        }
        let count = min(UInt64(bytes.count), cache.room(of: request))
        let part = UnsafeRawBufferPointer(rebasing: bytes[..<Int(count)])
        unchecked += count
        if !cache.passes, unchecked >= CachedResource.spaceStep {
            unchecked = 0
            if !hasRoom(CachedResource.spaceStep) { stopStoring() }
        }
        if !cache.passes, !file.store(part, at: place, inMemory: false) { stopStoring() }
        if cache.passes, !file.store(part, at: place, inMemory: true) {
            return take(.failed(request, .network("out of memory")))
        }
        late = place + count
        goesOn = true
        take(.received(request, count))
        if !progressTimer.isArmed { progressTimer.arm(after: CachedResource.interval) }
    }

    private func stopStoring() {
        isDiskFull = true
        take(.cannotStore)
        onFullDisk()
    }

    // MARK: Readers

    /// - Parameter redirectsLive: whether the player is sent to the origin for what has no known size.
    func read(_ exchange: LoopbackExchange, redirectsLive: Bool) {
        lastReader += 1
        let reader = CacheReader(
            lastReader, exchange, tag: cache.isKnown ? tag : nil, redirectsLive: redirectsLive)
        readers[reader.number] = reader
        exchange.onEnd = { [weak self] in self?.left(reader) }
        onReaders()
        if cache.isKnown, cache.size != nil || cache.isPlaylist || redirectsLive, answer(reader), !reader.isAnswered {
            return
        }
        // The decision is made with what has arrived, so that nothing of it is requested again.
        for request in Array(requests.values) { request.receiveArrived() }
        take(.asked(reader.number, from: reader.place))
        noteWaiting(reader)
    }

    private func left(_ reader: CacheReader) {
        guard readers.removeValue(forKey: reader.number) != nil else { return }
        take(.left(reader.number))
        noteServed()
        onReaders()
    }

    private func serve(_ number: UInt64) {
        guard let reader = readers[number] else { return }
        reader.isWaiting = false
        noteServed()
        if !reader.isAnswered { _ = answer(reader) }
        reader.exchange.resume()
    }

    private func end(_ number: UInt64, _ trouble: MediaCache.Trouble) {
        guard let reader = readers[number] else { return }
        reader.trouble = trouble
        reader.isWaiting = false
        noteServed()
        if !reader.isAnswered {
            reader.exchange.answer(CacheReader.answer(to: trouble))
        } else {
            reader.exchange.resume()
        }
    }

    /// Answers a reader now that the head is known.
    /// - Returns: whether it was answered. Without bytes to follow it is no reader any more.
    private func answer(_ reader: CacheReader) -> Bool {
        guard !cache.isPlaylist else {
            // What a playlist names is relative to its own address.
            reader.exchange.answer(
                fields.isEmpty ? LoopbackAnswer(307, [("Location", address.text)]) : LoopbackAnswer(502))
            return true
        }
        var head = [("Content-Type", cache.type.isEmpty ? "application/octet-stream" : cache.type)]
        guard let size = cache.size else {
            if reader.redirectsLive {
                // A radio tells what plays only to players that ask it themselves.
                reader.exchange.answer(LoopbackAnswer(307, [("Location", address.text)]))
                return true
            }
            if !cache.coding.isEmpty { head.append(("Content-Encoding", cache.coding)) }
            reader.isAnswered = true
            reader.place = 0
            stream(reader, 200, head, count: nil)
            return true
        }
        head += [("Accept-Ranges", "bytes"), ("ETag", tag ?? "")]
        if let modified = cache.mark.modified { head.append(("Last-Modified", modified)) }
        guard let bytes = reader.ask.bytes(of: size) else {
            reader.exchange.answer(LoopbackAnswer(416, head + [("Content-Range", "bytes */\(size)")]))
            return true
        }
        let isPart = reader.ask != .whole
        if isPart { head.append(("Content-Range", "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(size)")) }
        (reader.place, reader.end) = (bytes.lowerBound, bytes.upperBound)
        let count = bytes.upperBound - bytes.lowerBound
        if file.isComplete {
            served += reader.exchange.method == "GET" ? count : 0
            reader.exchange.answer(
                LoopbackAnswer(
                    isPart ? 206 : 200, head, .file(file.descriptor, offset: bytes.lowerBound, count: count)))
            return true
        }
        reader.isAnswered = true
        stream(reader, isPart ? 206 : 200, head, count: count)
        return true
    }

    private func stream(_ reader: CacheReader, _ status: Int, _ head: [(String, String)], count: UInt64?) {
        reader.exchange.answer(
            LoopbackAnswer(
                status, head,
                .stream(count: count) { [weak self, weak reader] _, buffer in
                    guard let self, let reader else { return .failed }
                    return supply(reader, buffer)
                }))
    }

    private func supply(_ reader: CacheReader, _ buffer: UnsafeMutableRawBufferPointer) -> LoopbackAnswer.Supply {
        while true {
            if reader.trouble != nil { return .failed }
            if let end = reader.end, reader.place >= end { return .end }
            if let end = cache.end(from: reader.place) {
                let count = min(UInt64(buffer.count), end - reader.place, (reader.end ?? .max) - reader.place)
                let done = file.read(.init(rebasing: buffer[..<Int(count)]), at: reader.place)
                guard done > 0 else { return .failed }
                reader.place += UInt64(done)
                served += UInt64(done)
                take(.read(reader.number, to: reader.place))
                return .bytes(done)
            }
            if let size = cache.size, reader.place >= size { return .end }
            reader.isWaiting = true
            take(.waits(reader.number, at: reader.place))
            guard reader.isWaiting else { continue }
            noteWaiting(reader)
            return .wait
        }
    }

    // MARK: Waiting

    private func noteWaiting(_ reader: CacheReader) {
        guard reader.isWaiting, !stallTimer.isArmed, !isStalled else { return }
        stallTimer.arm(after: CachedResource.patience)
    }

    private func noteStall() {
        guard readers.values.contains(where: \.isWaiting), !isStalled else { return }
        isStalled = true
        onStalled(true)
    }

    private func noteServed() {
        guard !readers.values.contains(where: \.isWaiting) else { return }
        stallTimer.disarm()
        guard isStalled else { return }
        isStalled = false
        onStalled(false)
    }
}
