import DBus
import EventLoop

/// `org.mpris.MediaPlayer2.sessiond`: one name for the player in front.
///
/// It stores nothing about the player: it forwards calls to the player, and returns the player's answers and signals.
/// The name has a separate connection, so that a program that may call the daemon (for example from a sandbox) cannot
/// call every player through it. Without a player, neither the name nor the connection exists.
///
/// GNOME Shell shows a card for each player that can play. It would show the player in front twice, so it alone is told that
/// this one cannot play (docs/adr/0005).
final class FrontName {
    /// Pending calls of one player at a time, of all callers together.
    private static let limit = 64
    /// The interfaces whose calls are forwarded; others are not served here.
    private static let interfaces: Set<String> = [
        "", MPRIS.root, MPRIS.player, StandardName.properties, StandardName.introspectable,
        MPRIS.root + ".TrackList", MPRIS.root + ".Playlists",
    ]
    /// Methods that do not show whether the user wants the player to play.
    private static let harmless: Set<String> = ["Seek", "SetPosition"]
    /// The bus name of the desktop that shows all players that can play.
    private static let desktop = "org.gnome.Shell"

    /// A forwarded call that is not answered yet.
    private struct Passed {
        let call: Invocation
        /// The player that it waits for.
        var player: String
        /// Whether the next player in front may answer it instead. Only once, so that calls do not pile up if two
        /// players alternate in front.
        var mayBeAskedAgain: Bool
    }

    private let address: BusAddress
    private let loop: EventLoop
    private var connection: Connection?
    private var front: String?
    private var subscription: Subscription?
    /// The connection that owns ``desktop``; nil: none, or it is not known yet.
    private var desktop: String?
    private var desktopWatch: Subscription?
    private var underWay: [UInt64: Passed] = [:]
    private var lastPassed: UInt64 = 0

    /// A client asked that player, by this name, to change what it plays.
    var onTouch: ((String) -> Void)?
    /// Another connection owns the name.
    var onTaken: ((String) -> Void)?

    init(_ address: BusAddress, _ loop: EventLoop) {
        self.address = address
        self.loop = loop
    }

    /// Represents that player from now on; nil for none.
    func show(_ player: String?) {
        guard player != front else { return }
        front = player
        guard let player else { return close() }
        if connection == nil { open(player) } else { switchOver(to: player) }
    }

    /// The name may be free again.
    func retry() { if connection == nil, let front { open(front) } }

    private func open(_ player: String) {
        guard let connection = try? Connection(address, loop: loop) else { return }
        connection.onDisconnect = { [weak self] in self?.close() }
        connection.objects.relay(path: MPRIS.path) { [weak self] call in self?.pass(call) }
        self.connection = connection
        // Asked before the name exists, so the answer comes before any call to the name.
        desktopWatch = connection.watchOwner(of: FrontName.desktop) { [weak self] in self?.desktop = $0 }
        connection.askBus("GetNameOwner", [.string(FrontName.desktop)]) { [weak self] answer in
            if let owner = (try? answer.get())?.first?.stringValue { self?.desktop = owner }
        }
        listen(to: player)
        switch try? connection.requestName(MPRIS.front) {
        case .owner: return
        case .taken(let owner): onTaken?(owner ?? "somebody else")
        case nil: break
        }
        close()
        front = player
    }

    /// Releases the name.
    func close() {
        front = nil
        subscription = nil
        desktop = nil
        desktopWatch = nil
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
            if member == "PropertiesChanged", interface == StandardName.properties {
                return self.tell(changes: values)
            }
            self.connection?.objects.emit(path: MPRIS.path, interface: interface, member: member, values)
        }
    }

    /// The player has changed: all properties may have changed.
    private func switchOver(to player: String) {
        listen(to: player)
        if let connection { askAgain(player, connection) }
        for interface in [MPRIS.root, MPRIS.player] {
            connection?.call(player: player, StandardName.properties, "GetAll", [.string(interface)]) {
                [weak self] answer in
                guard let self, self.front == player,
                    let entries = (try? answer.get())?.first?.dictionaryValue
                else { return }
                // MPRIS does not signal positions.
                let told = entries.filter { $0.key != .string("Position") }
                self.tell(changes: [.string(interface), .dictionary(key: "s", value: "v", told), .strings([])])
            }
        }
    }

    /// Announces changed properties, without those that the desktop may not see. A signal goes to everybody.
    private func tell(changes: [Value]) {
        var changes = changes
        if changes.count == 3, changes.first == .string(MPRIS.player) {
            let told = changes[1].dictionaryValue?.filter { $0.key != FrontName.canPlay } ?? []
            let invalid = changes[2].stringsValue?.filter { .string($0) != FrontName.canPlay } ?? []
            if told.isEmpty, invalid.isEmpty { return }
            changes[1] = .dictionary(key: "s", value: "v", told)
            changes[2] = .strings(invalid)
        }
        connection?.objects.emit(
            path: MPRIS.path, interface: StandardName.properties, member: "PropertiesChanged", changes)
    }

    private static let canPlay = Value.string("CanPlay")

    /// The answer of a player, for that caller.
    private func answer(to call: Invocation, _ values: [Value]) -> [Value] {
        guard call.sender == desktop, call.interface == StandardName.properties,
            call.arguments.first == .string(MPRIS.player)
        else { return values }
        if call.member == "Get", call.arguments.last == FrontName.canPlay { return [.variant(.bool(false))] }
        guard call.member == "GetAll", let entries = values.first?.dictionaryValue else { return values }
        let told = entries.map { entry in
            entry.key == FrontName.canPlay ? DictionaryEntry(key: entry.key, value: .variant(.bool(false))) : entry
        }
        return [.dictionary(key: "s", value: "v", told)]
    }

    // MARK: To the player

    private func pass(_ call: Invocation) {
        guard let front, let connection, FrontName.interfaces.contains(call.interface) else {
            return call.fail(.unknownInterface("No such interface"))
        }
        // A player that hangs must not block calls to the next player in front.
        guard underWay.values.count(where: { $0.player == front }) < FrontName.limit else {
            return call.fail(.limitsExceeded("\(FrontName.limit) calls are already waiting for the player"))
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
            guard let self, underWay.removeValue(forKey: number) != nil else { return }
            switch answer {
            case .success(let values): call.reply(self.answer(to: call, values))
            case .failure(let failure): call.fail(failure)
            }
        }
    }

    /// Forwards reads again to the new player in front, so that no caller waits for a player that has left or does not
    /// answer.
    private func askAgain(_ player: String, _ connection: Connection) {
        for (number, passed) in underWay where passed.mayBeAskedAgain {
            underWay[number]?.mayBeAskedAgain = false
            underWay[number]?.player = player
            ask(player, number, passed.call, connection)
        }
    }
}
