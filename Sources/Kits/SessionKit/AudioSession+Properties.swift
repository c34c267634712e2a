import DBus
import SessionBus

// Properties of the daemon; each read asks the daemon. Throws `MediaServicesFailed` if it does not answer.

extension AudioSession {
    /// The inputs and outputs in use, as far as the category uses them; empty while there is no sound server.
    public var currentRoute: RouteDescription {
        get async throws(SessionError) { try await route() }
    }

    package func route() async throws(SessionError) -> RouteDescription { try await read("CurrentRoute", \.route) }

    /// The possible values of ``setPreferredInput(_:)``; empty if the category has no input.
    public var availableInputs: [Port] { get async throws(SessionError) { try await read("AvailableInputs", \.ports) } }

    /// The preferred input, while it exists; nil: the system chooses.
    public var preferredInput: Port? {
        get async throws(SessionError) {
            let fields = try await fields()
            let uid = fields["PreferredInput"]?.stringValue
            return fields["AvailableInputs"]?.ports.first { $0.uid == uid }
        }
    }

    /// Whether an input is available.
    public var isInputAvailable: Bool { get async throws(SessionError) { try await !availableInputs.isEmpty } }

    /// Whether other sessions play now; a game starts its own music only if not.
    public var isOtherAudioPlaying: Bool {
        get async throws(SessionError) { try await read("OtherAudioPlaying", \.boolValue) }
    }

    /// Whether secondary sound should be silent now.
    public var secondaryAudioShouldBeSilencedHint: Bool {
        get async throws(SessionError) { try await read("SecondaryAudioShouldBeSilencedHint", \.boolValue) }
    }

    /// The sample rate of the output (of the input if the category has no output) in hertz; 0 if unknown.
    public var sampleRate: Double { get async throws(SessionError) { try await read("SampleRate", \.doubleValue) } }

    /// The buffer of the output, or of the input, in seconds, as reported by the server; until then the requested
    /// value, else 0.
    public var ioBufferDuration: Double {
        get async throws(SessionError) { try await read("IOBufferDuration", \.doubleValue) }
    }

    /// Seconds from a sample to its sound; 0 if unknown, and without an output.
    public var outputLatency: Double {
        get async throws(SessionError) { try await read("OutputLatency", \.doubleValue) }
    }

    /// Seconds from a sound to its sample; 0 if unknown, and without an input.
    public var inputLatency: Double { get async throws(SessionError) { try await read("InputLatency", \.doubleValue) } }

    /// The output volume of the system: 0…1, more if the server amplifies, 0 while it is muted.
    public var outputVolume: Double { get async throws(SessionError) { try await read("OutputVolume", \.doubleValue) } }

    private func read<T>(_ name: String, _ cast: (Value) -> T?) async throws(SessionError) -> T {
        guard let value = try await fields()[name].flatMap(cast) else {
            throw SessionError(.mediaServicesFailed, "the daemon does not report '\(name)': update it")
        }
        return value
    }
}
