/// A second, independent model of the cache of one resource, in blocks: it judges what a cache does. Written from the rules
/// and not from the sources.
public struct CacheModel {
    public struct Objection: Error, CustomStringConvertible {
        public let description: String
    }

    /// The version that each stored block is of; nil: it is missing.
    public private(set) var blocks: [Int?]
    /// How often each block of a version came.
    public private(set) var arrivals: [Int: [Int]] = [:]
    private var running: [UInt64: Range<Int>] = [:]
    /// The version that a reader was served from.
    private var served: [UInt64: Int] = [:]
    private let mayRepeat: Bool

    /// - Parameter mayRepeat: whether a block may be requested again: the letter of the rules, or an origin without
    ///   ranges.
    public init(blocks count: Int, mayRepeat: Bool) {
        blocks = Array(repeating: nil, count: count)
        self.mayRepeat = mayRepeat
    }

    public mutating func requests(_ request: UInt64, _ range: Range<Int>) throws(Objection) {
        guard running[request] == nil else { throw Objection(description: "request \(request) runs already") }
        if !mayRepeat {
            for block in range where blocks[block] != nil {
                throw Objection(description: "block \(block) is requested, but it is here")
            }
            for (other, blocks) in running where !blocks.isEmpty {
                // The older request ends where the newer one begins.
                if blocks.lowerBound < range.lowerBound {
                    running[other] = blocks.lowerBound..<min(blocks.upperBound, range.lowerBound)
                } else if blocks.lowerBound < range.upperBound {
                    throw Objection(description: "request \(request) runs into request \(other)")
                }
            }
        }
        running[request] = range
    }

    /// The answer to a running request is another range: all bytes of a newer version.
    public mutating func restarts(_ request: UInt64, _ range: Range<Int>) { running[request] = range }

    public mutating func cancels(_ request: UInt64) { running[request] = nil }

    /// A block of that version was stored.
    public mutating func stores(_ block: Int, of version: Int, by request: UInt64) throws(Objection) {
        arrivals[version, default: Array(repeating: 0, count: blocks.count)][block] += 1
        guard mayRepeat || arrivals[version]?[block] == 1 else {
            throw Objection(description: "block \(block) of version \(version) came twice")
        }
        blocks[block] = version
        if let range = running[request] {
            running[request] = max(range.lowerBound, block + 1)..<max(range.upperBound, block + 1)
        }
    }

    public mutating func discards() { blocks = Array(repeating: nil, count: blocks.count) }

    /// A reader got a block.
    public mutating func reads(_ reader: UInt64, _ block: Int) throws(Objection) {
        guard let version = blocks[block] else { throw Objection(description: "reader \(reader) got a missing block") }
        if let before = served[reader], before != version {
            throw Objection(description: "reader \(reader) got blocks of versions \(before) and \(version)")
        }
        served[reader] = version
    }

    public mutating func leaves(_ reader: UInt64) { served[reader] = nil }

    public func completes(size: Int) throws(Objection) {
        guard blocks.prefix(size).allSatisfy({ $0 != nil && $0 == blocks[0] }) else {
            throw Objection(description: "complete with \(blocks)")
        }
    }
}

/// The seven rules of the seeds for one reader, as they are written there.
public struct SevenRules {
    public enum Answer: Sendable, Equatable {
        /// Cancel what runs, if anything, and request from there to the end.
        case request(from: UInt64)
        case serve
        case wait
    }

    private var beginning: UInt64?
    private var cached: UInt64 = 0
    /// Whether what comes is kept at the end.
    public private(set) var isKept = true

    public init() {}

    public mutating func ask(_ offset: UInt64) -> Answer {
        guard let beginning else { return begin(offset == 0 ? 0 : offset) }
        if offset > cached { return begin(offset) }
        if offset == cached { return .wait }
        if offset >= beginning { return .serve }
        return begin(offset)
    }

    public mutating func receive(_ count: UInt64) { cached += count }

    private mutating func begin(_ offset: UInt64) -> Answer {
        isKept = beginning == nil && offset == 0
        (beginning, cached) = (offset, offset)
        return .request(from: offset)
    }
}
