import DBus
import Foundation
import PluginAPI
import TestSupport
import Testing

@testable import ReferenceModel

/// Pictures of films, as clients get them from the real plugin. Every picture carries its number.
@Suite struct ImageTests {
    /// Half of a microsecond: ffprobe names times with six digits.
    private static let tolerance = 0.000_001

    @Test(arguments: TestMedia.films) func exactTimes_haveThePictureShownAtThatTime(_ film: TestMedia) throws {
        let stage = try FilmStage()
        let path = try film.path()
        let known = try film.pictures()
        let end = try #require(known.last).time
        var random = SplitMix64(seed: 7)
        let times = (0..<200).map { index in
            // Every fourth one is exactly the begin of a picture.
            index % 4 == 0
                ? max(0, known.randomElement(using: &random)?.time ?? 0) : Double.random(in: 0...end, using: &random)
        }.map { time in
            // Six digits do not tell it from the begin of a picture.
            known.first { abs($0.time - time) <= Self.tolerance && $0.time >= 0 }?.time ?? time
        }
        let images = try stage.pictures(
            path, times,
            [
                ("mode", .string("exact")), ("format", .string("png")),
                ("apply-preferred-transform", .bool(false)),
            ])
        #expect(images.count == times.count)
        let found = try FilmStage.numbers(of: images)
        var wrong: [String] = []
        for (index, image) in images.enumerated() {
            // Before the first picture: that one.
            let shown = known.last { $0.time <= times[index] + Self.tolerance } ?? known[0]
            let begin = max(0, shown.time)
            if image.error != "" || found[index] != shown.number || abs(image.actual - begin) > Self.tolerance {
                wrong.append("\(times[index]): \(found[index]) at \(image.actual), not \(shown.number) at \(begin)")
            }
        }
        #expect(wrong.isEmpty, "\(wrong.count) of \(times.count): \(wrong.prefix(3))")
    }

    @Test(arguments: TestMedia.films) func keyFrame_isTheNearestOne(_ film: TestMedia) throws {
        let stage = try FilmStage()
        let known = try film.pictures()
        let keys = known.filter(\.isKey)
        var random = SplitMix64(seed: 8)
        let times = (0..<60).map { _ in Double.random(in: 0...(known.last?.time ?? 0), using: &random) }
        let images = try stage.pictures(try film.path(), times)
        for (time, image) in zip(times, images) {
            let nearest = keys.map { abs($0.time - time) }.min() ?? 0
            #expect(abs(abs(image.actual - time) - nearest) < Self.tolerance, "\(time): \(image)")
        }
    }

    @Test func tolerances_chooseANearKeyFrameOrTheExactPicture() throws {
        let stage = try FilmStage()
        let film = TestMedia.named("long-gop.mp4")
        let options: [(String, Value)] = [("tolerance-before", .double(1)), ("tolerance-after", .double(0))]
        let images = try stage.pictures(try film.path(), [0.5, 5.01], options)
        #expect(images.map(\.actual) == [0, 5])
    }

    @Test func transform_isAppliedByDefault() throws {
        let stage = try FilmStage()
        let path = try TestMedia.named("rotated.mp4").path()
        for (applies, size) in [(true, "180,320"), (false, "320,180")] {
            let images = try stage.pictures(path, [3], [("apply-preferred-transform", .bool(applies))])
            #expect(try Self.size(of: images[0].path) == size)
        }
        // As another program turns it.
        let turned = try stage.pictures(path, [1], [("mode", .string("exact")), ("format", .string("png"))])
        let back = try TestMedia.numbers(["-i", turned[0].path, "-vf", "transpose=1"], width: 320, height: 180)
        #expect(back == [25])
    }

