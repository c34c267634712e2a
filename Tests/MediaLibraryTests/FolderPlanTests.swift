import MediaLibrary
import Testing

/// What a scan does with folders: stories, and every case against the sentences of the second model below.
@Suite struct FolderPlanTests {
    private typealias Known = FolderPlan.Known
    private typealias Listing = FolderPlan.Listing

    private func listed(
        _ listing: Listing, _ known: Known?, isFull: Bool = false, parent: Bool? = true
    ) -> FolderPlan.Listed {
        FolderPlan.listed(listing, known: known, isFull: isFull) { parent }
    }

    private func missing(_ known: Known?, isRoot: Bool = false, parentIsKnown: Bool = true) -> FolderPlan.Missing {
        FolderPlan.missing(known, isRoot: isRoot) { parentIsKnown }
    }

    // MARK: Listed folders

    @Test func newFolder_isCompared() {
        #expect(listed(Listing(isMount: false, digest: 1, isRoot: false), nil) == .compared)
        #expect(listed(Listing(isMount: true, digest: 1, isRoot: true), nil, parent: nil) == .compared)
    }

    @Test func sameListing_isUnchanged_andTheParentIsNotAskedFor() {
        let known = Known(digest: 5)
        let listing = Listing(isMount: false, digest: 5, isRoot: false)
        var isAsked = false
        let decision = FolderPlan.listed(listing, known: known, isFull: false) {
            isAsked = true
            return nil
        }
        #expect(decision == .unchanged && !isAsked)
    }

    @Test func fullScan_comparesTheSameListing() {
        #expect(listed(Listing(isMount: false, digest: 5, isRoot: false), Known(digest: 5), isFull: true) == .compared)
    }

    @Test func folderThatWasAddedToTheLibraryOrRemovedFromIt_isCompared() {
        for isRoot in [false, true] {
            let listing = Listing(isMount: false, digest: 5, isRoot: isRoot)
            #expect(listed(listing, Known(digest: 5, isRoot: !isRoot)) == .compared)
        }
    }

    @Test func diskThatIsNotMounted_isUnavailable_alsoWithTheSameListing() {
        let known = Known(isMount: true, digest: 5)
        #expect(listed(Listing(isMount: false, digest: 5, isRoot: false), known) == .unavailable)
        #expect(listed(Listing(isMount: false, digest: 5, isRoot: true), known, isFull: true) == .unavailable)
    }

    @Test func diskThatIsMountedForTheFirstTime_isCompared() {
        #expect(listed(Listing(isMount: true, digest: 5, isRoot: false), Known(digest: 5)) == .compared)
    }

