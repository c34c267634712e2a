import Testing

@testable import Library

@Suite struct ScanTargetsTests {
    private func target(_ name: String, isDeep: Bool = true) -> ScanTargets.Target {
        ScanTargets.Target(path: Array(name.utf8), isDeep: isDeep)
    }

    @Test func foldersAdded_areListedOnceInTheirOrder() {
        var targets = ScanTargets()
        targets.add([target("/b"), target("/a"), target("/b")], whole: [])
        targets.add([target("/a"), target("/a", isDeep: false)], whole: [])
        #expect(targets.next() == target("/b"))
        #expect(targets.next() == target("/a"))
        // Another kind of listing is another target.
        #expect(targets.next() == target("/a", isDeep: false))
        #expect(targets.next() == nil)
    }

    @Test func folderChangesAgainAfterItsListingHasBegun_isListedAgain() {
        var targets = ScanTargets()
        targets.add([target("/a")], whole: [])
        #expect(targets.next() == target("/a"))
        targets.add([target("/a")], whole: [])
        #expect(targets.next() == target("/a"))
    }

    @Test func moreFoldersThanTheLimit_theWholeFoldersAreListedInstead() {
        var targets = ScanTargets()
        let whole = [target("/music")]
        targets.add((1...ScanTargets.limit).map { target("/music/\($0)") }, whole: whole)
        targets.add([target("/music/1")], whole: whole)
        #expect(targets.next() == target("/music/1"))
        targets.add([target("/music/new"), target("/music/newer")], whole: whole)
        #expect(targets.next() == whole[0])
        #expect(targets.next() == nil)
        // The dropped folders are not known any more.
        targets.add([target("/music/new")], whole: whole)
        #expect(targets.next() == target("/music/new"))
    }
}
