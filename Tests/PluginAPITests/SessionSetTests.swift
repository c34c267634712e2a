import PluginAPI
import Testing

@testable import ReferenceModel

/// Compares the set, which stores runs of numbers, with the standard library's `Set`.
@Suite struct SessionSetTests {
    @Test(arguments: 1...4) func randomChanges_agreeWithTheStandardSet(seed: Int) {
        var random = SplitMix64(seed: UInt64(seed))
        var set: SessionSet = []
        var expected: Set<SessionID> = []
        for step in 0..<2_000 {
            // Few different numbers, so that runs join and split.
            let id = SessionID(UInt64.random(in: 1...40, using: &random))
            if Bool.random(using: &random) {
                #expect(set.insert(id) == expected.insert(id).inserted)
            } else {
                #expect(set.remove(id) == (expected.remove(id) != nil))
            }
            #expect(Array(set) == expected.sorted(), "step \(step)")
            #expect(set.count == expected.count && set.isEmpty == expected.isEmpty)
            #expect(SessionSet(runs: set.runs) == set)
            #expect(set.contains(id) == expected.contains(id))
        }
    }

    @Test(arguments: 1...4) func subsetsAndUnions_agreeWithTheStandardSet(seed: Int) {
        var random = SplitMix64(seed: UInt64(seed))
        for _ in 0..<500 {
            let ids = (0..<6).map { _ in SessionID(UInt64.random(in: 1...8, using: &random)) }
            let (a, b) = (Set(ids[..<3]), Set(ids[2...]))
            var union = SessionSet(a)
            union.formUnion(SessionSet(b))
            #expect(union == SessionSet(a.union(b)))
            #expect(SessionSet(a).isSubset(of: SessionSet(b)) == a.isSubset(of: b))
            #expect(SessionSet(a).isSubset(of: union))
        }
    }

    @Test func invalidRuns_areRefused() {
        typealias Run = SessionSet.Run
        #expect(SessionSet(runs: [Run(first: 3, last: 2)]) == nil)
        #expect(SessionSet(runs: [Run(first: 1, last: 2), Run(first: 3, last: 4)]) == nil)
        #expect(SessionSet(runs: [Run(first: 4, last: 5), Run(first: 1, last: 2)]) == nil)
        #expect(SessionSet(runs: [Run(first: 1, last: .max)]) == nil)
        let set = SessionSet([1, 2, 4].map(SessionID.init))
        #expect(SessionSet(runs: [Run(first: 1, last: 2), Run(first: 4, last: 4)]) == set)
    }
}
