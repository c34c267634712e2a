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

    @Test func text_isReadAsItWasWritten() {
        #expect(SavedQueue(text: saved().text) == saved())
        #expect(SavedQueue(text: SavedQueue().text) == SavedQueue())
    }

    @Test func partOfIt_isNone() {
        let text = saved().text
        // All but the last line end.
        for count in 0..<(text.utf8.count - 1) {
            #expect(SavedQueue(text: String(decoding: text.utf8.prefix(count), as: UTF8.self)) == nil, "\(count)")
        }
    }

    @Test(arguments: [
        "", "sessiond queue 2\nend\n", "sessiond queue 1\nunknown x\nend\n",
        "sessiond queue 1\ncurrent 5\nitem a\t\t\t\t\t\t\nend\n",
        "sessiond queue 1\nitem a\t\nend\n", "sessiond queue 1\nposition -1\nend\n",
        "sessiond queue 1\nposition nan\nend\n",
    ]) func impossibleQueue_isNone(_ text: String) { #expect(SavedQueue(text: text) == nil) }
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
