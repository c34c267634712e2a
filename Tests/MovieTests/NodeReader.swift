import Foundation
import TestSupport

/// A program that reads the pictures of a node of PipeWire, as one that shows them does.
final class NodeReader {
    let width: Int
    let height: Int
    private let program: Child
    private let folder: PrivateFolder

    /// - Parameter node: its name.
    init(_ node: String, _ server: PrivatePipeWire, width: Int = 320, height: Int = 180) throws {
        (self.width, self.height) = (width, height)
        folder = try PrivateFolder()
        program = try Child(
            "gst-launch-1.0",
            [
                "-q", "pipewiresrc", "target-object=\(node)", "do-timestamp=true", "!",
                "video/x-raw,format=YUY2,width=\(width),height=\(height)", "!", "filesink", "buffer-mode=unbuffered",
                "sync=false", "location=\(folder.path)/pictures",
            ], environment: VirtualCamera.environment(server))
    }

    var isRunning: Bool { program.isRunning }
    var errors: String { program.errors.joined(separator: "\n") }

    /// It reads nothing more, and is there still.
    func hang() { program.suspend() }
    func resume() { program.resume() }
    /// As a user ends it.
    func leave() {
        program.signal(SIGINT)
        if program.wait(timeout: 5) == nil { program.kill() }
    }
    func kill() { program.kill() }

    private var size: Int { width * height * 2 }

    /// How many pictures it has read.
    var count: Int {
        let facts = try? FileManager.default.attributesOfItem(atPath: folder.path + "/pictures")
        return ((facts?[.size] as? NSNumber)?.intValue ?? 0) / size
    }

    /// The brightness of each pixel of a picture that it has read; empty if there is none.
    func picture(_ place: Int) -> [UInt8] {
        guard let file = FileHandle(forReadingAtPath: folder.path + "/pictures") else { return [] }
        defer { try? file.close() }
        guard (try? file.seek(toOffset: UInt64(place * size))) != nil, let bytes = try? file.read(upToCount: size),
            bytes.count == size
        else { return [] }
        return stride(from: 0, to: size, by: 2).map { bytes[bytes.startIndex + $0] }
    }

    /// The number in the newest picture, or in a part of it; -1: there is none yet.
    func number(x: Int = 0, y: Int = 0, width part: Int? = nil, height rows: Int? = nil) -> Int {
        let count = count
        return count > 0 ? number(of: count - 1, x: x, y: y, width: part, height: rows) : -1
    }

    func number(of place: Int, x: Int = 0, y: Int = 0, width part: Int? = nil, height rows: Int? = nil) -> Int {
        let pixels = picture(place)
        guard !pixels.isEmpty else { return -1 }
        let (columns, lines) = (part ?? width, rows ?? height)
        let cut = (y..<(y + lines)).flatMap { pixels[($0 * width + x)..<($0 * width + x + columns)] }
        return TestMedia.number(cut[...], width: columns, height: lines)
    }
}
