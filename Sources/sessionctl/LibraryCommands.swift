import ArgumentParser
import DBus
import Glibc
import MediaValues
import PluginAPI
import SessionBus

/// `sessionctl library`.
struct LibraryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "library", abstract: "Show, search and change the music library.",
        discussion: """
            Without a subcommand: 'library' shows the folders and the number of items; 'library songs' lists songs, \
            'library albums' albums, and so on.
            """,
        subcommands: [
            LibraryListCommand.self, LibrarySearchCommand.self, LibraryScanCommand.self, LibraryAddCommand.self,
            LibraryRemoveCommand.self, LibrarySetCommand.self, LibraryPlaylistCommand.self, LibraryPickCommand.self,
            LibraryShareCommand.self,
        ], defaultSubcommand: LibraryListCommand.self)
}

/// The plugin of the library.
final class LibraryPlace: PluginPlace {
    convenience init(_ bus: BusOptions) throws { try self.init(Service(bus)) }

    init(_ service: Service) throws { try super.init(.library, for: "file:///", "the music library", service) }

    /// The ids of the items that are named by numbers or by files.
    func items(_ names: [String]) throws -> [UInt64] {
        try names.map { name in
            if let id = UInt64(name) { return id }
            let path = try FileArgument.path(name)
            let uri = Value.structure([.string("uri"), .string("is"), .variant(.string(FileURI.uri(path)))])
            let query: [(String, Value)] = [("where", .array(of: "(ssv)", [uri])), ("unavailable", .bool(true))]
            let rows = try ask("Items", [.properties(query), .uint32(0), .uint32(1), .strings(["id"])])
            let found = rows[1].arrayValue?.first?.asProperties
            guard let id = found?["id"]?.uint64Value else {
                throw Complaint.refused("\(name.escaped): no such item in the library")
            }
            return id
        }
    }

    /// A playlist by its number or its name.
    func playlist(_ name: String) throws -> (id: UInt64, title: String) {
        let answer = try ask("Collections", [.string("playlist"), .properties([]), .uint32(0), .uint32(5_000)])
        let lists = (answer[1].arrayValue ?? []).compactMap(\.asProperties)
        let found =
            lists.first { $0["title"]?.stringValue == name }
            ?? lists.first { $0["title"]?.stringValue?.lowercased() == name.lowercased() }
            ?? lists.first { UInt64(name) != nil && $0["id"]?.uint64Value == UInt64(name) }
        guard let id = found?["id"]?.uint64Value, let title = found?["title"]?.stringValue else {
            throw Complaint.refused("there is no playlist '\(name.escaped)'; see 'library playlists'")
        }
        return (id, title)
    }
}

/// The conditions of a query, as options.
struct LibraryFilter: ParsableArguments {
    @Option(help: "Of this artist.")
    var artist: String?
    @Option(help: "On this album.")
    var album: String?
    @Option(help: "Of albums by this artist.")
    var albumArtist: String?
    @Option(help: "By this composer.")
    var composer: String?
    @Option(help: "Of this genre.")
    var genre: String?
    @Option(help: "With this in the title.")
    var title: String?
    @Option(help: "Of this year.")
    var year: UInt32?
    @Option(help: "With this rating, 0 to 5.")
    var rating: UInt32?
    @Option(help: "In this playlist: its name or its number.")
    var playlist: String?
    @Option(help: "With these words in any field; the last word may be incomplete.")
    var text: String?

    /// The keys of a query, besides its preset.
    func query(_ place: LibraryPlace) throws -> [(String, Value)] {
        var rows: [Value] = []
        func add(_ property: String, _ comparison: String, _ value: Value?) {
            guard let value else { return }
            rows.append(.structure([.string(property), .string(comparison), .variant(value)]))
        }
        add("artist", "is", artist.map { .string($0) })
        add("album", "is", album.map { .string($0) })
        add("album-artist", "is", albumArtist.map { .string($0) })
        add("composer", "is", composer.map { .string($0) })
        add("genre", "is", genre.map { .string($0) })
        add("title", "contains", title.map { .string($0) })
        add("year", "is", year.map { .uint32($0) })
        add("rating", "is", rating.map { .uint32($0) })
        var query: [(String, Value)] = []
        if !rows.isEmpty { query.append(("where", .array(of: "(ssv)", rows))) }
        if let text { query.append(("text", .string(text))) }
        if let playlist { query.append(("playlist", .uint64(try place.playlist(playlist).id))) }
        return query
    }
}

