import DBus
import MediaLibrary
import MediaValues
import PluginAPI
import SessionBus

// Items and queries of the library, as they are on the bus.

extension Item {
    static let fields = [
        "id", "uri", "title", "artist", "artists", "album", "album-artist", "composer", "genre", "disc", "number",
        "year",
        "duration", "media-type", "compilation", "artwork", "added", "rating", "play-count", "skip-count",
        "last-played",
        "bookmark", "album-id", "available",
    ]

    func value(_ field: String) -> Value? {
        func count(_ number: Int) -> Value { .uint32(UInt32(clamping: number)) }
        switch field {
        case "id": return .uint64(UInt64(clamping: id))
        case "uri": return .string(FileURI.shared(path))
        case "title": return .string(title)
        case "artist": return .string(artist)
        case "album": return .string(album)
        case "album-artist": return .string(albumArtist)
        case "composer": return .string(composer)
        case "genre": return .string(genre)
        case "disc": return count(disc)
        case "number": return count(number)
        case "year": return count(year)
        case "duration": return .double(duration)
        case "media-type": return .string(mediaType.word)
        case "compilation": return .bool(isCompilation)
        case "artwork": return .bool(hasPicture)
        case "added": return .uint64(UInt64(clamping: added))
        case "rating": return count(kept.rating)
        case "play-count": return count(kept.plays)
        case "skip-count": return count(kept.skips)
        case "last-played": return .uint64(UInt64(clamping: kept.played))
        case "bookmark": return .double(kept.bookmark)
        case "album-id": return .uint64(UInt64(clamping: albumID))
        case "available": return .bool(isAvailable)
        default: return nil
        }
    }
}

extension Query {
    /// A query from the options of a client.
    init(_ dictionary: Value) throws(Failure) {
        self.init()
        let reader = try OptionReader(
            dictionary,
            known: ["preset", "where", "media-types", "playlist", "sort", "text", "unavailable"])
        func word<Word: RawRepresentable<String> & CaseIterable>(_ text: String, _ key: String) throws(Failure) -> Word
        {
            guard let word = Word(rawValue: text) else {
                let names = Word.allCases.map(\.rawValue).joined(separator: ", ")
                throw Failure(.badParameter("'\(key)' has no \(quoted(text)); use \(names)"))
            }
            return word
        }
        if let text = try reader.string("preset") { preset = try word(text, "preset") }
        for text in Set(try reader.strings("media-types") ?? []) {
            guard let type = ItemType(word: text) else {
                throw Failure(.badParameter("'media-types' has no \(quoted(text)); use music, podcast, audiobook"))
            }
            mediaTypes.append(type)
        }
        playlist = try reader.uint64("playlist").map { Int64(clamping: $0) }
        mediaTypes.sort { $0.rawValue < $1.rawValue }
        let (sort, triples) = (try reader.strings("sort") ?? [], try Self.triples(dictionary))
        guard triples.count <= 64, sort.count <= 16 else {
            throw Failure(.badParameter("at most 64 conditions and 16 words of 'sort'"))
        }
        for text in sort {
            let isDescending = text.hasPrefix("-")
            order.append(
                Order(try word(isDescending ? String(text.dropFirst()) : text, "sort"), isDescending: isDescending))
        }
        self.text = try reader.string("text") ?? ""
        includesUnavailable = try reader.bool("unavailable") ?? false
        for triple in triples {
            let property: Property = try word(triple.0, "where")
            let comparison: Comparison = try word(triple.1, "where")
            guard let value = property.value(triple.2), comparison == .is || property.isText && property != .uri
            else {
                throw Failure(
                    .badParameter("'\(triple.0)' \(triple.1) does not take such a value; see the interface"))
            }
            if case .text(let text) = value, text.utf8.count > (property == .uri ? 16_384 : 1_000) {
                throw Failure(.badParameter("the value of '\(triple.0)' is too long"))
            }
            predicates.append(Predicate(property, comparison, value))
        }
        guard text.utf8.count <= 1_000 else { throw Failure(.badParameter("'text' is longer than 1000 bytes")) }
    }
}

extension Query {
    /// The conditions `where`, of type a(ssv).
    private static func triples(_ dictionary: Value) throws(Failure) -> [(String, String, Value)] {
        guard let value = dictionary.asProperties?["where"] else { return [] }
        guard value.signature == "a(ssv)" else { throw .invalidArgs("'where' must be an a(ssv)") }
        return (value.arrayValue ?? []).compactMap { row in
            guard let fields = row.structureValue, fields.count == 3, let property = fields[0].stringValue,
                let comparison = fields[1].stringValue
            else { return nil }
            return (property, comparison, fields[2].unwrapped)
        }
    }
}

extension Query.Property {
    fileprivate func value(_ value: Value) -> SQLValue? {
        if isText { return value.stringValue.map { .text($0) } }
        switch value {
        case .bool(let flag): return .whole(flag ? 1 : 0)
        case .uint32(let number): return .whole(Int64(number))
        case .int32(let number): return .whole(Int64(number))
        case .uint64(let number): return .whole(Int64(clamping: number))
        case .int64(let number): return .whole(number)
        case .double(let number): return .number(number)
        case .byte, .int16, .uint16, .string, .objectPath, .signature, .fileDescriptor, .array, .structure, .dictionary,
            .variant, .encoded:
            return nil
        }
    }
}
