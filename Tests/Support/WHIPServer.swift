import Foundation

/// A real server of WHIP: one on GStreamer, or, with `SESSIOND_WHIP_PYTHON`, one on aiortc. It takes the token `right-token`, and says
/// what it has received.
public final class WHIPServer {
    private let child: Child
    public let port: Int

    public static let python = ProcessInfo.processInfo.environment["SESSIOND_WHIP_PYTHON"]
    public static let isInstalled: Bool =
        python != nil
        || (try? Child.run(
            "/usr/bin/python3",
            [
                "-c",
                """
                import gi
                gi.require_version('GstWebRTC', '1.0')
                from gi.repository import Gst
                Gst.init(None)
                print('is there' if Gst.ElementFactory.find('nicesink') else '')
                """,
            ]))?.contains("is there") == true

    /// - Parameter other: the server that it names for the end of a connection; nil: itself.
    public init(port: Int? = nil, naming other: WHIPServer? = nil) throws {
        self.port = try port ?? LoopbackPort.free()
        let script = repository.appendingPathComponent(
            "Tests/Support/" + (Self.python == nil ? "WHIPServer.py" : "WHIPPeer.py")
        ).path
        child = try Child(
            Self.python ?? "/usr/bin/python3",
            [script, String(self.port), "right-token"] + (other.map { ["http://127.0.0.1:\($0.port)"] } ?? []))
        guard child.line(timeout: 20, where: { $0 == "ready" }) != nil else {
            throw SupportError("the server of WHIP did not start: \(child.errors)")
        }
    }

    public var url: String { "http://127.0.0.1:\(port)/whip" }
    public func kill() { child.kill() }
    public var lines: [[String]] {
        child.text.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
    }
    public func has(_ word: String) -> Bool { lines.contains { $0.first == word } }
    /// Of the pictures, which carry it.
    public var numbers: [Int] { lines.filter { $0.first == "number" }.compactMap { Int($0[1]) } }
    public var loudest: Double { lines.filter { $0.first == "sound" }.compactMap { Double($0[1]) }.max() ?? 0 }
}
