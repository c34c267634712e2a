import PluginAPI
import SessionManager

/// The words of one line, read one after the other.
struct Words {
    private var tokens: ArraySlice<Token>
    /// The column after the last word, for errors about missing words.
    private let end: Int

    init(_ tokens: [Token], end: Int) {
        self.tokens = tokens[...]
        self.end = end
    }

    var isEmpty: Bool { tokens.isEmpty }
    var first: Token? { tokens.first }

    mutating func next(_ what: String) throws(LineError) -> Token {
        guard let token = tokens.popFirst() else { throw LineError(column: end, "\(what) is missing here") }
        return token
    }

    /// Takes the next word if it is that one.
    mutating func take(_ word: String) -> Bool {
        guard let token = tokens.first, token.value == nil, !token.isQuoted, token.word == word else { return false }
        tokens.removeFirst()
        return true
    }

    /// Takes the next word if it has that key, with any value.
    mutating func takeSetting(_ key: String) -> Token? {
        guard let token = tokens.first, token.value != nil, token.word == key else { return nil }
        tokens.removeFirst()
        return token
    }

    mutating func rest() -> [Token] {
        defer { tokens = [] }
        return Array(tokens)
    }

    func finish() throws(LineError) {
        guard let token = tokens.first else { return }
        throw LineError(token, "\(quoted(token.word)) is not expected here; remove it, or start a comment with '#'")
    }

    /// A plain word.
    mutating func word(_ what: String) throws(LineError) -> Token {
        let token = try next(what)
        guard token.value == nil else {
            throw LineError(token, "\(quoted(token.word))= is not expected here; write \(what)")
        }
        return token
    }

    mutating func choice<Choice: RawRepresentable & CaseIterable>(
        _ what: String, _: Choice.Type = Choice.self
    ) throws(LineError) -> Choice where Choice.RawValue == String {
        let token = try word(what)
        return try chosen(token, token.word, what)
    }

    mutating func isOn() throws(LineError) -> Bool { try flag(word("'on' or 'off'"), on: "on", off: "off") }

    mutating func flag(on: String, off: String) throws(LineError) -> Bool {
        try flag(word("'\(on)' or '\(off)'"), on: on, off: off)
    }

    private func flag(_ token: Token, on: String, off: String) throws(LineError) -> Bool {
        switch token.word {
        case on: return true
        case off: return false
        default: throw LineError(token, "\(quoted(token.word)) is neither '\(on)' nor '\(off)'")
        }
    }
}

func chosen<Choice: RawRepresentable & CaseIterable>(
    _ token: Token, _ text: String, _ what: String
) throws(LineError) -> Choice where Choice.RawValue == String {
    if let choice = Choice(rawValue: text) { return choice }
    throw LineError(
        token,
        "\(quoted(text)) is not a \(what); use one of " + Choice.allCases.map(\.rawValue).joined(separator: ", "))
}

extension RouteChangeReason {
    init(_ token: Token) throws(LineError) {
        guard let reason = Self.allCases.first(where: { $0.name == token.word }) else {
            throw LineError(
                token,
                "\(quoted(token.word)) is not a reason; use "
                    + Self.allCases.map(\.name).joined(separator: ", "))
        }
        self = reason
    }
}

extension Token {
    /// The value of a `key=value` that needs one.
    func required() throws(LineError) -> String {
        guard let value else { throw LineError(self, "write \(word)=…") }
        return value
    }

    func isOn() throws(LineError) -> Bool {
        switch try required() {
        case "on": return true
        case "off": return false
        default: throw LineError(self, "\(word) is 'on' or 'off'")
        }
    }

    /// A number in the range.
    func number(_ range: ClosedRange<Double>) throws(LineError) -> Double {
        guard let number = Double(try required()), range.contains(number) else {
            throw LineError(self, "\(word) is a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    func count(_ range: ClosedRange<UInt64>) throws(LineError) -> UInt64 {
        guard let number = UInt64(try required()), range.contains(number) else {
            throw LineError(self, "\(word) is a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    func instant() throws(LineError) -> Instant {
        guard let time = microseconds(try required()) else {
            throw LineError(self, "\(word) is a time in seconds, with at most six digits after the point")
        }
        return Instant(microseconds: time)
    }

    /// The items between commas; `none` for nothing.
    func list() throws(LineError) -> [String] {
        let text = try required()
        return text == "none" ? [] : text.split(separator: ",").map(String.init)
    }
}
