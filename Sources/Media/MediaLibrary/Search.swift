/// Words as a person types or says them.
enum Words {
    /// A match expression for the full-text index; the last word of the text may be incomplete. Nil: the text has no
    /// word.
    static func prefixMatch(_ text: String) -> String? {
        let words = said(text)
        guard !words.isEmpty else { return nil }
        return words.enumerated().map { index, word in
            "\"\(word)\"" + (index == words.count - 1 ? "*" : "")
        }.joined(separator: " ")
    }

    /// The number of words that are used. Further words are ignored, because each one is compared with all words of the
    /// library.
    static let limit = 16

    static func said(_ text: String) -> [String] { Array(Folding.words(Folding.fold(text)).prefix(limit)) }

    /// Words without a meaning of their own.
    static let fillers: Set<String> = ["the", "a", "an", "of", "and", "to", "my", "some"]

    /// Other forms of a word: `four`, `4` and `iv` are equal.
    static func equals(_ word: String) -> [String] { numerals[word].map { $0.filter { $0 != word } } ?? [] }

    private static let numerals: [String: [String]] = {
        var table: [String: [String]] = [:]
        let names = [
            ["one", "1", "i"], ["two", "2", "ii"], ["three", "3", "iii"], ["four", "4", "iv"], ["five", "5", "v"],
            ["six", "6", "vi"], ["seven", "7", "vii"], ["eight", "8", "viii"], ["nine", "9", "ix"], ["ten", "10", "x"],
            ["eleven", "11", "xi"], ["twelve", "12", "xii"], ["thirteen", "13", "xiii"], ["fourteen", "14", "xiv"],
            ["fifteen", "15", "xv"], ["sixteen", "16", "xvi"], ["seventeen", "17", "xvii"],
            ["eighteen", "18", "xviii"], ["nineteen", "19", "xix"], ["twenty", "20", "xx"], ["first", "1st"],
            ["second", "2nd"], ["third", "3rd"], ["volume", "vol"], ["part", "pt"], ["number", "no"],
            ["saint", "st"], ["you", "u"], ["are", "r"], ["okay", "ok"], ["versus", "vs"],
        ]
        for group in names { for word in group { table[word] = group } }
        return table
    }()

    /// The number of letters that may be wrong in a word of that length.
    static func tolerance(_ length: Int) -> Int { length >= 8 ? 2 : length >= 4 ? 1 : 0 }

    /// The similarity of two words, 0…1: 1 if they are equal or have the same meaning, less for each wrong letter.
    static func likeness(_ one: String, _ other: String) -> Double {
        if one == other || numerals[one]?.contains(other) == true { return 1 }
        let (one, other) = (Array(one.unicodeScalars), Array(other.unicodeScalars))
        let limit = tolerance(max(one.count, other.count))
        guard limit > 0, abs(one.count - other.count) <= limit else { return 0 }
        let distance = distance(one, other)
        return distance <= limit ? 1 - 0.25 * Double(distance) : 0
    }

    /// The number of letters to insert, remove, replace or exchange with the next letter.
    static func distance(_ one: [Unicode.Scalar], _ other: [Unicode.Scalar]) -> Int {
        var before: [Int] = []
        var last = Array(0...other.count)
        for row in 0..<one.count {
            var current = [row + 1]
            for column in 0..<other.count {
                var least = min(last[column + 1] + 1, current[column] + 1)
                least = min(least, last[column] + (one[row] == other[column] ? 0 : 1))
                if row > 0, column > 0, one[row] == other[column - 1], one[row - 1] == other[column] {
                    least = min(least, before[column - 1] + 1)
                }
                current.append(least)
            }
            (before, last) = (last, current)
        }
        return last[other.count]
    }
}

/// How well heard words match a name.
public enum SearchScore {
    /// The score, 0…1: 1 if the words are the same.
    ///
    /// - Parameters:
    ///   - heard: the words that a person said.
    ///   - name: the words of the name that they are compared with.
    ///   - context: more words that the person may have said with the name, such as the artist of a song.
    public static func score(heard: [String], name: [String], context: [String] = []) -> Double {
        guard !heard.isEmpty, !name.isEmpty else { return 0 }
        if heard == name || heard.joined() == name.joined() { return 1 }
        var free = Array(name)
        var (found, weight, named) = (0.0, 0.0, 0.0)
        for (index, word) in heard.enumerated() {
            let share = Words.fillers.contains(word) ? 0.2 : 1.0
            weight += share
            var best = (likeness: 0.0, place: -1)
            for (place, other) in free.enumerated() {
                var likeness = Words.likeness(word, other)
                // The last word may still be incomplete while the user types.
                if index == heard.count - 1, likeness < 0.9, word.utf8.count > 1, other.hasPrefix(word) {
                    likeness = 0.9
                }
                if likeness > best.likeness { best = (likeness, place) }
            }
            if best.place >= 0 {
                let other = free.remove(at: best.place)
                named += best.likeness * (Words.fillers.contains(other) ? 0.2 : 1)
                found += best.likeness * share
            } else if let likeness = context.map({ Words.likeness(word, $0) }).max(), likeness > 0 {
                found += 0.9 * likeness * share
            }
        }
        let whole = name.reduce(0.0) { $0 + (Words.fillers.contains($1) ? 0.2 : 1) }
        guard named > 0 else { return 0 }
        return min(0.99, 0.65 * found / weight + 0.35 * min(1, named / whole))
    }
}

