import CPulse

/// A client of the server.
///
/// Read on PipeWire only: PulseAudio gives each stream the properties of its client, PipeWire's server only those of a
/// client that speaks PulseAudio's protocol.
struct PulseClient: Hashable {
    /// The process at the other end of the socket, from the kernel; nil if that is PipeWire's own PulseAudio server,
    /// which is in between.
    let processID: UInt32?
    let properties: [String: String]
    /// Whether it is PipeWire's session manager, whose streams belong to the server.
    let isSessionManager: Bool

    init(_ info: pa_client_info) {
        let all = PulseDevice.read(
            info.proplist,
            prefixes: [
                "application.", "pipewire.access.portal.", "pipewire.snap.", "pipewire.sec.pid", "client.api",
                "wireplumber.",
            ])
        isSessionManager = all["wireplumber.daemon"] == "true"
        processID =
            all["client.api"] == PulseStream.pulseProtocol ? nil : all["pipewire.sec.pid"].flatMap { UInt32($0) }
        properties = all.filter { !$0.key.hasPrefix("wireplumber.") && $0.key != "client.api" }
    }
}
