import Testing

@testable import MediaLibrary
@testable import ReferenceModel

/// Queries of random libraries against a second model: plain arrays, filtered and sorted by what the interface promises.
@Suite struct QueryTests {
    /// A song of the model.
    private struct Song {
        var id: Int64 = 0
        var title: String
        var artists: [String]
        var album: String?
        var albumArtist: String?
        var composers: [String]
        var genres: [String]
        var disc, number, year: Int
        var isCompilation: Bool
        var type: String
        var duration: Double
        var added: Int64 = 0
        var rating = 0
        var plays = 0

        /// The one under whose name its album stands.
        var head: String { albumArtist ?? (isCompilation ? "" : artists.first ?? "") }
    }

    /// Written by hand, not by the code that is tested.
    private static let plain: [Character: String] = ["É": "e", "ö": "o", "Ø": "o", "ß": "ss", "ñ": "n"]
    private static func fold(_ text: String) -> String { text.map { plain[$0] ?? $0.lowercased() }.joined() }
    private static func sorting(_ text: String) -> String {
        let folded = fold(text)
        return folded.hasPrefix("the ") ? String(folded.dropFirst(4)) : folded
    }

    private static let words = [
        "Élan", "The Wall", "wall", "Motör", "Ørsted", "Señor", "Straße", "abc", "ABC", "Help", "help me", "Zoo",
    ]

    private final class World {
        let library: Library
        var songs: [Song] = []
        var lists: [Int64: (name: String, ids: [Int64])] = [:]
        var random: SplitMix64

        init(seed: UInt64) throws {
            library = try Library()
            random = SplitMix64(seed: seed)
            func word() -> String { words.randomElement(using: &random) ?? "" }
            func some(_ most: Int) -> [String] {
                Array(Set((0..<Int.random(in: 0...most, using: &random)).map { _ in word() })).sorted()
            }
            for index in 0..<60 {
                var song = Song(
                    title: word(), artists: some(2), album: Int.random(in: 0..<5, using: &random) == 0 ? nil : word(),
                    albumArtist: Bool.random(using: &random) ? word() : nil, composers: some(2), genres: some(2),
                    disc: Int.random(in: 0...2, using: &random), number: Int.random(in: 0...5, using: &random),
                    year: Int.random(in: 1_998...2_001, using: &random),
                    isCompilation: Int.random(in: 0..<5, using: &random) == 0,
                    type: ["music", "music", "music", "podcast", "audiobook"].randomElement(using: &random) ?? "",
                    duration: Double(Int.random(in: 1...300, using: &random)))
                var tags = [
                    "TITLE": [song.title], "ARTIST": song.artists, "COMPOSER": song.composers, "GENRE": song.genres,
                    "DISCNUMBER": ["\(song.disc)"], "TRACKNUMBER": ["\(song.number)"], "DATE": ["\(song.year)"],
                    "COMPILATION": [song.isCompilation ? "1" : "0"],
                    "STIK": [["music": "1", "podcast": "21", "audiobook": "2"][song.type] ?? ""],
                ]
                tags["ALBUM"] = song.album.map { [$0] }
                tags["ALBUMARTIST"] = song.albumArtist.map { [$0] }
                song.id = try library.add("/music/\(index).mp3", tags, duration: song.duration)
                song.added = 1_000 + Int64(index + 1)
                if Bool.random(using: &random) {
                    song.rating = Int.random(in: 0...5, using: &random)
                    song.plays = Int.random(in: 0...3, using: &random)
                    #expect(try library.store.set(song.id, [.rating(song.rating), .plays(song.plays)]))
                }
                songs.append(song)
            }
            for name in ["One", "two"] {
                let ids = (0..<8).compactMap { _ in songs.randomElement(using: &random)?.id }
                let id = try #require(try library.store.addList(name, ids))
                lists[id] = (name, ids)
            }
        }

        /// The number of an album is the store's; which songs have the same is checked.
        func album(_ song: Song) throws -> Int64 { try library.store.item(song.id)?.albumID ?? 0 }
    }

    private enum Part: Comparable {
        case text(String)
        case number(Int64)

        static func < (one: Part, other: Part) -> Bool {
            switch (one, other) {
            case (.text(let one), .text(let other)): one.utf8.lexicographicallyPrecedes(other.utf8)
            case (.number(let one), .number(let other)): one < other
            case (.number, .text): true
            case (.text, .number): false
            }
        }
    }

    private static func lines(_ names: [String]) -> String {
        var folded: [String] = []
        for name in names.map(fold) where !name.isEmpty && !folded.contains(name) { folded.append(name) }
        return folded.isEmpty ? "" : "\n" + folded.joined(separator: "\n") + "\n"
    }

    private static func within(_ song: Song, _ album: Int64) -> [Part] {
        [
            .text(sorting(song.album ?? "")), .number(album), .number(Int64(song.disc)), .number(Int64(song.number)),
            .text(sorting(song.title)), .number(song.id),
        ]
    }

