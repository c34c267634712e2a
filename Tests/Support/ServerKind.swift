import Foundation

/// The sound servers on which everything must work: `@Test(arguments: ServerKind.allCases)`.
public enum ServerKind: String, CaseIterable, Sendable, CustomStringConvertible {
    case pulseAudio
    case pipeWire

    /// The servers to test with: both, or those that the environment names. Debian 13 is tested without PulseAudio
    /// (Scripts/root).
    public static let allCases: [ServerKind] = {
        guard let named = ProcessInfo.processInfo.environment["SESSIOND_TEST_SERVERS"] else {
            return [.pulseAudio, .pipeWire]
        }
        let kinds = named.split(separator: ",").map { ServerKind(rawValue: String($0)) }
        guard !kinds.isEmpty, !kinds.contains(nil) else {
            fatalError("SESSIOND_TEST_SERVERS: '\(named)' is no list of pulseAudio and pipeWire")
        }
        return kinds.compactMap { $0 }
    }()

    /// For tests that need any sound server.
    public static var standard: ServerKind { allCases[0] }

    /// For tests that work only on one server: `.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: …")`.
    /// Scripts/check allows such a test to be skipped if the environment does not name that server.
    public var isHere: Bool { ServerKind.allCases.contains(self) }

    /// A server that is installed on this machine, preferably PulseAudio. For programs that are no tests.
    public static var installed: ServerKind { Child.isInstalled("pulseaudio") ? .pulseAudio : .pipeWire }

    /// Starts a private server of this kind with null sinks (the first is the default) and modules.
    public func server(
        sinks: [String] = ["speaker"], modules: [String] = [], start: Bool = true
    ) throws -> any PrivateServer {
        switch self {
        case .pulseAudio: try PrivatePulse(sinks: sinks, modules: modules, start: start)
        case .pipeWire: try PrivatePipeWire(sinks: sinks, modules: modules, start: start)
        }
    }

    public var description: String { rawValue }
}
