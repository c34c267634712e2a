import Foundation
import TestSupport
import Testing

/// `sessionctl watch --output pipewire`, with the real daemon and PipeWire: what other programs read of a film.
@Suite(.serialized, .enabled(if: VirtualCamera.isPossible, "needs gstreamer1.0-pipewire"))
struct PipeWireTests {
    @Test func readers_comeLate_leave_comeAgain_andHang_andTheFilmGoesOn() throws {
        let stage = try NodeStage()
        let watch = try stage.watch("--output", "pipewire:film")
        let first = try stage.reader()
        #expect(eventually(timeout: 30) { first.number() > 0 }, "\(first.errors)")
        #expect(stage.moves(first))
        // None is torn, or comes twice but at the end of the film: a busy machine leaves some out.
        let from = first.count
        #expect(eventually(timeout: 20) { first.count > from + 40 })
        let numbers = (from..<(from + 40)).map { first.number(of: $0) }
        let steps = zip(numbers, numbers.dropFirst()).map { $1 - $0 }
        #expect(steps.allSatisfy { (0...25).contains($0) || $0 < -200 }, "\(numbers)")
        let second = try stage.reader()
        #expect(eventually(timeout: 30) { second.number() > 0 }, "\(second.errors)")
        first.leave()
        #expect(try stage.isSeen(by: second))
        second.leave()
        #expect(stage.ear.waitUntil(440, above: -40, timeout: 10))
        let third = try stage.reader()
        #expect(try stage.isSeen(by: third))
        // The film is heard meanwhile, and seen again when that reader is gone.
        third.hang()
        for _ in 0..<4 { #expect(stage.ear.waitUntil(440, above: -40, timeout: 10)) }
        third.kill()
        #expect(try stage.isSeen())
        #expect(watch.isRunning, "\(watch.errors)")
        watch.signal(SIGINT)
        #expect(watch.wait(timeout: 30) == .code(130), "\(watch.errors)")
    }

    @Test func whatIsRead_isInStepWithWhatIsHeard() throws {
        let stage = try NodeStage()
        let watch = try stage.watch("--output", "pipewire:film")
        let reader = try stage.reader()
        #expect(eventually(timeout: 30) { reader.number() > 0 }, "\(reader.errors)")
        // When the first picture of each second was read.
        var seen: [(second: Int, time: Double)] = []
        var last = reader.number()
        let end = monotonicNow() + 30
        while seen.count < 8, monotonicNow() < end {
            let (number, now) = (reader.number(), monotonicNow())
            if number > last, number / 25 > last / 25, number % 25 == 0 { seen.append((number / 25, now)) }
            last = number
            usleep(500)
        }
        #expect(seen.count == 8)
        let trace = stage.ear.trace(440, window: 0.002, since: (seen.first?.time ?? 0) - 1)
        let starts = zip(trace, trace.dropFirst()).filter { $0.level < -35 && $1.level >= -35 }.map { $1.time }
        let offsets = seen.compactMap { picture in
            starts.map { (picture.time - $0) * 1_000 }.min { abs($0) < abs($1) }
        }.sorted()
        let median = try #require(offsets.isEmpty ? nil : offsets[offsets.count / 2])
        // It is read from a file of the reader, which takes some of that time.
        #expect(abs(median) < 60, "\(offsets)")
        #expect(watch.isRunning)
    }

    @Test func call_stopsThePictures_andALateReaderSeesTheOneThatStands() throws {
        let stage = try NodeStage(output: "pipewire:film")
        let watch = try stage.watch(film: "short-gop.mp4")
        let reader = try stage.reader()
        #expect(eventually(timeout: 30) { reader.number() > 0 }, "\(reader.errors)")
        let call = try stage.sessionctl(
            "run", "--name", "Phone", "--category", "play-and-record", "--class", "call", "--", "sh", "-c",
            "echo runs; exec sleep 600")
        #expect(call.line(timeout: 30, where: { $0 == "runs" }) != nil)
        #expect(stage.ear.waitUntil(440, below: -60, timeout: 30))
        var number = reader.number()
        #expect(
            eventually(timeout: 20) {
                let count = reader.count
                defer { number = reader.number() }
                return reader.number() == number && eventually(timeout: 2) { reader.count >= count + 3 }
                    && reader.number() == number
            })
        let late = try stage.reader()
        #expect(eventually(timeout: 30) { late.number() == number }, "\(late.number()), \(number): \(late.errors)")
        call.signal(SIGTERM)
        #expect(call.wait(timeout: 30) == .code(143))
        #expect(stage.moves(late))
        #expect(watch.isRunning)
    }

