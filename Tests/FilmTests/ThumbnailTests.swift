import DBus
import Foundation
import PluginAPI
import TestSupport
import Testing

@testable import FileFormats

/// The thumbnails that programs share.
@Suite struct ThumbnailTests {
    private static func copy(_ name: String, in stage: FilmStage, as file: String) throws -> String {
        let path = stage.folder.path + "/" + file
        try FileManager.default.copyItem(atPath: TestMedia.named(name).path(), toPath: path)
        return path
    }

    @Test func thumbnail_isWhereProgramsLookForIt() throws {
        let stage = try FilmStage()
        let film = try Self.copy("short-gop.mp4", in: stage, as: "my film (1).mp4")
        let uri = "file://\(stage.folder.path)/my%20film%20(1).mp4"
        let path = try stage.call("Thumbnail", [.string(uri), .string("normal")])[0].stringValue ?? ""
        let home = stage.folder.path + "/home/cache/thumbnails"
        #expect(path == "\(home)/normal/\(MD5.text(uri.utf8)).png")
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        let texts = try #require(PNGText.read(bytes))
        var status = stat()
        #expect(stat(film, &status) == 0)
        #expect(texts["Thumb::URI"] == uri)
        #expect(texts["Thumb::MTime"] == String(status.st_mtim.tv_sec))
        #expect(texts["Thumb::Size"] == String(status.st_size))
        #expect(texts["Thumb::Movie::Length"] == "12")
        #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(stat(home + "/normal", &status) == 0 && status.st_mode & 0o777 == 0o700)
        // Others read it, too.
        let size = try Child.run(
            "ffprobe", ["-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0", path])
        #expect(size.trimmingCharacters(in: .whitespacesAndNewlines) == "128,72")
        #expect(try FilmStage.names(in: home + "/normal").count == 1)
    }

    @Test func thumbnail_isMadeAgainWhenTheFileHasChanged() throws {
        let stage = try FilmStage()
        let film = try Self.copy("short-gop.mp4", in: stage, as: "film.mp4")
        func thumbnail() throws -> (String, ino_t) {
            let path = try stage.call("Thumbnail", [FilmStage.uri(film), .string("large")])[0].stringValue ?? ""
            var status = stat()
            #expect(stat(path, &status) == 0)
            return (path, status.st_ino)
        }
        let first = try thumbnail()
        #expect(try thumbnail() == first)
        #expect(utimes(film, [timeval(tv_sec: 1_000, tv_usec: 0), timeval(tv_sec: 1_000, tv_usec: 0)]) == 0)
        let second = try thumbnail()
        #expect(second.0 == first.0)
        #expect(second.1 != first.1)
    }

    @Test func fileWithoutAPicture_isRememberedAsSuch() throws {
        let stage = try FilmStage()
        let whole = [UInt8](try Data(contentsOf: URL(fileURLWithPath: TestMedia.named("web.webm").path())))
        let film = stage.folder.path + "/broken.webm"
        // The header of a film, and nothing of its pictures.
        try Data(whole.prefix(600) + [UInt8](repeating: 0, count: 5_000)).write(to: URL(fileURLWithPath: film))
        #expect(try stage.refusal("Thumbnail", [FilmStage.uri(film), .string("normal")]) == "DecodeFailed")
        let folder = stage.folder.path + "/home/cache/thumbnails/fail"
        let names = try FilmStage.names(in: folder)
        #expect(names.count == 1 && names[0].hasPrefix("sessiond-"))
        let entry = try FilmStage.names(in: folder + "/" + names[0])
        #expect(entry == [MD5.text("file://\(film)".utf8) + ".png"])
        #expect(try stage.refusal("Thumbnail", [FilmStage.uri(film), .string("normal")]) == "DecodeFailed")
    }

    @Test func sound_hasItsCover() throws {
        let stage = try FilmStage()
        let path =
            try stage.call(
                "Thumbnail", [FilmStage.uri(try TestMedia.named("cover.mp3").path()), .string("normal")])[0].stringValue
            ?? ""
        let size = try Child.run(
            "ffprobe", ["-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0", path])
        #expect(size.trimmingCharacters(in: .whitespacesAndNewlines) == "128,128")
        #expect(
            try stage.refusal("Thumbnail", [FilmStage.uri(TestMedia.named("sound.m4a").path()), .string("normal")])
                != nil)
        #expect(try stage.refusal("Thumbnail", [FilmStage.uri("/x"), .string("huge")]) == "BadParameter")
    }

    /// As file managers call it: no bus, no service.
    @Test func thumbnailer_writesAPicture() throws {
        let folder = try PrivateFolder()
        let output = folder.path + "/picture.png"
        let program = try builtProduct(named: "sessiond-thumbnailer")
        let film = try TestMedia.named("rotated.mp4").path()
        for name in [film, "file://" + film] {
            try Child.run(program, [name, output, "96"], environment: ["PATH": "/usr/bin:/bin", "HOME": folder.path])
            let size = try Child.run(
                "ffprobe", ["-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0", output])
            #expect(size.trimmingCharacters(in: .whitespacesAndNewlines) == "54,96")
            unlink(output)
        }
        let failing = try Child(program, ["/nothing.mp4", output, "96"])
        #expect(failing.wait(timeout: 30) == .code(1))
        #expect(failing.errors.first?.contains("does not exist") == true || failing.errors.first != nil)
        #expect(try Child(program, []).wait(timeout: 30) == .code(64))
    }

    @Test func md5_isThatOfTheStandard() {
        #expect(MD5.text("".utf8) == "d41d8cd98f00b204e9800998ecf8427e")
        #expect(MD5.text("abc".utf8) == "900150983cd24fb0d6963f7d28e17f72")
        #expect(MD5.text(String(repeating: "1234567890", count: 8).utf8) == "57edf4a22be3c955ac49da2e2107b67a")
    }
}
