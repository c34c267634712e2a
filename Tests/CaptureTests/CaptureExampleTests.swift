import Foundation
import Glibc
import TestSupport
import Testing

/// The scripts of Examples/Shell that use a camera.
@Suite(.serialized, .enabled(if: VirtualCamera.isPossible, "needs gstreamer1.0-pipewire"))
struct CaptureExampleTests {
    private func run(_ script: String, _ words: [String], _ stage: CaptureStage) throws -> Child {
        let programs = try builtProduct(named: "sessionctl").split(separator: "/").dropLast().joined(separator: "/")
        return try Child(
            "\(repository.path)/Examples/Shell/\(script)", words,
            environment: stage.environment.merging([
                "PATH": "/\(programs):/usr/bin:/bin", "SECONDS_OF_FILM": "1",
            ]) { $1 })
    }

    private func films(_ folder: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).filter { $0.hasSuffix(".mp4") }.sorted()
    }

    @Test func dashCamera_keepsTheNewestFilms() throws {
        let stage = try CaptureStage()
        let folder = stage.path("films")
        let camera = try run("dash-camera", [folder, "2", "1"], stage)
        var seen: Set<String> = []
        #expect(
            eventually(timeout: 60) {
                seen.formUnion(films(folder))
                return seen.count >= 4
            }, "\(camera.errors)")
        camera.signal(SIGTERM)
        #expect(camera.wait(timeout: 20) == .code(0))
        // Two, and the one that was being recorded.
        let kept = films(folder)
        #expect(kept.count <= 3 && kept == Array(seen.sorted().suffix(kept.count)), "\(kept) of \(seen.sorted())")
        let read = try ReadFilm(folder + "/" + kept[0])
        #expect(read.pictures.count == 30 && read.isInOrder && read.audioLength != nil)
    }

    @Test func portedApp_takesAPhotoAndAFilm_andSeesThePictures() throws {
        let stage = try CaptureStage()
        let app = try Child(
            try builtProduct(named: "example-ported-camera"), [stage.folder.path], environment: stage.environment)
        #expect(app.wait(timeout: 60) == .code(0), "\(app.output) \(app.errors) \(stage.errors)")
        #expect(app.output == ["photo of some kB", "film film.mp4, complete", "pictures: many"], "\(app.errors)")
        let film = try ReadFilm(stage.path("film.mp4"))
        #expect(film.pictures.count == 30 && film.audioLength != nil)
    }

    @Test func doorbell_filmsWhenSomebodyIsThere() throws {
        let stage = try CaptureStage()
        let bell = stage.path("bell")
        // Somebody is there when the file appears; the command takes it away, and fails the second time.
        let script = try run("doorbell", [stage.path("films"), "test -e \(bell) && rm \(bell)", "echo filmed"], stage)
        #expect(script.wait(timeout: 20) == .code(0))
        #expect(films(stage.path("films")).isEmpty)
        #expect(FileManager.default.createFile(atPath: bell, contents: nil))
        let again = try run("doorbell", [stage.path("films"), "test -e \(bell) && rm \(bell)", "echo filmed"], stage)
        #expect(again.wait(timeout: 60) == .code(0), "\(again.errors)")
        let film = try #require(films(stage.path("films")).first)
        #expect(again.text.contains("filmed \(stage.path("films"))/\(film)"), "\(again.text)")
        #expect(try ReadFilm(stage.path("films") + "/" + film).pictures.count == 30)
    }
}
