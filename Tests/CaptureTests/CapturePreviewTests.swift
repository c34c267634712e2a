import DBus
import Foundation
import Glibc
import TestSupport
import Testing

/// The preview, read from a screen of X11, and the pictures that other programs get.
@Suite(.serialized, .enabled(if: VirtualCamera.isPossible, "needs gstreamer1.0-pipewire"))
struct CapturePreviewTests {
    /// The number in a row of brightness: 16 fields, dark or bright.
    private func number(_ row: ArraySlice<UInt8>) -> Int {
        let width = row.count / 16
        return (0..<16).reduce(0) { $0 | (row[row.startIndex + $1 * width + width / 2] > 128 ? 1 << $1 : 0) }
    }

    /// The number that a preview shows in the upper left corner; -1: none, or a picture that is being drawn.
    private func number(on screen: PrivateScreen, width: Int = 640, height: Int = 480) -> Int {
        let rows = [height / 4, height * 5 / 8].map { screen.pixels(x: 0, y: $0, width: width, height: 1) }
        guard rows.allSatisfy({ $0.count == width }) else { return -1 }
        let (above, below) = (number(rows[0][...]), number(rows[1][...]))
        return above == ~below & 0xffff ? above : -1
    }

    private func preview(_ stage: CaptureStage, _ screen: PrivateScreen, _ words: String...) throws -> Child {
        try Child(
            try builtProduct(named: "sessionctl"), ["camera"] + words,
            environment: stage.environment.merging(["DISPLAY": screen.display]) { $1 })
    }

