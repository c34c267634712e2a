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
/// A player is a connection that owns a name below `org.mpris.MediaPlayer2`, as the contract of players requires, and
/// is not in a sandbox. Signals of other connections do not arrive: each match rule names the connection of a player.
final class PlayerWatch {
    /// Called when an item was played or skipped, or when its bookmark changed.
    var onNote: (_ item: Int64, Listening.Note) -> Void = { _, _ in }
    /// Whether items of the library are playing.
    var onBusyChanged: (Bool) -> Void = { _ in }
    /// The item of a file, its duration and its kind.
    var find: (_ uri: String) -> (id: Int64, duration: Double, type: ItemType)? = { _ in nil }

    /// The interval at which the position of a podcast or an audiobook is read, in seconds.
    private static let interval = 10.0
    /// The largest number of players of a process, and of names of each player.
    private static let (playerLimit, nameLimit) = (16, 16)
    /// The largest address in bytes; longer than any path.
    private static let uriLimit = 16_384
    private static let namespace = "org.mpris.MediaPlayer2"

    private struct Player {
        var uri = ""
        var isPlaying = false
        var item: Int64?
        var listening: Listening?
        var names: Set<String>
        let process: UInt32
        let subscriptions: [Subscription]
    }

    private let connection: Connection
    private let callers: FreeCallers
    private var players: [String: Player] = [:]
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
        for old in players.keys where old != owner && players[old]?.names.remove(name) != nil {
            if players[old]?.names.isEmpty == true { lost(old) }
        }
        guard !owner.isEmpty else { return }
        if let known = players[owner] {
            if known.names.count < Self.nameLimit { players[owner]?.names.insert(name) }
            return
        }
        guard let process = try? callers.require(owner, to: "be a player"), places.take(process) else { return }
        players[owner] = Player(names: [name], process: process, subscriptions: subscriptions(to: owner))
        // The subscription is set up before the properties are read, so no change is missed.
        connection.call(
            owner, ObjectPath.player, StandardName.properties, "GetAll", [.string(BusName.player)], timeout: 5
        ) { [weak self] answer in
            if let values = (try? answer.get())?.first?.asProperties { self?.learn(owner, values) }
        }
    }

    private func subscriptions(to player: String) -> [Subscription] {
        [
            connection.subscribe(
                path: ObjectPath.player, interface: StandardName.properties, member: "PropertiesChanged",
                sender: player, arg0: BusName.player
            ) { [unowned self] message in
                guard let values = try? message.arguments(), values.count == 3 else { return }
                learn(player, values[1].asProperties ?? [:])
            },
            connection.subscribe(
                path: ObjectPath.player, interface: BusName.player, member: "ItemFinished", sender: player
            ) { [unowned self] _ in finished(player) },
        ]
    }

    // MARK: Playback

    private func learn(_ sender: String, _ changes: [String: Value]) {
        let text = changes["Uri"]?.stringValue
        let uri = text.map { $0.utf8.count <= Self.uriLimit ? $0 : "" }
        let state = changes["State"]?.stringValue
        guard uri != nil || state != nil, var player = players[sender] else { return }
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
        players[sender] = player
        // A stopped player is at the start; its position is no bookmark.
        if state == "paused" || state == "interrupted" { askPosition(sender) }
        settle()
    }

    private func leave(_ player: inout Player, _ now: Double) {
        if let item = player.item { for note in player.listening?.left(at: now) ?? [] { onNote(item, note) } }
        (player.item, player.listening) = (nil, nil)
    }

    private func lost(_ sender: String) {
        guard var player = players.removeValue(forKey: sender) else { return }
        places.leave(player.process)
        leave(&player, MonotonicClock.seconds)
        settle()
    }

    private func finished(_ sender: String) {
        guard let item = players[sender]?.item else { return }
        let now = MonotonicClock.seconds
        for note in players[sender]?.listening?.finished(at: now) ?? [] { onNote(item, note) }
        // If the same file is played again, counting starts again.
        if let known = find(players[sender]?.uri ?? "") {
            var next = Listening(duration: known.duration, type: known.type)
            next.plays(players[sender]?.isPlaying ?? false, at: now)
            players[sender]?.listening = next
        }
        settle()
    }

    private func askPosition(_ sender: String) {
        guard let item = players[sender]?.item else { return }
        connection.call(
            sender, ObjectPath.player, StandardName.properties, "Get", [.string(BusName.player), .string("Position")],
            timeout: 5
        ) { [weak self] answer in
            guard let self, let player = players[sender], player.item == item,
                let seconds = (try? answer.get())?.first?.unwrapped.doubleValue
            else { return }
            for note in player.listening?.isAt(seconds) ?? [] { onNote(item, note) }
        }
    }

    private func look() {
        for (sender, player) in players where player.listening?.wantsPosition == true { askPosition(sender) }
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
