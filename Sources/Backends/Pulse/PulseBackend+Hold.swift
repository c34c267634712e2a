import CPulse
import EventLoop
public import PluginAPI

/// The hold sink: a sink that requests no data. It is created when needed, and removed when unused for a while.
extension PulseBackend {
    public func hold(_ id: AudioStream.ID, completion: @escaping Completion) {
        let batch = Batch(self, completion)
        guard let connection = connection(for: batch) else { return }
        guard model.canHold, id.direction == .playback else {
            batch.fail(SessionError(.mediaServicesFailed, "this server cannot hold a stream"))
            return
        }
        let end = batch.add()
        let move = { [unowned self, weak connection] (end: @escaping (Bool) -> Void) in
            guard let connection else { return end(false) }
            var isAsleep = true
            if self.holdsSuspended {
                // Suspends it each time: if another program has woken the sink, it would consume the stream.
                connection.command({ isAsleep = $0 }) {
                    pa_context_suspend_sink_by_name($0, PulseDevice.holdName, 1, $1, $2)
                }
            }
            connection.command({ end($0 && isAsleep) }) {
                pa_context_move_sink_input_by_name($0, id.number, PulseDevice.holdName, $1, $2)
            }
            self.expectMove(id.number)
        }
        prepareHold()
        // The requests of a stream take effect in their order.
        endTakingBack(id.number)
        // PipeWire's server may answer before the sink exists. PulseAudio's sink may turn out to have another pipe.
        let isThere = model.isPipeWire ? model.sinks.values.contains(where: \.isHold) : holds.sink != .unproven
        if isThere { move(end) } else { awaitHold(HoldState.Waiter(stream: id.number, move: move, end: end)) }
        batch.close()
    }

    /// Whether the hold sink is a null sink of PulseAudio, which holds only while it is suspended.
    private var holdsSuspended: Bool {
        if model.isPipeWire { return false }
        let sink = model.sinks.values.first(where: \.isHold)
        return sink.map { $0.driver.includes("null-sink") } ?? holds.isPipeRefused
    }

    public func prepareHold() {
        guard isReady, model.canHold, !model.playing.isEmpty, let connection else { return }
        if holds.isIdle { holdIdleTimer?.arm(after: holdIdleTime) }
        if holds.sink == .none, !model.sinks.values.contains(where: \.isHold) { makeHold(on: connection) }
    }

    /// An unused hold sink would only appear in every mixer: it is removed after a while. On PipeWire, held streams are
    /// looked at: the server does not report it if the user moves one that runs always. It reports the program by which the
    /// user does that, which is a client.
    func keepHold(_ now: UInt64) {
        let held = heldStreams
        let playing = model.isPipeWire ? held.map { ReadRound.Item(facility: .playing, index: $0) } : []
        reads.hold(Set(playing), at: now)
        if playing.isEmpty == holds.watchesClients {
            holds.watchesClients = !playing.isEmpty
            connection?.subscribe(clients: holds.watchesClients) { _ in }
        }
        let isIdle = held.isEmpty && holds.waiters.isEmpty && model.sinks.values.contains(where: \.isHold)
        guard isIdle != holds.isIdle else { return }
        holds.isIdle = isIdle
        if isIdle { holdIdleTimer?.arm(after: holdIdleTime) } else { holdIdleTimer?.disarm() }
    }

    func dropIdleHold() {
        guard isReady, let connection else { return }
        unloadHold(on: connection) { { _ in } }
    }

    /// `end`: creates the completion for each module.
    private func unloadHold(on connection: PulseConnection, _ end: () -> (Bool) -> Void) {
        for sink in model.sinks.values where sink.isHold && sink.module != noIndex {
            connection.unloadModule(sink.module, end())
        }
    }

    private var heldStreams: [UInt32] {
        model.playing.values.filter { model.sinks[$0.device]?.isHold == true }.map(\.index)
    }

    private func makeHold(on connection: PulseConnection) {
        holds.sink = .requested
        let folder = ServerAddress.environment("XDG_RUNTIME_DIR") ?? "/tmp"
        if !model.isPipeWire, !holds.isPipeRefused {
            if let pipe = FullPipe(path: HoldModule.path(in: folder)) {
                return makeHold(on: connection, writingTo: pipe)
            }
            holds.isPipeRefused = true
        }
        let hold = HoldModule.plain(model.wirePlumber, folder: folder)
        connection.loadModule(hold.name, hold.arguments) { [weak self] isThere in
            guard let self, !isThere else { return }
            holds.sink = .none
            settleHold(isThere: false)
        }
    }

    private func makeHold(on connection: PulseConnection, writingTo pipe: FullPipe) {
        holds.sink = .unproven
        let hold = HoldModule.full(pipe: pipe.path)
        var module = noIndex
        connection.loadModule(hold.name, hold.arguments, made: { module = $0 }) {
            [weak self, weak connection] isThere in
            let isShared = pipe.handOver()
            guard let self, let connection else { return }
            if holds.sink == .unproven { holds.sink = .requested }
            if isThere && isShared { return settleHold(isThere: true) }
            holds.isPipeRefused = true
            if !isThere { return makeHold(on: connection) }
            // The waiting streams are muted this time. The null sink is created after this one was removed.
            settleHold(isThere: false)
            connection.unloadModule(module) { [weak self] _ in self?.holds.sink = .none }
        }
    }

