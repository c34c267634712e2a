/// What the counts of a node's pictures say about it. Each beat, at least one picture is sent.
///
/// A reader of our own is always there: when the last reader leaves, a node of PipeWire 0.3 sends 15 pictures to the next one and then
/// stops, and a node of PipeWire 1.4 fails. A reader that hangs keeps the memory of all pictures, so that none passes: then the
/// node is made again.
struct NodeWatch {
    enum Verdict: Sendable, Hashable {
        case well
        /// Another reader of our own is needed.
        case readAgain
        case makeAgain
    }

    private var sent: UInt32 = 0
    private var read: UInt32 = 0
    /// Beats in which no picture came to the server, and beats in which our reader got none.
    private var silence = 0
    private var neglect = 0
    private var isRead = false

    /// Beats after which a reader hangs.
    static let longest = 10
    /// Beats after which our reader has not found the node.
    static let searching = 50

    /// - Parameters:
    ///   - sent: how many pictures have come to the server.
    ///   - read: how many our reader has got; it counts from 0 when it is another one.
    mutating func beat(sent: UInt32, read: UInt32) -> Verdict {
        silence = sent != self.sent ? 0 : silence + 1
        neglect = read != self.read ? 0 : neglect + 1
        isRead = isRead || read > 0
        (self.sent, self.read) = (sent, read)
        if silence >= Self.longest || (isRead && neglect >= Self.longest) { return .makeAgain }
        guard !isRead, sent > 0, neglect >= Self.searching else { return .well }
        neglect = 0
        return .readAgain
    }
}
