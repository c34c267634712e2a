import DBus
import FilmRequests
import PluginAPI
import SessionBus
import Testing
import Workers

@testable import Assets

/// The arguments of `Export`: what reaches the worker, and what is refused.
@Suite struct ExportRequestTests {
    private static func request(_ output: String, _ options: [(String, Value)] = []) throws -> ExportRequest {
        try ExportRequest(output, OptionReader(.properties(options), known: ExportRequest.options))
    }

    private static func film(_ output: String, _ options: [(String, Value)] = []) throws -> FilmRequest.Export {
        try request(output, options).message(AssetsPlugin.Source("file:///films/a.mkv")).request()
    }

    private static func refusal(_ output: String, _ options: [(String, Value)]) -> String {
        do {
            _ = try request(output, options)
            return "none"
        } catch let error as SessionError {
            return "\(error.code.rawValue): \(error.message)"
        } catch {
            return "\(error)"
        }
    }

    @Test func withoutOptions_itIsMediumAndTheWholeFilm() throws {
        let request = try Self.request("/out/a.mp4")
        #expect(request.preset == .medium && !request.isForNetwork && !request.overwrites && !request.isDetached)
        let film = try Self.film("/out/a.mp4")
        #expect(film.path == Array("/films/a.mkv".utf8))
        #expect(film.wish.preset == .medium && film.wish.type == .mp4)
        #expect(film.wish.from == nil && film.wish.to == nil && !film.stripsLocation && film.metadata == [:])
    }

    @Test(arguments: [
        ("/out/a.mp4", "medium", ExportFileType.mp4), ("/out/a.MOV", "medium", .mov), ("/out/a.m4a", "audio", .m4a),
        ("/out/a.webm", "high", .webm), ("/out/a", "medium", .mp4), ("/out/a.unknown", "audio", .m4a),
        ("/out.webm/a", "low", .mp4), ("/out/a.m4a", "passthrough", .m4a),
    ]) func typeOfTheFile_isThatOfItsExtension(_ output: String, _ preset: String, _ type: ExportFileType) throws {
        #expect(try Self.film(output, [("preset", .string(preset))]).wish.type == type)
    }

    @Test func statedType_countsMoreThanTheExtension() throws {
        #expect(try Self.film("/out/a.mp4", [("file-type", .string("webm"))]).wish.type == .webm)
    }

    @Test func flags_reachTheWorkerAndTheJob() throws {
        let options: [(String, Value)] = [
            ("optimize-for-network", .bool(true)), ("overwrite", .bool(true)), ("detached", .bool(true)),
            ("strip-location", .bool(true)),
            ("metadata", .properties([("title", .string("Summer")), ("artist", .string("Ada"))])),
        ]
        let request = try Self.request("/out/a.mp4", options)
        #expect(request.isForNetwork && request.overwrites && request.isDetached)
        let film = try Self.film("/out/a.mp4", options)
        #expect(film.wish.isForNetwork && film.stripsLocation)
        #expect(film.metadata == ["title": "Summer", "artist": "Ada"])
    }

    @Test func timeRange_endsWithTheFilmIfItsEndIsZero() throws {
        func range(_ from: Double, _ to: Double) throws -> FilmRequest.Export {
            try Self.film("/out/a.mp4", [("time-range", .structure([.double(from), .double(to)]))])
        }
        let whole = try range(2, 0)
        #expect(whole.wish.from == 2 && whole.wish.to == nil)
        let part = try range(2, 3.5)
        #expect(part.wish.from == 2 && part.wish.to == 3.5)
    }

    @Test(arguments: [(3.0, 3.0), (3, 2), (-1, 2), (.nan, 2), (1e9, 0), (.infinity, 0)])
    func timeRange_thatIsNone_isRefused(_ from: Double, _ to: Double) {
        let refusal = Self.refusal("/out/a.mp4", [("time-range", .structure([.double(from), .double(to)]))])
        #expect(refusal.hasPrefix("BadParameter: 'time-range'"), "\(refusal)")
    }

    @Test(arguments: ["out/a.mp4", "", "/out/a\0.mp4"]) func outputThatIsNoPath_isRefused(_ output: String) {
        #expect(Self.refusal(output, []).hasPrefix("BadParameter: 'output' must be an absolute path"))
    }

    @Test func unknownWord_isRefusedWithThoseThatAreKnown() {
        let preset = Self.refusal("/out/a.mp4", [("preset", .string("huge"))])
        #expect(preset.contains("huge") && preset.contains("low, medium, high"))
        let type = Self.refusal("/out/a.mp4", [("file-type", .string("avi"))])
        #expect(type.contains("avi") && type.contains("mp4, mov, m4a, webm"))
    }

    @Test func misspeltOption_isRefused_soThatNoPlaceIsSent() {
        #expect(Self.refusal("/out/a.mp4", [("strip-locations", .bool(true))]).contains("strip-locations"))
    }

    @Test func estimate_asksForTheSameFilm() throws {
        let options: [(String, Value)] = [
            ("preset", .string("low")), ("time-range", .structure([.double(1), .double(4)])),
        ]
        let message = try Self.request("/out/a.webm", options).estimate(AssetsPlugin.Source("file:///films/a.mkv"))
        let estimate: FilmRequest.Estimate = try message.request()
        #expect(estimate.path == Array("/films/a.mkv".utf8))
        #expect(estimate.wish == (try Self.film("/out/a.webm", options).wish))
    }
}
