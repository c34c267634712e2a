public import DBus
import EventLoop
public import MediaControl

/// What the daemon knows of the sessions that players belong to.
public protocol PlayerPolicy: AnyObject {
    /// What the rules want of it now.
    func demand(of player: Player) -> Demand
    /// Whether its sound belongs to the now-playing session.
    func isNowPlaying(_ player: Player) -> Bool
    /// A person started it by hand while its session was interrupted: that takes the sound back, as far as it may.
    func takeBack(_ player: Player)
    /// It left the bus.
    func gone(_ player: Player)
    /// Those who play and can be paused; told whenever anything about any player, or any session, has changed.
    func playing(_ players: [Player])
}

/// The MPRIS players of a bus: paused and resumed as the rules want, and the one in front under one name.
///
/// On the loop of the connection; asks no player for anything that has to be waited for.
public final class MediaPlayers {
    /// What the settings say.
    public struct Settings: Sendable, Hashable {
        /// Whether players are paused and resumed.
        public var pauses: Bool
        /// Whether the one in front is `org.mpris.MediaPlayer2.sessiond`.
        public var servesMediaKeys: Bool
        /// Microseconds after which what was paused stays paused; 0: never too old.
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
    /// Of the connection that players are told on.
    private let uniqueName: String
    private var book = PauseBook<String>()
    private var settings: Settings
    private let loop: EventLoop
    private let address: BusAddress
    /// Hears who else pauses a player, while any is paused by our doing.
    private var monitor: BusMonitor?
    private var isMonitorRefused = false
    private var isScheduled = false
    /// Who is paused by our doing, or told to be, and may be resumed, by the players' ids.
    public private(set) var kept: Set<PauseBook<String>.Kept> = []
    /// While a player says that it paused, and is not seen to have.
    private var expiration: Timer?
    /// ``kept`` is another.
    public var onKeptChanged: (() -> Void)?
    /// Something worth a line in the log.
    public var onNotice: ((String) -> Void)?

    /// `address`: the connection's bus, on which the name of the one in front has a connection of its own.
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
            reconsider()
        }
        watch.onGone = { [unowned self] player in
            book.forget(player.id)
            policy.gone(player)
            compareKept()
            reconsider()
        }
        watch.onFrontNameFree = { [unowned self] in name.retry() }
        name.onTouch = { [unowned self] in touched($0) }
        name.onTaken = { [unowned self] owner in onNotice?("the bus name for media keys is owned by \(owner)") }
    }

    /// Looks for players, and goes on hearing of them. `kept` is what an earlier process had paused, as far as those
    /// players are still there.
    public func start(_ kept: some Sequence<PauseBook<String>.Kept>) {
        for pause in kept { book.keep(pause) }
        self.kept = Set(kept)
        watch.start()
    }

    /// Gives the name back.
    public func stop() {
        name.close()
        monitor = nil
    }

    /// Takes the settings over; players are looked at again by them.
    public func reload(_ settings: Settings) {
        self.settings = settings
        book.maxAge = settings.maxAge
        reconsider()
    }

    /// The sessions are not as they were: looked at once this turn of the loop is over, so that nobody's answer waits
    /// for it. Costs nothing where there is no player.
    public func sessionsChanged() {
        guard !watch.players.isEmpty, !isScheduled else { return }
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
            // Whoever no longer wants players paused wants none left paused.
            carryOut(book.demand(settings.pauses ? policy.demand(of: player) : .resume, of: player.id, at: now))
        }
        let playing = players.filter { $0.facts.map { $0.status == .playing && $0.canPause && $0.canControl } == true }
        policy.playing(settings.pauses ? playing : [])
        name.show(settings.servesMediaKeys ? front(of: players) : nil)
    }

    /// Somebody asked the player behind that bus name for something: what becomes of it is the user's wish.
    private func touched(_ name: String) {
        for player in watch.players(behind: name) { book.touched(player) }
        compareKept()
    }

    /// A player that is paused already tells nothing where it is paused again: only the call itself can be heard.
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
        // Before they are told: who comes after us must know of a pause that was sent.
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
