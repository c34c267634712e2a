/// Which answers of servers are kept for the programs that uploaded: the last ones, and not more bytes than the limit.
public struct AnswerShelf: Sendable {
    private let limit: Int
    /// By number of the upload, the oldest first.
    private var kept: [(number: UInt64, bytes: Int)] = []
    private var bytes = 0

    public init(limit: Int) { self.limit = limit }

    /// An upload has ended with an answer of so many bytes. Returns the uploads whose answers are given up for it.
    public mutating func add(_ number: UInt64, bytes count: Int) -> [UInt64] {
        kept.append((number, count))
        bytes += count
        var given: [UInt64] = []
        while bytes > limit {
            let oldest = kept.removeFirst()
            bytes -= oldest.bytes
            given.append(oldest.number)
        }
        return given
    }

    /// An upload is not listed any more.
    public mutating func remove(_ number: UInt64) {
        guard let place = kept.firstIndex(where: { $0.number == number }) else { return }
        bytes -= kept.remove(at: place).bytes
    }
}
