import Foundation

/// A server of RTSP that sends a film at its own pace to those who join.
public final class RTSPServer {
    public let url: String
    public let port: Int
    private let child: Child

    /// Whether the library of such a server is installed.
    public static let isInstalled: Bool =
        (try? Child.run(
            "/usr/bin/python3", ["-c", "import gi; gi.require_version('GstRtspServer', '1.0'); print('is there')"]))?
        .contains("is there") == true

    public init(_ film: String) throws {
        child = try Child(
            "/usr/bin/python3", [repository.appendingPathComponent("Tests/Support/RTSPServer.py").path, film])
        guard let line = child.line(where: { Int($0) != nil }), let port = Int(line) else {
            throw SupportError("the server of RTSP did not start: \(child.errors)")
        }
        self.port = port
        url = "rtsp://127.0.0.1:\(port)/stream"
    }

    public func kill() { child.kill() }
}
