import MediaValues
import PluginAPI
import Testing

/// A queue as a file.
@Suite struct SavedQueueTests {
    private func saved() -> SavedQueue {
        var saved = SavedQueue()
        for index in 0..<3 {
            var entry = PlaylistEntry(uri: "file:///music/\(index).mp3", title: "A\ttitle\nof \\ lines \(index)")
            (entry.artist, entry.album, entry.duration) = (index == 1 ? nil : "Björk", "Post", 61.5)
            (entry.item, entry.start) = (UInt64(index), index == 2 ? 12.25 : 0)
            saved.entries.append(entry)
        }
        (saved.current, saved.position, saved.repeatMode) = (1, 33.5, "all")
        (saved.shuffleMode, saved.order) = (.albums, [2, 0, 1])
        return saved
    }

    private func read(_ text: String) -> SavedQueue? { SavedQueue(bytes: Array(text.utf8)) }

    @Test func queue_isReadAsItWasWritten() {
        #expect(SavedQueue(bytes: saved().bytes) == saved())
        #expect(SavedQueue(bytes: SavedQueue().bytes) == SavedQueue())
    }

    @Test func partOfIt_isNone() {
        let bytes = saved().bytes
        for count in 0..<bytes.count { #expect(SavedQueue(bytes: Array(bytes.prefix(count))) == nil, "\(count)") }
    }

    @Test(arguments: [
        "", "sessiond queue 2\nend\n", "sessiond queue 1\nunknown x\nend\n",
        "sessiond queue 1\ncurrent 5\nitem a\t\t\t\t\t\t\nend\n", "sessiond queue 1\nposition -1\nend\n",
        "sessiond queue 1\nposition nan\nend\n", "sessiond queue 1\nend",
    ]) func impossibleQueue_isNone(_ text: String) { #expect(read(text) == nil) }

    /// Marks that join the character before them, in every text.
    @Test func textsThatBeginWithAMark_areReadAsTheyWereWritten() {
        var saved = saved()
        for mark in ["\u{301}", "\u{200D}", "\u{FE0F}", "\r\n", "\n", "\t", "\\", "\u{0}"] {
            var entry = PlaylistEntry(uri: mark + "file:///a" + mark, title: mark + "title" + mark)
            (entry.artist, entry.album) = (mark, mark + mark)
            saved.entries.append(entry)
        }
        #expect(SavedQueue(bytes: saved.bytes) == saved)
    }

    @Test func badItem_costsOnlyThatItem() throws {
        let good = (0..<3).map { "item file:///\($0)\t\t\t\t\t\t\n" }
        let bad = "item x\t\t\n"
        let queue = try #require(
            read(
                "sessiond queue 1\ncurrent 3\nposition 5\norder 3 1 0 4 2\n" + good[0] + bad + good[1] + good[2] + bad
                    + "end\n"))
        #expect(queue.entries.map(\.uri) == ["file:///0", "file:///1", "file:///2"])
        #expect((queue.current, queue.position) == (2, 5) && queue.order == [2, 0, 1])
        let lost = try #require(read("sessiond queue 1\ncurrent 1\nposition 5\n" + good[0] + bad + good[1] + "end\n"))
        #expect((lost.current, lost.position) == (1, 0) && lost.entries.count == 2)
        #expect(read("sessiond queue 1\n" + bad + "end\n")?.entries == [])
        var bytes = Array(("sessiond queue 1\n" + good[0] + "item ").utf8) + [0xFF] + Array("\t\t\t\t\t\t\nend\n".utf8)
        #expect(SavedQueue(bytes: bytes)?.entries.count == 1)
        bytes.removeLast()
        #expect(SavedQueue(bytes: bytes) == nil)
    }

    /// What a queue may have can be written and read.
    @Test func largestQueue_isReadInTime() throws {
        var queue = PlayQueue()
        let text = String(repeating: "\\", count: PlayQueue.byteLimit / PlayQueue.limit - 1)
        func entry(_ index: Int) -> PlaylistEntry {
            var entry = PlaylistEntry(uri: "a" + text, duration: 1.0 / 3)
            (entry.item, entry.start) = (.max, 100_000 / 7)
            return entry
        }
        _ = queue.append((0..<PlayQueue.limit).map(entry))
        #expect(queue.count == PlayQueue.limit)
        // No more bytes are taken, also not by metadata.
        queue.learn(queue.ids[0], title: String(repeating: "x", count: PlayQueue.byteLimit), duration: nil)
        #expect(queue[queue.ids[0]]?.entry.title == nil)
        queue.remove(queue.ids[0])
        #expect(queue.append([PlaylistEntry(uri: String(repeating: "b", count: queue.byteRoom + 1))]) == [])
        #expect(queue.append([entry(0)]).count == 1)
        var saved = SavedQueue()
        saved.entries = queue.items.map(\.entry)
        (saved.current, saved.position) = (9_999, 100_000 / 7)
        (saved.shuffleMode, saved.order) = (.songs, Array((0..<PlayQueue.limit).reversed()))
        let clock = ContinuousClock()
        let begin = clock.now
        let bytes = saved.bytes
        #expect(bytes.count <= SavedQueue.largestFile)
        #expect(SavedQueue(bytes: bytes) == saved)
        #expect(clock.now - begin < .seconds(5))
    }
}

/// Albums in random order.
@Suite struct AlbumShuffleTests {
    private func queue(_ albums: String) -> PlayQueue {
        var queue = PlayQueue()
        queue.replaceAll(
            with: albums.enumerated().map { index, album in
                var entry = PlaylistEntry(uri: "\(album)\(index)")
                entry.album = album == "-" ? nil : String(album)
                return entry
            })
        return queue
    }

