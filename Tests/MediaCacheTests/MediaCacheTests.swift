import MediaCache
import ReferenceModel
import Testing

/// The cache of one resource.
@Suite struct MediaCacheTests {
    private static let kB: UInt64 = 1_000

    // MARK: The seven rules, to the letter

    /// The rules as a table: what was fetched before, where a reader asks, and what must be done.
    private static let rows: [(rule: Int, start: UInt64, fetched: UInt64, offset: UInt64, answer: SevenRules.Answer)] =
        [
            (2, 0, 100, 500, .request(from: 500)),
            (3, 0, 100, 50, .serve),
            (3, 300, 100, 350, .serve),
            (3, 300, 100, 300, .serve),
            (4, 300, 100, 100, .request(from: 100)),
            (4, 300, 100, 0, .request(from: 0)),
        ]

    @Test func firstRequest_isForAll() {
        var cache = Self.wanted(.letter)
        #expect(cache.handle(.asked(1, from: 0)) == [.request(1, from: 0, to: nil, unless: .init())])
    }

    @Test(arguments: rows.indices) func rule_isFollowed(_ index: Int) {
        let row = Self.rows[index]
        var cache = Self.wanted(.letter)
        var rules = SevenRules()
        _ = cache.handle(.asked(1, from: row.start * Self.kB))
        #expect(rules.ask(row.start * Self.kB) == .request(from: row.start * Self.kB))
        _ = cache.handle(.head(1, Self.head(row.start * Self.kB, 1_000 * Self.kB)))
        _ = cache.handle(.received(1, row.fetched * Self.kB))
        rules.receive(row.fetched * Self.kB)
        _ = cache.handle(.left(1))
        let effects = cache.handle(.asked(9, from: row.offset * Self.kB))
        let answer = rules.ask(row.offset * Self.kB)
        switch row.answer {
        case .request(let place):
            let place = place * Self.kB
            #expect(answer == .request(from: place))
            #expect(
                effects == [
                    .request(2, from: place, to: nil, unless: .init(tag: "\"a\""))
                ] || effects == [.cancel(1), .request(2, from: place, to: nil, unless: .init(tag: "\"a\""))])
        case .serve: #expect(answer == .serve && effects == [.serve(9)])
        case .wait: #expect(answer == .wait && effects.isEmpty)
        }
    }

    @Test func severalRequests_areNotKept() {
        var cache = Self.wanted(.letter)
        _ = cache.handle(.asked(1, from: 500 * Self.kB))
        _ = cache.handle(.head(1, Self.head(500 * Self.kB, 1_000 * Self.kB)))
        _ = cache.handle(.received(1, 500 * Self.kB))
        _ = cache.handle(.ended(1))
        _ = cache.handle(.asked(3, from: 0))
        _ = cache.handle(.head(2, Self.head(0, 1_000 * Self.kB)))
        let effects = cache.handle(.received(2, 1_000 * Self.kB))
        #expect(!effects.contains(.complete) && !cache.isComplete && !cache.isWorthKeeping)
    }

    @Test func oneRequest_isKept() {
        var cache = Self.wanted(.letter)
        _ = cache.handle(.asked(1, from: 0))
        _ = cache.handle(.head(1, Self.head(0, 1_000 * Self.kB)))
        #expect(cache.handle(.received(1, 1_000 * Self.kB)).contains(.complete))
    }

    @Test(arguments: [CacheRules.letter, CacheRules()]) func silence_isAskedOnceMoreThenTold(_ rules: CacheRules) {
        var cache = Self.wanted(rules)
        _ = cache.handle(.asked(1, from: 0))
        _ = cache.handle(.head(1, Self.head(0, 1_000 * Self.kB)))
        _ = cache.handle(.received(1, 5 * Self.kB))
        _ = cache.handle(.read(1, to: 5 * Self.kB))
        _ = cache.handle(.waits(1, at: 5 * Self.kB))
        #expect(
            cache.handle(.timedOut(1)) == [
                .cancel(1), .request(2, from: 5 * Self.kB, to: nil, unless: .init(tag: "\"a\"")),
            ])
        #expect(cache.handle(.timedOut(2)) == [.cancel(2), .end(1, .timedOut), .tell(.timedOut)])
    }

    @Test func otherTrouble_isTold() {
        var cache = Self.wanted(CacheRules())
        _ = cache.handle(.asked(1, from: 0))
        #expect(cache.handle(.failed(1, .status(404))) == [.cancel(1), .end(1, .status(404)), .tell(.status(404))])
        #expect(!cache.isBusy)
    }

    @Test(arguments: [404, 410]) func missingResource_isAskedForOnceUntilItsReaderIsTold(_ status: Int) {
        var cache = MediaCache()
        // The parts are fetched before anybody reads.
        #expect(cache.handle(.wanted(true)) == [.request(1, from: 0, to: nil, unless: .init())])
        #expect(cache.handle(.failed(1, .status(status))) == [.cancel(1), .tell(.status(status))])
        #expect(cache.handle(.asked(1, from: 0)) == [.end(1, .status(status))])
        #expect(!cache.isBusy && !cache.hasReaders)
        // The next one may find it there.
        #expect(cache.handle(.asked(2, from: 0)) == [.request(2, from: 0, to: nil, unless: .init())])
    }

    @Test func otherTrouble_isAskedAgainByTheNextReader() {
        var cache = MediaCache()
        _ = cache.handle(.wanted(true))
        _ = cache.handle(.failed(1, .status(503)))
        #expect(cache.handle(.asked(1, from: 0)) == [.request(2, from: 0, to: nil, unless: .init())])
    }

    // MARK: Nothing twice

    @Test func seek_fetchesOnlyToTheNextPart() {
        var cache = Self.wanted(CacheRules())
        _ = cache.handle(.asked(1, from: 0))
        _ = cache.handle(.head(1, Self.head(0, 1_000 * Self.kB)))
        _ = cache.handle(.received(1, 100 * Self.kB))
        // The index at the end, while the old connection is still open.
        #expect(
            cache.handle(.asked(3, from: 900 * Self.kB)) == [
                .request(2, from: 900 * Self.kB, to: nil, unless: .init(tag: "\"a\""))
            ])
        _ = cache.handle(.head(2, Self.head(900 * Self.kB, 1_000 * Self.kB)))
        _ = cache.handle(.received(2, 100 * Self.kB))
        _ = cache.handle(.ended(2))
        _ = cache.handle(.left(3))
        // The first request ends where the index begins.
        #expect(cache.room(of: 1) == 800 * Self.kB)
        let effects = cache.handle(.received(1, 800 * Self.kB))
        #expect(effects.contains(.complete))
    }

    @Test func readerCloseBehind_joins() {
        var cache = Self.wanted(CacheRules())
        _ = cache.handle(.asked(1, from: 0))
        _ = cache.handle(.head(1, Self.head(0, 1_000 * Self.kB)))
        _ = cache.handle(.received(1, 100 * Self.kB))
        #expect(cache.handle(.asked(3, from: 100 * Self.kB)).isEmpty)
        #expect(cache.handle(.asked(4, from: 160 * Self.kB)).isEmpty)
    }

    @Test func gaps_areFilledWhenNobodyWaits() {
        var cache = Self.wanted(CacheRules())
        _ = cache.handle(.asked(1, from: 600 * Self.kB))
        _ = cache.handle(.head(1, Self.head(600 * Self.kB, 1_000 * Self.kB)))
        _ = cache.handle(.received(1, 400 * Self.kB))
        #expect(cache.handle(.ended(1)).isEmpty)
        #expect(
            cache.handle(.mayFill(true)) == [
                .request(2, from: 0, to: 600 * Self.kB, unless: .init(tag: "\"a\""))
            ])
        // Somebody waits elsewhere: the filling ends.
        _ = cache.handle(.head(2, Self.head(0, 1_000 * Self.kB)))
        _ = cache.handle(.received(2, 10 * Self.kB))
        #expect(
            cache.handle(.asked(4, from: 300 * Self.kB)) == [
                .request(3, from: 300 * Self.kB, to: 600 * Self.kB, unless: .init(tag: "\"a\"")), .cancel(2),
            ])
    }

    // MARK: Origins that lie or change

    @Test(arguments: [
        OriginHead(status: 206, range: 7...99, size: 1_000_000),
        OriginHead(status: 206, size: 1_000_000),
    ]) func otherBytesThanAskedFor_areTrouble(_ head: OriginHead) {
        var cache = Self.wanted(CacheRules())
        _ = cache.handle(.asked(1, from: 0))
        let effects = cache.handle(.head(1, head))
        #expect(effects.contains { if case .end(1, .contradiction) = $0 { true } else { false } })
        #expect(cache.ranges.isEmpty)
    }

    @Test func shrunkOrigin_endsReadersAndBeginsAnew() {
        var cache = Self.wanted(CacheRules())
        _ = cache.handle(.asked(1, from: 0))
        _ = cache.handle(.head(1, Self.head(0, 1_000 * Self.kB)))
        _ = cache.handle(.received(1, 10 * Self.kB))
        _ = cache.handle(.read(1, to: 10 * Self.kB))
        _ = cache.handle(.asked(3, from: 500 * Self.kB))
        let effects = cache.handle(
            .head(2, OriginHead(status: 200, size: 400 * Self.kB, mark: .init(tag: "\"b\""))))
        #expect(effects.contains(.discard) && effects.contains(.end(1, .changed)) && effects.contains(.tell(.changed)))
        #expect(cache.ranges.isEmpty && cache.size == 400 * Self.kB)
        // It was told the old size.
        #expect(effects.contains(.end(3, .changed)))
    }

    @Test func shorterThanItSaid_isTrouble() {
        var cache = Self.wanted(CacheRules())
        _ = cache.handle(.asked(1, from: 0))
        _ = cache.handle(.head(1, Self.head(0, 1_000 * Self.kB)))
        _ = cache.handle(.received(1, 10 * Self.kB))
        let effects = cache.handle(.ended(1))
        #expect(effects.contains { if case .tell(.network) = $0 { true } else { false } })
        #expect(!cache.isComplete)
    }

    @Test func originWithoutRanges_isReadOnceFromTheBeginning() {
        var cache = Self.wanted(CacheRules())
        _ = cache.handle(.asked(1, from: 0))
        _ = cache.handle(.head(1, OriginHead(status: 200, size: 1_000 * Self.kB)))
        _ = cache.handle(.received(1, 10 * Self.kB))
        #expect(cache.handle(.asked(3, from: 900 * Self.kB)).isEmpty)
        let effects = cache.handle(.received(1, 990 * Self.kB))
        #expect(effects.contains(.serve(3)) && effects.contains(.complete))
    }

    @Test func compressedAnswer_isOnlyPassedOn() {
        let head = OriginHead(
            status: 200, fields: [("Content-Encoding", "gzip"), ("Content-Length", "100"), ("ETag", "\"a\"")])
        #expect(!head.mayKeep && head.size == nil)
        var cache = Self.wanted(CacheRules())
        _ = cache.handle(.asked(1, from: 0))
        _ = cache.handle(.head(1, head))
        #expect(cache.passes)
        _ = cache.handle(.received(1, 100))
        #expect(!cache.handle(.ended(1)).contains(.complete))
    }

    @Test func endlessAnswer_isHeldBack() {
        var cache = Self.wanted(CacheRules())
        _ = cache.handle(.asked(1, from: 0))
        _ = cache.handle(.head(1, OriginHead(status: 200, size: nil)))
        _ = cache.handle(.received(1, 1 << 20))
        _ = cache.handle(.read(1, to: 0))
        #expect(cache.handle(.received(1, 4 << 20)).contains(.pause(1)))
        let effects = cache.handle(.read(1, to: 4 << 20))
        #expect(effects.contains(.resume(1)) && effects.contains(.forget(0..<3 << 20)))
    }

    @Test func playlist_isNotRead() {
        var cache = Self.wanted(CacheRules())
        _ = cache.handle(.asked(1, from: 0))
        let head = OriginHead(status: 200, fields: [("content-type", "application/vnd.apple.mpegurl; charset=utf-8")])
        #expect(cache.handle(.head(1, head)) == [.serve(1), .cancel(1)])
        #expect(cache.isPlaylist)
    }

    @Test(
        arguments: [
            ("bytes 0-9/100", 0...9, 100), ("bytes 5-9/*", 5...9, nil), ("bytes */100", nil, 100),
            ("bytes 9-5/100", nil, nil), ("bytes 0-100/100", nil, nil), ("items 0-9/100", nil, nil),
            ("bytes 0-18446744073709551615/*", nil, nil), ("bytes -1-9/100", nil, nil),
        ] as [(String, ClosedRange<UInt64>?, UInt64?)])
    func contentRange_isRead(_ text: String, _ range: ClosedRange<UInt64>?, _ size: UInt64?) {
        let head = OriginHead(status: 206, fields: [("Content-Range", text)])
        #expect(head.range == range && head.size == size)
    }

    private static func wanted(_ rules: CacheRules) -> MediaCache {
        var cache = MediaCache(rules)
        // Without filling, nothing is requested before somebody reads.
        _ = cache.handle(.mayFill(false))
        _ = cache.handle(.wanted(true))
        return cache
    }

    private static func head(_ first: UInt64, _ size: UInt64) -> OriginHead {
        OriginHead(status: 206, range: first...size - 1, size: size, mark: .init(tag: "\"a\""))
    }
}