/// `sessionctl library songs`, `sessionctl library albums`, and so on; `sessionctl library`.
struct LibraryListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List songs, albums, artists, playlists and other groups (default).")

    enum Preset: String, ExpressibleByArgument, CaseIterable {
        case status, songs, albums, artists, compilations, composers, genres, playlists, podcasts, audiobooks

        /// For the completions of shells.
        var abstract: String {
            switch self {
            case .status: "Show the folders and the number of items."
            case .songs, .albums, .artists, .compilations, .composers, .genres, .playlists, .podcasts, .audiobooks:
                "List \(rawValue)."
            }
        }
    }

    @Argument(help: "What to list; default: status.")
    var preset: Preset?
    @OptionGroup var filter: LibraryFilter
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The order: title, artist, album, year, added, last-played, play-count, rating or random; with - before it: descending; several separated by commas.",
            valueName: "keys"))
    var sort: String?
    @Flag(help: "List the items of the groups, not the groups.")
    var items = false
    @Flag(help: "Also list items on file systems that are not mounted.")
    var unavailable = false
    @Flag(help: "With status: list the files that could not be read, with the reasons.")
    var failed = false
    @Option(help: "The largest number of results; 0: all.")
    var max: UInt32 = 0
    @OptionGroup var output: OutputOptions
    @OptionGroup var bus: BusOptions

    func run() throws {
        let place = try LibraryPlace(bus)
        let preset = preset ?? .status
        guard preset != .status else { return try showStatus(place) }
        var query: [(String, Value)] = [("preset", .string(preset.rawValue))] + (try filter.query(place))
        if let sort { query.append(("sort", .strings(sort.split(separator: ",").map(String.init)))) }
        if unavailable { query.append(("unavailable", .bool(true))) }
        if items || preset == .songs || filter.playlist != nil {
            try listItems(place, query)
        } else {
            try listGroups(place, query, preset)
        }
    }

    /// The fields of an item in JSON.
    static let allFields = [
        "id", "uri", "title", "artist", "artists", "album", "album-artist", "composer", "genre", "disc", "number",
        "year",
        "duration", "media-type", "compilation", "rating", "play-count", "skip-count", "last-played", "bookmark",
        "available",
    ]

    private static let page: UInt32 = 2_000

    /// All rows of a method that returns pages.
    private func rows(_ ask: (_ offset: UInt32, _ max: UInt32) throws -> [Value]) throws -> (
        count: UInt32, rows: [Value]
    ) {
        var rows: [Value] = []
        while true {
            let rest = max == 0 ? Self.page : min(Self.page, max - UInt32(rows.count))
            let answer = try ask(UInt32(rows.count), rest)
            let count = answer[0].uint32Value ?? 0
            let more = answer[1].arrayValue ?? []
            rows += more
            if more.isEmpty || rows.count >= count || max > 0 && rows.count >= max { return (count, rows) }
        }
    }

    private func listItems(_ place: LibraryPlace, _ query: [(String, Value)]) throws {
        let fields = output.json ? Self.allFields : ["id", "title", "artist", "album", "duration", "bookmark"]
        let found = try rows { offset, max in
            try place.ask("Items", [.properties(query), .uint32(offset), .uint32(max), .strings(fields)])
        }
        if output.json {
            return Output.line(
                JSON.object(.items, [("Count", .uint32(found.count)), ("Items", .array(of: "a{sv}", found.rows))]))
        }
        var table = Table()
        if found.rows.isEmpty {
            table.add([Table.Cell("Nothing found.", .dim)])
        } else {
            table.addHeader(["ID", "TITLE", "ARTIST", "TIME", "ALBUM"])
        }
        for row in found.rows.compactMap(\.asProperties) {
            let bookmark = row["bookmark"]?.doubleValue ?? 0
            let time =
                Wording.clock(row["duration"]?.doubleValue ?? 0)
                + (bookmark > 0 ? " at " + Wording.clock(bookmark) : "")
            table.add([
                Table.Cell(String(row["id"]?.uint64Value ?? 0), .dim),
                Table.Cell((row["title"]?.stringValue ?? "").escaped, .strong),
                Table.Cell((row["artist"]?.stringValue ?? "").escaped), Table.Cell(time),
                Table.Cell((row["album"]?.stringValue ?? "").escaped),
            ])
        }
        Output.write(table)
    }

    private func listGroups(_ place: LibraryPlace, _ query: [(String, Value)], _ preset: Preset) throws {
        let found = try rows { offset, max in
            try place.ask("Collections", [.string(""), .properties(query), .uint32(offset), .uint32(max)])
        }
        if output.json {
            return Output.line(
                JSON.object(
                    .collections, [("Count", .uint32(found.count)), ("Collections", .array(of: "a{sv}", found.rows))]))
        }
        var table = Table()
        if found.rows.isEmpty {
            table.add([Table.Cell("Nothing found.", .dim)])
        } else {
            table.addHeader(["TITLE", "ARTIST", "YEAR", "ITEMS", "TIME"])
        }
        for row in found.rows.compactMap(\.asProperties) {
            let year = row["year"]?.uint32Value ?? 0
            table.add([
                Table.Cell((row["title"]?.stringValue ?? "").escaped, .strong),
                Table.Cell((row["artist"]?.stringValue ?? "").escaped), Table.Cell(year > 0 ? String(year) : ""),
                Table.Cell(String(row["count"]?.uint32Value ?? 0)),
                Table.Cell(Wording.clock(row["duration"]?.doubleValue ?? 0)),
            ])
        }
        Output.write(table)
    }

    private func showStatus(_ place: LibraryPlace) throws {
        let answer: [Value] = try place.service.wait { reply in
            place.service.connection.call(
                place.place, place.kind.objectPath, StandardName.properties, "GetAll", [.string(place.kind.interface)],
                timeout: Service.timeout, reply)
        }
        let facts = answer.first?.asProperties ?? [:]
        let failures = failed ? try place.ask("Failures", [.uint32(5_000)])[0] : nil
        if output.json {
            let members = facts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
            return Output.line(JSON.object(.library, members + (failures.map { [("Failures", $0)] } ?? [])))
        }
        let status = facts["Status"]?.asProperties ?? [:]
        func count(_ key: String) -> UInt32 { status[key]?.uint32Value ?? 0 }
        var table = Table()
        let folders = facts["Folders"]?.stringsValue ?? []
        if folders.isEmpty {
            table.add([Table.Cell("folders", .dim), Table.Cell("none; add one with 'sessionctl library add FOLDER'")])
        }
        for folder in folders { table.add([Table.Cell("folder", .dim), Table.Cell(folder.escaped, .strong)]) }
        table.add([Table.Cell("items", .dim), Table.Cell(String(facts["Count"]?.uint32Value ?? 0))])
        table.add([
            Table.Cell("scan", .dim),
            Table.Cell(
                facts["Scanning"]?.boolValue == true ? "under way" : Self.last(facts["LastScan"]?.uint64Value ?? 0)),
        ])
        let watched = count("watched") == 1 ? "1 folder watched" : "\(count("watched")) folders watched"
        let polled = count("polled") > 0 ? ", \(count("polled")) checked from time to time" : ""
        table.add([Table.Cell("changes", .dim), Table.Cell("\(watched)\(polled)")])
        if count("failed") > 0 {
            table.add([
                Table.Cell("not read", .dim),
                Table.Cell("\(Wording.files(UInt64(count("failed")))); see --failed", .warning),
            ])
        }
        if let message = status["message"]?.stringValue, !message.isEmpty {
            table.add([Table.Cell("damage", .dim), Table.Cell(message.escaped, .warning)])
        }
        for fields in failures?.arrayValue?.compactMap(\.structureValue) ?? [] {
            table.add([
                Table.Cell((fields[1].stringValue ?? "").escaped, .warning),
                Table.Cell((fields[0].stringValue ?? "").escaped),
            ])
        }
        Output.write(table)
    }

    private static func last(_ seconds: UInt64) -> String {
        let now = UInt64(Swift.max(0, time(nil)))
        return seconds == 0 ? "never" : "\(Wording.duration((now > seconds ? now - seconds : 0) * 1_000_000)) ago"
    }
}

