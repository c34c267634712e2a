/// All words of the library, in little memory, to find those that are like a misheard one.
///
/// A word is compared letter by letter only if its length and its letters are close enough: of 200,000 words, that are some
/// hundreds.
struct Vocabulary {
    /// UTF-8 of all words, one after the other.
    private var bytes: [UInt8] = []
    /// Where each word ends.
    private var ends: [UInt32] = []
    /// Scalars of each word; 255: as many or more.
    private var lengths: [UInt8] = []
    /// Which letters each word has, a bit for each.
    private var letters: [UInt32] = []

    var count: Int { ends.count }

    mutating func add(_ word: String) {
        bytes += Array(word.utf8)
        ends.append(UInt32(clamping: bytes.count))
        lengths.append(UInt8(clamping: word.unicodeScalars.count))
        letters.append(Self.letters(of: word))
    }

    /// Different letters may have the same bit: then more words are compared.
    private static func letters(of word: String) -> UInt32 {
        word.unicodeScalars.reduce(0) { $0 | 1 << ($1.value & 31) }
    }

    /// The words that are like that one, most alike first; it is not among them.
    func near(_ word: String, max: Int) -> [String] {
        let length = word.unicodeScalars.count
        // The longer of two words says how many letters may be wrong.
        let limit = Words.tolerance(length + 2)
        let mine = Self.letters(of: word)
        var near: [(word: String, likeness: Double)] = []
        for index in ends.indices where abs(Int(lengths[index]) - length) <= limit {
            // Each wrong letter takes one away and brings one.
            guard (letters[index] ^ mine).nonzeroBitCount <= 2 * limit else { continue }
            let start = index > 0 ? Int(ends[index - 1]) : 0
            let other = String(decoding: bytes[start..<Int(ends[index])], as: UTF8.self)
            let likeness = Words.likeness(word, other)
            if likeness > 0, other != word { near.append((other, likeness)) }
        }
        return near.sorted { ($0.likeness, $1.word) > ($1.likeness, $0.word) }.prefix(max).map(\.word)
    }
}
