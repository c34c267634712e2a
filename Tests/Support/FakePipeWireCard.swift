import Foundation

/// A card of a private PipeWire, with a jack to plug: a sink with speaker and headphones. Tests/FakeCard has the program
/// that plays it.
public final class FakePipeWireCard {
    public let sink: String
    private let program: Child

    /// The uid of each port, as the daemon spells it.
    public var speaker: String { sink + "/analog-output-speaker" }
    public var headphones: String { sink + "/analog-output-headphones" }

    /// Puts it into the graph, with nothing plugged in, and waits until clients of PulseAudio see its sink.
    public init(_ server: PrivatePipeWire, name: String = "card") throws {
        let sink = name + "_output"
        self.sink = sink
        program = try Child(try FakePipeWireCard.built.get(), [name], environment: server.environment)
        guard try eventually({ try server.pactl(["list", "short", "sinks"]).contains(sink) }) else {
            throw SupportError("\(sink) does not appear: \(program.errors)")
        }
    }

    public func plug() { program.send("plug") }
    public func unplug() { program.send("unplug") }
    /// Takes the whole card out.
    public func remove() { program.kill() }

    /// Compiled once for all tests.
    private static let built = Result { () throws -> String in
        // PipeWire's headers are not free of warnings.
        let flags = try Child.run("pkg-config", ["--cflags", "--libs", "libpipewire-0.3"]).split(separator: " ")
            .map { $0.hasPrefix("-I") ? "-isystem" + $0.dropFirst(2) : String($0) }
        return try CompilerOfC.build("FakePipeWireCard.c", into: "FakePipeWireCard", flags)
    }
}
