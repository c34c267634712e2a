import DBus
import Foundation
import PluginAPI
import TestSupport
import Testing

@testable import FilmBackend

/// Which pictures of a film are shown and exported, and what is said of the others.
extension OddFilmTests {
    private func times(_ path: String) throws -> [Double] {
        try probe(path, "-select_streams", "v:0", "-show_entries", "frame=best_effort_timestamp_time")
            .compactMap(Double.init)
    }

    private func sizes(_ path: String) throws -> [String] {
        try probe(path, "-select_streams", "v", "-show_entries", "stream=width,height")
    }

    /// A file of a server of HLS or DASH is no damaged film.
    @Test func partsOfAFilm_areRefusedWithWhatTheyAre() throws {
        let film = try film("whole.mp4")
        _ = try ffmpeg(
            "-i \(film) -map 0:v -c copy -f dash -seg_duration 1 -init_seg_name init.mp4 -media_seg_name part-$Number$.m4s",
            into: "a.mpd")
        for (name, words) in [("init.mp4", "in other files"), ("part-1.m4s", "part of a film")] {
            do {
                _ = try stage.inspect(path(name))
                Issue.record("\(name) is accepted")
            } catch let refusal as FilmStage.Refusal {
                #expect(refusal.name == "NotSupported")
                #expect(refusal.message.contains(words), "\(refusal)")
            }
        }
        let joined = try Data(contentsOf: URL(fileURLWithPath: path("init.mp4")))
        let part = try Data(contentsOf: URL(fileURLWithPath: path("part-1.m4s")))
        try (joined + part).write(to: URL(fileURLWithPath: path("joined.mp4")))
        #expect(try stage.inspect(path("joined.mp4"))["playable"] == .bool(true))
    }

    @Test func encryptedFilm_isCalledEncrypted() throws {
        let film = try film("plain.mp4")
        let key = "76a6c65c5ea762046bd749a2e632ccbb"
        let secret = try ffmpeg(
            "-i \(film) -c copy -encryption_scheme cenc-aes-ctr -encryption_key \(key) -encryption_kid \(key)",
            into: "secret.mp4")
        do {
            _ = try stage.inspect(secret)
            Issue.record("it is accepted")
        } catch let refusal as FilmStage.Refusal {
            #expect(refusal.name == "NotSupported")
            #expect(refusal.message.contains("encrypted"), "\(refusal)")
        }
        #expect(try stage.refusal("Thumbnail", [FilmStage.uri(secret), .string("normal")]) == "NotSupported")
        #expect(try stage.export(secret, path("a.mp4")) == "NotSupported")
    }

    /// Encoders of H.264 need at least 16 lines.
    @Test func flatPictures_areExportedWithBorders() throws {
        let film = try ffmpeg("-f lavfi -i testsrc2=s=1920x32:r=10:d=1 -pix_fmt yuv420p", into: "flat.mp4")
        #expect(try sizes(export(film, "low.mp4", "low").path) == ["426,16"])
        #expect(try count("v", path("low.mp4")) == 10)
    }

    /// The demuxer of AVI counts pictures, and times are whole nanoseconds.
    @Test func keyFrameOfAnAVI_isReadAtOnce() throws {
        let path = try ffmpeg(
            "-f lavfi -i testsrc2=s=320x180:r=30:d=6", "-c:v mpeg4 -vtag XVID -g 60 -sc_threshold 1000000000",
            into: "keys.avi")
        _ = FilmRuntime.ready
        let film = try Film(FilmFile(Array(path.utf8)))
        let key = try #require(try film.keyFrames(around: 5_000_000_000).before)
        #expect(key > 3_900_000_000 && key < 4_100_000_000)
        var passed = 0
        #expect(try film.frame(at: key) { _, _ in passed += 1 }.time == key)
        #expect(passed == 0)
    }

