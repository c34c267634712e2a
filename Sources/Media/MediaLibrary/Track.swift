public import TagFormats

/// What kind of sound an item is.
public enum ItemType: Int64, CaseIterable, Sendable, Hashable {
    case music = 0
    case podcast = 1
    case audiobook = 2

    /// The name on D-Bus.
    public var word: String {
        switch self {
        case .music: "music"
        case .podcast: "podcast"
        case .audiobook: "audiobook"
        }
    }

    public init?(word: String) {
        guard let type = ItemType.allCases.first(where: { $0.word == word }) else { return nil }
        self = type
    }
}

/// The properties of an item, from the tags of its file.
public struct Track: Sendable, Hashable {
    public var title = ""
    /// The folded title by which it is sorted.
    public var titleSort = ""
    public var album = ""
    public var albumSort = ""
    /// The text that is shown, such as "A feat. B".
    public var artist = ""
    public var artistSort = ""
    /// The separate artists.
    public var artists: [String] = []
    public var albumArtist = ""
    public var albumArtistSort = ""
    /// The separate album artists.
    public var albumArtists: [String] = []
    public var composers: [String] = []
    public var genres: [String] = []
    /// Songs with the same key are one album; empty: the file has no album.
    public var albumKey = ""
    public var disc = 0
    public var number = 0
    /// A number of eight digits, such as 19731024; an unknown month or day is 0.
    public var released = 0
    public var duration = 0.0
    public var isCompilation = false
    public var hasPicture = false
    public var mediaType = ItemType.music

    public init() {}

    public var year: Int { released / 10_000 }

    /// - Parameters:
    ///   - path: the path of the file relative to its folder of the library.
    ///   - type: the type of all files of the folder, if the user has set it.
    public init(_ facts: SoundFacts, path: [UInt8], type: ItemType? = nil) {
        let parts = path.split(separator: UInt8(ascii: "/")).map { String(decoding: $0, as: UTF8.self) }
        let file = parts.last ?? ""
        let dot = file.lastIndex(of: ".") ?? file.endIndex
        title = facts.first("TITLE") ?? String(file[..<dot])
        titleSort = Self.sort(facts.first("TITLESORT"), title)
        album = facts.first("ALBUM") ?? ""
        albumSort = Self.sort(facts.first("ALBUMSORT"), album)
        artists = Self.names(facts.tags["ARTISTS"] ?? facts.tags["ARTIST"] ?? [])
        artist = (facts.tags["ARTIST"] ?? []).joined(separator: ", ")
        if artist.isEmpty { artist = artists.joined(separator: ", ") }
        artistSort = Self.sort(facts.first("ARTISTSORT"), artists.first ?? "")
        isCompilation = ["1", "true", "yes"].contains(facts.first("COMPILATION")?.lowercased() ?? "")
        let named = facts.tags["ALBUMARTIST"] ?? []
        albumArtists = named.isEmpty && !isCompilation ? Array(artists.prefix(1)) : Self.names(named)
        albumArtist = named.isEmpty ? (isCompilation ? "" : artists.first ?? "") : named.joined(separator: ", ")
        albumArtistSort = Self.sort(facts.first("ALBUMARTISTSORT"), albumArtist)
        composers = Self.names(facts.tags["COMPOSER"] ?? [])
        genres = Self.names(facts.tags["GENRE"] ?? [])
        disc = Self.number(facts.first("DISCNUMBER"), limit: 9_999)
        number = Self.number(facts.first("TRACKNUMBER"), limit: 99_999)
        released = Self.date(facts.first("DATE") ?? "")
        duration = facts.duration.isFinite && facts.duration > 0 && facts.duration < 1e7 ? facts.duration : 0
        hasPicture = facts.hasPicture
        if let id = facts.first("MUSICBRAINZ_ALBUMID") {
            albumKey = "musicbrainz\n" + id.lowercased()
        } else if !album.isEmpty {
            // Two releases of an album may have the same title and artist.
            let release = [facts.first("RELEASEDATE"), facts.first("ALBUMVERSION")].map { Folding.fold($0 ?? "") }
            albumKey = Folding.fold(album) + "\n" + Folding.fold(albumArtist)
            if release != ["", ""] { albumKey += "\n" + release.joined(separator: "\n") }
        }
        mediaType = type ?? Self.type(facts, genres, file: file, folders: parts.dropLast())
    }

