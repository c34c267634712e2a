import DBus
import Foundation
import PluginAPI
import TestSupport
import Testing

/// Pictures that are not finished: cancelled, left alone, or made by workers that hang or end.
@Suite struct ImageFaultTests {
    @Test func cancelledJob_answersForAllTimesAndLeavesNoFile() throws {
        let stage = try FilmStage()
        let folder = try stage.folder.folder("pictures")
        let times = (0..<400).map { Double($0 * 37 % 400) * 0.029 }
        let job = try stage.generate(
            try TestMedia.named("long-gop.mp4").path(), times,
            [("mode", .string("exact")), ("folder", .string(folder))])
        try stage.wait { stage.images[job]?.count ?? 0 >= 3 }
        try stage.cancel(job)
        try stage.wait { stage.finished[job] != nil }
        #expect(stage.images[job]?.count == times.count)
        #expect(stage.images[job]?.last?.error == "Cancelled")
        #expect(try FilmStage.names(in: folder) == [])
        #expect(stage.states[job]?.last == "cancelled")
        // The next one is served.
        #expect(try stage.pictures(try TestMedia.named("short-gop.mp4").path(), [1]).count == 1)
    }

    @Test func ownerLeaves_itsPicturesAndJobsAreRemoved() throws {
        let stage = try FilmStage()
        let path = try TestMedia.named("long-gop.mp4").path()
        let images = try stage.pictures(path, [1])
        let parent = URL(fileURLWithPath: images[0].path).deletingLastPathComponent().path
        #expect(FileManager.default.fileExists(atPath: images[0].path))
        _ = try stage.generate(path, (0..<400).map { Double($0 * 37 % 400) * 0.029 }, [("mode", .string("exact"))])
        stage.client.close()
        #expect(eventually { !FileManager.default.fileExists(atPath: parent) })
        #expect(eventually { (try? FilmStage.names(in: stage.folder.path + "/run/sessiond/images")) == [] })
    }

    @Test func stoppedWorker_failsItsJobAtTheDeadlineAndTheNextIsServed() throws {
        let stage = try FilmStage()
        let path = try TestMedia.named("long-gop.mp4").path()
        let job = try stage.generate(
            path, (0..<400).map { Double($0 * 37 % 400) * 0.029 }, [("mode", .string("exact"))])
        try stage.wait { stage.images[job] != nil }
        for worker in stage.workers { kill(worker, SIGSTOP) }
        try stage.wait { stage.finished[job] != nil }
        #expect(try stage.property("Error", of: job) == .string("org.sessiond1.Error.DecodeFailed"))
        #expect(stage.finished[job]?.first?.contains("10 s") == true)
        #expect(try stage.pictures(try TestMedia.named("short-gop.mp4").path(), [1]).count == 1)
        #expect(eventually { !stage.workers.contains(where: FilmStage.isZombie) })
    }

    @Test func killedWorker_failsOnlyItsJob() throws {
        let stage = try FilmStage()
        let path = try TestMedia.named("long-gop.mp4").path()
        for _ in 0..<5 {
            let job = try stage.generate(
                path, (0..<400).map { Double($0 * 37 % 400) * 0.029 }, [("mode", .string("exact"))])
            try stage.wait { stage.images[job] != nil }
            for worker in stage.workers { kill(worker, SIGKILL) }
            try stage.wait { stage.finished[job] != nil }
            #expect(try stage.property("Error", of: job) == .string("org.sessiond1.Error.DecodeFailed"))
            #expect(stage.images[job]?.count == 400)
        }
        #expect(try stage.pictures(path, [1]).count == 1)
        #expect(stage.plugin.isRunning)
        #expect(eventually { !stage.workers.contains(where: FilmStage.isZombie) })
    }
}
