import CPulse
import EventLoop
public import PluginAPI

/// Where streams are stopped: a sink that asks for nothing, which is there while it is needed and a while after.
extension PulseBackend {
    public func hold(_ id: AudioStream.ID, completion: @escaping Completion) {
        let batch = Batch(self, completion)
        guard let connection = connection(for: batch) else { return }
        guard model.canHold, id.direction == .playback else {
            batch.fail(SessionError(.mediaServicesFailed, "this server cannot hold a stream"))
            return
        }
        let move = { [unowned self, weak connection] (end: @escaping (Bool) -> Void) in
            guard let connection else { return end(false) }
            connection.command(end) {
                pa_context_move_sink_input_by_name($0, id.number, PulseDevice.holdName, $1, $2)
            }
            self.awaitMove(id.number)
        }
        let isSeen = model.sinks.values.contains(where: \.isHold)
        prepareHold()
        if model.isPipeWire {
            // Its server may answer before the sink is there; PulseAudio does all in order, so nobody waits.
            let end = batch.add()
            if isSeen { move(end) } else { awaitHold { isThere in isThere ? move(end) : end(false) } }
            return batch.close()
        }
        // Each time: somebody may have woken it up, and then it would swallow the stream.
        connection.command(batch.add()) { pa_context_suspend_sink_by_name($0, PulseDevice.holdName, 1, $1, $2) }
        move(batch.add())
        batch.close()
    }

    public func prepareHold() {
        guard isReady, model.canHold, !model.playing.isEmpty, let connection else { return }
        holdIdleTimer?.arm(after: PulseBackend.holdIdleTime)
        if !hasHold, !model.sinks.values.contains(where: \.isHold) { makeHold(on: connection) }
    }

    /// A place that nobody needs shows in every mixer.
    func dropIdleHold() {
        guard isReady, let connection else { return }
        guard awaitedMoves.isEmpty, heldStreams.isEmpty else {
            holdIdleTimer?.arm(after: PulseBackend.holdIdleTime)
            return
        }
        unloadHold(on: connection) { { _ in } }
    }

    /// `end`: makes what is called when each is gone.
    private func unloadHold(on connection: PulseConnection, _ end: () -> (Bool) -> Void) {
        for sink in model.sinks.values where sink.isHold && sink.module != noIndex {
            connection.command(end()) { pa_context_unload_module($0, sink.module, $1, $2) }
        }
    }

    private var heldStreams: [UInt32] {
        model.playing.values.filter { model.sinks[$0.device]?.isHold == true }.map(\.index)
    }

    /// Seconds for which the place is kept after it was needed last.
    private static let holdIdleTime = 60.0

    private func makeHold(on connection: PulseConnection) {
        hasHold = true
        let hold = HoldModule(model.wirePlumber, folder: ServerAddress.environment("XDG_RUNTIME_DIR") ?? "/tmp")
        connection.loadModule(hold.name, hold.arguments) { [weak self] isThere in
            guard let self, !isThere else { return }
            hasHold = false
            settleHold(isThere: false)
        }
    }

    private func awaitHold(_ waiter: @escaping (Bool) -> Void) {
        if holdWaiters.isEmpty { holdTimer?.arm(after: PulseBackend.holdPatience) }
        holdWaiters.append(waiter)
    }

    /// Whoever waits for the place for held streams is told that it is there, or will not come.
    func settleHold(isThere: Bool) {
        holdTimer?.disarm()
        let waiters = holdWaiters
        holdWaiters = []
        for waiter in waiters { waiter(isThere) }
    }

    /// Seconds from asking for the place for held streams until nobody waits for it any longer.
    private static let holdPatience = 0.25

