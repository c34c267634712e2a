package import CGStreamer

/// The names under which streams appear at the sound server.
public struct StreamIdentity: Sendable, Hashable {
    /// The client's name at the server, which mixers show.
    public var clientName: String
    /// Properties of each stream (`media.role`, `application.id`, …); `media.name` is the item's name by default.
    public var properties: [String: String]
    /// The server's address, as for PULSE_SERVER; nil: the default one.
    public var server: String?
    /// The kind of sound that an item is, for a server that has rules for each kind.
    public var role = "music"

    public init(clientName: String, properties: [String: String] = [:], server: String? = nil) {
        self.clientName = clientName
        self.properties = properties
        self.server = server
    }

    /// Sets them on a pulsesink or pulsesrc.
    package func apply(to element: UnsafeMutablePointer<GstElement>, mediaName: String, role: String) {
        shim_set_string(element, "client-name", clientName)
        if let server { shim_set_string(element, "server", server) }
        guard let structure = gst_structure_new_empty("properties") else { return }
        defer { gst_structure_free(structure) }
        let all = ["media.name": mediaName, "media.role": role, "application.name": clientName]
            .merging(properties) { $1 }
        for (key, value) in all { shim_structure_set_string(structure, key, value) }
        shim_set_structure(element, "stream-properties", structure)
    }
}
