import Foundation

/// The sound servers everything must work on: `@Test(arguments: ServerKind.allCases)`.
public enum ServerKind: String, CaseIterable, Sendable, CustomStringConvertible {
    case pulseAudio
    case pipeWire

    /// Those that are there: both, or what the environment names. Debian 13 is tested without PulseAudio (Scripts/root).
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

    /// For tests that need a sound server and do not mind which.
    public static var standard: ServerKind { allCases[0] }

    /// For tests of what one server alone has: `.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: …")`.
    /// Scripts/check takes such a test for skipped rightly where that server is not among those of the environment.
    public var isHere: Bool { ServerKind.allCases.contains(self) }

    /// What can be started on this machine, PulseAudio rather than PipeWire; for who is not a test.
    public static var installed: ServerKind { Child.isInstalled("pulseaudio") ? .pulseAudio : .pipeWire }

    /// A private server of that kind with those null sinks (the first is the default) and modules.
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
