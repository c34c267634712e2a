import CPulse
public import EventLoop
public import PluginAPI

/// Reads the state of the sound server for `sessionctl doctor`. Changes nothing there.
public struct ServerProbe: Sendable {
    public enum Outcome: Sendable {
        case found(ServerProbe)
        /// No server listens, or it does not accept this user.
        case unreachable
        /// It accepted the connection and does not answer.
        case silent
    }

    /// The server's own name. That of PipeWire contains the protocol.
    public internal(set) var name = ""
    public internal(set) var version = ""
    /// The version of WirePlumber; "0.4" if it does not report one; nil: no WirePlumber.
    public internal(set) var wirePlumber: String?
    public internal(set) var policies: Set<ServerPolicy> = []
    /// The outputs, without placeholders for missing devices.
    public internal(set) var outputs: [String] = []
    /// The inputs, without the monitors of outputs.
    public internal(set) var inputs: [String] = []
    /// The default input, if it records what an output plays, and a real input instead, by name; nil: it is a real one,
    /// or there is no real one.
    public internal(set) var monitor: (label: String, better: String)?
    /// What plays or records, with the names that the streams give themselves.
    public internal(set) var streams: [AudioStream.ID: String] = [:]

    /// Runs the loop until the server has answered, at most `patience` seconds for each answer.
    ///
    /// `server` as for `pa_context_connect`; nil is the environment's choice.
    public static func look(on loop: EventLoop, server: String? = nil, patience: Double = 2) -> Outcome {
        guard let connection = PulseConnection(loop: loop, name: "sessionctl", patience: patience) else {
            return .unreachable
        }
        defer { connection.close() }
        var outcome: Outcome?
        var probe = ServerProbe()
        var model = PulseModel()
        connection.onSilence = { outcome = .silent }
        connection.onState = { [unowned connection] state in
            guard case .ready = state else {
                outcome = outcome ?? .unreachable
                return
            }
            // The server answers in order.
            connection.readServer(
                item: {
                    model.read($0)
                    probe.name = String(orEmpty: $0.server_name)
                    probe.version = String(orEmpty: $0.server_version)
                }, end: { _ in })
            connection.readModules(nil, item: { model.add($0) }, end: { _ in })
            connection.readClients(nil, item: { model.add($0) }, end: { _ in })
            connection.readPlaying(
                nil, item: { probe.add(PulseStream($0), .playback) }, end: { _ in })
            connection.readRecording(
                nil, item: { probe.add(PulseStream($0), .record) }, end: { _ in })
            connection.readSinks(nil, item: { model.sinks[$0.index] = PulseDevice($0) }, end: { _ in })
            connection.readSources(
                nil, item: { model.sources[$0.index] = PulseDevice($0) },
                end: { _ in
                    let snapshot = model.snapshot(now: MonotonicClock.now())
                    probe.wirePlumber = model.wirePlumber.map { $0.numbers.map(String.init).joined(separator: ".") }
                    probe.policies = snapshot.policies
                    probe.outputs = snapshot.availableOutputs.map(\.name)
                    probe.inputs = snapshot.availableInputs.map(\.name)
                    let real = model.sources.values.filter { !$0.available.isEmpty }.map(\.name).min()
                    if let input = model.input, input.isNoPort, let real { probe.monitor = (input.label, real) }
                    outcome = .found(probe)
                })
        }
        connection.connect(to: server)
        // A server that accepts the connection but never greets also counts as silent.
        let hasEnded = loop.iterate(timeout: 3 * patience) { outcome != nil }
        return hasEnded ? outcome ?? .silent : .silent
    }
    private mutating func add(_ stream: PulseStream, _ direction: AudioStream.Direction) {
        guard stream.client != noIndex, !stream.isCorked, !stream.isPeakMeter else { return }
        streams[AudioStream.ID(direction, stream.index)] = stream.label
    }
}
