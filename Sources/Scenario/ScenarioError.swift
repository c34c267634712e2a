/// What is wrong in a written scenario, where, and what to do about it.
public struct ScenarioError: Error, Sendable, Hashable, CustomStringConvertible {
    public let file: String
    /// From 1; the column in Unicode scalars.
    public let line: Int
    public let column: Int
    /// What is wrong and what to do; one line.
    public let message: String

    /// `file:line:column: message`.
    public var description: String { "\(file):\(line):\(column): \(message)" }
}

/// The same within a line.
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
