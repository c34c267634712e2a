import DBus
import EventLoop

/// `org.mpris.MediaPlayer2.sessiond`: whoever is in front, under one name.
///
/// Nothing of the player is kept here: calls go on to it and its answers and signals come back. The name has a
/// connection of its own, so that who may talk to the daemon (a sandbox, say) may not thereby talk to every player;
/// without a player there is neither.
final class FrontName {
    /// Calls of one player under way at once, whoever makes them.
    private static let limit = 64
    /// What is passed on; the rest is not served here.
    private static let interfaces: Set<String> = [
        "", MPRIS.root, MPRIS.player, StandardName.properties, StandardName.introspectable,
        MPRIS.root + ".TrackList", MPRIS.root + ".Playlists",
    ]
    /// What says nothing of whether a person wants it to play.
    private static let harmless: Set<String> = ["Seek", "SetPosition"]

    /// A call that was passed on and is not answered yet.
    private struct Passed {
        let call: Invocation
        /// Whom it waits for.
        var player: String
        /// Whether whoever comes to the front next may answer it as well. Once, so that two players taking the front
        /// from each other pile nothing up.
        var mayBeAskedAgain: Bool
    }

    private let address: BusAddress
    private let loop: EventLoop
    private var connection: Connection?
    private var front: String?
    private var subscription: Subscription?
    private var underWay: [UInt64: Passed] = [:]
    private var lastPassed: UInt64 = 0

    /// Somebody asked that player, by this name, for something that changes what it plays.
    var onTouch: ((String) -> Void)?
    /// Somebody else owns the name.
    var onTaken: ((String) -> Void)?

    init(_ address: BusAddress, _ loop: EventLoop) {
        self.address = address
        self.loop = loop
    }

    /// Stands for that player from now on; nil for nobody.
    func show(_ player: String?) {
        guard player != front else { return }
        front = player
        guard let player else { return close() }
        if connection == nil { open(player) } else { switchOver(to: player) }
    }

    /// The name can be had again, perhaps.
    func retry() { if connection == nil, let front { open(front) } }

    private func open(_ player: String) {
        guard let connection = try? Connection(address, loop: loop) else { return }
        connection.onDisconnect = { [weak self] in self?.close() }
        connection.objects.relay(path: MPRIS.path) { [weak self] call in self?.pass(call) }
        self.connection = connection
        listen(to: player)
        switch try? connection.requestName(MPRIS.front) {
        case .owner: return
        case .taken(let owner): onTaken?(owner ?? "somebody else")
        case nil: break
        }
        close()
        front = player
    }

    /// Gives the name back.
    func close() {
        front = nil
        subscription = nil
        underWay = [:]
        let connection = connection
        self.connection = nil
        connection?.close()
    }

    // MARK: From the player

    private func listen(to player: String) {
        subscription = connection?.subscribe(path: MPRIS.path, sender: player) { [weak self] signal in
            guard let self, let interface = signal.interface, let member = signal.member,
                FrontName.interfaces.contains(interface), let values = try? signal.arguments()
            else { return }
            self.connection?.objects.emit(path: MPRIS.path, interface: interface, member: member, values)
        }
    }

    /// Another player: everything may read differently now.
    private func switchOver(to player: String) {
        listen(to: player)
        if let connection { askAgain(player, connection) }
        for interface in [MPRIS.root, MPRIS.player] {
            connection?.call(player: player, StandardName.properties, "GetAll", [.string(interface)]) {
                [weak self] answer in
                guard let self, self.front == player,
                    let entries = (try? answer.get())?.first?.dictionaryValue
                else { return }
                // MPRIS does not tell of positions.
                let told = entries.filter { $0.key != .string("Position") }
                self.connection?.objects.emit(
                    path: MPRIS.path, interface: StandardName.properties, member: "PropertiesChanged",
                    [.string(interface), .dictionary(key: "s", value: "v", told), .strings([])])
            }
        }
    }

    // MARK: To the player

    private func pass(_ call: Invocation) {
        guard let front, let connection, FrontName.interfaces.contains(call.interface) else {
            return call.fail(.unknownInterface("No such interface here"))
        }
        // One that hangs does not keep those from being called who come to the front after it.
        guard underWay.values.count(where: { $0.player == front }) < FrontName.limit else {
            return call.fail(.limitsExceeded("\(FrontName.limit) calls wait for the player already"))
        }
        if call.interface == MPRIS.player, !FrontName.harmless.contains(call.member) { onTouch?(front) }
        lastPassed += 1
        underWay[lastPassed] = Passed(
            call: call, player: front,
            mayBeAskedAgain: call.interface == StandardName.properties && call.member != "Set")
        ask(front, lastPassed, call, connection)
    }

    private func ask(_ player: String, _ number: UInt64, _ call: Invocation, _ connection: Connection) {
        connection.call(player: player, call.interface, call.member, call.arguments, timeout: 25) {
            [weak self] answer in
            guard self?.underWay.removeValue(forKey: number) != nil else { return }
            switch answer {
            case .success(let values): call.reply(values)
            case .failure(let failure): call.fail(failure)
            }
        }
    }

    /// What was read is read of whoever is in front: nobody waits for a player that is there no longer and does not
    /// answer.
    private func askAgain(_ player: String, _ connection: Connection) {
        for (number, passed) in underWay where passed.mayBeAskedAgain {
            underWay[number]?.mayBeAskedAgain = false
            underWay[number]?.player = player
            ask(player, number, passed.call, connection)
        }
    }
}
