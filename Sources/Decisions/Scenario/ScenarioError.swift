/// An error in a scenario file: its position, and how to correct it.
public struct ScenarioError: Error, Sendable, Hashable, CustomStringConvertible {
    public let file: String
    /// From 1; the column in Unicode scalars.
    public let line: Int
    public let column: Int
    /// The error and how to correct it, in one line.
    public let message: String

    /// `file:line:column: message`.
    public var description: String { "\(file):\(line):\(column): \(message)" }
}

/// An error within a line.
struct LineError: Error {
    let column: Int
    let message: String

    init(_ token: Token, _ message: String) {
        column = token.column
        self.message = message
    }

    init(column: Int, _ message: String) {
        self.column = column
        self.message = message
    }
}