/// `sessionctl library search`.
struct LibrarySearchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "search",
        abstract: "Find items by words as typed or heard: 'ac dc', 'led zeppelin four', 'help by the beatles'.")

    @Argument(help: "The words.")
    var words: [String]
    @Option(
        help:
            "Only of these kinds, separated by commas: song, podcast, audiobook, album, artist, album-artist, composer, genre, playlist."
    )
    var kind: String?
    @Option(help: "By this artist.")
    var artist: String?
    @Option(help: "On this album.")
    var album: String?
    @Option(help: "The largest number of results.")
    var max: UInt32 = 20
    @OptionGroup var output: OutputOptions
    @OptionGroup var bus: BusOptions

    func run() throws {
        var options: [(String, Value)] = [("max", .uint32(max))]
        if let kind { options.append(("kinds", .strings(kind.split(separator: ",").map(String.init)))) }
        if let artist { options.append(("artist", .string(artist))) }
        if let album { options.append(("album", .string(album))) }
        let place = try LibraryPlace(bus)
        let found = try place.ask("Search", [.string(words.joined(separator: " ")), .properties(options)])[0]
        if output.json { return Output.line(JSON.object(.findings, [("Findings", found)])) }
        var table = Table()
        let rows = (found.arrayValue ?? []).compactMap(\.asProperties)
        if rows.isEmpty {
            table.add([Table.Cell("Nothing found.", .dim)])
        } else {
            table.addHeader(["SCORE", "KIND", "TITLE", "ARTIST"])
        }
        for row in rows {
            let score = Wording.whole((row["score"]?.doubleValue ?? 0) * 100, 0...100)
            table.add([
                Table.Cell("\(score) %", score >= 80 ? .good : .plain),
                Table.Cell((row["kind"]?.stringValue ?? "").escaped),
                Table.Cell((row["title"]?.stringValue ?? "").escaped, .strong),
                Table.Cell((row["artist"]?.stringValue ?? "").escaped),
            ])
        }
        Output.write(table)
    }
}

