public import Foundation

/// A web server to upload to, which misbehaves on command (UploadServer.py says what it can be told).
public final class UploadServer {
    /// One request that it has answered.
    public struct Request: Decodable, Sendable {
        public let method: String
        public let path: String
        public let status: Int
        /// The bytes of the body that the server read.
        public let body: UInt64?
        public let fields: [String: String]?
    }

    private struct Connection: Decodable {
        let received: UInt64
    }

    public let folder: PrivateFolder
    public let port: Int
    private let arguments: [String]
    private var child: Child
    /// The log lines of the processes that were killed.
    private var earlier: [String] = []

    /// - Parameter certificate: a file with a key and a certificate; then it speaks https.
    public init(certificate: String? = nil) throws {
        folder = try PrivateFolder()
        let script = URL(fileURLWithPath: #filePath).deletingPathExtension().appendingPathExtension("py").path
        arguments = ["-u", script, folder.path]
        let more = certificate.map { ["0", $0] } ?? []
        (child, port) = try UploadServer.start(arguments + more)
    }

    private static func start(_ arguments: [String]) throws -> (Child, Int) {
        // Debian's own Python, whatever else is first in PATH.
        let child = try Child("/usr/bin/python3", arguments)
        guard let line = child.line(where: { $0.hasPrefix("port ") }), let port = Int(line.dropFirst(5)) else {
            throw SupportError("no upload server: \(child.errors)")
        }
        return (child, port)
    }

    public func url(_ path: String, host: String = "127.0.0.1") -> String { "http://\(host):\(port)/\(path)" }

    /// Tells it what to do next, and waits until it has heard.
    public func tell(_ command: String) throws {
        func count() -> Int { child.text.split(separator: "\n").filter { $0 == "done " + command }.count }
        let before = count()
        child.send(command)
        guard eventually({ count() > before }) else { throw SupportError("\(command): \(child.errors)") }
    }

    /// Kills the server and starts it again at the same port, with the files that it has stored.
    public func restart() throws {
        child.kill()
        earlier += child.output
        child = try UploadServer.start(arguments + ["\(port)"]).0
    }

    public func kill() {
        child.kill()
        earlier += child.output
    }

    /// What it answered, oldest first.
    public var requests: [Request] {
        lines.compactMap { try? JSONDecoder().decode(Request.self, from: Data($0.utf8)) }
    }

    /// The bytes that the kernel received on closed connections.
    public var received: UInt64 {
        lines.compactMap { try? JSONDecoder().decode(Connection.self, from: Data($0.utf8)).received }.reduce(0, +)
    }

    private var lines: [String] {
        let now = child.text.split(separator: "\n").map(String.init)
        return earlier + now
    }

    /// What is stored under that name; nil: nothing.
    public func stored(_ name: String) -> Data? { FileManager.default.contents(atPath: folder.path + "/" + name) }

    /// How often it has stopped reading as it was told (`hold`).
    public var holds: Int { lines.count { $0 == "held" } }

    /// The one file that it has by tus.
    public var storedByTus: Data? {
        let names = uploads
        return names.count == 1 ? stored(names[0]) : nil
    }

    /// The files that tus has created, by name.
    public var uploads: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? [])
            .filter { $0.hasPrefix("tus_") && !$0.hasSuffix(".info") }.sorted()
    }
}
