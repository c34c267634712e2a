public import Foundation

/// A web server to read media from, which misbehaves on command (OriginServer.py says what it can be told).
public final class OriginServer {
    /// One request that it has answered.
    public struct Request: Decodable, Sendable {
        public let path: String
        /// As asked for, such as `0-`; empty: none.
        public let range: String
        public let status: Int
        /// The bytes of the body that went into the socket.
        public let sent: UInt64
        public let authorization: String
    }

    public let folder: PrivateFolder
    public let port: Int
    private let child: Child

    public init() throws {
        folder = try PrivateFolder()
        let script = URL(fileURLWithPath: #filePath).deletingPathExtension().appendingPathExtension("py").path
        // Debian's own Python, whatever else is first in PATH.
        child = try Child("/usr/bin/python3", ["-u", script, folder.path])
        guard let line = child.line(where: { $0.hasPrefix("port ") }), let port = Int(line.dropFirst(5)) else {
            throw SupportError("no origin: \(child.errors)")
        }
        self.port = port
    }

    public func url(_ path: String, host: String = "127.0.0.1") -> String { "http://\(host):\(port)/\(path)" }

    /// A file of that many random bytes.
    public func file(_ name: String, _ size: Int, seed: UInt64 = 1) throws -> Data {
        let bytes = randomBytes(size, seed: seed)
        try bytes.write(to: URL(fileURLWithPath: folder.path + "/" + name))
        return bytes
    }

    /// Tells it what to do next, and waits until it has heard.
    public func tell(_ command: String) throws {
        func count() -> Int { child.text.split(separator: "\n").filter { $0 == "done " + command }.count }
        let before = count()
        child.send(command)
        guard eventually({ count() > before }) else { throw SupportError("\(command): \(child.errors)") }
    }

    /// What it has answered, oldest first; a request is here when its answer has ended.
    public var requests: [Request] {
        child.text.split(separator: "\n").compactMap { try? JSONDecoder().decode(Request.self, from: Data($0.utf8)) }
    }

    /// The bytes of all bodies.
    public var sent: UInt64 { requests.reduce(0) { $0 + $1.sent } }
}