/// `sessionctl library scan`.
struct LibraryScanCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "scan", abstract: "Find and read changed files, and wait for the end of the scan.",
        discussion: "Ctrl-C cancels the scan; the files that were already read stay in the library.")

    @Argument(help: "Folders in the library; default: all.", completion: .directory)
    var paths: [String] = []
    @Flag(help: "Read all files, also unchanged ones.")
    var full = false
    @Flag(help: "Do not wait: print the job and exit.")
    var detach = false
    @OptionGroup var output: OutputOptions
    @OptionGroup var bus: BusOptions

    func run() throws {
        let place = try LibraryPlace(bus)
        let folders = try paths.map(LibraryAddCommand.absolute)
        let arguments: [Value] = [.strings(folders), .properties(full ? [("full", .bool(true))] : [])]
        guard !detach else {
            let job = try place.ask("Scan", arguments)[0]
            let label = (job.objectPathValue ?? "").split(separator: "/").suffix(3).filter { $0 != "job" }
            return Output.line(
                output.json ? JSON.object(.scan, [("job", job)]) : "scanning as job " + label.joined(separator: "/"))
        }
        try Self.follow(place, arguments, asJSON: output.json)
    }

    /// Runs until the scan has ended.
    static func follow(_ place: LibraryPlace, _ arguments: [Value], asJSON: Bool) throws {
        let job = FollowedJob(place)
        var line = ProgressLine()
        line.title = "Music library"
        let isDrawing = Terminal.standard.canRedraw && !asJSON && tcgetpgrp(STDOUT_FILENO) == getpgrp()
        job.onChanged = {
            guard isDrawing else { return }
            let (done, total) = (job.properties["Done"]?.uint64Value ?? 0, job.properties["Total"]?.uint64Value ?? 0)
            line.state = job.properties["State"]?.stringValue ?? ""
            line.figures = total > 0 ? "\(done) of \(total) files" : "looking for changes"
            (line.position, line.duration) = (Double(done), total > 0 ? Double(total) : nil)
            line.draw()
            ProgressLine.isDrawn = true
        }
        let code = try job.run("Scan", arguments)
        ProgressLine.clearIfDrawn()
        if asJSON {
            Output.line(JSON.object(.scan, job.properties.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }))
        } else if code == 0 {
            Output.line(Wording.files(job.properties["Done"]?.uint64Value ?? 0) + " read")
            let leftOut = job.properties["LeftOut"]?.stringsValue ?? []
            if !leftOut.isEmpty {
                Output.complain("the library does not have: \(leftOut.map(\.escaped).joined(separator: "; "))")
            }
        }
        Output.end(code, keeping: job)
    }
}

