import Foundation

/// A card with a jack for a private PipeWire: a sink with speaker and headphones. Its program is in Tests/FakeCard.
public final class FakePipeWireCard {
    public let sink: String
    private let program: Child

    /// The daemon's uid of each port.
    public var speaker: String { sink + "/analog-output-speaker" }
    public var headphones: String { sink + "/analog-output-headphones" }

    /// Adds the card to the graph, with nothing plugged in, and waits until PulseAudio clients see its sink and the session
    /// manager has selected its port.
    public init(_ server: PrivatePipeWire, name: String = "card") throws {
        let sink = name + "_output"
        self.sink = sink
        program = try Child(try FakePipeWireCard.built.get(), [name], environment: server.environment)
        guard try eventually({ try server.control.has(sink: sink) }) else {
            throw SupportError("\(sink) does not appear: \(program.errors)")
        }
        // WirePlumber 0.5 overlooks a port that is plugged in before it has set up the card.
        guard program.line(where: { $0.hasPrefix("route") }) != nil else {
            throw SupportError("the session manager does not select a port of \(sink)")
        }
    }

    public func plug() { program.send("plug") }
    public func unplug() { program.send("unplug") }
    /// Removes the card.
    public func remove() { program.kill() }

    /// Compiled once for all tests.
    private static let built = Result { () throws -> String in
        // PipeWire's headers cause warnings, so they are included as system headers.
        let flags = try Child.run("pkg-config", ["--cflags", "--libs", "libpipewire-0.3"]).split(separator: " ")
            .map { $0.hasPrefix("-I") ? "-isystem" + $0.dropFirst(2) : String($0) }
        return try CompilerOfC.build("FakePipeWireCard.c", into: "FakePipeWireCard", flags)
    }
}
