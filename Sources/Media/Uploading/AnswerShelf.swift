/// Decides which answers of servers are stored for the programs that uploaded: the latest ones, up to a limit in bytes.
public struct AnswerShelf: Sendable {
    private let limit: Int
    /// By the number of the upload, the oldest first.
    private var kept: [(number: UInt64, bytes: Int)] = []
    private var bytes = 0

    public init(limit: Int) { self.limit = limit }

    /// An upload has ended with an answer of `count` bytes. Returns the uploads whose answers must be discarded.
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

    /// An upload is no longer listed.
    public mutating func remove(_ number: UInt64) {
        guard let place = kept.firstIndex(where: { $0.number == number }) else { return }
        bytes -= kept.remove(at: place).bytes
    }
}
