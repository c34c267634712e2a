/// Receives the body of an answer piece by piece, so that a body of any size needs no memory.
///
/// The handlers are called while libcurl works: they must not start, cancel, pause or resume a transfer.
public struct HTTPSink {
    /// What was done with a piece.
    public enum Taking: Sendable {
        case taken
        /// The transfer ends here; ``HTTPClient`` reports the answer as a success.
        case stop
    }

    let onHead: (HTTPResponse) -> Void
    let onBody: (UnsafeRawBufferPointer) -> Taking

    /// - Parameters:
    ///   - onHead: called once, with the final head, whose body is empty.
    ///   - onBody: called for each piece.
    public init(onHead: @escaping (HTTPResponse) -> Void, onBody: @escaping (UnsafeRawBufferPointer) -> Taking) {
        (self.onHead, self.onBody) = (onHead, onBody)
    }
}
