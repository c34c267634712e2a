/// A set of session numbers, stored as ranges of consecutive numbers.
///
/// If each session waits for all later ones, a thousand sets with up to a thousand members would be half a million
/// numbers, in the rules, in every copy in the history, and in the state file.
public struct SessionSet: Sendable, Hashable {
    /// All numbers from the first to the last.
    public struct Run: Sendable, Hashable {
        public let first: UInt64
        public let last: UInt64

        public init(first: UInt64, last: UInt64) {
            self.first = first
            self.last = last
        }
    }

    /// Ascending; no two ranges touch.
    public private(set) var runs: [Run] = []
    public private(set) var count = 0

    /// The highest number that a set can contain, because its count must fit an `Int`; higher numbers in a file are
    /// rejected.
    public static let highest: UInt64 = 1 << 62

    public init() {}

    public init(_ ids: some Sequence<SessionID>) {
        for id in ids { insert(id) }
    }

    /// Nil if these are not valid ranges: not in order, touching, or too high.
    public init?(runs: [Run]) {
        var end: UInt64?
        for run in runs {
            guard run.first <= run.last, run.last <= SessionSet.highest else { return nil }
            if let end, run.first <= end + 1 { return nil }
            count += Int(run.last - run.first) + 1
            end = run.last
        }
        self.runs = runs
    }

    public var isEmpty: Bool { runs.isEmpty }

    public func contains(_ id: SessionID) -> Bool {
        let place = place(of: id.number)
        return place < runs.count && runs[place].first <= id.number
    }

    public func isSubset(of other: SessionSet) -> Bool {
        runs.allSatisfy { run in
            let place = other.place(of: run.first)
            return place < other.runs.count && other.runs[place].first <= run.first
                && run.last <= other.runs[place].last
        }
    }

    /// False if it was already a member.
    @discardableResult
    public mutating func insert(_ id: SessionID) -> Bool {
        let number = id.number
        let place = place(of: number)
        if place < runs.count, runs[place].first <= number { return false }
        count += 1
        let follows = place > 0 && runs[place - 1].last + 1 == number
        let precedes = place < runs.count && number + 1 == runs[place].first
        switch (follows, precedes) {
        case (true, true):
            runs[place - 1] = Run(first: runs[place - 1].first, last: runs[place].last)
            runs.remove(at: place)
        case (true, false): runs[place - 1] = Run(first: runs[place - 1].first, last: number)
        case (false, true): runs[place] = Run(first: number, last: runs[place].last)
        case (false, false): runs.insert(Run(first: number, last: number), at: place)
        }
        return true
    }

    /// False if it was not a member.
    @discardableResult
    public mutating func remove(_ id: SessionID) -> Bool {
        let number = id.number
        let place = place(of: number)
        guard place < runs.count, runs[place].first <= number else { return false }
        count -= 1
        let run = runs[place]
        switch (run.first == number, run.last == number) {
        case (true, true): runs.remove(at: place)
        case (true, false): runs[place] = Run(first: number + 1, last: run.last)
        case (false, true): runs[place] = Run(first: run.first, last: number - 1)
        case (false, false):
            runs[place] = Run(first: run.first, last: number - 1)
            runs.insert(Run(first: number + 1, last: run.last), at: place + 1)
        }
        return true
    }

    public mutating func formUnion(_ other: SessionSet) {
        if isEmpty {
            self = other
        } else {
            for id in other { insert(id) }
        }
    }

    /// Keeps the allocated memory.
    public mutating func empty() {
        runs.removeAll(keepingCapacity: true)
        count = 0
    }

    /// The index of the first range that does not end before that number.
    private func place(of number: UInt64) -> Int {
        var low = 0
        var high = runs.count
        while low < high {
            let middle = (low + high) / 2
            if runs[middle].last < number { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

extension SessionSet: Sequence {
    /// Ascending.
    public struct Iterator: IteratorProtocol {
        private var runs: IndexingIterator<[Run]>
        private var run: Run?
        /// The position within the range.
        private var offset: UInt64 = 0

        fileprivate init(_ runs: [Run]) {
            self.runs = runs.makeIterator()
            run = self.runs.next()
        }

        public mutating func next() -> SessionID? {
            guard let run else { return nil }
            let number = run.first + offset
            if number < run.last {
                offset += 1
            } else {
                self.run = runs.next()
                offset = 0
            }
            return SessionID(number)
        }
    }

    public func makeIterator() -> Iterator { Iterator(runs) }
    public var underestimatedCount: Int { count }
}

extension SessionSet: ExpressibleByArrayLiteral {
    public init(arrayLiteral ids: SessionID...) { self.init(ids) }
}
