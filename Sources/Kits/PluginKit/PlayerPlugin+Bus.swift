public import DBus
import EventLoop
import MediaValues
import PluginAPI
import SessionBus
import SessionKit

// `org.sessiond1.Player`, and the common part of both interfaces of a player.

extension PlayerPlugin {
    func export() -> [Announcement<PlayerPlugin>] {
        let objects = connection.objects
        // The library asks for what plays at a path that it does not know.
        if path != PluginKind.player.objectPath { objects.enableObjectManager(at: "/") }
        objects.export(self, at: path, interfaces: [PlayerPlugin.interface])
        for add in further { add(objects, path) }
        let own = Announcement(self, path: path, interface: BusName.player, PlayerPlugin.properties, on: objects)
        // Also for the program that plays with it. The desktop does not find it there, because the bus name is another.
        exportMPRIS()
        return [own, announcementOfMPRIS(), announcementOfPlaylists()]
    }

    /// Serves another interface at the player's path, such as that of a kind which plays more than sound.
    ///
    /// Its object announces its own changes. Call this before ``serve()``.
    public func add<Object: AnyObject>(_ interface: Interface<Object>, of object: Object) {
        precondition(!isServed, "the player is on the bus already")
        further.append { objects, path in objects.export(object, at: path, interfaces: [interface]) }
    }

    func emit(_ member: String, _ arguments: [Value]) {
        connection.objects.emit(path: path, interface: BusName.player, member: member, arguments)
    }

    func setVolume(_ volume: Double) throws(Failure) {
        try check(volume, 0...1, "Volume")
        changing { engine.volume = volume }
    }

    func setRate(_ rate: Double) throws(Failure) {
        try check(rate, 0.5...2, "Rate")
        changing { engine.rate = rate }
    }

    /// NaN is in no range.
    private func check(_ value: Double, _ range: ClosedRange<Double>, _ name: String) throws(Failure) {
        guard range.contains(value) else {
            throw Failure(
                .badParameter("\(name) must be \(range.lowerBound) to \(range.upperBound), not \(value)"))
        }
    }

    private static var properties: [Announcement<PlayerPlugin>.Property] {
        [
            .init("Uri", "s", { .string($0.shown($0.engine.uri ?? "")) }),
            .init("State", "s", { .string($0.seeking?.direction.state ?? $0.state.rawValue) }),
            .init("DeviceTime", "d", isTold: false, { _ in .double(MonotonicClock.seconds) }),
            .init("Position", "d", isTold: false, { .double($0.engine.position) }),
            .init("Duration", "d", { .double($0.engine.duration ?? 0) }),
            .init(
                "Volume", "d", { .double($0.engine.volume) },
                set: { player, value throws(Failure) in try player.setVolume(value.doubleValue ?? .nan) }),
            .init(
                "Pan", "d", { .double($0.engine.pan) },
                set: { player, value throws(Failure) in
                    let pan = value.doubleValue ?? .nan
                    try player.check(pan, -1...1, "Pan")
                    player.changing { player.engine.pan = pan }
                }),
            .init(
                "Rate", "d", { .double($0.engine.rate) },
                set: { player, value throws(Failure) in try player.setRate(value.doubleValue ?? .nan) }),
            .init(
                "CurrentRate", "d", { .double($0.engine.state == .playing ? $0.seeking?.rate ?? $0.engine.rate : 0) }),
            .init(
                "Loops", "i", { .int32(Int32(clamping: $0.engine.loops)) },
                set: { player, value throws(Failure) in
                    player.changing { player.engine.loops = Int(value.int32Value ?? 0) }
                }),
            .init(
                "MeteringEnabled", "b", { .bool($0.engine.meteringEnabled) },
                set: { player, value throws(Failure) in
                    player.changing { player.engine.meteringEnabled = value.boolValue == true }
                }),
            .init("CurrentItem", "o", { .objectPath($0.queue.currentID.map($0.trackPath) ?? ObjectPath.none) }),
            .init("IndexOfCurrentItem", "u", { .uint32(UInt32(clamping: $0.indexOfCurrentItem ?? Int(UInt32.max))) }),
            .init("ItemStatus", "s", { .string($0.itemStatus.rawValue) }),
            .init(
                "LoadedRanges", "a(dd)", isTold: false,
                { player in
                    .array(
                        of: "(dd)",
                        player.engine.loadedRanges.map {
                            .structure([.double($0.lowerBound), .double($0.upperBound)])
                        })
                }),
            .init("Stalled", "b", { .bool($0.engine.isStalled) }),
            .init("IsLive", "b", { .bool($0.engine.isLive) }),
            .init(
                "RepeatMode", "s", { .string($0.repeatMode.rawValue) },
                set: { player, value throws(Failure) in
                    guard let mode = RepeatMode(rawValue: value.stringValue ?? "") else {
                        throw Failure(
                            .badParameter("RepeatMode must be none, one or all, not \(quoted(value.stringValue ?? ""))")
                        )
                    }
                    player.repeatMode = mode
                }),
            .init(
                "Shuffle", "b", { .bool($0.isShuffled) },
                set: { player, value throws(Failure) in player.isShuffled = value.boolValue == true }),
            .init(
                "ShuffleMode", "s", { .string($0.shuffleMode.rawValue) },
                set: { player, value throws(Failure) in
                    guard let mode = ShuffleMode(rawValue: value.stringValue ?? "") else {
                        throw Failure(
                            .badParameter(
                                "ShuffleMode must be off, songs or albums, not \(quoted(value.stringValue ?? ""))"))
                    }
                    player.shuffleMode = mode
                }),
            .init(
                "PositionInterval", "d", { .double($0.positionClock.interval) },
                set: { player, value throws(Failure) in
                    let interval = value.doubleValue ?? .nan
                    // Shorter intervals than a screen can show are a mistake.
                    guard interval == 0 || (0.01...3_600).contains(interval) else {
                        throw Failure(.badParameter("PositionInterval must be 0, or 0.01 to 3600 s, not \(interval)"))
                    }
                    player.changing { player.positionClock.interval = interval }
                }),
            .init("Channels", "u", { .uint32(UInt32(clamping: $0.engine.channels)) }),
        ]
    }

