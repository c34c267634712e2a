/// A private server or program did not do what a test needs: the message names it and shows its output.
public struct SupportError: Error, CustomStringConvertible {
    public let description: String
    public init(_ description: String) { self.description = description }
}