    private static func presetKey(_ preset: Query.Preset?, _ song: Song, _ album: Int64) -> [Part] {
        let end: [Part] = [.text(sorting(song.title)), .number(song.id)]
        switch preset {
        case .songs, .playlists, nil: return end
        case .albums: return [.text(sorting(song.head)), .number(Int64(song.year))] + within(song, album)
        case .artists: return [.text(sorting(song.artists.first ?? ""))] + within(song, album)
        case .compilations, .audiobooks: return within(song, album)
        case .composers: return [.text(lines(song.composers))] + within(song, album)
        case .genres: return [.text(lines(song.genres))] + within(song, album)
        case .podcasts: return [.number(Int64(-song.year)), .number(-song.added)] + end
        }
    }

    private static func isIn(_ preset: Query.Preset?, _ song: Song, _ lists: [Int64: (name: String, ids: [Int64])])
        -> Bool
    {
        switch preset {
        case .songs, .albums, .artists, .composers, .genres: song.type == "music"
        case .compilations: song.type == "music" && song.isCompilation
        case .podcasts: song.type == "podcast"
        case .audiobooks: song.type == "audiobook"
        case .playlists: lists.values.contains { $0.ids.contains(song.id) }
        case nil: true
        }
    }

    private static func holds(_ predicate: Query.Predicate, _ song: Song) -> Bool {
        func compare(_ values: [String]) -> Bool {
            guard case .text(let said) = predicate.value else { return false }
            let wanted = fold(said)
            return values.contains { predicate.comparison == .is ? fold($0) == wanted : fold($0).includes(wanted) }
        }
        func equal(_ number: Int) -> Bool { predicate.value == .whole(Int64(number)) }
        switch predicate.property {
        case .title: return compare([song.title])
        case .album: return compare([song.album ?? ""])
        case .artist: return compare(song.artists + [song.artists.joined(separator: ", ")])
        case .albumArtist: return compare([song.head])
        case .composer: return compare(song.composers)
        case .genre: return compare(song.genres)
        case .year: return equal(song.year)
        case .disc: return equal(song.disc)
        case .number: return equal(song.number)
        case .compilation: return equal(song.isCompilation ? 1 : 0)
        case .rating: return equal(song.rating)
        case .playCount: return equal(song.plays)
        case .mediaType: return predicate.value == .text(song.type)
        case .id: return equal(Int(song.id))
        case .uri, .duration, .skipCount, .albumID, .artistID, .albumArtistID, .composerID, .genreID: return false
        }
    }

    @Test(arguments: Query.Preset.allCases) func preset_agreesWithTheSecondModel(_ preset: Query.Preset) throws {
        for seed in 1...3 {
            let world = try World(seed: UInt64(seed))
            let (count, items) = try world.library.store.items(Query(preset), offset: 0, max: 1_000)
            let expected = try world.songs.filter { Self.isIn(preset, $0, world.lists) }
                .map { (id: $0.id, key: Self.presetKey(preset, $0, try world.album($0))) }
                .sorted { $0.key.lexicographicallyPrecedes($1.key) }
            #expect(items.map(\.id) == expected.map(\.id), "\(preset), seed \(seed)")
            #expect(count == expected.count)
        }
    }

    @Test func randomQueries_agreeWithTheSecondModel() throws {
        var found = 0
        for seed in 10..<14 {
            let world = try World(seed: UInt64(seed))
            for _ in 0..<150 {
                var query = Query(Query.Preset.allCases.randomElement(using: &world.random))
                if Bool.random(using: &world.random) { query.preset = nil }
                for _ in 0..<Int.random(in: 0...2, using: &world.random) {
                    let property =
                        [
                            Query.Property.title, .artist, .album, .albumArtist, .composer, .genre, .year, .disc,
                            .number,
                            .compilation, .rating, .playCount, .mediaType,
                        ].randomElement(using: &world.random) ?? .title
                    var value = SQLValue.text(
                        (["e", "ö", "WALL", "straSSe", ""] + Self.words).randomElement(using: &world.random) ?? "")
                    if property == .mediaType { value = .text("podcast") }
                    if !property.isText { value = .whole(Int64.random(in: 0...3, using: &world.random)) }
                    if property == .year { value = .whole(Int64.random(in: 1_998...2_001, using: &world.random)) }
                    if value == .text(""), property != .title { continue }
                    let contains = property.isText && property != .mediaType && Bool.random(using: &world.random)
                    query.predicates.append(Query.Predicate(property, contains ? .contains : .is, value))
                }
                let keys: [(Query.Key, (Song) -> Part)] = [
                    (.title, { .text(Self.sorting($0.title)) }),
                    (.artist, { .text(Self.sorting($0.artists.first ?? "")) }),
                    (.year, { .number(Int64($0.year)) }), (.added, { .number($0.added) }),
                    (.rating, { .number(Int64($0.rating)) }),
                    (.playCount, { .number(Int64($0.plays)) }),
                ]
                let chosen = Bool.random(using: &world.random) ? keys.randomElement(using: &world.random) : nil
                let isDescending = Bool.random(using: &world.random)
                if let chosen { query.order = [Query.Order(chosen.0, isDescending: isDescending)] }
                let all = try world.songs.filter { song in
                    Self.isIn(query.preset, song, world.lists) && query.predicates.allSatisfy { Self.holds($0, song) }
                }.map { song in (song: song, key: Self.presetKey(query.preset, song, try world.album(song))) }
                let expected = all.sorted { one, other in
                    guard let chosen else { return one.key.lexicographicallyPrecedes(other.key) }
                    let (first, second) = (chosen.1(one.song), chosen.1(other.song))
                    if first != second { return isDescending ? first > second : first < second }
                    return [Part.text(Self.sorting(one.song.title)), .number(one.song.id)]
                        .lexicographicallyPrecedes([.text(Self.sorting(other.song.title)), .number(other.song.id)])
                }.map(\.song.id)
                let offset = Int.random(in: 0...10, using: &world.random)
                let result = try world.library.store.items(query, offset: offset, max: 7)
                #expect(result.items.map(\.id) == Array(expected.dropFirst(offset).prefix(7)), "\(query)")
                #expect(result.count == expected.count)
                found += result.items.count
            }
        }
        #expect(found > 500)
    }