    private static func entries(_ uris: Value) -> [PlaylistEntry] {
        (uris.stringsValue ?? []).map { PlaylistEntry(uri: $0) }
    }

    /// The a{sv} of an item, as `org.sessiond1.Library.Uris` tells it. Keys that are not known here are ignored.
    static func entry(_ value: Value) throws(Failure) -> PlaylistEntry {
        let fields = value.asProperties ?? [:]
        guard let uri = fields["uri"]?.stringValue else { throw Failure(.badParameter("an item has no 'uri'")) }
        func seconds(_ key: String) -> Double? {
            fields[key]?.doubleValue.flatMap { $0 > 0 && $0 < 1e9 ? $0 : nil }
        }
        func text(_ key: String) -> String? { fields[key]?.stringValue.flatMap { $0.isEmpty ? nil : $0 } }
        var entry = PlaylistEntry(uri: uri, title: text("title"), duration: seconds("duration"))
        (entry.artist, entry.album) = (text("artist"), text("album"))
        entry.item = fields["id"]?.uint64Value ?? 0
        entry.start = seconds("bookmark") ?? 0
        entry.spoken = text("media-type").flatMap { PlaylistEntry.Spoken(rawValue: $0) }
        return entry
    }

    private static var queueMethods: [Interface<PlayerPlugin>.Method] {
        [
            .init("LoadItems", "aa{sv}u") { player, call in
                call.answer { () throws(Failure) in
                    var entries: [PlaylistEntry] = []
                    for value in call.arguments[0].arrayValue ?? [] { entries.append(try entry(value)) }
                    try player.load(entries, startingAt: Int(call.arguments[1].uint32Value ?? 0))
                }
            },
            .init("BeginSeeking", "s") { player, call in
                call.answer { () throws(Failure) in
                    let word = call.arguments[0].stringValue ?? ""
                    guard let direction = Seeking.Direction(rawValue: word) else {
                        throw Failure(.badParameter("the direction must be forward or backward, not \(quoted(word))"))
                    }
                    try player.beginSeeking(direction)
                }
            },
            .init("EndSeeking", "") { player, call in
                player.endSeeking()
                call.reply()
            },
            .init("Append", "as") { player, call in
                player.answer(call) { () throws(Failure) in try player.insert(entries(call.arguments[0]), after: nil) }
            },
            .init("Insert", "aso") { player, call in
                player.answer(call) { () throws(Failure) in
                    let path = call.arguments[1].objectPathValue ?? ""
                    let place = path == ObjectPath.none ? nil : try player.item(path)
                    return try player.insert(entries(call.arguments[0]), after: .some(place))
                }
            },
            .init("Replace", "os") { player, call in
                do throws(Failure) {
                    let old = try player.item(call.arguments[0].objectPathValue ?? "")
                    let new = try player.replace(old, with: PlaylistEntry(uri: call.arguments[1].stringValue ?? ""))
                    call.reply([.objectPath(player.trackPath(new))])
                } catch {
                    call.fail(error)
                }
            },
            .init("Remove", "o") { player, call in
                call.answer { () throws(Failure) in
                    try player.remove(player.item(call.arguments[0].objectPathValue ?? ""))
                }
            },
            .init("GoTo", "o") { player, call in
                call.answer { () throws(Failure) in
                    try player.go(to: player.item(call.arguments[0].objectPathValue ?? ""))
                }
            },
            .init("Next", "") { player, call in
                player.next()
                call.reply()
            },
            .init("Previous", "") { player, call in
                player.previous()
                call.reply()
            },
            .init("GoToLive", "") { player, call in
                call.answer { () throws(Failure) in
                    do throws(SessionError) { try player.goToLive() } catch { throw Failure(error) }
                }
            },
            .init("SkipToBeginning", "") { player, call in
                call.answer { () throws(Failure) in try player.seek(to: 0) }
            },
            .init("Items", "") { player, call in
                let items = player.queue.items.map { item -> Value in
                    var fields: [(String, Value)] = [
                        ("id", .objectPath(player.trackPath(item.id))),
                        ("uri", .string(player.shown(item.entry.uri))),
                    ]
                    if let title = player.title(of: item) { fields.append(("title", .string(title))) }
                    if let duration = item.entry.duration { fields.append(("duration", .double(duration))) }
                    if let artist = item.entry.artist { fields.append(("artist", .string(artist))) }
                    if let album = item.entry.album { fields.append(("album", .string(album))) }
                    if item.entry.item > 0 { fields.append(("item", .uint64(item.entry.item))) }
                    if let spoken = item.entry.spoken { fields.append(("media-type", .string(spoken.rawValue))) }
                    return .properties(fields)
                }
                call.reply([.array(of: "a{sv}", items)])
            },
        ]
    }

