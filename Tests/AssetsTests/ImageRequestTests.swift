import DBus
import FilmRequests
import PluginAPI
import SessionBus
import Testing
import Workers

@testable import Assets

/// The arguments of `GenerateImages`: what reaches the worker, and what is refused.
@Suite struct ImageRequestTests {
    private static func request(_ times: [Double], _ options: [(String, Value)] = []) throws -> ImageRequest {
        try ImageRequest(times, OptionReader(.properties(options), known: ImageRequest.options))
    }

    private static func film(_ times: [Double], _ options: [(String, Value)] = []) throws -> FilmRequest.Images {
        try request(times, options).message(AssetsPlugin.Source("file:///films/a.mkv")).request()
    }

    private static func refusal(_ times: [Double], _ options: [(String, Value)] = []) -> String {
        do {
            _ = try request(times, options)
            return "none"
        } catch let error as SessionError {
            return "\(error.code.rawValue): \(error.message)"
        } catch {
            return "\(error)"
        }
    }

    @Test func withoutOptions_theNearestPictureIsAJPEG() throws {
        let film = try Self.film([0, 1.5])
        #expect(film.times == [0, 1_500_000_000])
        #expect(film.format == .jpeg && film.quality == 85 && film.isTurned)
        #expect((film.width, film.height) == (0, 0))
        // A century, which no film has.
        #expect(film.before == 3_150_000_000_000_000_000 && film.after == film.before)
        #expect(try Self.request([0]).folder == nil)
    }

    @Test func times_areRoundedToTheNanosecond() throws {
        #expect(try Self.film([4.1, 0.000_000_000_6, 2.000_000_000_4]).times == [4_100_000_000, 1, 2_000_000_000])
    }

    @Test func exact_hasNoTolerance() throws {
        let film = try Self.film([1], [("mode", .string("exact"))])
        #expect(film.before == 0 && film.after == 0)
    }

    @Test func oneTolerance_leavesTheOtherSideExact() throws {
        let film = try Self.film([1], [("tolerance-before", .double(0.5))])
        #expect(film.before == 500_000_000 && film.after == 0)
    }

    @Test func modeAndTolerance_contradictEachOther() {
        let refusal = Self.refusal([1], [("mode", .string("exact")), ("tolerance-after", .double(1))])
        #expect(refusal.hasPrefix("BadParameter: give either 'mode' or tolerances"))
    }

    @Test(arguments: [-0.1, Double.nan]) func toleranceThatIsNone_isRefused(_ seconds: Double) {
        #expect(Self.refusal([1], [("tolerance-before", .double(seconds))]).hasPrefix("BadParameter"))
    }

    @Test(arguments: [[], [-1], [.nan], [1e9], [.infinity], Array(repeating: 1, count: 10_001)])
    func timesThatAreNone_areRefused(_ times: [Double]) {
        #expect(Self.refusal(times).hasPrefix("BadParameter"))
    }

    @Test(arguments: [
        ("mode", Value.string("nearest")), ("format", .string("gif")), ("quality", .uint32(101)),
        ("maximum-size", .structure([.uint32(16_385), .uint32(1)])), ("folder", .string("pictures")),
    ]) func valueThatIsNone_isRefused(_ key: String, _ value: Value) {
        #expect(Self.refusal([1], [(key, value)]).hasPrefix("BadParameter"))
    }

    @Test func valuesThatAreKnown_reachTheWorker() throws {
        let film = try Self.film(
            [1],
            [
                ("format", .string("webp")), ("quality", .uint32(0)), ("apply-preferred-transform", .bool(false)),
                ("maximum-size", .structure([.uint32(320), .uint32(0)])),
            ])
        #expect(film.format == .webp && film.quality == 0 && !film.isTurned)
        #expect((film.width, film.height) == (320, 0))
    }
}
