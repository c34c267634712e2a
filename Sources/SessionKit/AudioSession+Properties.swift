import DBus
import SessionBus

// What the daemon knows of the session, asked for at each reading. Throws `MediaServicesFailed` where it does not answer.

extension AudioSession {
    /// Where sound comes from and goes to, as far as the category uses it; empty while the sound server is away.
    public var currentRoute: RouteDescription {
        get async throws(SessionError) { try await read("CurrentRoute", \.route) }
    }

    /// What ``setPreferredInput(_:)`` can choose from; empty where the category has no input.
    public var availableInputs: [Port] { get async throws(SessionError) { try await read("AvailableInputs", \.ports) } }

    /// The one that was chosen, while it is there; nil leaves it to the system.
    public var preferredInput: Port? {
        get async throws(SessionError) {
            let fields = try await fields()
            let uid = fields["PreferredInput"]?.stringValue
            return fields["AvailableInputs"]?.ports.first { $0.uid == uid }
        }
    }

    /// Whether there is anything to record from.
    public var isInputAvailable: Bool { get async throws(SessionError) { try await !availableInputs.isEmpty } }

    /// Whether others are heard now; a game starts its own music only where not.
    public var isOtherAudioPlaying: Bool {
        get async throws(SessionError) { try await read("OtherAudioPlaying", \.boolValue) }
    }

    /// Whether sound that is not the point should be silent now.
    public var secondaryAudioShouldBeSilencedHint: Bool {
        get async throws(SessionError) { try await read("SecondaryAudioShouldBeSilencedHint", \.boolValue) }
    }

    /// Frames per second of the output, of the input where the category has no output, in hertz; 0 where unknown.
    public var sampleRate: Double { get async throws(SessionError) { try await read("SampleRate", \.doubleValue) } }

    /// Seconds of sound that the output, or the input, is given at a time, as the server says; what was asked for until it
    /// does, else 0.
    public var ioBufferDuration: Double {
        get async throws(SessionError) { try await read("IOBufferDuration", \.doubleValue) }
    }

    /// Seconds from handing over a sample to hearing it; 0 where unknown, and without an output.
    public var outputLatency: Double {
        get async throws(SessionError) { try await read("OutputLatency", \.doubleValue) }
    }

    /// Seconds from a sound to its sample; 0 where unknown, and without an input.
    public var inputLatency: Double { get async throws(SessionError) { try await read("InputLatency", \.doubleValue) } }

    /// The system's output volume: 0…1, more where the server amplifies, 0 while it is muted.
    public var outputVolume: Double { get async throws(SessionError) { try await read("OutputVolume", \.doubleValue) } }

    private func read<T>(_ name: String, _ cast: (Value) -> T?) async throws(SessionError) -> T {
        guard let value = try await fields()[name].flatMap(cast) else {
            throw SessionError(.mediaServicesFailed, "the daemon does not report '\(name)': update it")
        }
        return value
    }
}