    public func letGo(_ id: AudioStream.ID, to deviceName: String?, completion: @escaping Completion) {
        let batch = Batch(self, completion)
        guard let connection = connection(for: batch) else { return }
        // Found on the guard, it was on its way; that may be there again, for something else.
        let isThere = model.sinks.values.contains { $0.name == deviceName && !$0.isHold && !$0.isGuard }
        let name = isThere ? deviceName ?? "" : "@DEFAULT_SINK@"
        let isAlone = isPausedAlone(id.number)
        leavingHold.insert(id.number)
        let end = batch.add()
        let move = { [weak connection] in
            guard let connection else { return end(false) }
            connection.command(end) { pa_context_move_sink_input_by_name($0, id.number, name, $1, $2) }
        }
        if isAlone {
            // Woken up, the sink takes back what it had fetched ahead of a stream that was paused meanwhile: the next sink
            // would play that, paused or not. It does so a moment after the server has answered. A program that plays
            // again before is moved at once: that sink would swallow what it plays.
            takingBack[id.number] = move
            connection.command({ [weak self] _ in
                self?.wait(PulseBackend.takeBackTime) { self?.endTakingBack(id.number) }
            }) {
                pa_context_suspend_sink_by_name($0, PulseDevice.holdName, 0, $1, $2)
            }
        } else {
            move()
        }
        awaitMove(id.number)
        batch.close()
    }

    /// The stream that waits on the place for held streams, if it does, goes on.
    func endTakingBack(_ number: UInt32) { takingBack.removeValue(forKey: number)?() }

    private func wait(_ seconds: Double, then body: @escaping () -> Void) {
        var timer: Timer?
        timer = Timer(on: loop) {
            timer = nil
            body()
        }
        timer?.arm(after: seconds)
    }

    /// Seconds that a sink is given to take back what it had fetched.
    private static let takeBackTime = 0.03

    /// Whether PulseAudio holds this stream, which its program has paused, and no other that plays: woken up, the sink would
    /// swallow that.
    private func isPausedAlone(_ number: UInt32) -> Bool {
        guard !model.isPipeWire, let stream = model.playing[number], stream.isCorked else { return false }
        func isHeld(_ stream: PulseStream) -> Bool { model.sinks[stream.device]?.isHold == true }
        leavingHold = leavingHold.filter { model.playing[$0].map(isHeld) ?? false }
        return isHeld(stream)
            && !model.playing.values.contains { isHeld($0) && !$0.isCorked && !leavingHold.contains($0.index) }
    }

    /// PipeWire's session manager moves a stream some time after the server said so, and the server need not tell.
    /// For a moment it may show the old place again.
    func awaitMove(_ number: UInt32) {
        guard model.isPipeWire else { return }
        if awaitedMoves.isEmpty { moveTimer?.arm(after: PulseBackend.moveInterval) }
        awaitedMoves[number] = PulseBackend.looks
    }

    /// All of them are on their way while the guard is in an output's place, and a while after: none may be taken for
    /// paused because nobody said that it plays again.
    func awaitMoves() {
        guard model.isOnGuard || flight != nil else { return }
        for number in model.playing.keys { awaitMove(number) }
    }

    func lookAtMoves() {
        for (number, looks) in awaitedMoves {
            awaitedMoves[number] = looks > 1 && model.playing[number] != nil ? looks - 1 : nil
            mark(.playing, number, isRemoved: false)
        }
        if !awaitedMoves.isEmpty { return moveTimer?.arm(after: PulseBackend.moveInterval) ?? () }
        // Nor is it told that somebody moved a held stream away that runs on by itself, as mpv's does.
        let held = model.isPipeWire ? heldStreams : []
        for number in held { mark(.playing, number, isRemoved: false) }
        if !held.isEmpty { moveTimer?.arm(after: PulseBackend.heldInterval) }
    }

    /// Seconds between looks: a quantum of PipeWire's is 21 ms.
    private static let moveInterval = 0.015
    private static let heldInterval = 0.5
    private static let looks = 16

    public func removeHold(completion: @escaping Completion) {
        let batch = Batch(self, completion)
        guard let connection = connection(for: batch) else { return }
        unloadHold(on: connection) { batch.add() }
        batch.close()
    }
}
