/// The required state of a stream. Greater is stricter.
public enum Treatment: Sendable, Hashable, Codable {
    /// As the user set it, ducked by that many decibels, 0 or more.
    case free(lowered: Int)
    /// Muted, but running.
    case muted
    /// Held, so that nothing is lost; muted if the server cannot hold it.
    case held

    /// The milder of two: a stream of two sessions may do what either session may do.
    static func milder(_ one: Treatment, _ other: Treatment) -> Treatment {
        switch (one, other) {
        case (.free(let a), .free(let b)): .free(lowered: min(a, b))
        case (.free, _): one
        case (_, .free): other
        case (.muted, _): one
        case (.held, _): other
        }
    }
}
