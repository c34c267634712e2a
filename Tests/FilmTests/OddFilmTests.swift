import DBus
import Foundation
import PluginAPI
import TestSupport
import Testing

/// Films as cameras, browsers and other programs write them, through the real plugin, compared with ffprobe.
@Suite struct OddFilmTests {
    let stage: FilmStage

    init() throws { stage = try FilmStage() }

    func path(_ name: String) -> String { stage.folder.path + "/" + name }

    func ffmpeg(_ arguments: String..., into name: String) throws -> String {
        let words = arguments.flatMap { $0.split(separator: " ").map(String.init) }
        _ = try Child.run("ffmpeg", ["-nostdin", "-v", "error", "-y"] + words + [path(name)])
        return path(name)
    }

    static let pictures = "-f lavfi -i testsrc2=s=320x180:r=25:d=4"
    static let sound = "-f lavfi -i sine=d=4"
    static let h264 = "-pix_fmt yuv420p -c:v libx264 -preset veryfast -g 50 -bf 3"

    func film(_ name: String, _ more: String = "-c:a aac") throws -> String {
        try ffmpeg(Self.pictures, Self.sound, Self.h264, more, into: name)
    }

    func probe(_ path: String, _ arguments: String...) throws -> [String] {
        let text = try Child.run("ffprobe", ["-v", "error"] + arguments + ["-of", "csv=p=0", path])
        return text.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: [",", " "]) }
    }

    func length(_ path: String) throws -> Double {
        Double(try probe(path, "-show_entries", "format=duration").first ?? "") ?? 0
    }

    func count(_ kind: String, _ path: String) throws -> Int {
        try Int(
            probe(
                path, "-select_streams", kind, "-count_packets", "-show_entries", "stream=nb_read_packets"
            ).first ?? "") ?? 0
    }

    func export(_ source: String, _ name: String, _ preset: String, _ more: [(String, Value)] = []) throws
        -> (path: String, leftOut: [String])
    {
        let job = try stage.begin(source, path(name), [("preset", .string(preset))] + more)
        try stage.wait { stage.finished[job] != nil }
        #expect(stage.finished[job] == ["done"], "\(name)")
        return (path(name), try stage.property("LeftOut", of: job).stringsValue ?? [])
    }

    private func tags(_ path: String) throws -> [String: Value] {
        try stage.inspect(path)["tags"]?.asProperties ?? [:]
    }

    @Test(arguments: ["mp4", "mov", "mkv"]) func tagsOfTheFile_areShownAndExported(type: String) throws {
        let film = try film(
            "tagged." + type, "-c:a aac -metadata title=Hello -metadata artist=Someone -metadata comment=Words")
        #expect(try tags(film)["title"] == .string("Hello"))
        for preset in ["medium", "passthrough"] {
            let new = try tags(export(film, "\(preset).mp4", preset).path)
            #expect(new["title"] == .string("Hello"))
            #expect(new["artist"] == .string("Someone"))
        }
    }

    @Test func locationInAFieldOfItsOwn_isLeftOutIfAsked() throws {
        let film = try film("place.mkv", "-c:a aac -metadata title=Hello -metadata LOCATION=+48.1000+011.6000/")
        let new = try export(film, "place.webm", "medium", [("strip-location", .bool(true))]).path
        let text = String(decoding: try Data(contentsOf: URL(fileURLWithPath: new)), as: UTF8.self)
        #expect(!text.contains("+48.1000"))
        #expect(try tags(new)["title"] == .string("Hello"))
    }

    @Test func copyOfMatroska_hasTheTimesOfItsPictures() throws {
        let film = try film("b-frames.mkv")
        let copy = try export(film, "b-frames.mp4", "passthrough").path
        #expect(abs(try length(copy) - length(film)) < 0.1)
        let last = try probe(
            copy, "-select_streams", "v:0", "-show_entries", "frame=best_effort_timestamp_time"
        ).compactMap(Double.init)
        #expect(last == last.sorted())
        #expect(abs((last.last ?? 0) - 3.96) < 0.1)
        #expect(try count("v", copy) == 100)
    }

    @Test(arguments: ["webm", "ogg"]) func copyOfVorbis_keepsTheSound(type: String) throws {
        let source =
            try type == "webm"
            ? ffmpeg(Self.pictures, Self.sound, "-c:v libvpx -deadline realtime -c:a libvorbis", into: "a.webm")
            : ffmpeg(Self.sound, "-c:a libvorbis", into: "a.ogg")
        let copy = try export(source, "copy.webm", "passthrough").path
        #expect(try count("a", copy) >= count("a", source) - 2)
    }

    @Test func copyOfOpus_hasTheWholeSound() throws {
        let source = try film("opus.mkv", "-c:a libopus")
        func samples(_ path: String) throws -> Int {
            let text = try Child.run(
                "sh", ["-c", "ffmpeg -nostdin -v error -i '\(path)' -map 0:a -ac 1 -ar 48000 -f u8 - | wc -c"])
            return Int(text.trimmingCharacters(in: .whitespacesAndNewlines)) ?? 0
        }
        let copy = try export(source, "opus.mp4", "passthrough").path
        #expect(try abs(samples(copy) - samples(source)) < 2_000)
        let front = try export(source, "front.mp4", "passthrough", [("optimize-for-network", .bool(true))]).path
        #expect(try abs(samples(front) - samples(source)) < 2_000)
    }

    @Test func copyOfMP3_isASoundFile() throws {
        let source = try ffmpeg(Self.sound, "-c:a libmp3lame", into: "a.mp3")
        let copy = try export(source, "copy.m4a", "passthrough").path
        #expect(abs(try length(copy) - length(source)) < 0.1)
    }

    @Test func copyOfATrimmedFilm_hasEveryPictureAndKeepsThemTogether() throws {
        let whole = try film("whole.mp4")
        let trimmed = try ffmpeg("-ss 1.3 -i \(whole) -c copy", into: "trimmed.mp4")
        let copy = try export(trimmed, "copy.mp4", "passthrough").path
        func shown(_ path: String) throws -> [Double] {
            try probe(path, "-select_streams", "v:0", "-show_entries", "frame=best_effort_timestamp_time")
                .compactMap(Double.init).filter { $0 >= 0 }
        }
        #expect(try shown(copy).count >= shown(trimmed).count - 1)
        #expect(abs(try length(copy) - length(trimmed)) < 0.1)
        let first = try (shown(copy).first ?? 9, shown(trimmed).first ?? 0)
        #expect(abs(first.0 - first.1) < 0.05)
    }

    @Test func everySoundOfACopy_isThereWithItsLanguage() throws {
        let one = try film("one.mp4")
        let two = try ffmpeg(
            "-i \(one) -map 0:v -map 0:a -map 0:a -c copy -metadata:s:a:0 language=eng -metadata:s:a:1 language=deu",
            into: "two.mp4")
        let copy = try export(two, "copy.mp4", "passthrough")
        #expect(
            try probe(copy.path, "-select_streams", "a", "-show_entries", "stream_tags=language") == ["eng", "deu"])
        #expect(copy.leftOut.isEmpty)
        // A preset has one sound, and the job names the other one.
        let small = try export(two, "small.mp4", "low")
        #expect(try probe(small.path, "-select_streams", "a", "-show_entries", "stream=index").count == 1)
        #expect(small.leftOut.count == 1)
        #expect(small.leftOut.first?.hasPrefix("a further sound") == true)
    }

    /// A film of 4 s with three chapters; the second one begins at 1 s, the third one at 2.5 s.
    private func chaptered(_ name: String, _ more: String) throws -> String {
        let list = path("chapters.txt")
        let parts = [(0, 1_000, "Beginning"), (1_000, 2_500, "Mitte — 中"), (2_500, 4_000, "End")].map {
            "[CHAPTER]\nTIMEBASE=1/1000\nSTART=\($0.0)\nEND=\($0.1)\ntitle=\($0.2)\n"
        }
        try (";FFMETADATA1\n" + parts.joined()).write(toFile: list, atomically: true, encoding: .utf8)
        return try ffmpeg(
            Self.pictures, Self.sound, "-i \(list) -map 0 -map 1 -map_chapters 2", Self.h264, more, into: name)
    }

    /// "start,title" of each chapter that ffprobe finds.
    private func chapters(_ path: String) throws -> [String] {
        try probe(path, "-show_entries", "chapter=start_time:chapter_tags=title").map { line in
            let parts = line.split(separator: ",")
            return "\(((Double(parts.first ?? "") ?? -1) * 10).rounded() / 10) \(parts.last ?? "")"
        }
    }

    private static let threeChapters = ["0.0 Beginning", "1.0 Mitte — 中", "2.5 End"]

    /// As a list, as a track (as QuickTime has them), and as those of Matroska.
    @Test(arguments: [
        ("list.mp4", "-c:a aac"), ("track.mp4", "-c:a aac -movflags +disable_chpl"), ("film.mov", "-c:a aac"),
        ("film.mkv", "-c:a aac"), ("book.m4b", "-vn -c:a aac -f ipod"),
    ]) func chapters_areShownAndExported(_ name: String, _ more: String) throws {
        let film = try chaptered(name, more)
        let listed = try stage.inspect(film)["chapters"]?.arrayValue?.compactMap(\.structureValue) ?? []
        #expect(
            listed.map { "\((($0[0].doubleValue ?? -1) * 10).rounded() / 10) \($0[1].stringValue ?? "")" }
                == Self.threeChapters)
        let isSound = name == "book.m4b"
        for (preset, type) in isSound ? [("audio", "m4a")] : [("low", "mp4"), ("passthrough", "mov"), ("low", "webm")] {
            let new = try export(film, "\(preset)-\(name).\(type)", preset)
            #expect(try chapters(new.path) == Self.threeChapters, "\(name) → \(type)")
            #expect(new.leftOut.isEmpty)
            #expect(abs(try length(new.path) - 4) < 0.1)
        }
        if isSound { return }
        // The part begins in the second chapter.
        let part: [(String, Value)] = [
            ("time-range", .structure([.double(1.5), .double(3.5)])), ("optimize-for-network", .bool(true)),
        ]
        let new = try export(film, "part-\(name).mp4", "low", part)
        #expect(try chapters(new.path) == ["0.0 Mitte — 中", "1.0 End"])
        #expect(try count("v", new.path) == 50)
    }

    /// As an incomplete download: what is there is exported, and what is not is named.
    @Test(arguments: ["mp4", "mkv", "mov"]) func filmThatWasCutOff_isExportedWithAWord(type: String) throws {
        let film = try film("whole." + type, type == "mkv" ? "-c:a aac" : "-c:a aac -movflags +faststart")
        #expect(try stage.inspect(film)["complete"] == .bool(true))
        let bytes = try Data(contentsOf: URL(fileURLWithPath: film))
        let cut = path("cut." + type)
        try bytes.prefix(bytes.count * 2 / 3).write(to: URL(fileURLWithPath: cut))
        #expect(try stage.inspect(cut)["complete"] == .bool(false))
        for preset in ["low", "passthrough"] {
            let new = try export(cut, "\(preset)-\(type).mp4", preset)
            #expect(new.leftOut.count == 1 && new.leftOut[0].contains("cut off"), "\(new.leftOut)")
            #expect(try (1.5...3.5).contains(length(new.path)))
        }
        // The part that was asked for is there.
        #expect(
            try export(cut, "part.mp4", "low", [("time-range", .structure([.double(0), .double(1)]))]).leftOut == [])
    }

    @Test func subtitles_areNamedAsLeftOut() throws {
        let text = path("words.srt")
        try "1\n00:00:00,500 --> 00:00:02,000\nHello\n".write(toFile: text, atomically: true, encoding: .utf8)
        let film = try ffmpeg(
            Self.pictures, Self.sound, "-i \(text) -map 0 -map 1 -map 2", Self.h264, "-c:a aac -c:s srt",
            into: "subtitled.mkv")
        #expect(try export(film, "copy.mp4", "passthrough").leftOut.contains { $0.hasPrefix("subtitles") })
    }

    @Test(arguments: ["pcm_f32le", "pcm_f64le", "pcm_s32le", "pcm_s24le", "pcm_s16le", "pcm_f32be"])
    func plainSoundOfQuickTime_isHeard(codec: String) throws {
        let film = try film("plain.mov", "-c:a " + codec)
        let new = try export(film, "new.mp4", "low").path
        let samples = try Child.run(
            "sh", ["-c", "ffmpeg -nostdin -v error -i '\(new)' -map 0:a -ac 1 -f u8 - | od -An -v -tu1 -w1 | sort -n"])
        let values = samples.split(separator: "\n").compactMap { Int($0.trimmingCharacters(in: .whitespaces)) }
        // A sine of an eighth of full scale, around 128.
        #expect((values.last ?? 0) - (values.first ?? 0) > 20)
    }

    @Test func lengthOfFragmentsAndStreams_isThatOfTheFilm() throws {
        let film = try film("plain.mp4")
        let fragments = try ffmpeg("-i \(film) -c copy -movflags frag_keyframe+empty_moov", into: "fragments.mp4")
        let cut = try ffmpeg(
            "-i \(film) -c copy -movflags frag_keyframe+empty_moov+default_base_moof+skip_trailer", into: "cut.mp4")
        let live = try ffmpeg("-i \(film) -c copy -live 1", into: "live.mkv")
        let stream = try ffmpeg(
            "-f lavfi -i color=c=blue:s=320x180:r=25:d=4", Self.sound, Self.h264, "-c:a aac -b:a 32k", into: "short.ts")
        for path in [fragments, cut, live, stream] {
            let found = try stage.inspect(path)["duration"]?.doubleValue ?? 0
            #expect(abs(found - 4.05) < 0.1, "\(path)")
        }
        let range = Value.structure([.double(1), .double(3.5)])
        for path in [fragments, live] {
            let part = try export(path, path.split(separator: "/").last! + ".mp4", "low", [("time-range", range)]).path
            #expect(abs(try length(part) - 2.5) < 0.15, "\(path)")
        }
    }

    @Test func soundOfExportsInARow_doesNotMove() throws {
        var path = try ffmpeg(
            "-f lavfi -i testsrc2=s=160x120:r=25:d=3 -f lavfi",
            "-i aevalsrc=0.5*sin(6283*t)*lt(mod(t\\,1)\\,0.05):d=3:s=48000 -pix_fmt yuv420p -c:v libx264 -c:a aac",
            into: "beeps-0.mp4")
        let begin = try beep(path)
        for number in 1...3 { path = try export(path, "beeps-\(number).mp4", "medium").path }
        #expect(abs(try beep(path) - begin) < 0.02)
    }

    /// The time of the first loud sample after half a second.
    private func beep(_ path: String) throws -> Double {
        let text = try Child.run(
            "sh",
            [
                "-c",
                "ffmpeg -nostdin -v error -i '\(path)' -map 0:a -ac 1 -ar 48000 -f s16le - | od -An -v -td2 -w2"
                    + " | awk 'NR > 24000 && ($1 > 3000 || $1 < -3000) { print NR; exit }'",
            ])
        return (Double(text.trimmingCharacters(in: .whitespacesAndNewlines)) ?? 0) / 48_000
    }

    @Test func picturesWithTransparency_areShownWithoutIt() throws {
        let film = try ffmpeg(
            "-f lavfi -i testsrc2=s=160x160:r=25:d=2,format=yuva420p -c:v libvpx-vp9 -deadline realtime -cpu-used 8",
            into: "sticker.webm")
        #expect(try stage.pictures(film, [1]).first?.error == "")
        for preset in ["medium", "passthrough"] {
            let new = try export(film, "\(preset).webm", preset)
            #expect(try count("v", new.path) == 50)
            #expect(new.leftOut == ["the transparency of the pictures"])
        }
    }

    @Test func firstSecondOfAProgramStream_hasItsPictures() throws {
        let film = try ffmpeg(
            Self.pictures, Self.sound, "-pix_fmt yuv420p -c:v mpeg2video -b:v 3M -g 12 -c:a mp2", into: "a.mpg")
        let images = try stage.pictures(
            film, [0.2, 0.04], [("tolerance-before", .double(0)), ("tolerance-after", .double(0))])
        #expect(images.map { abs($0.actual - $0.requested) < 0.05 } == [true, true], "\(images)")
    }

    @Test func filesThatCannotBeCopied_areRefusedWithAReason() throws {
        let old = try ffmpeg(Self.pictures, Self.sound, "-c:v mpeg4 -bf 2 -c:a libmp3lame", into: "old.avi")
        let nut = try film("a.nut")
        let moving = try movingGIF("moving.gif")
        for film in [old, nut, moving] {
            #expect(try stage.export(film, path("a.mp4"), [("preset", .string("passthrough"))]) == "NotSupported")
        }
        let range = Value.structure([.double(0.5), .double(1.5)])
        #expect(try stage.export(moving, path("b.mp4"), [("time-range", range)]) == "NotSupported")
        #expect(try FilmStage.names(in: stage.folder.path).filter { $0.hasSuffix(".mp4") }.isEmpty)
    }

    private func movingGIF(_ name: String) throws -> String {
        try ffmpeg("-f lavfi -i testsrc2=s=160x120:r=10:d=2", into: name)
    }

    /// The decoder of libav gives one time to all pictures.
    @Test func movingGIF_hasItsPicturesAtTheirTimes() throws {
        let moving = try movingGIF("moving.gif")
        let facts = try stage.inspect(moving)
        #expect(facts["duration"] == .double(2))
        #expect(facts["tracks"]?.arrayValue?.first?.asProperties?["codec"] == .string("gif"))
        let images = try stage.pictures(
            moving, [0, 1, 1.95, 0.55, 2.5], [("mode", .string("exact")), ("format", .string("png"))])
        #expect(images.map(\.actual) == [0, 1, 1.9, 0.5, 0])
        #expect(images.last?.error == "NoImageAtTime")
        #expect(Set(try images.dropLast().map { try Data(contentsOf: URL(fileURLWithPath: $0.path)) }).count == 4)
        #expect(try stage.refusal("Thumbnail", [FilmStage.uri(moving), .string("normal")]) == nil)
        let copy = try export(moving, "moving.mp4", "low").path
        #expect(try count("v", copy) == 20)
        #expect(abs(try length(copy) - 2) < 0.05)
    }

    /// The demuxer of libav does not notice the end by itself.
    @Test func nut_isReadToItsEnd() throws {
        let film = try film("a.nut", "-c:a libmp3lame")
        let images = try stage.pictures(film, [3.99, 1], [("mode", .string("exact")), ("format", .string("png"))])
        #expect(abs((images.first?.actual ?? 0) - 3.96) < 0.06)
        let copy = try export(film, "nut.mp4", "low").path
        #expect(try count("v", copy) == 100)
        #expect(abs(try length(copy) - 4) < 0.1)
    }

    /// GStreamer takes a track that is shorter than a fifth of the film for a preview.
    @Test func shortTrack_isATrackAsAnyOther() throws {
        let pictures = try ffmpeg(
            "-f lavfi -i testsrc2=s=320x180:r=25:d=1 -f lavfi -i sine=d=10", Self.h264, "-c:a aac", into: "short.mp4")
        let sound = try ffmpeg(
            "-f lavfi -i testsrc2=s=320x180:r=25:d=10 -f lavfi -i sine=d=1", Self.h264, "-c:a aac", into: "beep.mov")
        for film in [pictures, sound] {
            let facts = try stage.inspect(film)
            #expect(facts["tracks"]?.arrayValue?.count == 2)
            #expect(abs((facts["duration"]?.doubleValue ?? 0) - 10) < 0.05)
            for preset in ["low", "passthrough"] {
                let new = try export(film, "\(preset)-\(film.hashValue).mp4", preset).path
                #expect(try count("v", new) == count("v", film), "\(film) \(preset)")
                #expect(abs(try count("a", new) - count("a", film)) < 4, "\(film) \(preset)")
                #expect(abs(try length(new) - 10) < 0.1, "\(film) \(preset)")
            }
            let exact = [("tolerance-before", Value.double(0)), ("tolerance-after", .double(0))]
            #expect(try stage.pictures(film, [0.52], exact).map(\.actual).map { abs($0 - 0.52) < 0.001 } == [true])
        }
        let part = try export(
            sound, "part.mp4", "low", [("time-range", .structure([.double(6), .double(8)]))]
        ).path
        #expect(abs(try length(part) - 2) < 0.1)
    }

    /// GStreamer loses what is before the first fragment when it seeks there.
    @Test func partOfAPartlyFragmentedFilm_isRefusedAndTheWholeIsExported() throws {
        let film = try film("plain.mp4")
        let mixed = try ffmpeg("-i \(film) -c copy -movflags frag_keyframe", into: "mixed.mp4")
        let range = Value.structure([.double(0.5), .double(1.5)])
        #expect(try stage.export(mixed, path("part.mp4"), [("time-range", range)]) == "NotSupported")
        #expect(try count("v", export(mixed, "whole.mp4", "low").path) == 100)
    }

    /// FFmpeg names AAC in an M2TS file in a way that GStreamer does not know.
    @Test func soundThatIsNamedButNotRead_isListedAndNeverLostSilently() throws {
        let one = try film("one.m2ts", "-c:a aac -f mpegts -mpegts_m2ts_mode 1")
        let facts = try stage.inspect(one)
        let tracks = facts["tracks"]?.arrayValue?.compactMap(\.asProperties) ?? []
        #expect(tracks.map { $0["type"] } == [.string("video"), .string("audio")])
        #expect(tracks.last?["codec"] == .string("aac"))
        #expect(facts["playable"] == .bool(false))
        for preset in ["medium", "passthrough"] {
            #expect(try stage.export(one, path("a.mp4"), [("preset", .string(preset))]) == "NotSupported")
        }
        #expect(try stage.pictures(one, [1]).first?.error == "")
        let sound = try ffmpeg(Self.sound, "-c:a aac -f mpegts -mpegts_m2ts_mode 1", into: "sound.m2ts")
        #expect(try stage.refusal("Inspect", [FilmStage.uri(sound), .properties([])]) == "NotSupported")
        // Another sound can be read, so the export is made, and names the one that it does not have.
        let two = try ffmpeg(
            Self.pictures, Self.sound, Self.sound, "-map 0 -map 1 -map 2", Self.h264,
            "-c:a:0 ac3 -c:a:1 aac -f mpegts -mpegts_m2ts_mode 1", into: "two.m2ts")
        let new = try export(two, "two.mp4", "low")
        #expect(new.leftOut == ["a further sound (aac)"])
        #expect(try count("a", new.path) > 0)
    }

    @Test func furtherProgramOfATransportStream_isNamedAsLeftOut() throws {
        let one = try film("one.ts")
        let two = try ffmpeg(
            "-i \(one) -i \(one) -map 0 -map 1 -c copy -program title=A:st=0:st=1 -program title=B:st=2:st=3",
            into: "two.ts")
        #expect(try export(one, "one.mp4", "passthrough").leftOut.isEmpty)
        #expect(try export(two, "two.mp4", "passthrough").leftOut == ["a further program"])
    }

    @Test func trackOfAWaveFile_isListedOnce() throws {
        let source = try ffmpeg(Self.sound, "-c:a pcm_mulaw", into: "a.wav")
        #expect(try stage.inspect(source)["tracks"]?.arrayValue?.count == 1)
    }
}
