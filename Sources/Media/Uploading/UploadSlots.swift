/// Decides which uploads may use the network now.
public enum UploadSlots {
    /// The number of uploads at the same time.
    public static let limit = 3

    public struct Wish: Sendable, Hashable {
        public let number: UInt64
        /// Whether it would use the network.
        public let wantsNetwork: Bool
        /// Whether it already uses the network.
        public let isAllowed: Bool
        /// Whether it may use a metered network.
        public let sendsOnMetered: Bool
        /// Whether it continues at its position after a stop, so that no sent data are lost.
        public let continues: Bool

        public init(
            number: UInt64, wantsNetwork: Bool, isAllowed: Bool, sendsOnMetered: Bool = false, continues: Bool = true
        ) {
            (self.number, self.wantsNetwork, self.isAllowed) = (number, wantsNetwork, isAllowed)
            (self.sendsOnMetered, self.continues) = (sendsOnMetered, continues)
        }
    }

    /// The numbers of the uploads that may use the network. Running uploads continue; then the oldest come first.
    ///
    /// - Parameter isFallingAsleep: the machine goes to sleep, and its connections may be gone when it wakes. No upload
    ///   starts, and only uploads that would have to start again continue.
    public static func allowed(_ wishes: [Wish], isMetered: Bool, isFallingAsleep: Bool = false) -> Set<UInt64> {
        let able = wishes.filter {
            $0.wantsNetwork && (!isMetered || $0.sendsOnMetered) && (!isFallingAsleep || $0.isAllowed && !$0.continues)
        }
        // Of thousands, only the first few are needed.
        var first: [Wish] = []
        for wish in able {
            let place = first.firstIndex { isBefore(wish, $0) } ?? first.count
            guard place < limit else { continue }
            first.insert(wish, at: place)
            if first.count > limit { first.removeLast() }
        }
        return Set(first.map(\.number))
    }

    private static func isBefore(_ one: Wish, _ other: Wish) -> Bool {
        one.isAllowed != other.isAllowed ? one.isAllowed : one.number < other.number
    }
}
