/// The rule of the behaviour page that caused a transition. The raw value is how it is written there.
public enum Rule: String, CaseIterable, Sendable, Hashable {
    /// The matrix: who is interrupted, lowered or refused.
    case matrix = "§4"
    /// A call or an alert that interrupts whoever plays.
    case classes = "§3"
    /// Changing the category while active, or one that dissolves a wait.
    case category = "§1"
    /// The one that was waited for left.
    case resume = "R5"
    /// A claim that ran out.
    case grace = "R6"
    /// The one that was waited for left while itself interrupted, or within its grace time.
    case leftWhileWaiting = "R7"
    /// The owner went without a word.
    case vanished = "R11"
    /// The silent switch, the screen lock, secondary audio.
    case silentSwitch = "§6"
    /// Routes, and the microphone.
    case route = "§7"
}
