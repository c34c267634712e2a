import DBus
import EventLoop
import MediaControl

/// The players on a bus and their state. Watches names and property changes, never asks for a known state, and costs
/// nothing without players.
final class PlayerWatch {
    /// The most names of a player. Any program on the bus may pretend to be one, and take as many names as it likes.
    private static let limitOfNames = 16
    /// The most players of a process.
    private static let limitOfProcess = 16

    private let connection: Connection
    private(set) var players: [String: Player] = [:]
    private var names: [String: String] = [:]
    private var subscriptions: [String: Subscription] = [:]
    /// Players that are being queried because of a signal. Their answers come after that signal, and after further
    /// signals until then.
    private var asked: Set<String> = []
    private var places = ProcessPlaces(ofEach: limitOfProcess)
    /// The players that have a place, and the processes that it belongs to.
    private var placed: [String: UInt32] = [:]
    private var appearances: Subscription?
    private var order: UInt64 = 0

    /// A player appeared, answered for the first time, signalled a change, or left the bus.
    var onEvent: ((Player.ID, PlayerEvent) -> Void)?
    /// The kernel's data of a player whose process is known.
    private let identify: (Player) -> PlayerOrigin
    /// ``MPRIS/front`` has no owner any more.
    var onFrontNameFree: (() -> Void)?

    init(_ connection: Connection, identify: @escaping (Player) -> PlayerOrigin) {
        self.connection = connection
        self.identify = identify
    }

    func start() {
        appearances = connection.watchOwners(below: MPRIS.namespace) { [weak self] name, owner in
            self?.owns(name, owner.isEmpty ? nil : owner)
        }
        // Asked after the match rule is added, so that no change is missed.
        connection.askBus("ListNames") { [weak self] answer in
            let names = (try? answer.get())?.first?.stringsValue ?? []
            for name in names where name.hasPrefix(MPRIS.namespace + ".") { self?.find(name) }
        }
    }

    /// Asks the player for its state; nil if it does not answer in time. The answer is also reported.
    func ask(_ id: String, _ reply: @escaping (PlayerFacts?) -> Void) {
        connection.call(player: id, StandardName.properties, "GetAll", [.string(MPRIS.player)]) { [weak self] answer in
            guard let self, let values = (try? answer.get())?.first?.asProperties, self.players[id] != nil else {
                return reply(nil)
            }
            var facts = self.players[id]?.facts ?? PlayerFacts()
            facts.merge(values)
            self.take(facts, id)
            reply(facts)
        }
    }

    /// Calls a method without arguments; reports whether the player did it.
    func tell(_ id: String, _ member: String, _ reply: @escaping (Bool) -> Void) {
        connection.call(player: id, MPRIS.player, member) { answer in
            if case .success = answer { reply(true) } else { reply(false) }
        }
    }

    /// All players of the process that owns a bus name, well-known or unique: some programs have several connections.
    func players(behind name: String) -> [Player.ID] {
        guard let player = players[names[name] ?? name] else { return [] }
        guard player.processID != 0 else { return [player.id] }
        return players.values.filter { $0.processID == player.processID }.map(\.id).sorted()
    }

    // MARK: Names

    private func find(_ name: String) {
        connection.askBus("GetNameOwner", [.string(name)]) { [weak self] answer in
            // The name was reported by a signal in the meantime, or it is gone.
            guard let self, self.names[name] == nil, let owner = (try? answer.get())?.first?.stringValue else { return }
            self.owns(name, owner)
        }
    }

    private func owns(_ name: String, _ owner: String?) {
        guard !MPRIS.mirrors.contains(name) else {
            if name == MPRIS.front, owner == nil { onFrontNameFree?() }
            return
        }
        let short = String(name.dropFirst(MPRIS.namespace.utf8.count + 1))
        if let before = names[name], before != owner {
            names[name] = nil
            players[before]?.names.remove(short)
            if players[before]?.names.isEmpty == true { leave(before) }
        }
        guard let owner else { return }
        if players[owner] == nil { appear(owner) }
        guard let player = players[owner], player.names.count < PlayerWatch.limitOfNames else { return }
        names[name] = owner
        players[owner]?.names.insert(short)
    }

    private func appear(_ id: String) {
        order += 1
        var player = Player(id: id, processID: 0)
        player.order = order
        players[id] = player
        // Later, because the connection may be gone again by then.
        connection.loop.later { [weak self] in self?.meet(id) }
    }

    private func meet(_ id: String) {
        guard players[id] != nil, subscriptions[id] == nil else { return }
        subscriptions[id] = connection.subscribe(
            path: MPRIS.path, interface: StandardName.properties, member: "PropertiesChanged", sender: id,
            arg0: MPRIS.player
        ) { [weak self] signal in self?.changed(id, signal) }
        // The process must be known before its state is reported.
        connection.credentials(of: id) { [weak self] answer in
            guard let self, var player = self.players[id] else { return }
            player.processID = (try? answer.get())?.processID ?? 0
            guard self.places.take(player.processID) else { return self.refuse(id) }
            self.placed[id] = player.processID
            self.players[id] = player
            self.onEvent?(id, .appeared(self.identify(player)))
            // It signalled a change in the meantime.
            if let facts = player.facts { self.onEvent?(id, .told(facts, order: player.order)) }
            self.ask(id) { _ in }
        }
    }

    private func leave(_ id: String) {
        subscriptions[id] = nil
        if let process = placed.removeValue(forKey: id) { places.leave(process) }
        if players.removeValue(forKey: id) != nil { onEvent?(id, .gone) }
    }

    /// Its process has too many players already. It was not reported.
    private func refuse(_ id: String) {
        subscriptions[id] = nil
        for name in players.removeValue(forKey: id)?.names ?? [] { names[MPRIS.namespace + "." + name] = nil }
    }

    // MARK: Facts

    private func changed(_ id: String, _ signal: Message) {
        guard players[id] != nil, let values = try? signal.arguments(), values.count == 3 else { return }
        let changes = values[1].asProperties ?? [:]
        let invalid = values[2].stringsValue ?? []
        guard PlayerFacts.concern(changes.keys) || PlayerFacts.concern(invalid) else { return }
        // A player that did not answer when it appeared may answer now.
        guard var facts = players[id]?.facts, !PlayerFacts.concern(invalid) else { return askOnce(id) }
        facts.merge(changes)
        take(facts, id)
    }

    private func askOnce(_ id: String) {
        guard asked.insert(id).inserted else { return }
        ask(id) { [weak self] _ in self?.asked.remove(id) }
    }

    private func take(_ facts: PlayerFacts, _ id: String) {
        let before = players[id]?.facts
        players[id]?.facts = facts
        if let before, (before.status == .playing) != (facts.status == .playing) {
            order += 1
            players[id]?.order = order
        }
        if before != facts, let order = players[id]?.order { onEvent?(id, .told(facts, order: order)) }
    }
}
