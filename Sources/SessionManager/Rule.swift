/// The rule that caused a change. The raw value is its number in docs/rules.md; comments write it as "rules §4".
///
/// Numbers that are missing are never a cause.
public enum Rule: String, CaseIterable, Sendable, Hashable, Codable {
    /// Creating a session; a change of category while active, or one that ends a wait.
    case category = "§1"
    /// The muted microphone, and the option for it.
    case microphone = "§2"
    /// A call or an alert has priority over every app.
    case classes = "§3"
    /// The matrix: who is interrupted, ducked or refused; the background rules.
    case matrix = "§4"
    /// The machine went to sleep, or a client that kept others quiet did not answer.
    case suspended = "§5"
    /// An interrupted session is already silent; after `ended` it must activate itself to come back.
    case comesBack = "R2"
    /// A session that is already interrupted also waits for a newer one.
    case waitsToo = "R3"
    /// The session it waited for left.
    case resume = "R5"
    /// A claim expired.
    case grace = "R6"
    /// The session it waited for left while it was itself interrupted.
    case leftWhileWaiting = "R7"
    /// An interrupted session takes the sound back.
    case takesBack = "R9"
    /// The call or alert it waited for ended.
    case callEnded = "R10"
    /// The owner disconnected without deactivating.
    case vanished = "R11"
    /// A claim was given up.
    case givesUp = "R12"
    /// The silent switch, the screen lock, secondary audio.
    case silentSwitch = "§6"
    /// Routes.
    case route = "§7"
    /// The sound server.
    case services = "§8"
    /// Limits, and missing resources.
    case errors = "§9"
}
