import MediaCache
import ReferenceModel

/// A cache with an origin of a few blocks and readers, all of them under the test's hand. Every effect is judged by the
/// second model.
struct World {
    /// Larger than the distance from which a reader waits for a running request.
    static let block: UInt64 = 100_000

    struct Origin: Equatable {
        var blocks = 4
        var hasRanges = true
        var version = 1
        /// Whether it says when a version ends.
        var hasTag = true
    }

    enum Act: Equatable {
        case ask(UInt64, Int)
        case read(UInt64)
        case leave(UInt64)
        case head(UInt64)
        case bytes(UInt64)
        case finish(UInt64)
        case silence(UInt64)
        case cut(UInt64)
        case change
        case full
    }

    struct Answer {
        var place: Int
        let end: Int
        let version: Int
        /// Whether it begins at 0, whatever was asked for.
        let isWhole: Bool
        var hasHead = false
    }

    var cache: MediaCache
    var origin: Origin
    var model: CacheModel
    var answers: [UInt64: Answer] = [:]
    /// The readers' places in blocks; waiting or served.
    var readers: [UInt64: (place: Int, isWaiting: Bool)] = [:]
    var isComplete = false
    var told: [MediaCache.Trouble] = []
    var ended: [UInt64: MediaCache.Trouble] = [:]
    var log: [String] = []
    private var size: Int?

    init(_ rules: CacheRules, _ origin: Origin = Origin()) throws {
        self.origin = origin
        cache = MediaCache(rules)
        model = CacheModel(blocks: 8, mayRepeat: !origin.hasRanges || !rules.isBounded || !rules.keeps)
        try take(.wanted(true))
    }

    /// What can happen next.
    func acts(readers count: UInt64, mayChange: Bool) -> [Act] {
        var acts: [Act] = []
        for reader in 1...count {
            if let here = readers[reader] {
                acts.append(.leave(reader))
                if !here.isWaiting { acts.append(.read(reader)) }
            } else {
                acts += (0..<origin.blocks).map { .ask(reader, $0) }
            }
        }
        for (request, answer) in answers.sorted(by: { $0.key < $1.key }) {
            if !answer.hasHead {
                acts.append(.head(request))
            } else if answer.place < answer.end {
                acts.append(.bytes(request))
            } else {
                acts.append(.finish(request))
            }
            acts += [.silence(request), .cut(request)]
        }
        if mayChange { acts.append(.change) }
        return acts
    }

    mutating func perform(_ act: Act) throws {
        log.append("\(act)")
        switch act {
        case .ask(let reader, let block):
            readers[reader] = (block, true)
            ended[reader] = nil
            try take(.asked(reader, from: UInt64(block) * World.block))
        case .read(let reader):
            guard let here = readers[reader] else { return }
            guard here.place < origin.blocks, cache.end(from: UInt64(here.place) * World.block) != nil else {
                return try perform(.leave(reader))
            }
            try model.reads(reader, here.place)
            readers[reader] = (here.place + 1, false)
            try take(.read(reader, to: UInt64(here.place + 1) * World.block))
            guard here.place + 1 < size ?? .max else { return try perform(.leave(reader)) }
            readers[reader]?.isWaiting = true
            try take(.waits(reader, at: UInt64(here.place + 1) * World.block))
        case .leave(let reader):
            readers[reader] = nil
            model.leaves(reader)
            try take(.left(reader))
        case .head(let request):
            answers[request]?.hasHead = true
            guard let answer = answers[request] else { return }
            let mark = OriginHead.Mark(tag: origin.hasTag ? "\"\(answer.version)\"" : nil)
            let total = UInt64(origin.blocks) * World.block
            let isPart = !answer.isWhole
            let head =
                isPart
                ? OriginHead(
                    status: 206,
                    range: UInt64(answer.place) * World.block...UInt64(answer.end) * World.block - 1, size: total,
                    mark: mark)
                : OriginHead(status: 200, size: total, mark: mark)
            try take(.head(request, head))
        case .bytes(let request):
            guard let answer = answers[request], let place = cache.place(of: request) else { return }
            try model.stores(Int(place / World.block), of: answer.version, by: request)
            answers[request]?.place += 1
            try take(.received(request, World.block))
        case .finish(let request):
            answers[request] = nil
            model.cancels(request)
            try take(.ended(request))
        case .silence(let request): try take(.timedOut(request))
        case .cut(let request): try take(.failed(request, .network("cut")))
        case .change:
            origin.version += 1
            // What is on its way is of the old version: it ends.
            for request in answers.keys.sorted() { try take(.failed(request, .network("cut"))) }
        case .full: try take(.cannotStore)
        }
        try check()
    }

    mutating func take(_ event: MediaCache.Event) throws {
        do {
            try judge(event)
        } catch {
            throw CacheModel.objection("\(error), after \(log.joined(separator: "\n"))")
        }
    }

    private mutating func judge(_ event: MediaCache.Event) throws {
        for effect in cache.handle(event) {
            log.append("  \(effect)")
            switch effect {
            case .request(let request, let from, let to, let mark):
                let isOther = mark.condition.map { $0 != "\"\(origin.version)\"" } ?? false
                let first = Int(from / World.block)
                let last = to.map { Int($0 / World.block) } ?? origin.blocks
                let isWhole = isOther || !origin.hasRanges
                try model.requests(request, first..<max(first, last))
                answers[request] = Answer(
                    place: isWhole ? 0 : first, end: isWhole ? origin.blocks : last, version: origin.version,
                    isWhole: isWhole)
            case .cancel(let request):
                answers[request] = nil
                model.cancels(request)
            case .serve(let reader): readers[reader]?.isWaiting = false
            case .end(let reader, let trouble):
                readers[reader] = nil
                model.leaves(reader)
                ended[reader] = trouble
            case .discard:
                model.discards()
                if case .head(let request, _) = event, answers[request]?.isWhole == true {
                    model.restarts(request, 0..<origin.blocks)
                }
            case .complete:
                try model.completes(size: origin.blocks)
                isComplete = true
            case .tell(let trouble): told.append(trouble)
            case .forget, .pause, .resume: break
            }
        }
        size = cache.size.map { Int($0 / World.block) }
    }

    /// Nobody waits in vain.
    func check() throws {
        for (reader, here) in readers where here.isWaiting {
            let place = UInt64(here.place) * World.block
            if cache.isKnown, cache.end(from: place) != nil {
                throw CacheModel.objection("reader \(reader) waits for a byte that is here: \(log)")
            }
            if answers.isEmpty { throw CacheModel.objection("reader \(reader) waits and nothing runs: \(log)") }
        }
        if cache.isComplete, !answers.isEmpty { throw CacheModel.objection("complete, and something runs: \(log)") }
    }

    /// The origin does its duty until nothing runs, and readers read on.
    mutating func drain() throws {
        for _ in 0..<200 {
            if let (request, answer) = answers.min(by: { $0.key < $1.key }) {
                try perform(
                    !answer.hasHead ? .head(request) : answer.place < answer.end ? .bytes(request) : .finish(request))
            } else if let reader = readers.keys.min() {
                guard readers[reader]?.isWaiting == false else {
                    throw CacheModel.objection("reader \(reader) waits for ever: \(log)")
                }
                try perform(.read(reader))
            } else {
                return
            }
        }
        throw CacheModel.objection("it never ends: \(log)")
    }
}

extension CacheModel {
    static func objection(_ text: String) -> WorldObjection { WorldObjection(description: text) }
}

struct WorldObjection: Error, CustomStringConvertible {
    let description: String
}