    @Test func preview_showsTheCamera_andItsKeysWork() throws {
        let stage = try CaptureStage()
        let screen = try PrivateScreen()
        let run = try preview(stage, screen, "preview")
        #expect(run.line { $0.hasPrefix("front  640x480, 30/s") } != nil, "\(run.errors)")
        var seen: [Int] = []
        #expect(
            eventually(timeout: 20) {
                let now = number(on: screen)
                if now > 0, now != seen.last { seen.append(now) }
                return seen.count >= 20
            }, "\(seen) \(stage.errors)")
        #expect(seen == seen.sorted(), "\(seen)")
        let window = try #require(screen.windows.last)
        #expect(screen.text("WM_CLASS", of: window) == "sessiond-capture\0Sessiond-capture\0")
        #expect(screen.text("_NET_WM_NAME", of: window) == "front – sessionctl camera")
        // Space: the picture stands, and goes on.
        let (space, q): (UInt8, UInt8) = (65, 24)
        screen.press(space, in: window)
        #expect(
            eventually(timeout: 10) {
                let before = number(on: screen)
                let end = monotonicNow() + 0.4
                _ = eventually(timeout: 1) { monotonicNow() >= end }
                return before > 0 && number(on: screen) == before
            })
        let stood = number(on: screen)
        screen.press(space, in: window)
        #expect(eventually(timeout: 10) { number(on: screen) > stood })
        // A window that is resized has the whole picture.
        screen.resize(window, width: 320, height: 240)
        #expect(eventually(timeout: 10) { number(on: screen, width: 320, height: 240) > stood })
        screen.press(q, in: window)
        #expect(run.wait(timeout: 20) == .code(0), "\(run.errors)")
        #expect(eventually { screen.windows.isEmpty })
    }

    @Test func previewOfAFilm_isClosed_andTheFilmGoesOn() throws {
        let stage = try CaptureStage()
        let screen = try PrivateScreen()
        let film = stage.path("film.mp4")
        let record = try preview(stage, screen, "record", "--preview", "--duration", "4", film)
        #expect(record.line { $0.hasPrefix("recording") } != nil, "\(record.errors)")
        #expect(eventually(timeout: 20) { number(on: screen) > 0 })
        let window = try #require(screen.windows.last)
        screen.close(window)
        #expect(eventually { screen.windows.isEmpty })
        #expect(record.wait(timeout: 30) == .code(0), "\(record.errors)")
        #expect(try ReadFilm(film).pictures.count == 120)
    }

    @Test func screenThatEnds_endsThePreview_notTheFilm() throws {
        let stage = try CaptureStage()
        let screen = try PrivateScreen()
        let other = try PrivateScreen()
        let film = stage.path("film.mp4")
        let record = try preview(stage, screen, "record", "--preview", "--duration", "4", film)
        #expect(record.line { $0.hasPrefix("recording") } != nil, "\(record.errors)")
        #expect(eventually(timeout: 20) { number(on: screen) > 0 })
        screen.kill()
        #expect(record.wait(timeout: 30) != nil)
        #expect(try ReadFilm(film).pictures.count == 120)
        // The plugin is there, and shows the next one.
        let next = try preview(stage, other, "preview", "--meter")
        #expect(eventually(timeout: 20) { number(on: other) > 0 }, "\(next.errors) \(stage.errors)")
        other.kill()
        #expect(next.wait(timeout: 20) == .code(1))
        #expect(next.errors.joined().contains("X11 server"), "\(next.errors)")
        // With PipeWire 1.4, the camera is gone for a moment after its last reader.
        var errors = ""
        #expect(
            try eventually(timeout: 20) {
                let nowhere = try preview(stage, other, "preview")
                let code = nowhere.wait(timeout: 20)
                errors = nowhere.errors.joined()
                return code == .code(1) && errors.contains("set DISPLAY")
            }, "\(errors)")
    }

    // MARK: Pictures for other programs

    /// A program that reads pictures with their headers from a FIFO.
    private final class Reader {
        struct Picture {
            let number: Int
            let time: UInt64
            let code: Int
        }

        private(set) var pictures: [Picture] = []
        private var file: Int32
        private var bytes: [UInt8] = []
        private let size: Int

        init(_ path: String, size: Int) throws {
            self.size = size
            file = open(path, O_RDONLY | O_NONBLOCK)
            guard file >= 0 else { throw SupportError("the FIFO cannot be opened") }
        }

        deinit { end() }

        func end() {
            if file >= 0 { close(file) }
            file = -1
        }

        /// Reads what is there.
        func read(_ code: (ArraySlice<UInt8>) -> Int) {
            var part = [UInt8](repeating: 0, count: 1 << 20)
            while case let count = Glibc.read(file, &part, part.count), count > 0 { bytes += part[..<count] }
            while bytes.count >= 32 + size {
                let words = bytes.withUnsafeBytes { raw in
                    (
                        raw.loadUnaligned(fromByteOffset: 0, as: UInt32.self),
                        raw.loadUnaligned(fromByteOffset: 4, as: UInt32.self),
                        raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self),
                        raw.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
                    )
                }
                #expect(words.0 == 32 && Int(words.1) == size)
                pictures.append(Picture(number: Int(words.2), time: words.3, code: code(bytes[32..<32 + size])))
                bytes.removeFirst(32 + size)
            }
        }
    }

    @Test func frames_areThePicturesOfTheCamera_andASlowReaderLosesCountedOnes() throws {
        let stage = try CaptureStage()
        let fifo = stage.path("fifo")
        #expect(mkfifo(fifo, 0o600) == 0)
        let run = try stage.sessionctl("camera", "frames", "--pixels", "GRAY8", "--header", fifo)
        #expect(run.line { $0.hasPrefix("front  640x480, 30/s  GRAY8") } != nil, "\(run.errors)")
        // A film beside it misses nothing.
        let record = try stage.sessionctl("camera", "record", "--no-sound", "--duration", "6", stage.path("film.mp4"))
        let reader = try Reader(fifo, size: 640 * 480)
        let code = { (bytes: ArraySlice<UInt8>) in
            number(bytes[bytes.startIndex + 120 * 640..<bytes.startIndex + 121 * 640])
        }
        #expect(
            eventually(timeout: 20) {
                reader.read(code)
                return reader.pictures.count >= 60
            })
        let steps = zip(reader.pictures, reader.pictures.dropFirst()).map { ($1.number - $0.number, $1.code - $0.code) }
        #expect(steps.allSatisfy { $0.0 >= 1 && $0.1 >= 0 }, "\(steps)")
        #expect(reader.pictures.allSatisfy { $0.code > 0 })
        let now = monotonicNow()
        #expect(reader.pictures.last.map { abs(now - Double($0.time) / 1e9) < 1 } == true)
        // It reads nothing for a while: the FIFO has three pictures of this size at most, and two more wait.
        let before = reader.pictures.count
        // A busy machine may have lost some already.
        let lostBefore = try stage.property("FramesLost").uint64Value ?? 0
        #expect(
            try eventually(timeout: 20) { try stage.property("FramesLost").uint64Value ?? 0 > lostBefore + 30 })
        #expect(
            eventually(timeout: 20) {
                reader.read(code)
                return reader.pictures.count >= before + 20
            })
        let gaps = zip(reader.pictures, reader.pictures.dropFirst()).map { $1.number - $0.number - 1 }
        #expect(gaps.max() ?? 0 > 30, "\(gaps)")
        // What it counts is what the numbers show: more may be lost, or read, after the last look.
        let lost = try stage.property("FramesLost").uint64Value ?? 0
        let written = try stage.property("FramesWritten").uint64Value ?? 0
        reader.read(code)
        let missing = zip(reader.pictures, reader.pictures.dropFirst()).map { $1.number - $0.number - 1 }
        #expect(abs(Int(lost) - missing.reduce(0, +)) <= 3, "\(lost) \(missing)")
        #expect(abs(Int(written) - reader.pictures.count) <= 8, "\(written) \(reader.pictures.count)")
        #expect(record.wait(timeout: 30) == .code(0), "\(record.errors)")
        let film = try ReadFilm(stage.path("film.mp4"))
        #expect(film.pictures.count == 180 && film.isInOrder && !record.text.contains("missing"), "\(record.text)")
        run.signal(SIGINT)
        #expect(run.wait(timeout: 20) == .code(0))
        #expect(run.output.last?.contains("lost: the reader was too slow") == true, "\(run.output)")
    }

    @Test func readerThatLeaves_isFollowedByAnother_fromAWholePicture() throws {
        let stage = try CaptureStage()
        let fifo = stage.path("fifo")
        #expect(mkfifo(fifo, 0o600) == 0)
        let run = try stage.sessionctl("camera", "frames", "--pixels", "RGB", "--header", fifo)
        #expect(run.line { $0.hasPrefix("front") } != nil, "\(run.errors)")
        for _ in 0..<3 {
            let reader = try Reader(fifo, size: 640 * 480 * 3)
            #expect(
                eventually(timeout: 20) {
                    reader.read { bytes in
                        let row = bytes[bytes.startIndex + 120 * 1_920..<bytes.startIndex + 121 * 1_920]
                        return number(stride(from: row.startIndex, to: row.endIndex, by: 3).map { row[$0] }[...])
                    }
                    return reader.pictures.count >= 5
                })
            #expect(reader.pictures.allSatisfy { $0.code > 0 })
            reader.end()
            // That one has left is noticed with the next picture.
            let end = monotonicNow() + 0.3
            _ = eventually(timeout: 1) { monotonicNow() >= end }
        }
        run.signal(SIGTERM)
        #expect(run.wait(timeout: 20) == .code(0))
        let refused = try stage.sessionctl("camera", "frames", stage.path("none"))
        #expect(
            refused.wait(timeout: 20) == .code(1) && refused.errors.joined().contains("mkfifo"), "\(refused.errors)")
    }
}
