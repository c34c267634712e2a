import Foundation

/// A camera without hardware on a private PipeWire: its pictures carry their number. Its program is in Tests/FakeCard.
public final class VirtualCamera {
    public let name: String
    private let program: Child
    /// When it sent its picture 0, in microseconds of CLOCK_MONOTONIC.
    private let first: Int
    private let rate: Int

    /// Where Scripts/setup has unpacked GStreamer's elements for PipeWire, if they are not installed; nil: they are nowhere.
    public static let pluginFolder: String? = {
        let folders =
            ["/usr/lib/x86_64-linux-gnu/gstreamer-1.0", "/usr/lib/aarch64-linux-gnu/gstreamer-1.0"]
        let unpacked = repository.appendingPathComponent(".build/servers/root").path
        return (folders + folders.map { unpacked + $0 }).first {
            FileManager.default.fileExists(atPath: $0 + "/libgstpipewire.so")
        }
    }()

    /// Whether cameras can be tried here.
    public static var isPossible: Bool { pluginFolder != nil && ServerKind.pipeWire.isHere }

    /// What programs that use the camera need in their environment.
    public static func environment(_ server: PrivatePipeWire) -> [String: String] {
        var environment = server.environment
        if let pluginFolder { environment["GST_PLUGIN_PATH"] = pluginFolder }
        environment["GST_REGISTRY"] = server.folder.path + "/registry.bin"
        return environment
    }

    /// Adds the camera to the graph; programs see it soon.
    public init(
        _ server: PrivatePipeWire, name: String = "front", position: String = "front", width: Int = 640,
        height: Int = 480, rate: Int = 30, properties: String? = nil
    ) throws {
        (self.name, self.rate) = (name, rate)
        program = try Child(
            try VirtualCamera.built.get(),
            [name, position, "\(width)", "\(height)", "\(rate)"] + (properties.map { [$0] } ?? []),
            environment: VirtualCamera.environment(server))
        guard program.line(where: { $0 == "ready" }) != nil else {
            throw SupportError("the camera '\(name)' does not start: \(program.errors)")
        }
        let line = program.line { $0.hasPrefix("first ") }
        first = line.flatMap { Int($0.dropFirst("first ".count)) } ?? 0
    }

    /// In seconds of CLOCK_MONOTONIC.
    public func time(ofPicture number: Int) -> Double { Double(first + number * (1_000_000 / rate)) / 1e6 }

    /// For messages of tests.
    public var state: String { program.isRunning ? "the camera runs" : "the camera has ended: \(program.errors)" }
    /// It stays there, but sends nothing.
    public func freeze() { program.send("freeze") }
    public func thaw() { program.send("thaw") }
    public func remove() { program.kill() }

    /// Compiled once for all tests.
    private static let built = Result { () throws -> String in
        let flags = try Child.run("pkg-config", ["--cflags", "--libs", "libpipewire-0.3"]).split(separator: " ")
            .map { $0.hasPrefix("-I") ? "-isystem" + $0.dropFirst(2) : String($0) }
        return try CompilerOfC.build("VirtualCamera.c", into: "VirtualCamera", flags)
    }
}
