/// What the rules want of a player at this moment, by the session its sound belongs to.
public enum Demand: Sendable, Hashable {
    /// Nothing.
    case free
    /// Its session is interrupted.
    case silent
    /// Its session's interruption ended with should-resume, and its claim still stands.
    case resume
}
