/// What is done to the pictures of a live stream before they are encoded.
public enum LiveFilter: Sendable, Hashable {
    /// Left and right change places.
    case mirror
    /// Small differences of neighbouring pixels are smoothed, as "beauty" filters do.
    case smooth
    /// −1 (black) to 1; 0 changes nothing.
    case brightness(Double)
    /// 0 (grey) to 2; 1 changes nothing.
    case contrast(Double)
    /// 0 (no colours) to 2; 1 changes nothing.
    case saturation(Double)
    /// A line of text at the lower edge. Not empty, at most 500 bytes.
    case text(String)
    /// A text in the middle of the pictures while another session interrupts the microphone. Not empty, at most 500 bytes.
    case interruptionText(String)
    /// A picture in the upper right corner, by its absolute path.
    case logo(String)

    /// The names, as they are written: those of values are followed by `=`.
    public static let names = [
        "mirror", "smooth", "brightness=", "contrast=", "saturation=", "text=", "interruption-text=", "logo=",
    ]

    /// - Parameter text: a name, or a name with its value, such as `contrast=1.2`.
    /// - Throws: `BadParameter`, which names what is possible.
    public init(_ text: String) throws(SessionError) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let value = parts.count == 2 ? parts[1] : nil
        func number(_ range: ClosedRange<Double>) throws(SessionError) -> Double {
            guard let number = value.flatMap({ Double($0) }), range.contains(number) else {
                throw .badParameter("'\(parts[0])' needs a number from \(range.lowerBound) to \(range.upperBound)")
            }
            return number
        }
        func words() throws(SessionError) -> String {
            guard let value, !value.isEmpty, value.utf8.count <= 500, !value.utf8.contains(0) else {
                throw .badParameter("'\(parts[0])' needs a text of at most 500 bytes")
            }
            return value
        }
        switch (parts[0], value) {
        case ("mirror", nil): self = .mirror
        case ("smooth", nil): self = .smooth
        case ("brightness", _): self = .brightness(try number(-1...1))
        case ("contrast", _): self = .contrast(try number(0...2))
        case ("saturation", _): self = .saturation(try number(0...2))
        case ("text", _): self = .text(try words())
        case ("interruption-text", _): self = .interruptionText(try words())
        case ("logo", let path?) where path.hasPrefix("/") && path.utf8.count < 4_096 && !path.utf8.contains(0):
            self = .logo(path)
        case ("logo", _): throw .badParameter("'logo' needs the absolute path of a picture")
        default:
            throw .badParameter("a filter is one of \(Self.names.joined(separator: ", ")), not \(quoted(text))")
        }
    }

    /// The form that ``init(_:)`` reads.
    public var word: String {
        switch self {
        case .mirror: "mirror"
        case .smooth: "smooth"
        case .brightness(let value): "brightness=\(value)"
        case .contrast(let value): "contrast=\(value)"
        case .saturation(let value): "saturation=\(value)"
        case .text(let text): "text=\(text)"
        case .interruptionText(let text): "interruption-text=\(text)"
        case .logo(let path): "logo=\(path)"
        }
    }
}