    /// The items in the order of playing.
    private func played(_ queue: PlayQueue) -> [String] { queue.orderOfPlaces.map { queue.items[$0].entry.uri } }

    @Test func albums_stayTogetherInTheirOrder() throws {
        var orders: Set<[String]> = []
        for _ in 0..<200 {
            var queue = queue("aabbb-ca-")
            _ = queue.go(to: queue.ids[3])
            queue.setShuffleMode(.albums)
            let order = played(queue)
            #expect(Array(order.prefix(3)) == ["b2", "b3", "b4"])
            #expect(order.filter { $0.hasPrefix("a") } == ["a0", "a1", "a7"])
            let place = try #require(order.firstIndex(of: "a0"))
            #expect(Array(order[place..<place + 3]) == ["a0", "a1", "a7"])
            #expect(Set(order).count == 9)
            #expect(queue.current?.entry.uri == "b3")
            _ = queue.goNext()
            #expect(queue.current?.entry.uri == "b4")
            orders.insert(order)
        }
        #expect(orders.count > 10)
    }

    @Test func repeatedQueue_doesNotBeginWithTheSameAlbum() {
        for _ in 0..<100 {
            var queue = queue("aabb")
            queue.repeatsAll = true
            queue.setShuffleMode(.albums)
            for _ in 0..<3 { _ = queue.goNext() }
            let last = queue.current?.entry.album
            _ = queue.goNext()
            #expect(queue.current?.entry.album != last)
            #expect(queue.current?.entry.uri == (last == "a" ? "b2" : "a0"))
        }
    }

    @Test func addedItem_joinsItsAlbum() {
        var queue = queue("ab")
        queue.setShuffleMode(.albums)
        var entry = PlaylistEntry(uri: "a9")
        entry.album = "a"
        _ = queue.append([entry])
        #expect(played(queue) == ["a0", "a9", "b1"])
        queue.setShuffleMode(.off)
        #expect(played(queue) == ["a0", "b1", "a9"])
        #expect(!queue.isShuffled)
        queue.setShuffled(true)
        #expect(queue.shuffleMode == .songs)
    }

    @Test func order_isRestored() {
        for mode in [ShuffleMode.songs, .albums] {
            var queue = queue("aabbcc")
            _ = queue.go(to: queue.ids[2])
            queue.setShuffleMode(mode)
            var again = self.queue("aabbcc")
            _ = again.go(to: again.ids[2])
            again.restore(mode, order: queue.orderOfPlaces)
            #expect(played(again) == played(queue))
            #expect(again.shuffleMode == mode)
            // Impossible ones are made anew.
            again.restore(mode, order: [0, 0, 1])
            #expect(Set(played(again)).count == 6)
        }
    }
}