extension Store {
    /// A result of a search.
    public struct Finding: Sendable, Hashable {
        public enum Kind: String, CaseIterable, Sendable {
            case song, podcast, audiobook, album, artist
            case albumArtist = "album-artist"
            case composer, genre, playlist
        }
        public var kind: Kind
        /// The id of an item or of a collection.
        public var id: Int64
        public var title: String
        public var artist: String
        public var score: Double
    }

    /// The items and collections that match words as typed or heard, best match first.
    ///
    /// - Parameters:
    ///   - kinds: empty: all.
    ///   - artist: the artist, if the request names it separately, like `album`. Results must match it.
    public func search(
        _ text: String, kinds: Set<Finding.Kind> = [], artist: String = "", album: String = "", max: Int = 20
    ) throws(SQLError) -> [Finding] {
        let heard = Words.said(text)
        guard !heard.isEmpty else { return [] }
        return try db.reading { () throws(SQLError) in
            try search(heard, kinds: kinds, artist: artist, album: album, max: max)
        }
    }

    private func search(
        _ heard: [String], kinds: Set<Finding.Kind>, artist: String, album: String, max: Int
    ) throws(SQLError) -> [Finding] {
        var best: [String: Finding] = [:]
        func add(_ findings: [Finding]) {
            for finding in findings where kinds.isEmpty || kinds.contains(finding.kind) {
                let key = "\(finding.kind.rawValue) \(finding.id)"
                if best[key].map({ $0.score < finding.score }) ?? true { best[key] = finding }
            }
        }
        add(try look(for: heard, artist, album))
        // "Title by artist": the last "by" is the separator.
        if artist.isEmpty, let by = heard.lastIndex(of: "by"), by > 0, by < heard.count - 1 {
            let said = heard[(by + 1)...].joined(separator: " ")
            add(
                try look(for: Array(heard[..<by]), said, album).map { finding in
                    var finding = finding
                    finding.score = Swift.max(finding.score, 0.01)
                    return finding
                })
        }
        return best.values.sorted { one, other in
            if one.score != other.score { return one.score > other.score }
            let ranks = (Self.rank(one.kind), Self.rank(other.kind))
            return ranks.0 != ranks.1 ? ranks.0 < ranks.1 : one.id < other.id
        }.prefix(max).map { $0 }
    }

    /// The order of the kinds among results with the same score.
    private static func rank(_ kind: Finding.Kind) -> Int {
        switch kind {
        case .artist: 0
        case .album: 1
        case .playlist: 2
        case .song: 3
        case .podcast: 4
        case .audiobook: 5
        case .albumArtist: 6
        case .composer: 7
        case .genre: 8
        }
    }

    private static let candidates = 200

    private func look(for heard: [String], _ artist: String, _ album: String) throws(SQLError) -> [Finding] {
        let useful = heard.filter { !Words.fillers.contains($0) }
        let words = useful.isEmpty ? heard : useful
        var rows = try candidates(words.map { [$0] + Words.equals($0) }, allOf: true, joined: words)
        var findings = try score(rows, heard, artist, album)
        if (findings.map(\.score).max() ?? 0) < 0.85 {
            // No result has a high score, so words may be misheard. First, names with words similar to all of them are
            // searched, then names with a word similar to any of them.
            let alike = try words.map { word throws(SQLError) in try vocabulary(near: word) }
            rows = try candidates(alike, allOf: true, joined: [])
            findings += try score(rows, heard, artist, album)
            if (findings.map(\.score).max() ?? 0) < 0.6, words.count > 1 {
                rows = try candidates(alike, allOf: false, joined: [])
                findings += try score(rows, heard, artist, album)
            }
        }
        return findings.filter { $0.score >= 0.35 }
    }