    private func item(_ path: String) throws(Failure) -> UInt64 {
        guard let id = trackID(path), queue[id] != nil else {
            throw Failure(.badParameter("\(quoted(path)): no such item in the queue"))
        }
        return id
    }

    private func answer(_ call: Invocation, _ body: () throws(Failure) -> [UInt64]) {
        do throws(Failure) {
            call.reply([.objectPaths(try body().map(trackPath))])
        } catch {
            call.fail(error)
        }
    }

    private static var interface: Interface<PlayerPlugin> {
        Interface(
            name: BusName.player, introspection: InterfaceXML.fragment(PackageResources.org_sessiond1_Player_xml),
            methods: [
                .init("Load", "s") { player, call in
                    call.answer { () throws(Failure) in try player.load(uri: call.arguments[0].stringValue ?? "") }
                },
                .init("LoadData", "ay") { player, call in
                    call.answer { () throws(Failure) in
                        try player.load(data: (call.arguments[0].arrayValue ?? []).compactMap(\.byteValue))
                    }
                },
                .init("LoadList", "asu") { player, call in
                    call.answer { () throws(Failure) in
                        try player.load(entries(call.arguments[0]), startingAt: Int(call.arguments[1].uint32Value ?? 0))
                    }
                },
                .init("Prepare", "") { player, call in player.prepare { call.reply([.bool($0)]) } },
                .init("Play", "") { player, call in player.play { call.answer($0) } },
                .init("PlayAt", "d") { player, call in
                    let time = call.arguments[0].doubleValue ?? .nan
                    // 1e9 s is thirty years after boot.
                    guard time >= 0, time < 1e9 else {
                        return call.fail(
                            Failure(.badParameter("time \(time) s: it must be a time of CLOCK_MONOTONIC, 0 or more")))
                    }
                    player.play(at: MonotonicClock.microseconds(time)) { call.answer($0) }
                },
                .init("Pause", "") { player, call in
                    player.pause()
                    call.reply()
                },
                .init("Stop", "") { player, call in
                    player.stop()
                    call.reply()
                },
                .init("SeekTo", "d") { player, call in
                    call.answer { () throws(Failure) in try player.seek(to: call.arguments[0].doubleValue ?? .nan) }
                },
                .init("Meters", "") { player, call in call.reply([Value(player.engine.meters())]) },
            ] + queueMethods,
            properties: properties.map(\.exported))
    }
}

extension Value {
    /// Levels as `a(dd)`.
    init(_ levels: [ChannelLevel]) {
        self = .array(of: "(dd)", levels.map { .structure([.double($0.peak), .double($0.average)]) })
    }
}

extension Invocation {
    func answer(_ result: Result<Void, Failure>) {
        switch result {
        case .success: reply()
        case .failure(let failure): fail(failure)
        }
    }

    func answer(_ body: () throws(Failure) -> Void) {
        do throws(Failure) {
            try body()
            reply()
        } catch {
            fail(error)
        }
    }
}
