/// The rule of the behaviour page that caused a transition. The raw value is how it is written there.
///
/// R1, R8, R13, R14 and R15 say how the others act together and cause nothing by themselves.
public enum Rule: String, CaseIterable, Sendable, Hashable {
    /// Creating; changing the category while active, or one that dissolves a wait.
    case category = "§1"
    /// The muted microphone, and its option.
    case microphone = "§2"
    /// A call or an alert, above every app.
    case classes = "§3"
    /// The matrix: who is interrupted, lowered or refused; the background.
    case matrix = "§4"
    /// The one that was told is silent by then; the one that comes back after `ended` activates itself.
    case comesBack = "R2"
    /// The one that is interrupted already waits for a newcomer, too.
    case waitsToo = "R3"
    /// The one that was waited for left.
    case resume = "R5"
    /// A claim that ran out.
    case grace = "R6"
    /// The one that was waited for left while itself interrupted.
    case leftWhileWaiting = "R7"
    /// The interrupted one takes the sound back.
    case takesBack = "R9"
    /// The call or alert that was waited for ended.
    case callEnded = "R10"
    /// The owner went without a word.
    case vanished = "R11"
    /// A claim that was given up.
    case givesUp = "R12"
    /// The silent switch, the screen lock, secondary audio.
    case silentSwitch = "§6"
    /// Routes.
    case route = "§7"
    /// The audio server.
    case services = "§8"
    /// Limits, and what is not there.
    case errors = "§9"
}
