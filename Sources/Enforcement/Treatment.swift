/// What a stream must be now. Greater is stricter.
enum Treatment: Sendable, Hashable {
    /// As its person set it, lowered by that many decibels, 0 or more.
    case free(lowered: Int)
    /// Silent, and running on.
    case muted
    /// Silent, and stopped where it is, so that nothing of it is lost; muted where the server cannot.
    case held

    /// The milder of two: a stream of two sessions is what either allows it to be.
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
