/// The sound servers everything must work on: `@Test(arguments: ServerKind.allCases)`.
public enum ServerKind: String, CaseIterable, Sendable, CustomStringConvertible {
    case pulseAudio
    case pipeWire

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