    @Test(arguments: Query.Grouping.allCases) func collections_agreeWithTheSecondModel(_ grouping: Query.Grouping)
        throws
    {
        for seed in 21...23 {
            let world = try World(seed: UInt64(seed))
            for preset in [nil, Query.Preset.songs, .compilations, .podcasts] {
                let (count, found) = try world.library.store.collections(grouping, Query(preset), offset: 0, max: 1_000)
                #expect(count == found.count)
                let songs = world.songs.filter { song in
                    Self.isIn(preset, song, world.lists)
                        && (grouping != .podcast || preset != nil || song.type == "podcast")
                }
                var groups: [String: [Song]] = [:]
                for song in songs {
                    let names: [String]
                    switch grouping {
                    case .album, .podcast:
                        names = song.album.map { [Self.fold($0) + "\n" + Self.fold(song.head)] } ?? []
                    case .artist: names = song.artists.map(Self.fold)
                    case .albumArtist: names = song.head.isEmpty ? [] : [Self.fold(song.head)]
                    case .composer: names = song.composers.map(Self.fold)
                    case .genre: names = song.genres.map(Self.fold)
                    case .playlist: names = []
                    }
                    for name in Set(names) { groups[name, default: []].append(song) }
                }
                if grouping == .playlist {
                    for list in world.lists.values {
                        groups[Self.fold(list.name)] = list.ids.compactMap { id in songs.first { $0.id == id } }
                    }
                }
                let keys = found.map { collection in
                    grouping == .album || grouping == .podcast
                        ? Self.fold(collection.title) + "\n" + Self.fold(collection.artist)
                        : Self.fold(collection.title)
                }
                #expect(Set(keys) == Set(groups.keys), "\(grouping), \(String(describing: preset))")
                for (key, collection) in zip(keys, found) {
                    let group = groups[key] ?? []
                    #expect(collection.count == group.count, "\(grouping) \(key)")
                    #expect(collection.duration == group.reduce(0) { $0 + $1.duration })
                    #expect(collection.year == group.map(\.year).max() ?? 0)
                    #expect(group.isEmpty || group.contains { $0.id == collection.representative })
                }
                if grouping == .artist || grouping == .genre {
                    #expect(found.map { Self.sorting($0.title) } == found.map { Self.sorting($0.title) }.sorted())
                }
            }
        }
    }

    @Test func playlistInAQuery_keepsItsOrder() throws {
        let world = try World(seed: 31)
        for (id, list) in world.lists {
            var query = Query()
            query.playlist = id
            #expect(try world.library.store.ids(query) == list.ids)
            query.order = [Query.Order(.title)]
            #expect(try Set(world.library.store.ids(query)) == Set(list.ids))
        }
    }

    @Test func words_areFoundByTheirPrefix() throws {
        let library = try Library()
        let id = try library.add(
            "/m/1.mp3", ["TITLE": ["Für Elise"], "ARTIST": ["Ludwig van Beethoven"], "ALBUM": ["Bagatellen"]])
        try library.add("/m/2.mp3", ["TITLE": ["Other"], "ARTIST": ["Somebody"]])
        for text in ["fur", "FÜR ELI", "elise beet", "baga", "ludwig b", "für elise beethoven bagatellen"] {
            var query = Query()
            query.text = text
            #expect(try library.store.ids(query) == [id], "\(text)")
        }
        for text in ["lise", "für x", "?!", "\"", "*", "OR", "title:"] {
            var query = Query()
            query.text = text
            #expect(try library.store.ids(query) == [], "\(text)")
        }
    }
}

extension String {
    fileprivate func includes(_ part: String) -> Bool {
        part.isEmpty || indices.contains { self[$0...].hasPrefix(part) }
    }
}
