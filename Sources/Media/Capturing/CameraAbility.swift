package import PluginAPI

/// What a control of a camera can be set to.
package enum CameraAbility: Sendable, Hashable {
    case range(ClosedRange<Double>)
    case words([String])

    /// - Throws: `BadParameter`, with what is possible.
    package func check(_ setting: CameraSetting, _ control: CaptureControl) throws(SessionError) {
        switch (self, setting) {
        case (.range(let range), .number(let number)) where range.contains(number): return
        case (.words(let words), .word(let word)) where words.contains(word): return
        case (.range(let range), _):
            func text(_ number: Double) -> String {
                number == number.rounded() && abs(number) < 1e9 ? "\(Int(number))" : "\(number)"
            }
            throw .badParameter(
                "the \(control.rawValue) must be a number from \(text(range.lowerBound)) to \(text(range.upperBound))")
        case (.words(let words), _):
            throw .badParameter("the \(control.rawValue) can be \(words.joined(separator: ", ")) and nothing else")
        }
    }
}

/// A value of a control.
package enum CameraSetting: Sendable, Hashable {
    case number(Double)
    case word(String)
    /// Of any other type.
    case other
}
