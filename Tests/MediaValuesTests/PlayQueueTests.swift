import MediaValues
import PluginAPI
import Testing

@Suite struct PlayQueueTests {
    private func queue(_ names: String, shuffled: Bool = false) -> PlayQueue {
        var queue = PlayQueue()
        queue.setShuffled(shuffled)
        queue.replaceAll(with: entries(names))
        return queue
    }

    private func entries(_ names: String) -> [PlaylistEntry] { names.map { PlaylistEntry(uri: String($0)) } }
    private func names(_ queue: PlayQueue) -> String { queue.items.map(\.entry.uri).joined() }
    private func current(_ queue: PlayQueue) -> String? { queue.current?.entry.uri }

    /// Plays to the end, but at most `limit` items. Returns the names of the played items.
    private func played(_ queue: PlayQueue, limit: Int = 100) -> String {
        var queue = queue
        var text = current(queue) ?? ""
        while text.count < limit {
            let following = queue.following
            guard queue.goNext() else { break }
            #expect(following == nil ? queue.isShuffled && queue.repeatsAll : following == queue.current)
            text += current(queue) ?? ""
        }
        return text
    }

    @Test func items_arePlayedInOrderAndRepeated() {
        var list = queue("abc")
        #expect(played(list) == "abc")
        #expect(list.canGoNext && !list.canGoPrevious)
        list.repeatsAll = true
        #expect(played(list, limit: 7) == "abcabca")
        #expect(list.goPrevious() && current(list) == "c")
        #expect(played(queue("a")) == "a")
        var one = queue("a")
        one.repeatsAll = true
        #expect(played(one, limit: 3) == "aaa")
        var none = queue("")
        none.repeatsAll = true
        #expect(none.current == nil && none.following == nil && !none.canGoNext)
        #expect(!none.goNext() && !none.goPrevious())
    }

    @Test func startIsGiven_queueBeginsThere() {
        var list = PlayQueue()
        list.replaceAll(with: entries("abc"), startingAt: 1)
        #expect(played(list) == "bc")
    }

    @Test func itemsAreInsertedRemovedAndReplaced_orderFollowsAndIdsAreNeverReused() {
        var list = queue("abc")
        let ids = list.items.map(\.id)
        let new = list.insert(entries("xy"), after: ids[0])
        #expect(names(list) == "axybc" && current(list) == "a")
        #expect(Set(new).isDisjoint(with: ids))
        _ = list.insert(entries("0"), after: nil)
        #expect(names(list) == "0axybc" && current(list) == "a")
        list.remove(ids[0])
        #expect(names(list) == "0xybc" && current(list) == "x")
        let replaced = list.replace(new[0], with: entries("X"))
        #expect(names(list) == "0Xybc" && current(list) == "X" && !replaced.contains(new[0]))
        list.remove(12_345)
        #expect(!list.go(to: ids[0]) && list.go(to: ids[2]) && current(list) == "c")
        list.remove(ids[2])
        #expect(current(list) == "b")
        for item in list.items { list.remove(item.id) }
        #expect(list.current == nil && list.items.isEmpty)
        _ = list.append(entries("z"))
        #expect(current(list) == "z" && list.items[0].id > new[1])
    }

    @Test func itemIsReplacedByItsPlaylist_entriesAreDeeper() {
        var list = queue("aLb")
        _ = list.goNext()
        let id = list.items[1].id
        _ = list.replace(id, with: entries("123"), nested: true)
        #expect(names(list) == "a123b" && current(list) == "1")
        #expect(list.items.map(\.depth) == [0, 1, 1, 1, 0])
    }

    @Test func failedItems_areSkippedUntilSelected() {
        var list = queue("abc")
        list.markFailed(list.items[1].id)
        #expect(played(list) == "ac")
        list.repeatsAll = true
        #expect(played(list, limit: 4) == "acac")
        #expect(list.go(to: list.items[1].id) && current(list) == "b")
        for item in list.items { list.markFailed(item.id) }
        #expect(!list.goNext() && list.following == nil)
        list.repeatsAll = false
        list.rewind()
        #expect(played(list) == "abc")
    }

    @Test func rewind_beginsWithTheFirstItemThatDidNotFail() {
        var list = queue("abc")
        let ids = list.items.map(\.id)
        list.markFailed(ids[0])
        for _ in 0..<2 {
            list.rewind()
            #expect(current(list) == "b" && !list.goPrevious() && list.goNext() && current(list) == "c")
        }
        #expect(list.go(to: ids[0]) && current(list) == "a")
        list.markFailed(ids[0])
        list.markFailed(ids[2])
        list.setShuffled(true)
        list.rewind()
        #expect(current(list) == "b" && !list.goNext())
    }

    @Test func shuffledQueue_playsEachItemOnceARound_andUnshuffledInOrder() {
        let all = "abcdefghijklmnopqrstuvwxyz"
        var list = queue(all)
        _ = list.goNext()
        list.setShuffled(true)
        #expect(names(list) == all && current(list) == "b")
        let round = played(list)
        #expect(round.first == "b" && round.sorted() == Array(all) && round != all)
        list.repeatsAll = true
        let two = played(list, limit: 52)
        #expect(two.prefix(26).sorted() == Array(all) && two.suffix(26).sorted() == Array(all))
        _ = list.append(entries("0"))
        #expect(played(list, limit: 27).sorted() == ("0" + all).sorted())
        list.setShuffled(false)
        list.repeatsAll = false
        #expect(played(list) == "bcdefghijklmnopqrstuvwxyz0")
    }

    @Test(arguments: [false, true]) func edits_reportTheUnchangedEnds(shuffled: Bool) {
        var list = queue("abcdefghijkl", shuffled: shuffled)
        var before = list.ids
        _ = list.takeUnchanged()
        for round in 0..<2_000 {
            for _ in 0..<Int.random(in: 0...3) {
                let id = list.ids.randomElement()
                switch Int.random(in: 0..<5) {
                case 0: _ = list.append(entries("x"))
                case 1: _ = list.insert(entries("yz"), after: id)
                case 2: if let id, list.count > 4 { list.remove(id) }
                case 3: if let id { _ = list.replace(id, with: entries("rs")) }
                default: _ = list.insert(entries("0"), after: nil)
                }
            }
            if round % 100 == 99 { list.replaceAll(with: entries("new")) }
            let (start, end) = list.takeUnchanged()
            #expect(list.ids.prefix(start).elementsEqual(before.prefix(start)))
            #expect(list.ids.suffix(end).elementsEqual(before.suffix(end)))
            #expect(list.items.map(\.id) == list.ids && Set(list.ids).count == list.count)
            #expect(list.current.map { list.ids.contains($0.id) } ?? list.ids.isEmpty)
            before = list.ids
        }
        list.remove(before[0])
        let (start, end) = list.takeUnchanged()
        #expect(start == 0 && end == list.count)
    }

    @Test func fullQueue_itemCanBeReplaced() {
        var list = queue(String(repeating: "a", count: PlayQueue.limit))
        let new = list.replace(list.ids[7], with: entries("b"))
        #expect(new.count == 1 && list.room == 0 && names(list).dropFirst(7).first == "b")
    }

    @Test func queue_hasALimit() {
        var list = PlayQueue()
        list.replaceAll(with: entries(String(repeating: "a", count: PlayQueue.limit + 10)))
        #expect(list.items.count == PlayQueue.limit && list.room == 0)
        #expect(list.append(entries("b")).isEmpty)
    }
}
