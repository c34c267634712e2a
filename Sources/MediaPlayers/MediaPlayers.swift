public import DBus
import EventLoop
public import MediaControl

/// The rules for players, by the sessions that they belong to.
public protocol PlayerPolicy: AnyObject {
    /// What the rules want from it now.
    func demand(of player: Player) -> Demand
    /// Whether its sound belongs to the now-playing session.
    func isNowPlaying(_ player: Player) -> Bool
    /// The user started it while its session was interrupted: the session takes the sound back, if allowed.
    func takeBack(_ player: Player)
    /// It left the bus.
    func gone(_ player: Player)
    /// The players that play and can be paused; called whenever anything about a player or session has changed.
    func playing(_ players: [Player])
}

/// The MPRIS players of a bus: paused and resumed as the rules want, and the one in front under one name.
///
/// Belongs to the loop of the connection; never waits for a player.
public final class MediaPlayers {
    /// The settings for players.
    public struct Settings: Sendable, Hashable {
        /// Whether players are paused and resumed.
        public var pauses: Bool
        /// Whether the player in front is `org.mpris.MediaPlayer2.sessiond`.
        public var servesMediaKeys: Bool
        /// Microseconds after which a paused player stays paused; 0: no limit.
        public var maxAge: UInt64

        public init(pauses: Bool, servesMediaKeys: Bool, maxAge: UInt64) {
            self.pauses = pauses
            self.servesMediaKeys = servesMediaKeys
            self.maxAge = maxAge
        }
    }

    private let watch: PlayerWatch
    private let name: FrontName
    private let policy: any PlayerPolicy
    /// The connection for players.
    private let uniqueName: String
    private var book = PauseBook<String>()
    private var settings: Settings
    private let loop: EventLoop
    private let address: BusAddress
    /// Observes who else pauses a player, while the daemon has paused any.
    private var monitor: BusMonitor?
    private var isMonitorRefused = false
    private var isScheduled = false
    /// The players that the daemon has paused, or asked to pause, and may resume, by their ids.
    public private(set) var kept: Set<PauseBook<String>.Kept> = []
    /// While a player has confirmed a pause but is not yet seen paused.
    private var expiration: Timer?
    /// ``kept`` changed.
    public var onKeptChanged: (() -> Void)?
    /// A message for the log.
    public var onNotice: ((String) -> Void)?

    /// `address`: the bus of the connection; the name of the player in front has a separate connection to it.
    public init(_ connection: Connection, _ address: BusAddress, _ settings: Settings, _ policy: any PlayerPolicy) {
        watch = PlayerWatch(connection)
        name = FrontName(address, connection.loop)
        loop = connection.loop
        self.address = address
        uniqueName = connection.uniqueName
        self.policy = policy
        self.settings = settings
        book.maxAge = settings.maxAge
        watch.onFacts = { [unowned self] player in
            guard let facts = player.facts else { return }
            carryOut(book.told(facts, by: player.id, at: MonotonicClock.now()))
            reconsiderLater()
        }
        watch.onGone = { [unowned self] player in
            book.forget(player.id)
            policy.gone(player)
            compareKept()
            reconsiderLater()
        }
        watch.onFrontNameFree = { [unowned self] in name.retry() }
        name.onTouch = { [unowned self] in touched($0) }
        name.onTaken = { [unowned self] owner in onNotice?("the bus name for media keys is owned by \(owner)") }
    }

    /// Looks for players now and later. `kept` is what an earlier daemon had paused, as far as those players
    /// still exist.
    public func start(_ kept: some Sequence<PauseBook<String>.Kept>) {
        for pause in kept { book.keep(pause) }
        self.kept = Set(kept)
        watch.start()
    }

    /// Releases the name.
    public func stop() {
        name.close()
        monitor = nil
    }

    /// Applies the settings to all players.
    public func reload(_ settings: Settings) {
        self.settings = settings
        book.maxAge = settings.maxAge
        reconsider()
    }

    /// The sessions changed: the players are checked. Costs nothing without players.
    public func sessionsChanged() { if !watch.players.isEmpty { reconsiderLater() } }

    /// After this turn of the loop: no answer waits for it, and a player that signals a thousand changes at once is
    /// checked once.
    private func reconsiderLater() {
        guard !isScheduled else { return }
        isScheduled = true
        loop.later { [weak self] in
            self?.isScheduled = false
            self?.reconsider()
        }
    }

    private func reconsider() {
        let players = watch.players.values.filter { $0.facts != nil }
        let now = MonotonicClock.now()
        for player in players {
            // If pausing is turned off, no player may stay paused.
            carryOut(book.demand(settings.pauses ? policy.demand(of: player) : .resume, of: player.id, at: now))
        }
        let playing = players.filter { $0.facts.map { $0.status == .playing && $0.canPause && $0.canControl } == true }
        policy.playing(settings.pauses ? playing : [])
        name.show(settings.servesMediaKeys ? front(of: players) : nil)
    }

    /// A client asked the player with that bus name for something: the result is the user's wish.
    private func touched(_ name: String) {
        for player in watch.players(behind: name) { book.touched(player) }
        compareKept()
    }

    /// A paused player sends no signal when it is paused again: only the call itself can be observed.
    private func keepMonitor() {
        guard !kept.isEmpty else {
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

    private func compareKept() {
        defer { keepMonitor() }
        let now = MonotonicClock.now()
        if let expiry = book.keptExpires, expiry > now {
            let timer = expiration ?? Timer(on: loop) { [weak self] in self?.compareKept() }
            timer.arm(at: expiry)
            expiration = timer
        } else {
            expiration = nil
        }
        let current = Set(book.kept(at: now))
        guard current != kept else { return }
        kept = current
        onKeptChanged?()
    }

    private func front(of players: [Player]) -> String? {
        FrontPlayer.choose(
            players.lazy.filter { $0.facts?.canControl == true }.map { [policy] player in
                .init(
                    player.id, player.facts?.status ?? .stopped, isNowPlaying: policy.isNowPlaying(player),
                    order: player.order)
            })
    }

    private func carryOut(_ commands: [PauseBook<String>.Command]) {
        // Stored before the call: the next daemon must know of a pause that was sent.
        compareKept()
        for command in commands {
            switch command {
            case .ask(let id):
                watch.ask(id) { [weak self] facts in
                    guard let self else { return }
                    self.carryOut(self.book.answered(id, facts, at: MonotonicClock.now()))
                }
            case .pause(let id):
                watch.tell(id, "Pause") { [weak self] succeeded in
                    guard let self else { return }
                    self.carryOut(self.book.pauseEnded(id, succeeded: succeeded, at: MonotonicClock.now()))
                }
            case .play(let id):
                watch.tell(id, "Play") { [weak self] succeeded in
                    guard let self else { return }
                    self.carryOut(self.book.playEnded(id, succeeded: succeeded, at: MonotonicClock.now()))
                }
            case .takeBack(let id): if let player = watch.players[id] { policy.takeBack(player) }
            }
        }
    }
}
