import MediaCache
import Testing

@testable import ReferenceModel

/// Every order of events in small worlds, and long random runs, judged by the second model.
@Suite struct CacheWorldTests {
    private static let origins = [
        World.Origin(), World.Origin(hasRanges: false), World.Origin(blocks: 3, hasTag: true),
    ]

    private static func rules(fills: Bool, isBounded: Bool) -> CacheRules {
        var rules = CacheRules()
        (rules.fills, rules.isBounded) = (fills, isBounded)
        return rules
    }

    private static let all = [true, false].flatMap { fills in [true, false].map { rules(fills: fills, isBounded: $0) } }

    @Test(arguments: all.indices, origins.indices) func everyOrder_inSmallWorlds(_ rule: Int, _ origin: Int) throws {
        var count = 0
        try explore(try World(Self.all[rule], Self.origins[origin]), depth: 4, &count)
        #expect(count > 2_000)
    }

    private func explore(_ world: World, depth: Int, _ count: inout Int) throws {
        for act in world.acts(readers: 2, mayChange: world.origin.version == 1) {
            var next = world
            try next.perform(act)
            count += 1
            if depth > 1 {
                try explore(next, depth: depth - 1, &count)
            } else {
                try next.drain()
            }
        }
    }

    @Test(arguments: 0..<8) func longRandomRuns(_ seed: Int) throws {
        var random = SplitMix64(seed: UInt64(seed))
        for run in 0..<400 {
            let rules = Self.all[run % Self.all.count]
            var world = try World(
                rules, World.Origin(blocks: Int.random(in: 1...8, using: &random), hasRanges: run % 3 != 0))
            for _ in 0..<60 {
                let acts = world.acts(readers: 4, mayChange: world.origin.version < 4)
                guard let act = acts.randomElement(using: &random) else { break }
                try world.perform(act)
            }
            try world.drain()
            // With filling, a sound origin leaves nothing out.
            if rules.fills, rules.isBounded, world.origin.hasRanges {
                try world.perform(.ask(1, 0))
                try world.drain()
                #expect(world.isComplete && world.cache.isComplete)
            }
        }
    }
}
