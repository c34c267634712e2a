public import DBus
import EventLoop
public import MediaControl

/// The MPRIS players of a bus: their events, requests to them, and the one in front under one name. Decides nothing.
///
/// Belongs to the loop of the connection; never waits for a player.
public final class MediaPlayers {
    private let watch: PlayerWatch
    private let name: FrontName
    /// The connection for players.
    private let uniqueName: String
    private let loop: EventLoop
    private let address: BusAddress
    private var monitor: BusMonitor?
    private var isMonitorRefused = false
    /// An event of a player.
    public var onEvent: ((Player.ID, PlayerEvent) -> Void)?
    /// A message for the log.
    public var onNotice: ((String) -> Void)?

    /// `address`: the bus of the connection; the name of the player in front has a separate connection to it. `identify`:
    /// the kernel's data of a player whose process is known.
    public init(_ connection: Connection, _ address: BusAddress, identify: @escaping (Player) -> PlayerOrigin) {
        watch = PlayerWatch(connection, identify: identify)
        name = FrontName(address, connection.loop)
        loop = connection.loop
        self.address = address
        uniqueName = connection.uniqueName
        watch.onEvent = { [unowned self] in onEvent?($0, $1) }
        watch.onFrontNameFree = { [unowned self] in name.retry() }
        name.onTouch = { [unowned self] in touched($0) }
        name.onTaken = { [unowned self] owner in onNotice?("the bus name for media keys is owned by \(owner)") }
    }

    /// Searches for players now and later.
    public func start() { watch.start() }

    /// Releases the name.
    public func stop() {
        name.close()
        monitor = nil
    }

    /// Sends a request to a player; the result is an event.
    public func send(_ request: PlayerRequest, to id: Player.ID) {
        switch request {
        case .ask: watch.ask(id) { [weak self] in self?.report(.answered($0), of: id) }
        case .pause: watch.tell(id, "Pause") { [weak self] in self?.report(.pauseEnded(succeeded: $0), of: id) }
        case .play: watch.tell(id, "Play") { [weak self] in self?.report(.playEnded(succeeded: $0), of: id) }
        }
    }

    /// This player is the one in front from now on; nil: none.
    public func show(_ id: Player.ID?) { name.show(id) }

    /// While the daemon has paused a player, it must know whether another client pauses it. A paused player sends no
    /// signal when it is paused again, so only the call itself can be observed.
    public func observeCalls(_ isNeeded: Bool) {
        guard isNeeded else {
            monitor = nil
            return
        }
        guard monitor == nil, !isMonitorRefused else { return }
        monitor = try? BusMonitor(
            address, on: loop, calls: ["Pause", "Stop"], of: MPRIS.player,
            refused: { [weak self] failure in
                self?.isMonitorRefused = true
                self?.loop.later { self?.monitor = nil }
                self?.onNotice?("the bus does not allow sessiond to see who pauses players: \(failure.message)")
            },
            { [weak self] call in
                guard let self, let player = call.destination, call.sender != uniqueName else { return }
                touched(player)
            })
    }

    /// A client sent a request to the player with this bus name, so the result is the user's choice.
    private func touched(_ name: String) {
        for id in watch.players(behind: name) { onEvent?(id, .touched) }
    }

    private func report(_ event: PlayerEvent, of id: Player.ID) {
        if watch.players[id] != nil { onEvent?(id, event) }
    }
}
