/// What the rules want from a player now, by the session of its sound.
public enum Demand: Sendable, Hashable {
    /// Nothing.
    case free
    /// Its session is interrupted.
    case silent
    /// Its session's interruption ended with the should-resume hint, and its claim is still valid.
    case resume
}
