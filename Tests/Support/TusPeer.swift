public import Foundation

/// A tus server of another project, if `Scripts/check tus` has installed it.
public final class TusPeer {
    /// The Python with that server and a tus client; nil: they are not installed.
    public static let python = ProcessInfo.processInfo.environment["SESSIOND_TUS_PYTHON"]

    public let folder: PrivateFolder
    public let port: Int
    private let largest: Int
    private var child: Child

    /// - Parameter largest: the largest request that the server accepts, in bytes.
    public init(largest: Int) throws {
        folder = try PrivateFolder()
        self.largest = largest
        (child, port) = try TusPeer.start(folder.path, 0, largest)
    }

    private static func start(_ folder: String, _ port: Int, _ largest: Int) throws -> (Child, Int) {
        let script = URL(fileURLWithPath: #filePath).deletingPathExtension().appendingPathExtension("py").path
        let child = try Child(python ?? "/usr/bin/python3", [script, folder, "\(port)", "\(largest)"])
        guard let line = child.line(timeout: 30, where: { $0.hasPrefix("port ") }), let port = Int(line.dropFirst(5))
        else { throw SupportError("aiohttp-tus did not start: \(child.errors)") }
        return (child, port)
    }

    /// Kills the server and starts it again at the same port, with the files that it has stored.
    public func restart() throws {
        child.kill()
        (child, _) = try TusPeer.start(folder.path, port, largest)
    }

    public var url: String { "http://127.0.0.1:\(port)/tus" }

    public func stored(_ name: String) -> Data? { FileManager.default.contents(atPath: folder.path + "/" + name) }
}
