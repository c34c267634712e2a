/// All words of the library, stored compactly, to find words that are similar to a misheard one.
///
/// A word is compared letter by letter only if its length and its set of letters are close enough. Of 200,000 words,
/// these are some hundreds.
struct Vocabulary {
    /// UTF-8 of all words, one after the other.
    private var bytes: [UInt8] = []
    /// The end of each word in `bytes`.
    private var ends: [UInt32] = []
    /// The number of scalars of each word; 255: 255 or more.
    private var lengths: [UInt8] = []
    /// The set of letters of each word, as a bit mask.
    private var letters: [UInt32] = []

    var count: Int { ends.count }

    mutating func add(_ word: String) {
        bytes += Array(word.utf8)
        ends.append(UInt32(clamping: bytes.count))
        lengths.append(UInt8(clamping: word.unicodeScalars.count))
        letters.append(Self.letters(of: word))
    }

    /// Different letters may share a bit. Then more words are compared than necessary.
    private static func letters(of word: String) -> UInt32 {
        word.unicodeScalars.reduce(0) { $0 | 1 << ($1.value & 31) }
    }

    /// The words that are similar to a word, most similar first, without the word itself.
    func near(_ word: String, max: Int) -> [String] {
        let length = word.unicodeScalars.count
        // The longer of two words decides how many letters may be wrong.
        let limit = Words.tolerance(length + 2)
        let mine = Self.letters(of: word)
        var near: [(word: String, likeness: Double)] = []
        for index in ends.indices where abs(Int(lengths[index]) - length) <= limit {
            // Each wrong letter removes one letter from the set and adds one.
            guard (letters[index] ^ mine).nonzeroBitCount <= 2 * limit else { continue }
            let start = index > 0 ? Int(ends[index - 1]) : 0
            let other = String(decoding: bytes[start..<Int(ends[index])], as: UTF8.self)
            let likeness = Words.likeness(word, other)
            if likeness > 0, other != word { near.append((other, likeness)) }
        }
        return near.sorted { ($0.likeness, $1.word) > ($1.likeness, $0.word) }.prefix(max).map(\.word)
    }
}
