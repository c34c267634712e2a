/// How privileged a session is: call > alert > app (behaviour §3). The raw value is the name on the wire.
public enum SessionClass: String, CaseIterable, Sendable, Hashable {
    case app
    /// An alarm, an assistant, a ringing phone.
    case alert
    case call
}