    @Test func folderThatIsBack_isCompared() {
        #expect(
            listed(Listing(isMount: false, digest: 5, isRoot: false), Known(isAvailable: false, digest: 5)) == .compared
        )
    }

    @Test func folderInAnUnavailableFolder_isNotOfItsDisk() {
        #expect(listed(Listing(isMount: false, digest: 5, isRoot: false), nil, parent: false) == .parentDecides)
        #expect(listed(Listing(isMount: false, digest: 5, isRoot: false), nil, parent: nil) == .compared)
    }

    @Test func everyListing_isDecidedAsTheSentencesSay() {
        let flags = [false, true]
        for isMount in flags {
            for isRoot in flags {
                for isFull in flags {
                    for parent in [nil, false, true] {
                        for known in [nil] + all {
                            let listing = Listing(isMount: isMount, digest: 1, isRoot: isRoot)
                            let isDiskGone = known.map { $0.isMount && !isMount } ?? false
                            let isSame = known == Known(isAvailable: true, isMount: isMount, digest: 1, isRoot: isRoot)
                            let expected: FolderPlan.Listed =
                                isDiskGone
                                ? .unavailable
                                : isSame && !isFull
                                    ? .unchanged : parent == false ? .parentDecides : .compared
                            #expect(listed(listing, known, isFull: isFull, parent: parent) == expected)
                        }
                    }
                }
            }
        }
    }

    private var all: [Known?] {
        let flags = [false, true]
        return flags.flatMap { isAvailable in
            flags.flatMap { isMount in
                flags.flatMap { isRoot in
                    [0, 1, 2].map { Known(isAvailable: isAvailable, isMount: isMount, digest: $0, isRoot: isRoot) }
                }
            }
        }
    }

    // MARK: Missing folders

    @Test func unknownOrUnavailableFolder_staysAsItIs() {
        #expect(missing(nil) == .nothing)
        #expect(missing(Known(isAvailable: false)) == .nothing)
    }

    @Test func missingFolder_isDecidedByTheFolderThatContainedIt() {
        #expect(missing(Known()) == .parentDecides)
        #expect(missing(Known(isMount: true)) == .parentDecides)
    }

    @Test func missingFolderWithoutAParent_isRemoved_unlessADiskWasThere() {
        #expect(missing(Known(), parentIsKnown: false) == .removed)
        #expect(missing(Known(isMount: true), parentIsKnown: false) == .unavailable)
    }

    @Test func folderOfTheLibrary_isOnlyUnavailable_andItsParentIsNotAskedFor() {
        var isAsked = false
        let decision = FolderPlan.missing(Known(), isRoot: true) {
            isAsked = true
            return true
        }
        #expect(decision == .unavailable && !isAsked)
    }

    @Test func folderThatIsGone_isRemoved_unlessADiskOrTheUserPutItThere() {
        #expect(FolderPlan.gone(Known(), isRoot: false) == .removed)
        #expect(FolderPlan.gone(nil, isRoot: false) == .removed)
        #expect(FolderPlan.gone(Known(isMount: true), isRoot: false) == .unavailable)
        #expect(FolderPlan.gone(Known(), isRoot: true) == .unavailable)
    }

    // MARK: The folders in a folder

    private static func path(_ name: String) -> [UInt8] { Array("/m/\(name)".utf8) }

    private func children(
        _ there: [String], links: [String] = [], unknown: [String] = [], known: [FolderPlan.Child],
        isWalkDeep: Bool = false
    ) -> FolderPlan.Children {
        FolderPlan.children(
            there: Set(there.map(Self.path)), links: Set(links.map(Self.path)), unknown: Set(unknown.map(Self.path)),
            known: known, isWalkDeep: isWalkDeep)
    }

    private func child(_ name: String, isAvailable: Bool = true, isRoot: Bool = false) -> FolderPlan.Child {
        .init(Self.path(name), isAvailable: isAvailable, isRoot: isRoot)
    }

    @Test func knownChildren_needNothing() {
        #expect(children(["a", "b"], known: [child("a"), child("b")]) == FolderPlan.Children())
    }

    @Test func missingChild_isGone_andOneThatCannotBeExaminedIsLost() {
        let found = children(["a"], unknown: ["b"], known: [child("a"), child("b"), child("c")])
        #expect(found.gone == [Self.path("c")] && found.lost == [Self.path("b")])
    }

    @Test func missingFolderOfTheLibrary_isLeftToTheUser() {
        #expect(children([], known: [child("a", isRoot: true)]) == FolderPlan.Children())
    }

    @Test func newChild_isListed_andOneThatIsBackToo() {
        let found = children(["a", "b", "c"], known: [child("a"), child("b", isAvailable: false)])
        #expect(found.listed == [Self.path("b"), Self.path("c")] && !found.needsWholeWalk)
    }

    @Test func deepWalk_listsNewChildrenAnyway() {
        let found = children(["a"], links: ["b"], known: [child("c")], isWalkDeep: true)
        #expect(found.listed == [] && !found.needsWholeWalk && found.gone == [Self.path("c")])
    }

    @Test func newLink_isEnteredOnlyByAWholeWalk() {
        let new = children(["a", "b"], links: ["b"], known: [])
        #expect(new.listed == [Self.path("a")] && new.needsWholeWalk)
        let known = children(["b"], links: ["b"], known: [child("b")])
        #expect(known.listed == [] && !known.needsWholeWalk)
    }
}
