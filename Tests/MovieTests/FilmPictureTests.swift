import Foundation
import GStreamerBackend
import TestSupport
import Testing
import VideoBackend

/// The picture in docs/movies.md: a film with a subtitle, and what a key has drawn. To make it again:
///
///     SESSIOND_PICTURES=docs/pictures Scripts/test FilmPictureTests
@Suite(.serialized) struct FilmPictureTests {
    private static let (width, height) = (640, 360)
    private static let path = repository.appendingPathComponent("docs/pictures/film.png").path

    /// Ten seconds of dark colours: only letters are white.
    private static func film(in folder: PrivateFolder) throws -> String {
        let path = folder.path + "/film.mp4"
        try Child.run(
            "ffmpeg",
            [
                "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i",
                "gradients=s=640x360:r=25:d=10:c0=0x10243c:c1=0x7a3c5a:x0=0:y0=0:x1=640:y1=360:speed=0.00001", "-f",
                "lavfi", "-i", "sine=440:d=10", "-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "veryfast", "-c:a",
                "aac",
                path,
            ], timeout: 120)
        try "1\n00:00:03,000 --> 00:00:09,000\nA call pauses picture and sound,\nand <i>both go on in step</i>.\n"
            .write(
                toFile: folder.path + "/film.srt", atomically: true, encoding: .utf8)
        return path
    }

    /// Blue, green, red and nothing of each pixel of a PNG.
    private static func pixels(of picture: String, in folder: PrivateFolder) throws -> [UInt8] {
        let raw = folder.path + "/raw"
        try Child.run(
            "ffmpeg",
            ["-nostdin", "-v", "error", "-y", "-i", picture, "-f", "rawvideo", "-pix_fmt", "bgr0", raw])
        return [UInt8](try Data(contentsOf: URL(fileURLWithPath: raw)))
    }

    /// Few colours, and no frames between them: a small file.
    private static func write(_ pixels: [UInt8], to path: String, in folder: PrivateFolder) throws {
        let raw = folder.path + "/shown"
        try Data(pixels).write(to: URL(fileURLWithPath: raw))
        try Child.run(
            "ffmpeg",
            [
                "-nostdin", "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "bgr0", "-s", "\(width)x\(height)", "-i",
                raw, "-vf", "split[a][b];[a]palettegen=max_colors=64[p];[b][p]paletteuse=dither=none", path,
            ])
    }

    @Test func pictureOfTheDocs_isWhatIsSeen() throws {
        let folder = try PrivateFolder()
        let stage = try FilmStage(try Self.film(in: folder))
        let screen = try #require(stage.screen)
        stage.player.seek(to: 4.5)
        #expect(stage.until { stage.film.isReady })
        stage.film.note("▶ 0:04 / 0:10")
        var shown: [UInt8] = []
        // White letters: of the note above, and of the subtitle below.
        func letters(_ y: Int, _ height: Int) -> Int {
            (y * Self.width..<(y + height) * Self.width).count { pixel in
                shown[pixel * 4..<pixel * 4 + 3].allSatisfy { $0 > 240 }
            }
        }
        #expect(
            stage.until {
                shown = screen.colours(width: Self.width, height: Self.height)
                guard shown.count == Self.width * Self.height * 4 else { return false }
                return letters(0, 40) > 100 && letters(280, 80) > 300
            })
        #expect(shown.count == Self.width * Self.height * 4)
        if let place = ProcessInfo.processInfo.environment["SESSIOND_PICTURES"] {
            try Self.write(shown, to: place + "/film.png", in: folder)
        }
        let bytes = try FileManager.default.attributesOfItem(atPath: Self.path)[.size] as? NSNumber
        #expect((bytes?.intValue ?? 0) < 60_000)
        let kept = try Self.pixels(of: Self.path, in: folder)
        #expect(kept.count == shown.count)
        // Fonts and the colours of ffmpeg differ between systems, and the file has few colours.
        let difference = zip(kept, shown).enumerated().reduce(0) { sum, pair in
            pair.offset % 4 == 3 ? sum : sum + abs(Int(pair.element.0) - Int(pair.element.1))
        }
        #expect(Double(difference) / Double(Self.width * Self.height * 3) < 16)
    }
}
