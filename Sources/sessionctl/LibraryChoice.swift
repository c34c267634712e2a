import DBus
import MediaValues
import PluginAPI
import SessionBus

/// The arguments of `play`: files, addresses, and names in the music library.
enum LibraryChoice {
    private static let kinds = ["album", "artist", "song", "genre", "composer", "playlist", "podcast", "audiobook"]

    /// The items in the form of `LoadItems`.
    static func entries(_ names: [String], _ query: String?, _ service: Service) throws -> [Value] {
        var place: LibraryPlace?
        func library() throws -> LibraryPlace {
            if let place { return place }
            let opened = try LibraryPlace(service)
            place = opened
            return opened
        }
        var entries: [Value] = []
        for name in names {
            // Such as a variable of the shell that is not set.
            guard !name.isEmpty else { throw Complaint.usage("an item is empty: give a file, a folder or a URL") }
            guard let colon = name.firstIndex(of: ":"), kinds.contains(String(name[..<colon])) else {
                let uris = try FolderItems.uris(name) ?? [FileURI.uri(name)]
                entries += uris.map { .properties([("uri", .string($0))]) }
                continue
            }
            let said = String(name[name.index(after: colon)...])
            entries += try items(String(name[..<colon]), said, library())
        }
        if let query {
            let found = try uris(keys(of: query, library()), library())
            guard !found.isEmpty else { throw Complaint.refused("the library has no items for '\(query.escaped)'") }
            entries += found
        }
        return entries
    }

    private static func uris(_ query: [(String, Value)], _ place: LibraryPlace) throws -> [Value] {
        try place.ask("Uris", [.properties(query), .uint32(0)])[0].arrayValue ?? []
    }

    private static func equal(_ property: String, _ value: Value) -> (String, Value) {
        ("where", .array(of: "(ssv)", [.structure([.string(property), .string("is"), .variant(value)])]))
    }

    /// The items of the entry with that name, or with the most similar name.
    private static func items(_ kind: String, _ name: String, _ place: LibraryPlace) throws -> [Value] {
        if kind == "playlist" { return try uris([("playlist", .uint64(place.playlist(name).id))], place) }
        let property = ["song": "title", "podcast": "album", "audiobook": "album"][kind] ?? kind
        var query: [(String, Value)] = []
        switch kind {
        case "artist", "genre", "composer": query.append(("preset", .string(kind + "s")))
        case "podcast", "audiobook": query.append(("preset", .string(kind + "s")))
        case "album": query.append(("sort", .strings(["album"])))
        default: break
        }
        let exact = try uris(query + [equal(property, .string(name))], place)
        if !exact.isEmpty { return exact }
        // An audiobook or a podcast of one file may have no album.
        if kind == "podcast" || kind == "audiobook" {
            let titled = try uris(query + [equal("title", .string(name))], place)
            if !titled.isEmpty { return titled }
        }
        let searched = kind == "podcast" || kind == "audiobook" ? [kind, "album"] : [kind]
        let findings = try place.ask(
            "Search", [.string(name), .properties([("kinds", .strings(searched)), ("max", .uint32(1))])])
        guard let best = findings[0].arrayValue?.first?.asProperties, (best["score"]?.doubleValue ?? 0) >= 0.6,
            let id = best["id"]?.uint64Value, let found = best["kind"]?.stringValue
        else { throw Complaint.refused("the library has no \(kind) '\(name.escaped)'") }
        let isItem = ["song", "podcast", "audiobook"].contains(found)
        return try uris(query + [equal(isItem ? "id" : found + "-id", .uint64(id))], place)
    }

    /// The value of a key, of the type that the library wants.
    private static func operand(_ value: String, of key: String) throws -> Value {
        let operand: (value: Value?, kind: String) =
            switch key {
            case "year", "disc", "number", "rating", "play-count", "skip-count":
                (UInt32(value).map { .uint32($0) }, "a number")
            case "id", "album-id", "artist-id", "album-artist-id", "composer-id", "genre-id":
                (UInt64(value).map { .uint64($0) }, "a number")
            case "duration": (Double(value).flatMap { $0.isFinite ? .double($0) : nil }, "a number of seconds")
            case "compilation": (Bool(value).map { .bool($0) }, "true or false")
            default: (.string(value), "")
            }
        guard let found = operand.value else {
            throw Complaint(code: 64, message: "--query: '\(key)' needs \(operand.kind), not '\(value.escaped)'")
        }
        return found
    }

    /// The keys of a query, from "artist=Queen,album~post,sort=-year".
    private static func keys(of text: String, _ place: LibraryPlace) throws -> [(String, Value)] {
        var query: [(String, Value)] = []
        var rows: [Value] = []
        var sort: [String] = []
        for part in text.split(separator: ",") {
            guard let sign = part.firstIndex(where: { $0 == "=" || $0 == "~" }) else {
                throw Complaint(code: 64, message: "--query: '\(String(part).escaped)' must be KEY=VALUE or KEY~PART")
            }
            let (key, value) = (String(part[..<sign]), String(part[part.index(after: sign)...]))
            switch key {
            case "preset", "text": query.append((key, .string(value)))
            case "playlist": query.append((key, .uint64(try place.playlist(value).id)))
            case "sort": sort.append(value)
            default:
                let operand = try operand(value, of: key)
                rows.append(
                    .structure([.string(key), .string(part[sign] == "=" ? "is" : "contains"), .variant(operand)]))
            }
        }
        if !rows.isEmpty { query.append(("where", .array(of: "(ssv)", rows))) }
        if !sort.isEmpty { query.append(("sort", .strings(sort))) }
        return query
    }
}
