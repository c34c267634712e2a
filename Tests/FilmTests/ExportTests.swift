import DBus
import Foundation
import GStreamerBase
import PluginAPI
import TestSupport
import Testing

@testable import FilmBackend

/// Films written from films, by the real plugin.
@Suite struct ExportTests {
    private static func probe(_ path: String, _ entries: String, _ stream: String = "v") throws -> [String] {
        let text = try Child.run(
            "ffprobe", ["-v", "error", "-select_streams", stream, "-show_entries", entries, "-of", "csv=p=0", path])
        return text.split(separator: "\n").flatMap { $0.split(separator: ",") }.map {
            $0.trimmingCharacters(in: .whitespaces)
        }
    }

    /// The kinds of the boxes of an MP4, in their order.
    private static func boxes(_ path: String) throws -> [String] {
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        var kinds: [String] = []
        var place = 0
        while place + 8 <= bytes.count {
            var size = bytes[place..<(place + 4)].reduce(0) { $0 << 8 | Int($1) }
            kinds.append(String(decoding: bytes[(place + 4)..<(place + 8)], as: UTF8.self))
            if size == 1 { size = bytes[(place + 8)..<(place + 16)].reduce(0) { $0 << 8 | Int($1) } }
            guard size >= 8 else { break }
            place += size
        }
        return kinds
    }

    @Test(arguments: ["short-gop.mp4", "variable.mp4", "matroska.mkv", "web.webm", "stream.ts"])
    func everyPicture_isInTheNewFilm(name: String) throws {
        let stage = try FilmStage()
        let film = TestMedia.named(name)
        let output = stage.folder.path + "/new.mp4"
        #expect(try stage.export(try film.path(), output, [("preset", .string("high"))]) == "done")
        let numbers = try TestMedia.numbers(
            ["-i", output, "-map", "0:v", "-vsync", "passthrough"], width: 320, height: 180)
        #expect(numbers == (try film.pictures().map(\.number)))
        #expect(try Self.probe(output, "stream=codec_name,width,height") == ["h264", "320", "180"])
        #expect(try Self.probe(output, "stream=codec_name", "a") == ["aac"])
        #expect(try FilmStage.names(in: stage.folder.path).filter { $0.contains("new") } == ["new.mp4"])
    }

    @Test func progress_risesAndEndsAtOne() throws {
        let stage = try FilmStage()
        let output = stage.folder.path + "/new.mp4"
        let job = try stage.begin(
            try TestMedia.named("long-gop.mp4").path(), output, [("optimize-for-network", .bool(true))])
        try stage.wait { stage.finished[job] != nil }
        #expect(stage.finished[job] == ["done"])
        let progress = try #require(stage.progress[job])
        #expect(progress == progress.sorted())
        #expect(progress.last == 1)
        #expect(!progress.dropLast().contains { $0 >= 1 })
        #expect(stage.states[job] == ["running", "finished"])
        let kinds = try Self.boxes(output)
        let index = try #require(kinds.firstIndex(of: "moov"))
        let content = try #require(kinds.firstIndex(of: "mdat"))
        #expect(index < content, "\(kinds)")
    }

