import Foundation

/// A peer between a sender and a server that can stop reading, with small buffers, so that the sender notices it at once.
public final class DeafPeer {
    public let port: Int
    private let child: Child

    public init(to target: Int) throws {
        child = try Child(
            "/usr/bin/python3", [repository.appendingPathComponent("Tests/Support/DeafPeer.py").path, String(target)])
        guard let line = child.line(where: { Int($0) != nil }), let port = Int(line) else {
            throw SupportError("the peer did not start: \(child.errors)")
        }
        self.port = port
    }

    public func stopReading() { child.signal(SIGUSR1) }
    public func goOn() { child.signal(SIGUSR2) }
}
