/// A source of random choices: a generator with a seed, or the bytes of a fuzzing engine and zeros after their end.
public struct Dice: RandomNumberGenerator {
    private var state: UInt64
    private var bytes: ArraySlice<UInt8>?

    /// The same seed gives the same choices on every machine.
    public init(seed: UInt64) { state = seed }

    /// Only the bytes determine the choices, so that the engine can control them.
    public init(_ bytes: ArraySlice<UInt8>) {
        state = 0
        self.bytes = bytes
    }

    /// False after the last byte. Always true with a seed.
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
        // Uses only one byte if that is sufficient, because engines mutate single bytes. The bias does not matter here.
        return bound <= 256 ? Int(nextByte()) % bound : Int(next() % UInt64(bound))
    }

    /// True once in `times`.
    public mutating func once(in times: Int) -> Bool { below(times) == 0 }

    public mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }
}
