/// Which uploads may use the network now.
public enum UploadSlots {
    /// How many at once.
    public static let limit = 3

    public struct Wish: Sendable, Hashable {
        public let number: UInt64
        /// Whether it would use the network.
        public let wantsNetwork: Bool
        /// Whether it uses it already.
        public let isAllowed: Bool
        /// Whether it may on a network that is paid by what is sent.
        public let sendsOnMetered: Bool
        /// Whether it continues where it was, so that nothing is lost when it has to stop.
        public let continues: Bool

        public init(
            number: UInt64, wantsNetwork: Bool, isAllowed: Bool, sendsOnMetered: Bool = false, continues: Bool = true
        ) {
            (self.number, self.wantsNetwork, self.isAllowed) = (number, wantsNetwork, isAllowed)
            (self.sendsOnMetered, self.continues) = (sendsOnMetered, continues)
        }
    }

    /// The numbers of those that may. Whoever is at it goes on; then the oldest come first.
    ///
    /// - Parameter isFallingAsleep: the machine is; its connections may be gone when it wakes. Nothing begins, and only what
    ///   would have to begin anew goes on.
    public static func allowed(_ wishes: [Wish], isMetered: Bool, isFallingAsleep: Bool = false) -> Set<UInt64> {
        let able = wishes.filter {
            $0.wantsNetwork && (!isMetered || $0.sendsOnMetered) && (!isFallingAsleep || $0.isAllowed && !$0.continues)
        }
        // Of thousands only the first few are wanted.
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