/// `sessionctl library add`.
struct LibraryAddCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Add a folder to the library, and read its files.")

    @Argument(help: "The folder.", completion: .directory)
    var folder: String
    @Option(help: "The type of all its files: music, podcast or audiobook; default: each file decides.")
    var mediaType: String?
    @Flag(help: "Do not watch the folder for changes.")
    var noWatch = false
    @Flag(help: "Do not wait for the end of the scan.")
    var detach = false
    @OptionGroup var output: OutputOptions
    @OptionGroup var bus: BusOptions

    /// Throws if this user, as whom the plugin runs on the session bus, may not list the folder and open its files.
    static func checkReadable(_ folder: String) throws {
        guard let path = FileURI.absolute(folder) else { return }
        var status = stat()
        guard stat(path, &status) != 0 || status.st_mode & S_IFMT == S_IFDIR else {
            throw Complaint.refused("\(folder.escaped) is not a folder; add the folder that contains it")
        }
        if access(path, R_OK | X_OK) != 0 {
            throw Complaint.refused("\(folder.escaped): \(String(cString: strerror(errno)))")
        }
    }

    static func absolute(_ folder: String) throws -> String {
        guard let path = FileURI.absolute(folder), let real = realpath(path, nil) else {
            throw Complaint.refused("\(folder.escaped): \(String(cString: strerror(errno)))")
        }
        defer { free(real) }
        // A name that is not UTF-8 is passed as a URI.
        let bytes = Array(UnsafeBufferPointer(start: real, count: strlen(real))).map { UInt8(bitPattern: $0) }
        return String(validating: bytes, as: UTF8.self) ?? FileURI.shared(bytes)
    }

    func run() throws {
        let path = try Self.absolute(folder)
        if !bus.system { try Self.checkReadable(folder) }
        let place = try LibraryPlace(bus)
        var options: [(String, Value)] = []
        if let mediaType { options.append(("media-type", .string(mediaType))) }
        if noWatch { options.append(("watch", .bool(false))) }
        _ = try place.ask("AddFolder", [.string(path), .properties(options)])
        if detach { return }
        try LibraryScanCommand.follow(place, [.strings([path]), .properties([])], asJSON: output.json)
    }
}

