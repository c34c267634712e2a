import DBus
import EventLoop
import MediaLibrary
import MediaValues
import PluginAPI
import PluginKit
import SessionBus

/// Follows the players on the bus, and records for items of the library: counts, and the bookmarks of podcasts and
/// audiobooks.
///
/// A player is an object with `org.sessiond1.Player`, at any path, of a connection that owns a name below
/// `org.mpris.MediaPlayer2`, as the contract of players requires, and is not in a sandbox. Signals of other connections do
/// not arrive: each match rule names the connection of a player.
final class PlayerWatch {
    /// Called when an item was played or skipped, or when its bookmark changed.
    var onNote: (_ item: Int64, Listening.Note) -> Void = { _, _ in }
    /// Whether items of the library are playing.
    var onBusyChanged: (Bool) -> Void = { _ in }
    /// The item of a file, its duration and its kind.
    var find: (_ uri: String) -> (id: Int64, duration: Double, type: ItemType)? = { _ in nil }

    /// The interval at which the position of a podcast or an audiobook is read, in seconds.
    private static let interval = 10.0
    /// The largest number of connections of a process, and of names and objects of each connection.
    private static let (playerLimit, nameLimit, objectLimit) = (16, 16, 8)
    /// The largest address in bytes; longer than any path.
    private static let uriLimit = 16_384
    private static let namespace = "org.mpris.MediaPlayer2"

    /// The paths where a player's object is asked what it plays when its connection becomes known: those of the kinds, and
    /// MPRIS's for players that serve all at one path. A player at another path is known from its first signal on, or if
    /// its connection tells its objects.
    private static let usualPaths =
        Set(PluginKind.all.filter { $0.interfaces.contains(BusName.player) }.map(\.objectPath)).sorted()
        + ["/org/mpris/MediaPlayer2"]

    private struct Owner {
        var names: Set<String>
        let process: UInt32
        let subscriptions: [Subscription]
    }

    /// The object of a player.
    private struct Place: Hashable {
        let owner: String
        let path: String
    }

    private struct Player {
        var uri = ""
        var isPlaying = false
        var item: Int64?
        var listening: Listening?
    }

    private let connection: Connection
    private let callers: FreeCallers
    private var owners: [String: Owner] = [:]
    private var players: [Place: Player] = [:]
    private var places = ProcessPlaces(ofEach: playerLimit)
    private var subscription: Subscription?
    private var wasBusy = false
    private lazy var timer = Timer(on: connection.loop) { [unowned self] in look() }

    /// Nil on a bus of several users: players of other users do not play for this user.
    init?(on connection: Connection, _ callers: FreeCallers) {
        (self.connection, self.callers) = (connection, callers)
        guard connection.servedUsers == nil else { return nil }
        subscription = connection.watchOwners(below: Self.namespace) { [unowned self] name, owner in
            owned(name, owner)
        }
        // Players that already run.
        connection.askBus("ListNames", []) { [weak self] answer in
            for name in (try? answer.get())?.first?.stringsValue ?? [] where name.hasPrefix(Self.namespace + ".") {
                self?.connection.askBus("GetNameOwner", [.string(name)]) { [weak self] answer in
                    if let owner = (try? answer.get())?.first?.stringValue { self?.owned(name, owner) }
                }
            }
        }
    }

    // MARK: Players

    /// - Parameter owner: empty: the name has no owner.
    private func owned(_ name: String, _ owner: String) {
        for old in owners.keys where old != owner && owners[old]?.names.remove(name) != nil {
            if owners[old]?.names.isEmpty == true { lost(old) }
        }
        guard !owner.isEmpty else { return }
        if let known = owners[owner] {
            if known.names.count < Self.nameLimit { owners[owner]?.names.insert(name) }
            return
        }
        guard let process = try? callers.require(owner, to: "be a player"), places.take(process) else { return }
        owners[owner] = Owner(names: [name], process: process, subscriptions: subscriptions(to: owner))
        // The subscription is set up before the properties are read, so no change is missed.
        for path in Self.usualPaths { ask(Place(owner: owner, path: path)) }
        askObjects(of: owner)
    }

    private func ask(_ place: Place) {
        connection.call(
            place.owner, place.path, StandardName.properties, "GetAll", [.string(BusName.player)], timeout: 5
        ) { [weak self] answer in
            if let values = (try? answer.get())?.first?.asProperties { self?.learn(place, values) }
        }
    }