    /// An AVI file has only the decoding times of its pictures.
    @Test(arguments: [12, 100]) func everyPictureOfAnAVIWithBFrames_isExported(distance: Int) throws {
        let film = try ffmpeg(Self.pictures, "-c:v mpeg4 -vtag XVID -bf 2 -g \(distance)", into: "old.avi")
        let copy = try export(film, "new.mp4", "high").path
        #expect(try count("v", copy) == 100)
        #expect(abs(try length(copy) - 4) < 0.05)
    }

    /// The times of Matroska are rounded to milliseconds, and the first picture of a part may be short.
    @Test(arguments: ["30", "30000/1001", "60"]) func everyPictureWithinTheRate_isExported(rate: String) throws {
        let film = try ffmpeg("-f lavfi -i testsrc2=s=320x180:r=\(rate):d=2", Self.h264, into: "film.mkv")
        #expect(try count("v", export(film, "all.mp4", "medium").path) == count("v", film))
        let half = try count("v", export(film, "half.mp4", "low").path)
        #expect(abs(half - 60) <= 1)
    }

    @Test func partThatBeginsWithinAPicture_hasTheNextOne() throws {
        let film = try film("film.mp4")
        let range = Value.structure([.double(1.3), .double(2.3)])
        let part = try times(export(film, "part.mp4", "high", [("time-range", range)]).path)
        for (index, time) in [0, 0.02, 0.06, 0.1].enumerated() { #expect(abs(part[index] - time) < 0.005, "\(part)") }
    }

    /// As a motion photo: players show the track that is enabled.
    @Test(arguments: ["mp4", "mov"]) func picturesThatPlayersShow_areTaken(type: String) throws {
        let film = try ffmpeg(
            "-f lavfi -i color=red:s=640x480:r=1:d=1", Self.pictures, Self.sound, "-map 0 -map 1 -map 2", Self.h264,
            "-disposition:v:0 0 -disposition:v:1 default -c:a aac", into: "motion." + type)
        let facts = try stage.inspect(film)
        #expect(facts["tracks"]?.arrayValue?.count == 3)
        let image = try stage.pictures(film, [1], [("mode", .string("exact")), ("format", .string("png"))]).first
        #expect(try sizes(image?.path ?? "") == ["320,180"])
        for preset in ["high", "passthrough"] {
            let new = try export(film, preset + ".mp4", preset)
            #expect(try sizes(new.path) == ["320,180"])
            #expect(try count("v", new.path) == 100)
            #expect(new.leftOut == ["further pictures (h264)"])
        }
    }

    @Test func coloursOfRGB_areNotConfused() throws {
        let film = try ffmpeg(
            "-f lavfi -i color=0xE02010:s=64x64:r=10:d=1 -c:v libvpx-vp9 -deadline realtime -pix_fmt gbrp",
            into: "rgb.webm")
        func colour(_ path: String) throws -> [Int] {
            let raw = "ffmpeg -nostdin -v error -i '\(path)' -frames:v 1 -f rawvideo -pix_fmt rgb24 -"
            let text = try Child.run("sh", ["-c", "\(raw) | od -A n -t u1 -N 3"])
            return text.split(separator: " ").compactMap { Int($0.trimmingCharacters(in: .whitespacesAndNewlines)) }
        }
        let image = try stage.pictures(film, [0.5], [("mode", .string("exact")), ("format", .string("png"))]).first
        for path in [image?.path ?? "", try export(film, "rgb.mp4", "high").path] {
            let found = try colour(path)
            #expect(found.count == 3)
            for (part, wanted) in zip(found, [0xE0, 0x20, 0x10]) { #expect(abs(part - wanted) < 12, "\(found)") }
        }
    }

    @Test func coloursWithTenBits_areNamedAsLeftOut() throws {
        let film = try ffmpeg(
            "-f lavfi -i testsrc2=s=320x180:r=25:d=1 -pix_fmt yuv420p10le -c:v libx264 -preset veryfast",
            into: "ten.mp4")
        #expect(try export(film, "eight.mp4", "low").leftOut == ["the fine colours of 10 bits (it has 8 bits)"])
        #expect(try export(film, "copy.mp4", "passthrough").leftOut.isEmpty)
    }
}