    @Test func rotatedFilm_isUpright() throws {
        let stage = try FilmStage()
        let path = try TestMedia.named("rotated.mp4").path()
        let turned = stage.folder.path + "/turned.mp4"
        #expect(try stage.export(path, turned) == "done")
        #expect(try Self.probe(turned, "stream=width,height") == ["180", "320"])
        // A copy keeps its pictures, and says how to turn them.
        let copy = stage.folder.path + "/copy.mp4"
        #expect(try stage.export(path, copy, [("preset", .string("passthrough"))]) == "done")
        #expect(try Self.probe(copy, "stream=width,height") == ["320", "180"])
        let facts = try stage.inspect(copy)
        #expect(
            facts["tracks"]?.arrayValue?.compactMap(\.asProperties).compactMap { $0["rotation"]?.uint32Value } == [270])
    }

    @Test func passthrough_keepsEveryPicture() throws {
        let stage = try FilmStage()
        for name in ["short-gop.mp4", "long-gop.mp4", "matroska.mkv"] {
            let output = "\(stage.folder.path)/\(name).mp4"
            let film = TestMedia.named(name)
            #expect(
                try stage.export(
                    try film.path(), output,
                    [("preset", .string("passthrough")), ("optimize-for-network", .bool(true))]) == "done")
            let numbers = try TestMedia.numbers(
                ["-i", output, "-map", "0:v", "-vsync", "passthrough"], width: 320, height: 180)
            #expect(numbers == (try film.pictures().map(\.number)), "\(name)")
        }
    }

    @Test func timeRange_isExact() throws {
        let stage = try FilmStage()
        let output = stage.folder.path + "/part.mp4"
        let range = Value.structure([.double(4), .double(6)])
        let path = try TestMedia.named("long-gop.mp4").path()
        #expect(try stage.export(path, output, [("time-range", range), ("preset", .string("high"))]) == "done")
        let numbers = try TestMedia.numbers(
            ["-i", output, "-map", "0:v", "-vsync", "passthrough"], width: 320, height: 180)
        #expect(numbers == Array(100..<150))
        // A copy begins at the key frame before it.
        let copy = stage.folder.path + "/copy.mp4"
        let short = TestMedia.named("short-gop.mp4")
        #expect(
            try stage.export(try short.path(), copy, [("time-range", range), ("preset", .string("passthrough"))])
                == "done")
        let key = try #require(try short.pictures().last { $0.isKey && $0.time <= 4 })
        let first = try TestMedia.numbers(
            ["-i", copy, "-map", "0:v", "-vsync", "passthrough"], width: 320, height: 180
        ).first
        #expect(first == key.number)
        #expect(
            try stage.export(
                path, stage.folder.path + "/none.mp4", [("time-range", .structure([.double(50), .double(0)]))])
                == "BadParameter")
    }

    @Test(arguments: [
        ("low", "320,180"), ("medium", "320,180"), ("640x480", "320,180"), ("1920x1080", "320,180"), ("audio", ""),
    ]) func preset_neverEnlargesPictures(preset: String, size: String) throws {
        let stage = try FilmStage()
        let output = stage.folder.path + (preset == "audio" ? "/new.m4a" : "/new.mp4")
        #expect(
            try stage.export(try TestMedia.named("short-gop.mp4").path(), output, [("preset", .string(preset))])
                == "done")
        #expect(try Self.probe(output, "stream=width,height").joined(separator: ",") == size)
    }

    @Test func presets_areThoseThatArePossible() throws {
        let stage = try FilmStage()
        func presets(_ name: String) throws -> [String] {
            try stage.call("ExportPresets", [FilmStage.uri(try TestMedia.named(name).path())])[0].stringsValue ?? []
        }
        #expect(try presets("short-gop.mp4") == ExportPreset.allCases.map(\.rawValue))
        #expect(try presets("silent.mp4") == ExportPreset.allCases.map(\.rawValue).filter { $0 != "audio" })
        #expect(try presets("sound.m4a") == ["passthrough", "audio"])
        #expect(try !presets("web.webm").contains("passthrough"))
    }

    @Test func estimate_isCloseToTheSize() throws {
        let stage = try FilmStage()
        let path = try TestMedia.named("short-gop.mp4").path()
        let answer = try stage.call(
            "EstimateExport", [FilmStage.uri(path), .properties([("preset", .string("passthrough"))])])
        let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
        #expect(abs(Int(answer[0].uint64Value ?? 0) - size) < size / 10)
        #expect(answer[1] == .double(-1))
        #expect(answer[2] == .uint32(95))
        // Only the sound is copied.
        let sound = try stage.call(
            "EstimateExport",
            [
                FilmStage.uri(path),
                .properties([("preset", .string("passthrough")), ("file-type", .string("m4a"))]),
            ])
        #expect(try stage.export(path, stage.folder.path + "/s.m4a", [("preset", .string("passthrough"))]) == "done")
        let written = try FileManager.default.attributesOfItem(atPath: stage.folder.path + "/s.m4a")[.size] as? Int ?? 0
        let estimated = Int(sound[0].uint64Value ?? 0)
        #expect(estimated > written / 2 && estimated < written * 2, "\(estimated) \(written)")
    }

    /// 8.04 s is slightly less than that as a floating-point number.
    @Test func timeOfAPicture_isThePictureWhereTheCopyBegins() throws {
        for index in 1...20_000 {
            #expect(Times.nanoseconds(Double(index) / 25) == UInt64(index) * 40_000_000)
        }
    }

    /// It has no index that could come to the front.
    @Test(arguments: [false, true]) func webm_isWritten(forNetwork: Bool) throws {
        let stage = try FilmStage()
        let output = stage.folder.path + "/new.webm"
        let options: [(String, Value)] = [("optimize-for-network", .bool(forNetwork))]
        #expect(try stage.export(try TestMedia.named("short-gop.mp4").path(), output, options) == "done")
        #expect(try Self.probe(output, "stream=codec_name") == ["vp8"])
        #expect(try Self.probe(output, "stream=codec_name", "a") == ["opus"])
    }

    @Test func existingTarget_staysUnlessItMayBeReplaced() throws {
        let stage = try FilmStage()
        let path = try TestMedia.named("silent.mp4").path()
        let output = try stage.folder.file("there.mp4", "mine")
        #expect(try stage.export(path, output) == "FileAlreadyExists")
        #expect(try String(contentsOfFile: output, encoding: .utf8) == "mine")
        #expect(
            try stage.export(path, output, [("overwrite", .bool(true)), ("preset", .string("passthrough"))]) == "done")
        #expect(try Self.probe(output, "stream=codec_name") == ["h264"])
        #expect(try stage.export(path, "/nowhere/new.mp4") == "NotFound")
        #expect(try stage.export(path, stage.folder.path + "/", []) == "BadParameter")
    }

    @Test func cancelAtAnyTime_leavesTheFolderUnchanged() throws {
        let stage = try FilmStage()
        let folder = try stage.folder.folder("out")
        let path = try TestMedia.named("long-gop.mp4").path()
        for step in 0..<8 {
            let job = try stage.begin(path, folder + "/new.mp4", [("optimize-for-network", .bool(step % 2 == 0))])
            try stage.wait { stage.progress[job]?.last ?? 0 >= Double(step) * 0.1 || stage.finished[job] != nil }
            try stage.cancel(job)
            try stage.wait { stage.finished[job] != nil }
            if stage.states[job]?.last == "cancelled" { #expect(try FilmStage.names(in: folder) == []) }
            unlink(folder + "/new.mp4")
        }
    }

    @Test func killedWorkerAndPlugin_leaveNothing() throws {
        let stage = try FilmStage()
        let folder = try stage.folder.folder("out")
        let path = try TestMedia.named("long-gop.mp4").path()
        let job = try stage.begin(path, folder + "/new.mp4", [("preset", .string("high"))])
        try stage.wait { stage.progress[job]?.last ?? 0 > 0 || stage.finished[job] != nil }
        for worker in stage.workers { kill(worker, SIGKILL) }
        try stage.wait { stage.finished[job] != nil }
        // On a busy machine, the news of its progress may come after its end.
        #expect(try FilmStage.names(in: folder) == (stage.finished[job] == ["done"] ? ["new.mp4"] : []))
        unlink(folder + "/new.mp4")
        let other = try stage.begin(path, folder + "/other.mp4", [("preset", .string("high"))])
        try stage.wait { stage.progress[other]?.last ?? 0 > 0 || stage.finished[other] != nil }
        let workers = stage.workers
        stage.plugin.kill()
        #expect(try FilmStage.names(in: folder) == [])
        #expect(eventually { workers.allSatisfy { kill($0, 0) != 0 } }, "its workers end with it")
    }

    @Test func pausedExport_continuesAtItsPosition() throws {
        let stage = try FilmStage()
        let output = stage.folder.path + "/new.mp4"
        let job = try stage.begin(try TestMedia.named("long-gop.mp4").path(), output, [("preset", .string("high"))])
        try stage.wait { stage.progress[job]?.last ?? 0 > 0 || stage.finished[job] != nil }
        _ = try stage.call("Pause", [], path: job, interface: "org.sessiond1.Job")
        if try stage.property("State", of: job) == .string("paused") {
            _ = try stage.call("Resume", [], path: job, interface: "org.sessiond1.Job")
        }
        try stage.wait { stage.finished[job] != nil }
        #expect(stage.finished[job] == ["done"])
        let numbers = try TestMedia.numbers(
            ["-i", output, "-map", "0:v", "-vsync", "passthrough"], width: 320, height: 180)
        #expect(numbers == Array(0..<300))
    }

    @Test func runningExport_preventsSleep() throws {
        let stage = try FilmStage()
        let machine = try FakeMachine(on: stage.bus)
        let path = try TestMedia.named("short-gop.mp4").path()
        #expect(machine.locks == [])
        #expect(try stage.export(path, stage.folder.path + "/new.mp4") == "done")
        #expect(eventually { machine.locks == ["lock sleep sessiond block", "unlock"] }, "\(machine.locks)")
    }

    @Test func detachedExport_outlivesItsOwner() throws {
        let stage = try FilmStage()
        let output = stage.folder.path + "/new.mp4"
        let path = try TestMedia.named("long-gop.mp4").path()
        _ = try stage.begin(path, output, [("detached", .bool(true))])
        let job = try stage.begin(path, stage.folder.path + "/mine.mp4", [])
        _ = job
        stage.client.close()
        #expect(eventually(timeout: 60) { FileManager.default.fileExists(atPath: output) })
        #expect(!FileManager.default.fileExists(atPath: stage.folder.path + "/mine.mp4"))
    }

    /// On a small disk of its own, where this test may make one.
    @Test(.enabled(if: geteuid() == 0)) func fullDisk_isReportedAndLeavesNoFile() throws {
        let folder = try PrivateFolder()
        let disk = try folder.folder("disk")
        guard (try? Child.run("mount", ["-t", "tmpfs", "-o", "size=100k", "tmpfs", disk])) != nil else {
            // A container without the right to mount.
            return
        }
        defer { _ = try? Child.run("umount", ["-l", disk]) }
        let stage = try FilmStage()
        let path = try TestMedia.named("web.webm").path()
        // Too small for the film, for what is certainly needed, and for the film and its draft.
        for (preset, network, size) in [
            ("high", false, 100), ("1280x720", false, 100), ("high", true, 100), ("high", true, 200),
        ] {
            try Child.run("mount", ["-o", "remount,size=\(size)k", disk])
            let options: [(String, Value)] = [
                ("preset", .string(preset)), ("optimize-for-network", .bool(network)),
            ]
            let end = try stage.export(path, disk + "/new.mp4", options)
            #expect(end == "DiskFull", "\(preset) \(network)")
            #expect(try FilmStage.names(in: disk) == [])
        }
        let images = try stage.generate(
            path, (0..<300).map { Double($0) * 0.03 },
            [("mode", .string("exact")), ("format", .string("png")), ("folder", .string(disk))])
        try stage.wait { stage.finished[images] != nil }
        #expect(try FilmStage.names(in: disk) == [])
    }
}