    /// Players of PluginKit list their objects.
    private func askObjects(of owner: String) {
        connection.call(owner, "/", "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", [], timeout: 5) {
            [weak self] answer in
            guard case .dictionary(_, _, let objects)? = (try? answer.get())?.first else { return }
            for object in objects {
                guard let path = object.key.objectPathValue, !Self.usualPaths.contains(path),
                    case .dictionary(_, _, let interfaces) = object.value,
                    let player = interfaces.first(where: { $0.key.stringValue == BusName.player })
                else { continue }
                self?.learn(Place(owner: owner, path: path), player.value.asProperties ?? [:])
            }
        }
    }

    private func subscriptions(to player: String) -> [Subscription] {
        [
            connection.subscribe(
                interface: StandardName.properties, member: "PropertiesChanged", sender: player, arg0: BusName.player
            ) { [unowned self] message in
                guard let path = message.path, let values = try? message.arguments(), values.count == 3 else { return }
                learn(Place(owner: player, path: path), values[1].asProperties ?? [:])
            },
            connection.subscribe(interface: BusName.player, member: "ItemFinished", sender: player) {
                [unowned self] message in
                if let path = message.path { finished(Place(owner: player, path: path)) }
            },
        ]
    }

    // MARK: Playback

    private func learn(_ place: Place, _ changes: [String: Value]) {
        let text = changes["Uri"]?.stringValue
        let uri = text.map { $0.utf8.count <= Self.uriLimit ? $0 : "" }
        let state = changes["State"]?.stringValue
        guard uri != nil || state != nil, owners[place.owner] != nil else { return }
        guard
            var player = players[place]
                ?? (players.keys.count { $0.owner == place.owner } < Self.objectLimit ? Player() : nil)
        else { return }
        let now = MonotonicClock.seconds
        if let uri, uri != player.uri {
            leave(&player, now)
            player.uri = uri
            if let found = find(uri) {
                player.item = found.id
                player.listening = Listening(duration: found.duration, type: found.type)
                player.listening?.plays(player.isPlaying, at: now)
            }
        }
        if let state {
            player.isPlaying = state == "playing"
            player.listening?.plays(player.isPlaying, at: now)
        }
        players[place] = player
        // A stopped player is at the start; its position is no bookmark.
        if state == "paused" || state == "interrupted" { askPosition(place) }
        settle()
    }

    private func leave(_ player: inout Player, _ now: Double) {
        if let item = player.item { for note in player.listening?.left(at: now) ?? [] { onNote(item, note) } }
        (player.item, player.listening) = (nil, nil)
    }

    private func lost(_ name: String) {
        guard let owner = owners.removeValue(forKey: name) else { return }
        places.leave(owner.process)
        for place in players.keys.filter({ $0.owner == name }) {
            if var player = players.removeValue(forKey: place) { leave(&player, MonotonicClock.seconds) }
        }
        settle()
    }

    private func finished(_ place: Place) {
        guard let item = players[place]?.item else { return }
        let now = MonotonicClock.seconds
        for note in players[place]?.listening?.finished(at: now) ?? [] { onNote(item, note) }
        // If the same file is played again, counting starts again.
        if let known = find(players[place]?.uri ?? "") {
            var next = Listening(duration: known.duration, type: known.type)
            next.plays(players[place]?.isPlaying ?? false, at: now)
            players[place]?.listening = next
        }
        settle()
    }

    private func askPosition(_ place: Place) {
        guard let item = players[place]?.item else { return }
        connection.call(
            place.owner, place.path, StandardName.properties, "Get",
            [.string(BusName.player), .string("Position")], timeout: 5
        ) { [weak self] answer in
            guard let self, let player = players[place], player.item == item,
                let seconds = (try? answer.get())?.first?.unwrapped.doubleValue
            else { return }
            for note in player.listening?.isAt(seconds) ?? [] { onNote(item, note) }
        }
    }

    private func look() {
        for (place, player) in players where player.listening?.wantsPosition == true { askPosition(place) }
        if players.values.contains(where: { $0.listening?.wantsPosition == true }) { timer.arm(after: Self.interval) }
    }

    private func settle() {
        if players.values.contains(where: { $0.listening?.wantsPosition == true }) {
            timer.arm(after: Self.interval)
        } else {
            timer.disarm()
        }
        let isBusy = players.values.contains { $0.item != nil && $0.isPlaying }
        guard isBusy != wasBusy else { return }
        wasBusy = isBusy
        onBusyChanged(isBusy)
    }
}