/// `sessionctl library remove`.
struct LibraryRemoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Remove a folder from the library; its files stay.")

    @Argument(help: "The folder; it need not exist any more.", completion: .directory)
    var folder: String
    @OptionGroup var bus: BusOptions

    func run() throws {
        let place = try LibraryPlace(bus)
        let path = (try? LibraryAddCommand.absolute(folder)) ?? FileURI.absolute(folder) ?? folder
        _ = try place.ask("RemoveFolder", [.string(path)])
        Output.line("\(path.escaped) is no longer in the library; its files stay")
    }
}

/// `sessionctl library set`.
struct LibrarySetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Rate an item, or change its bookmark, its counts or its media type.")

    @Argument(help: "Items: their numbers, as 'library songs' lists them, or files.")
    var items: [String]
    @Option(help: "0 to 5.")
    var rating: UInt32?
    @Option(help: "The position at which it continues, in seconds; 0: the start.")
    var bookmark: Double?
    @Option(help: "music, podcast or audiobook; empty: the file decides.")
    var mediaType: String?
    @Option(help: "The number of times it was played.")
    var playCount: UInt32?
    @Option(help: "The number of times it was skipped.")
    var skipCount: UInt32?
    @OptionGroup var bus: BusOptions

    func validate() throws {
        if rating == nil, bookmark == nil, mediaType == nil, playCount == nil, skipCount == nil {
            throw ValidationError("say what to set: --rating, --bookmark, --media-type, --play-count or --skip-count")
        }
    }

    func run() throws {
        var values: [(String, Value)] = []
        if let rating { values.append(("rating", .uint32(rating))) }
        if let bookmark { values.append(("bookmark", .double(bookmark))) }
        if let mediaType { values.append(("media-type", .string(mediaType))) }
        if let playCount { values.append(("play-count", .uint32(playCount))) }
        if let skipCount { values.append(("skip-count", .uint32(skipCount))) }
        let place = try LibraryPlace(bus)
        for id in try place.items(items) { _ = try place.ask("SetItem", [.uint64(id), .properties(values)]) }
    }
}

/// `sessionctl library playlist`.
struct LibraryPlaylistCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "playlist", abstract: "Create, change, rename or delete a playlist of the library.",
        subcommands: [Create.self, Fill.self, Rename.self, Delete.self])

    struct Create: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Create a playlist, and print its number.")
        @Argument(help: "Its name.")
        var name: String
        @Argument(help: "Items: numbers or files.")
        var items: [String] = []
        @OptionGroup var bus: BusOptions

        func run() throws {
            let place = try LibraryPlace(bus)
            let ids = try place.items(items).map { Value.uint64($0) }
            let id = try place.ask("CreatePlaylist", [.string(name), .array(of: "t", ids)])[0].uint64Value ?? 0
            Output.line("\(id)")
        }
    }

    struct Fill: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "set", abstract: "Replace the items of a playlist.")
        @Argument(help: "Its name or its number.")
        var playlist: String
        @Argument(help: "Items: numbers or files.")
        var items: [String] = []
        @OptionGroup var bus: BusOptions

        func run() throws {
            let place = try LibraryPlace(bus)
            let ids = try place.items(items).map { Value.uint64($0) }
            _ = try place.ask("SetPlaylist", [.uint64(place.playlist(playlist).id), .array(of: "t", ids)])
        }
    }

    struct Rename: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Give a playlist another name.")
        @Argument(help: "Its name or its number.")
        var playlist: String
        @Argument(help: "The new name.")
        var name: String
        @OptionGroup var bus: BusOptions

        func run() throws {
            let place = try LibraryPlace(bus)
            _ = try place.ask("RenamePlaylist", [.uint64(place.playlist(playlist).id), .string(name)])
        }
    }

    struct Delete: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Delete a playlist; its items stay in the library.")
        @Argument(help: "Its name or its number.")
        var playlist: String
        @OptionGroup var bus: BusOptions

        func run() throws {
            let place = try LibraryPlace(bus)
            _ = try place.ask("DeletePlaylist", [.uint64(place.playlist(playlist).id)])
        }
    }
}
