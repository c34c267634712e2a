import Foundation

/// The sound of a microphone without hardware on a private PipeWire: a tick twice a second, of which is known when it was there. Its
/// program is in Tests/FakeCard.
public final class VirtualMicrophone {
    private let program: Child

    /// Adds the sound to a source of `module-null-sink media.class=Audio/Source/Virtual` with one channel.
    public init(_ server: PrivatePipeWire, source: String) throws {
        let name = "ticks of " + source
        program = try Child(try VirtualMicrophone.built.get(), [name], environment: server.environment)
        let isLinked = eventually(timeout: 20) {
            (try? Child.run(
                "pw-link", [name + ":capture_MONO", source + ":input_MONO"], environment: server.environment)) != nil
        }
        guard isLinked else { throw SupportError("\(source) cannot be linked: \(program.errors)") }
        try server.control.setDefaultSource(source)
    }

    /// When the ticks so far began, in seconds of CLOCK_MONOTONIC.
    public var ticks: [Double] {
        program.text.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ")
            return words.count == 2 ? Double(words[1]).map { $0 / 1e9 } : nil
        }
    }

    /// Compiled once for all tests.
    private static let built = Result { () throws -> String in
        // PipeWire's headers cause warnings, so they are included as system headers.
        let flags = try Child.run("pkg-config", ["--cflags", "--libs", "libpipewire-0.3"]).split(separator: " ")
            .map { $0.hasPrefix("-I") ? "-isystem" + $0.dropFirst(2) : String($0) }
        return try CompilerOfC.build("VirtualMicrophone.c", into: "VirtualMicrophone", flags)
    }
}