    private func candidates(_ words: [[String]], allOf: Bool, joined: [String]) throws(SQLError) -> [Int64] {
        var parts = words.enumerated().map { index, ways in
            "("
                + ways.map { "\"\($0)\"" + (index == words.count - 1 && $0.utf8.count > 1 ? "*" : "") }
                .joined(separator: " OR ") + ")"
        }
        if parts.isEmpty { return [] }
        parts = [parts.joined(separator: allOf ? " AND " : " OR ")]
        if (2...4).contains(joined.count) { parts.append("\"\(joined.joined())\"") }
        let match = parts.map { "(\($0))" }.joined(separator: " OR ")
        // There are few collections, and their names are short. Many matching songs must not push them out of the
        // result.
        let sql = "SELECT rowid FROM words WHERE words MATCH ? AND rowid"
        let collections = try db.all(
            "\(sql) >= \(Kind.shift) LIMIT \(Self.candidates)", [.text(match)]
        ) { $0.whole(0) }
        let songs = try db.all("\(sql) < \(Kind.shift) LIMIT \(Self.candidates)", [.text(match)]) { $0.whole(0) }
        // Titles are not left out for the many songs that have the words elsewhere.
        let titles =
            songs.count == Self.candidates
            ? try db.all(
                "\(sql) < \(Kind.shift) LIMIT \(Self.candidates)", [.text("title : (\(match))")]
            ) { $0.whole(0) } : []
        return collections + titles + (titles.count < Self.candidates ? songs : [])
    }

    /// The word and the similar words of the library.
    private func vocabulary(near word: String) throws(SQLError) -> [String] {
        let near = word.unicodeScalars.count >= 4 ? try vocabulary().near(word, max: 8) : []
        return [word] + Words.equals(word) + near
    }

    /// All words of the library, read once after each change of the music.
    private func vocabulary() throws(SQLError) -> Vocabulary {
        if let known = cache.vocabulary, known.stamp == contents { return known.words }
        var words = Vocabulary()
        try db.rows("SELECT term FROM vocabulary") { row throws(SQLError) in words.add(row.text(0)) }
        cache.vocabulary = (contents, words)
        return words
    }

    private func score(_ rows: [Int64], _ heard: [String], _ artist: String, _ album: String) throws(SQLError)
        -> [Finding]
    {
        var findings: [Finding] = []
        let (artistWords, albumWords) = (Words.said(artist), Words.said(album))
        func fit(_ said: [String], _ words: [String]) -> Double {
            said.isEmpty ? 1 : SearchScore.score(heard: said, name: words)
        }
        func add(_ kind: Finding.Kind, _ id: Int64, _ title: String, _ by: String, _ on: String = "") {
            let artists = Folding.words(Folding.fold(by))
            // Only these kinds have an artist. If the request names an artist, the other kinds do not match.
            let isBy = kind == .song || kind == .album || kind == .podcast || kind == .audiobook
            guard isBy || artistWords.isEmpty else { return }
            let byScore = fit(artistWords, artists)
            let onScore = kind == .song ? fit(albumWords, Folding.words(Folding.fold(on))) : albumWords.isEmpty ? 1 : 0
            guard byScore >= 0.5, onScore >= 0.5 else { return }
            let score = SearchScore.score(heard: heard, name: Folding.words(Folding.fold(title)), context: artists)
            findings.append(
                Finding(
                    kind: kind, id: id, title: title, artist: by,
                    score: score * (1 - 0.2 * (1 - byScore) - 0.1 * (1 - onScore))))
        }
        for row in Set(rows) {
            let id = row % Kind.shift
            switch Kind(rawValue: row / Kind.shift) {
            case .song:
                let found = try db.first(
                    "SELECT title, artist, album_title, media_type FROM track WHERE id = ? AND is_available = 1",
                    [.whole(id)]
                ) { ($0.text(0), $0.text(1), $0.text(2), $0.whole(3)) }
                guard let found else { continue }
                let kind: Finding.Kind =
                    switch ItemType(rawValue: found.3) {
                    case .podcast: .podcast
                    case .audiobook: .audiobook
                    case .music, nil: .song
                    }
                add(kind, id, found.0, found.1, found.2)
            case .album:
                let found = try db.first("SELECT title, artist FROM album WHERE id = ?", [.whole(id)]) {
                    ($0.text(0), $0.text(1))
                }
                if let found { add(.album, id, found.0, found.1) }
            case .name:
                guard let name = try db.first("SELECT name FROM name WHERE id = ?", [.whole(id)], { $0.text(0) }) else {
                    continue
                }
                for (role, kind) in [Finding.Kind.artist, .albumArtist, .composer, .genre].enumerated() {
                    guard
                        try db.number(
                            "SELECT 1 FROM track_name WHERE role = ? AND name = ? LIMIT 1",
                            [SQLValue(role), .whole(id)]) != nil
                    else { continue }
                    // An artist with albums is returned once.
                    if kind == .albumArtist, findings.contains(where: { $0.kind == .artist && $0.id == id }) {
                        continue
                    }
                    add(kind, id, name, "")
                }
            case .list:
                let list = id >= Self.firstFileList / 2 ? id - Self.firstFileList / 2 : id + Self.firstFileList
                if let found = try self.list(list) { add(.playlist, list, found.name, "") }
            case nil: continue
            }
        }
        return findings
    }
}
