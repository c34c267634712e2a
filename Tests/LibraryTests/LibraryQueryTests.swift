import DBus
import MediaLibrary
import SessionBus
import Testing

@testable import Library

/// Queries as clients send them.
@Suite struct LibraryQueryTests {
    private static func query(_ options: [(String, Value)]) throws -> Query { try Query(.properties(options)) }

    private static func refusal(_ options: [(String, Value)]) -> String {
        do throws(Failure) {
            _ = try Query(.properties(options))
            return "none"
        } catch {
            return error.message
        }
    }

    private static func conditions(_ triples: [(String, String, Value)]) -> (String, Value) {
        (
            "where",
            .array(
                of: "(ssv)",
                triples.map { .structure([.string($0.0), .string($0.1), .variant($0.2)]) })
        )
    }

    @Test func emptyQuery_isEverythingThatIsAvailable() throws {
        let query = try Self.query([])
        #expect(query.preset == nil && query.mediaTypes == [] && query.predicates.isEmpty && query.order.isEmpty)
        #expect(query.text == "" && !query.includesUnavailable && query.playlist == nil)
    }

    @Test func words_areRead() throws {
        let query = try Self.query([
            ("preset", .string("albums")), ("media-types", .strings(["podcast", "music", "podcast"])),
            ("sort", .strings(["artist", "-year"])), ("text", .string("homo")), ("unavailable", .bool(true)),
            ("playlist", .uint64(7)),
        ])
        #expect(query.preset?.rawValue == "albums")
        // In one order and once: equal queries have equal cached answers.
        #expect(query.mediaTypes == [.music, .podcast])
        #expect(query.order.map(\.isDescending) == [false, true])
        #expect(query.text == "homo" && query.includesUnavailable && query.playlist == 7)
    }

    @Test func conditions_areRead() throws {
        let query = try Self.query([
            Self.conditions([
                ("artist", "contains", .string("björk")), ("rating", "is", .uint32(5)),
                ("compilation", "is", .bool(true)),
            ])
        ])
        #expect(query.predicates.count == 3)
    }

    @Test(arguments: [
        ("preset", Value.string("tracks"), "'preset' has no 'tracks'; use"),
        ("media-types", .strings(["film"]), "use music, podcast, audiobook"),
        ("sort", .strings(["--year"]), "'sort' has no '-year'"), ("sort", .strings(["mood"]), "'sort' has no"),
        ("text", .string(String(repeating: "x", count: 1_001)), "longer than 1000 bytes"),
        ("where", .strings(["artist"]), "a(ssv)"), ("filter", .string("x"), "unknown option"),
        ("unavailable", .string("yes"), "unavailable"),
        ("sort", .strings(Array(repeating: "title", count: 17)), "at most 64 conditions and 16 words"),
    ]) func valueThatIsNone_isRefusedWithAWayOut(_ key: String, _ value: Value, _ reason: String) {
        let message = Self.refusal([(key, value)])
        #expect(message.contains(reason), "\(message)")
    }

    @Test(arguments: [
        ("mood", "is", Value.string("sad"), "'where' has no 'mood'"), ("artist", "like", .string("x"), "has no 'like'"),
        ("artist", "is", .uint32(1), "does not take such a value"), ("year", "is", .string("x"), "does not take"),
        ("year", "contains", .uint32(1), "does not take"), ("uri", "contains", .string("x"), "does not take"),
        ("artist", "is", .string(String(repeating: "x", count: 1_001)), "too long"),
    ]) func conditionThatIsNone_isRefused(_ property: String, _ comparison: String, _ value: Value, _ reason: String) {
        let message = Self.refusal([Self.conditions([(property, comparison, value)])])
        #expect(message.contains(reason), "\(message)")
    }

    @Test func tooManyConditions_areRefused() {
        func refusal(_ count: Int) -> String {
            Self.refusal([Self.conditions(Array(repeating: ("artist", "is", .string("x")), count: count))])
        }
        #expect(refusal(64) == "none" && refusal(65).contains("at most 64"))
    }

    @Test func numberOfEachWidth_isANumber() throws {
        for value in [Value.uint32(1), .int32(1), .uint64(1), .int64(1), .double(1)] {
            #expect(try Self.query([Self.conditions([("rating", "is", value)])]).predicates.count == 1)
        }
    }
}
