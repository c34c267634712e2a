/// How privileged a session is: call > alert > app (behaviour §3). The raw value is the name on the wire.
public enum SessionClass: String, CaseIterable, Sendable, Hashable {
    /// What every session is that asks for nothing else.
    case app
    /// An alarm, an assistant, a ringing phone.
    case alert
    /// Interrupts everybody; of all sessions only a newer call interrupts it.
    case call
}
