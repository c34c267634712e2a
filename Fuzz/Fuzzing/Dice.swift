/// A source of choices: a seeded generator, or the bytes a fuzzing engine offers (zeros once they are used up).
public struct Dice: RandomNumberGenerator {
    private var state: UInt64
    private var bytes: ArraySlice<UInt8>?

    /// The same seed gives the same choices, on every machine.
    public init(seed: UInt64) { state = seed }

    /// Choices that are made by the bytes alone, so that an engine can steer them.
    public init(_ bytes: ArraySlice<UInt8>) {
        state = 0
        self.bytes = bytes
    }

    /// False once the bytes are used up; always true of a seeded one.
    public var hasMore: Bool { bytes.map { !$0.isEmpty } ?? true }

    public mutating func next() -> UInt64 {
        if bytes != nil { return (0..<8).reduce(0) { value, _ in value << 8 | UInt64(nextByte()) } }
        // SplitMix64.
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    public mutating func nextByte() -> UInt8 {
        guard bytes != nil else { return UInt8(truncatingIfNeeded: next()) }
        return bytes?.popFirst() ?? 0
    }

    /// 0 up to, and not including, `bound`, which must be above 0.
    public mutating func below(_ bound: Int) -> Int {
        precondition(bound > 0, "nothing is below 0")
        // One byte where it is enough: engines mutate single bytes. The bias is of no matter here.
        return bound <= 256 ? Int(nextByte()) % bound : Int(next() % UInt64(bound))
    }

    /// True once in `times`.
    public mutating func once(in times: Int) -> Bool { below(times) == 0 }

    public mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }
}
