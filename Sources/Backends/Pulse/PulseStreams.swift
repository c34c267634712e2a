import CPulse
import EventLoop
public import PluginAPI

/// What is done to streams that are lowered or silenced, and to what the server remembers of them.
extension PulseBackend {
    public func setVolume(_ volume: [UInt32], stream id: AudioStream.ID, completion: @escaping Completion) {
        let batch = Batch(self, completion)
        guard let connection = connection(for: batch) else { return }
        var levels = pa_cvolume(volume)
        connection.command(batch.add()) {
            switch id.direction {
            case .playback: pa_context_set_sink_input_volume($0, id.number, &levels, $1, $2)
            case .record: pa_context_set_source_output_volume($0, id.number, &levels, $1, $2)
            }
        }
        batch.close()
    }

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
        if !hasHold, !isSeen { makeHold(on: connection) }
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
            // would play that, paused or not. It does so a moment after the server has answered.
            connection.command({ [weak self] _ in self?.wait(PulseBackend.takeBackTime, then: move) }) {
                pa_context_suspend_sink_by_name($0, PulseDevice.holdName, 0, $1, $2)
            }
        } else {
            move()
        }
        awaitMove(id.number)
        batch.close()
    }

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
        if !awaitedMoves.isEmpty { moveTimer?.arm(after: PulseBackend.moveInterval) }
    }

    /// Seconds between looks: a quantum of PipeWire's is 21 ms.
    private static let moveInterval = 0.015
    private static let looks = 16

    public func removeHold(completion: @escaping Completion) {
        let batch = Batch(self, completion)
        guard let connection = connection(for: batch) else { return }
        for sink in model.sinks.values where sink.isHold && sink.module != noIndex {
            connection.command(batch.add()) { pa_context_unload_module($0, sink.module, $1, $2) }
        }
        batch.close()
    }

    public func readMemory(_ completion: @escaping ([StreamMemory]?) -> Void) {
        guard isReady, let connection else { return loop.later { completion(nil) } }
        // PipeWire's session manager remembers; its server shows no more than what was written through it, by whoever.
        guard !model.isPipeWire else {
            let known = model.playing.values.compactMap(\.memory)
            return loop.later { completion(known) }
        }
        var entries: [StreamMemory] = []
        let batch = Batch(self) { result in
            if case .success = result { completion(entries) } else { completion(nil) }
        }
        connection.readMemory(item: { entries.append(StreamMemory($0)) }, end: batch.add())
        batch.close()
    }

    public func writeMemory(_ entries: [StreamMemory], forgetting names: [String], completion: @escaping Completion) {
        let batch = Batch(self, completion)
        guard let connection = connection(for: batch) else { return }
        // PipeWire's session manager is not told of what was written before in the same words; its server forgets nothing.
        let others = model.isPipeWire ? entries.map { StreamMemory(name: $0.name, isMuted: $0.isMuted) } : []
        for entry in others + entries {
            connection.command(batch.add()) { context, done, reply in
                entry.name.withCString { name in
                    (entry.deviceName ?? "").withCString { device in
                        var info = pa_ext_stream_restore_info()
                        info.name = name
                        info.device = entry.deviceName == nil ? nil : device
                        info.mute = entry.isMuted ? 1 : 0
                        info.volume = pa_cvolume(entry.volume)
                        info.channel_map = pa_channel_map(entry.channels)
                        return pa_ext_stream_restore_write(context, PA_UPDATE_REPLACE, &info, 1, 0, done, reply)
                    }
                }
            }
        }
        for name in names {
            connection.command(batch.add()) { context, done, reply in
                name.withCString { name in
                    var list: [UnsafePointer<CChar>?] = [name, nil]
                    return pa_ext_stream_restore_delete(context, &list, done, reply)
                }
            }
        }
        batch.close()
    }
}

extension StreamMemory {
    fileprivate init(_ info: pa_ext_stream_restore_info) {
        self.init(
            name: String(orEmpty: info.name),
            channels: PulseStream.read(info.channel_map),
            volume: PulseStream.read(info.volume), isMuted: info.mute != 0,
            deviceName: info.device.map { String(cString: $0) })
    }
}

extension pa_cvolume {
    fileprivate init(_ volume: [UInt32]) {
        self.init()
        channels = fill(&values, with: volume)
    }
}

extension pa_channel_map {
    fileprivate init(_ positions: [Int32]) {
        self.init()
        channels = fill(&map, with: positions.map(pa_channel_position_t.init(rawValue:)))
    }
}

/// Fills a C array, which Swift sees as a tuple; returns how many had room.
private func fill<Places, Element>(_ places: inout Places, with elements: [Element]) -> UInt8 {
    withUnsafeMutableBytes(of: &places) { bytes in
        let places = bytes.bindMemory(to: Element.self)
        for (place, element) in zip(places.indices, elements) { places[place] = element }
        return UInt8(min(places.count, elements.count))
    }
}
