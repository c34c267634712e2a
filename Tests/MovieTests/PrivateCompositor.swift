import Foundation
import TestSupport

/// A Wayland compositor, and what is to be seen on it.
final class PrivateCompositor {
    static let (width, height) = (640, 480)

    /// The path of its socket.
    var socket: String { folder.path + "/screen" }
    private let folder: PrivateFolder
    private let environment: [String: String]
    private let server: Child

    /// - Parameter screen: it is a window there, and has its keyboard; nil: it is seen nowhere, and has none.
    init(on screen: PrivateScreen? = nil) throws {
        folder = try PrivateFolder()
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder.path)
        environment = [
            "XDG_RUNTIME_DIR": folder.path, "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin",
            "DISPLAY": screen?.display ?? "",
        ]
        // A click on its panel opens a terminal.
        try "[shell]\npanel-position=none\n".write(
            toFile: folder.path + "/weston.ini", atomically: true, encoding: .utf8)
        server = try Child(
            "weston",
            [
                "--backend=\(screen == nil ? "headless" : "x11")-backend.so", "--use-pixman", "--width=\(Self.width)",
                "--height=\(Self.height)",
                "--socket=screen", "--idle-time=0", "--config=\(folder.path)/weston.ini", "--debug",
            ], environment: environment)
        guard eventually(timeout: 30, { (try? shot()) != nil }) else {
            throw SupportError("weston does not start: \(server.errors.suffix(5))")
        }
    }

    func kill() { server.kill() }

    /// Calls the body with the path of a picture of the screen.
    private func withShot<Result>(_ body: (String) throws -> Result) throws -> Result {
        let place = try PrivateFolder()
        let child = try Child(
            "weston-screenshooter", environment: environment.merging(["WAYLAND_DISPLAY": socket]) { $1 },
            folder: place.path)
        guard child.wait(timeout: 20) == .code(0),
            let name = try FileManager.default.contentsOfDirectory(atPath: place.path).first
        else { throw SupportError("no picture of the screen: \(child.errors)") }
        return try body(place.path + "/" + name)
    }

    private func shot() throws { try withShot { _ in } }

    /// Brightness of each pixel.
    private func pixels() -> [UInt8] {
        let found = try? withShot { path in
            try Child.run(
                "ffmpeg",
                ["-nostdin", "-v", "error", "-i", path, "-f", "rawvideo", "-pix_fmt", "gray", path + ".raw"])
            return [UInt8](try Data(contentsOf: URL(fileURLWithPath: path + ".raw")))
        }
        return found?.count == Self.width * Self.height ? found ?? [] : []
    }

    /// The number in the picture of a film that has this place on the screen: by default, the whole of it; −1: there is none.
    func number(x: Int = 0, y: Int = 60, width: Int = 640, height: Int = 360) -> Int {
        let all = pixels()
        guard !all.isEmpty else { return -1 }
        let part = (y..<(y + height)).flatMap { all[($0 * Self.width + x)..<($0 * Self.width + x + width)] }
        return TestMedia.number(part[...], width: width, height: height)
    }

    func has(_ number: Int) -> Bool { has(number...number) }

    /// Whether a picture of 320 × 180 with one of these numbers is somewhere.
    func has(_ numbers: ClosedRange<Int>) -> Bool {
        let (all, width, height) = (pixels(), 320, 180)
        guard !all.isEmpty else { return false }
        return stride(from: 0, through: Self.height - height, by: 20).contains { y in
            (0...(Self.width - width)).contains { x in
                let row = (y + height / 2) * Self.width + x
                let read = (0..<16).reduce(0) { $0 | (all[row + $1 * 20 + 10] > 200 ? 1 << $1 : 0) }
                return numbers.contains(read) && (all[row + 10] < 40 || all[row + 10] > 200)
            }
        }
    }

    /// Whether a pixel in the middle row is bright.
    func isBright(_ x: Int) -> Bool {
        let all = pixels()
        return !all.isEmpty && all[Self.height / 2 * Self.width + x] > 128
    }

    /// Whether a part of the screen is black.
    func isBlack(y: Int, height: Int) -> Bool {
        let all = pixels()
        return !all.isEmpty && all[(y * Self.width)..<((y + height) * Self.width)].allSatisfy { $0 < 20 }
    }
}