    @Test func serverIsKilledAndStartedAgain_filmGoesOn_andItsNodeComesBack() throws {
        let stage = try NodeStage(hasOwnSound: true)
        let watch = try stage.watch("--output", "pipewire:film")
        let reader = try stage.reader()
        #expect(eventually(timeout: 30) { reader.number() > 0 }, "\(reader.errors)")
        for _ in 0..<2 {
            stage.server.kill()
            for _ in 0..<4 { #expect(stage.ear.waitUntil(440, above: -40, timeout: 10)) }
            try stage.server.restart()
            let time = try stage.timeUntilSeen()
            #expect(time.map { $0 < 15 } == true, "\(time ?? -1) \(watch.errors)")
            #expect(watch.isRunning, "\(watch.errors)")
        }
    }

    @Test func sessionManagerIsStartedAgain_andTheNodeIsRead() throws {
        let stage = try NodeStage(hasOwnSound: true)
        let watch = try stage.watch("--output", "pipewire:film")
        let reader = try stage.reader()
        #expect(eventually(timeout: 30) { reader.number() > 0 }, "\(reader.errors)")
        for _ in 0..<2 {
            try stage.server.restartSessionManager()
            for _ in 0..<3 { #expect(stage.ear.waitUntil(440, above: -40, timeout: 10)) }
            let time = try stage.timeUntilSeen()
            #expect(time.map { $0 < 15 } == true, "\(time ?? -1) \(watch.errors)")
            #expect(watch.isRunning, "\(watch.errors)")
        }
    }

    /// The node keeps the size of the first film, 320 × 180; the next one has half of its width.
    @Test(arguments: ["aspect-fit", "aspect-fill", "fill", "none"])
    func nextFilmOfAnotherShape_isInTheSameNode_andItsReaderStays(scaling: String) throws {
        let stage = try NodeStage()
        let folder = try PrivateFolder()
        let narrow = folder.path + "/narrow.mp4"
        try Child.run(
            "ffmpeg",
            [
                "-nostdin", "-v", "error", "-y", "-i", try TestMedia.named("short-gop.mp4").path(), "-vf",
                "scale=160:180,setsar=1", "-c:v", "libx264", "-preset", "veryfast", "-c:a", "copy", narrow,
            ], timeout: 60)
        let watch = try Child(
            try builtProduct(named: "sessionctl"),
            [
                "watch", "--name", "Film", "--output", "pipewire:film", "--scaling", scaling, "--from", "5",
                try TestMedia.named("short-gop.mp4").path(), narrow,
            ], environment: stage.environment)
        #expect(stage.ear.waitUntil(440, above: -40, timeout: 60), "\(watch.errors)")
        let reader = try stage.reader()
        // The first film has 126 to 299 here, and the next one begins with 0.
        #expect(eventually(timeout: 30) { (126...299).contains(reader.number()) }, "\(watch.errors) \(reader.errors)")
        let isWhole = scaling == "fill" || scaling == "aspect-fill"
        // Left and right of the next one, all is black. A part of a picture of the first one may look like a number.
        func isNext() -> Bool {
            let place = reader.count - 1
            let pixels = place >= 0 ? reader.picture(place) : []
            guard !pixels.isEmpty else { return false }
            if isWhole { return (3...120).contains(reader.number(of: place)) }
            let isBlack = stride(from: 0, to: 320 * 180, by: 320).allSatisfy { row in
                pixels[row..<(row + 78)].allSatisfy { $0 < 20 }
                    && pixels[(row + 242)..<(row + 320)].allSatisfy { $0 < 20 }
            }
            return isBlack && (3...150).contains(reader.number(of: place, x: 80, width: 160))
        }
        #expect(eventually(timeout: 30, isNext), "\(reader.number())")
        #expect(reader.isRunning && watch.isRunning, "\(watch.errors) \(reader.errors)")
    }

    @Test func noServer_andBadNames_areRefusedWithTheReason() throws {
        let stage = try NodeStage()
        let film = try TestMedia.named("short-gop.mp4").path()
        let bad = try stage.sessionctl("watch", "--output", "pipewire:", film)
        #expect(bad.wait(timeout: 30) == .code(64))
        #expect(bad.errors.joined().contains("pipewire:film"), "\(bad.errors)")
        let away = try Child(
            try builtProduct(named: "sessionctl"), ["watch", "--output", "pipewire", film],
            environment: stage.environment.merging(["PIPEWIRE_REMOTE": "nowhere"]) { $1 })
        #expect(away.wait(timeout: 60) == .code(1), "\(away.errors)")
        #expect(away.errors.joined().contains("no PipeWire server can be reached"), "\(away.errors)")
    }
}