    private static func sort(_ tag: String?, _ text: String) -> String {
        tag.map { Folding.fold($0) } ?? Folding.sortKey(Folding.fold(text))
    }

    /// The separate names, where one value may contain several.
    static func names(_ values: [String]) -> [String] {
        var names: [String] = []
        for value in values {
            for part in parts(of: value) where !names.contains(part) { names.append(part) }
        }
        return names
    }

    /// "A; B" and "A feat. B" are two names. "AC/DC" and "Simon & Garfunkel" are one.
    private static func parts(of value: String) -> [String] {
        var words: [Substring] = []
        var parts: [String] = []
        func end() {
            let part = words.joined(separator: " ")
            if !part.isEmpty { parts.append(part) }
            words = []
        }
        for word in value.split(separator: " ") {
            let plain = word.lowercased().filter { $0 != "(" && $0 != "[" }
            if !words.isEmpty, ["feat.", "feat", "ft.", "ft", "featuring"].contains(plain) {
                end()
                continue
            }
            let pieces = word.split(separator: ";", omittingEmptySubsequences: false)
            for (index, piece) in pieces.enumerated() {
                if !piece.isEmpty { words.append(piece) }
                if index < pieces.count - 1 { end() }
            }
        }
        end()
        // The opening bracket may be in another part. Then the closing bracket is removed.
        return parts.map { part in
            let isOpen = part.contains("(") || part.contains("[")
            return !isOpen && (part.hasSuffix(")") || part.hasSuffix("]")) ? String(part.dropLast()) : part
        }
    }

    /// The first number of "3/12" or "03"; 0 for "A3".
    private static func number(_ text: String?, limit: Int) -> Int {
        guard let text, let number = Int(text.prefix { $0.isASCII && $0.isNumber }) else { return 0 }
        return min(number, limit)
    }

    /// A date as a number of eight digits: 19731024 for "1973-10-24T…", 19730000 for "1973" and "24.10.1973"; 0: no
    /// date.
    static func date(_ text: String) -> Int {
        let parts = text.split { !($0.isASCII && $0.isNumber) }
        guard let index = parts.firstIndex(where: { $0.count == 4 }), let year = Int(parts[index]) else {
            return parts.first.flatMap { $0.count == 8 ? Int($0) : nil } ?? 0
        }
        let rest = parts[(index + 1)...].prefix(2).map { Int($0) ?? 0 }
        let month = rest.first.map { (1...12).contains($0) ? $0 : 0 } ?? 0
        let day = month > 0 && rest.count > 1 && (1...31).contains(rest[1]) ? rest[1] : 0
        return year * 10_000 + month * 100 + day
    }

    private static func type(
        _ facts: SoundFacts, _ genres: [String], file: String, folders: ArraySlice<String>
    ) -> ItemType {
        switch facts.first("STIK") {
        case "2": return .audiobook
        case "21": return .podcast
        default: break
        }
        if facts.first("PODCAST") == "1" { return .podcast }
        let name = file.lowercased()
        if name.hasSuffix(".m4b") || name.hasSuffix(".aax") { return .audiobook }
        for word in genres.map({ Folding.fold($0) }) + folders.map({ Folding.fold($0) }) {
            switch word {
            case "podcast", "podcasts": return .podcast
            case "audiobook", "audiobooks", "audio book", "audio books": return .audiobook
            default: break
            }
        }
        return .music
    }
}