    @Test func maximumSize_shrinksAndNeverEnlarges() throws {
        let stage = try FilmStage()
        let path = try TestMedia.named("short-gop.mp4").path()
        for (wanted, size) in [((160, 160), "160,90"), ((0, 90), "160,90"), ((4_000, 4_000), "320,180")] {
            let box = Value.structure([.uint32(UInt32(wanted.0)), .uint32(UInt32(wanted.1))])
            let images = try stage.pictures(path, [3], [("maximum-size", box)])
            #expect(try Self.size(of: images[0].path) == size)
        }
    }

    @Test(arguments: ImageFormat.allCases) func format_isTheRequestedOne(format: ImageFormat) throws {
        let stage = try FilmStage()
        let images = try stage.pictures(
            try TestMedia.named("short-gop.mp4").path(), [3], [("format", .string(format.rawValue))])
        let begin = [UInt8](try Data(contentsOf: URL(fileURLWithPath: images[0].path)).prefix(12))
        let expected: [UInt8] =
            switch format {
            case .jpeg: [0xFF, 0xD8]
            case .png: [0x89, 0x50]
            case .webp: [0x52, 0x49]
            }
        #expect(begin.starts(with: expected))
    }

    @Test func timeAfterTheEnd_hasNoPictureAndOtherTimesHave() throws {
        let stage = try FilmStage()
        let images = try stage.pictures(
            try TestMedia.named("short-gop.mp4").path(), [1, 500, 2], [("mode", .string("exact"))])
        #expect(images.map(\.error) == ["", "NoImageAtTime", ""])
        #expect(images[1].path == "")
    }

    /// The last picture is on the screen until the end of the film, and not after it.
    @Test(arguments: TestMedia.films) func keyFrameAfterTheEnd_isNone(_ film: TestMedia) throws {
        let stage = try FilmStage()
        let images = try stage.pictures(try film.path(), [1, 500, 2])
        #expect(images.map(\.error) == ["", "NoImageAtTime", ""], "\(images)")
    }

    @Test(arguments: ["flac", "wav", "ogg"]) func sound_hasNoPicture(_ ending: String) throws {
        let stage = try FilmStage()
        let folder = try PrivateFolder()
        let path = folder.path + "/sound." + ending
        _ = try Child.run("ffmpeg", ["-v", "error", "-f", "lavfi", "-i", "sine=d=2", path])
        let reason = "it is a sound and has no picture"
        let job = try stage.generate(path, [1])
        try stage.wait { stage.finished[job] != nil }
        #expect(stage.images[job]?.map(\.error) == ["NoImageAtTime"])
        #expect(stage.finished[job]?.first?.includes(reason) == true)
        let refusal = #expect(throws: FilmStage.Refusal.self) {
            try stage.call("Thumbnail", [FilmStage.uri(path), .string("large")])
        }
        #expect(refusal?.message.includes(reason) == true, "\(refusal?.description ?? "")")
    }

    @Test func wrongArguments_areRefusedWithTheirError() throws {
        let stage = try FilmStage()
        let uri = FilmStage.uri(try TestMedia.named("short-gop.mp4").path())
        func refusal(_ times: [Double], _ options: [(String, Value)]) throws -> String? {
            try stage.refusal(
                "GenerateImages", [uri, .array(of: "d", times.map(Value.double)), .properties(options)])
        }
        #expect(try refusal([], []) == "BadParameter")
        #expect(try refusal([-1], []) == "BadParameter")
        #expect(try refusal([.nan], []) == "BadParameter")
        #expect(try refusal([1], [("mode", .string("best"))]) == "BadParameter")
        #expect(try refusal([1], [("format", .string("gif"))]) == "BadParameter")
        #expect(try refusal([1], [("folder", .string("here"))]) == "BadParameter")
        #expect(try refusal([1], [("colour", .string("red"))]) == "BadParameter")
        #expect(try refusal([1], [("quality", .string("high"))]) == "InvalidArgs")
    }

    private static func size(of path: String) throws -> String {
        try Child.run(
            "ffprobe", ["-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0", path]
        ).trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
