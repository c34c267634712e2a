/// Makes new inputs from known ones. It replaces a fuzzing engine where there is none.
public struct Mutator {
    private var dice: Dice
    private let corpus: [[UInt8]]

    private static let tokens = [
        "[", "]", "=", "\n", "#", ";", "\\", "\\s", "\r\n", "\u{feff}", "[interruption]\n", "grace = ", "1e308", "nan",
        "[limits]\nsessions = ", "-1", "99999999999999999999", "a{sv}", "v", "\u{0}", "[sessiond Plugin]\n", "Exec=",
        "activate s1\n", "exact\n", "from session s1 ", "class=call", " by=s1", "wait 1\n", "R10",
    ]
    .map { Array($0.utf8) }

    public init(seed: UInt64, corpus: [[UInt8]]) {
        dice = Dice(seed: seed)
        self.corpus = corpus.isEmpty ? [[]] : corpus
    }

    public mutating func next() -> [UInt8] {
        var bytes = dice.pick(corpus)
        for _ in 0...dice.below(6) { mutate(&bytes) }
        return bytes
    }

    private mutating func mutate(_ bytes: inout [UInt8]) {
        let position = dice.below(bytes.count + 1)
        switch dice.below(7) {
        case 0 where position < bytes.count: bytes[position] ^= 1 << UInt8(dice.below(8))
        case 1 where position < bytes.count: bytes[position] = dice.pick([0, 1, 0x7f, 0x80, 0xff, dice.nextByte()])
        case 2: bytes.insert(contentsOf: dice.pick(Self.tokens), at: position)
        case 3: bytes.removeSubrange(position..<min(bytes.count, position + dice.below(32)))
        case 4:
            let other = dice.pick(corpus)
            let start = dice.below(other.count + 1)
            bytes.insert(contentsOf: other[start..<min(other.count, start + dice.below(64))], at: position)
        case 5: bytes.insert(contentsOf: (0..<dice.below(16)).map { _ in dice.nextByte() }, at: position)
        default: bytes = Array(bytes.prefix(position))
        }
    }
}
