/// The priority of a session: call > alert > app (rules §3). The raw value is the name on the wire.
public enum SessionClass: String, CaseIterable, Sendable, Hashable, Codable {
    /// The default.
    case app
    /// An alarm, an assistant, a ringing phone.
    case alert
    /// Interrupts all others; only a newer call interrupts it.
    case call
}