    private func awaitHold(_ waiter: HoldState.Waiter) {
        if holds.waiters.isEmpty { holdTimer?.arm(after: PulseBackend.holdPatience) }
        holds.waiters.append(waiter)
    }

    /// Calls everything that waits for the hold sink: it exists, or will not.
    func settleHold(isThere: Bool) {
        holdTimer?.disarm()
        let waiters = holds.waiters
        holds.waiters = []
        for waiter in waiters { if isThere { waiter.move(waiter.end) } else { waiter.end(false) } }
    }

    /// The hold sink takes long. On PipeWire it comes later, and the streams are moved then: meanwhile they count as on their
    /// way, and are muted until they arrive. Streams of PulseAudio are muted instead.
    func waitedForHold() {
        guard model.isPipeWire, holds.sink == .requested else { return settleHold(isThere: false) }
        let waiters = holds.waiters
        holds.waiters = waiters.map { HoldState.Waiter(stream: $0.stream, move: $0.move, end: { _ in }) }
        for waiter in waiters { waiter.end(true) }
    }

    /// Seconds from requesting the hold sink until nothing waits for it any longer.
    private static let holdPatience = 0.25

    public func letGo(_ id: AudioStream.ID, to deviceName: String?, completion: @escaping Completion) {
        let batch = Batch(self, completion)
        guard let connection = connection(for: batch) else { return }
        // A stream that is found on the guard was being moved there. The guard is no target, even if it exists again.
        let isThere = model.sinks.values.contains { $0.name == deviceName && !$0.isHold && !$0.isGuard }
        let name = isThere ? deviceName ?? "" : "@DEFAULT_SINK@"
        // A hold that still waits for the sink would come after this move.
        let waiting = holds.waiters.filter { $0.stream == id.number }
        holds.waiters.removeAll { $0.stream == id.number }
        for waiter in waiting { waiter.end(true) }
        let isAlone = isPausedAlone(id.number)
        holds.leaving.insert(id.number)
        let end = batch.add()
        let move = { [weak connection] in
            guard let connection else { return end(false) }
            connection.command(end) { pa_context_move_sink_input_by_name($0, id.number, name, $1, $2) }
        }
        if isAlone {
            // When the sink wakes up, it takes back the data that it had fetched from a stream that was paused in the
            // meantime; otherwise the next sink would play them. It does so shortly after the server has answered. A
            // program that plays again before that is moved at once, because the hold sink would consume its sound.
            holds.takingBack[id.number] = move
            connection.command({ [weak self] _ in
                self?.wait(PulseBackend.takeBackTime) { self?.endTakingBack(id.number) }
            }) {
                pa_context_suspend_sink_by_name($0, PulseDevice.holdName, 0, $1, $2)
            }
        } else {
            move()
        }
        expectMove(id.number)
        batch.close()
    }

    /// If this stream waits on the hold sink, it is moved now.
    func endTakingBack(_ number: UInt32) { holds.takingBack.removeValue(forKey: number)?() }

    func wait(_ seconds: Double, then body: @escaping () -> Void) {
        var timer: Timer?
        timer = Timer(on: loop) {
            timer = nil
            body()
        }
        timer?.arm(after: seconds)
    }

    /// Seconds for the sink to take back that data.
    private static let takeBackTime = 0.03

    /// Whether a suspended sink of PulseAudio holds this stream, which its program has paused, and no other playing stream:
    /// the woken sink would consume that one.
    private func isPausedAlone(_ number: UInt32) -> Bool {
        guard holdsSuspended, let stream = model.playing[number], stream.isCorked else { return false }
        func isHeld(_ stream: PulseStream) -> Bool { model.sinks[stream.device]?.isHold == true }
        holds.leaving = holds.leaving.filter { model.playing[$0].map(isHeld) ?? false }
        return isHeld(stream)
            && !model.playing.values.contains { isHeld($0) && !$0.isCorked && !holds.leaving.contains($0.index) }
    }

    /// PipeWire's session manager moves a stream some time after the server's answer, and the server need not report
    /// it. For a moment it may show the old sink again.
    func expectMove(_ number: UInt32) {
        guard model.isPipeWire else { return }
        reads.expectMove(of: ReadRound.Item(facility: .playing, index: number), at: MonotonicClock.now())
    }

    /// All streams are being moved while the guard replaces an output, and when it is released: none may be taken for
    /// paused only because the server has not reported that it plays again.
    func expectMoves(_ now: UInt64) {
        let streams = model.isPipeWire ? model.playing.keys.map { ReadRound.Item(facility: .playing, index: $0) } : []
        reads.expectMoves(of: streams, model.isOnGuard || guards.guardDue != nil, at: now)
    }

    func readRepeatedly() { for item in reads.take(at: MonotonicClock.now()) { mark(item) } }

    public func removeHold(completion: @escaping Completion) {
        let batch = Batch(self, completion)
        guard let connection = connection(for: batch) else { return }
        unloadHold(on: connection) { batch.add() }
        batch.close()
    }
}
