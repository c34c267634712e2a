import CPulse
import EventLoop
public import PluginAPI

/// Reads the server's state: everything at first, then what events have marked. A round of questions ends with an
/// evaluation.
extension PulseBackend {
    func readEverything() {
        guard let connection else { return }
        if watchesMemory { connection.watchMemory(true) }
        // The second one ends after all questions are sent: a question that is refused at once must not end the round.
        begin()
        begin()
        connection.subscribe { [weak self] _ in self?.end() }
        readClients()
        for facility: PulseConnection.Facility in [.server, .module, .sink, .source, .card, .playing, .recording] {
            ask(facility, of: connection)
        }
        end()
    }

    public func readAgain(_ streams: Set<AudioStream.ID>, completion: @escaping () -> Void) {
        let streams = streams.filter { $0.direction == .playback && model.playing[$0.number] != nil }
        guard isReady, !streams.isEmpty else { return completion() }
        waiting.append(completion)
        for stream in streams { mark(ReadRound.Item(facility: .playing, index: stream.number)) }
    }

    /// An event of the server.
    func happened(_ facility: PulseConnection.Facility, _ index: UInt32, isRemoved: Bool) {
        guard isReady else { return }
        reads.somethingHappened(at: MonotonicClock.now())
        if facility == .playing, isRemoved || model.playing[index] == nil {
            let isHoldThere = model.sinks.values.contains(where: \.isHold)
            if !isRemoved, reads.mayBeMoved(isHoldThere: isHoldThere) { expectMove(index) }
            // A stream that starts or ends may change the rate or the buffer of the device. The server does not report
            // that.
            if let output = model.output { round.markAlso(ReadRound.Item(facility: .sink, index: output.index)) }
        }
        mark(ReadRound.Item(facility: facility, index: index), isRemoved: isRemoved)
    }

    /// It is read soon.
    func mark(_ item: ReadRound.Item, isRemoved: Bool = false) {
        guard isReady else { return }
        round.mark(item, isRemoved: isRemoved, at: MonotonicClock.now())
        guard round.schedule() else { return }
        // Events that arrive together are read together.
        loop.later { [weak self] in
            if let self, round.startScheduled(), isReady { read() }
        }
    }

    private func read() {
        guard let connection, !round.marked.isEmpty else { return }
        let items = round.take()
        begin()
        for (item, isRemoved) in items where item.facility != .server {
            // If it does not exist, it has been removed. The event for that may arrive only after another object got
            // its number.
            isRemoved
                ? remove(item) : ask(item.facility, item.index, of: connection) { [weak self] in self?.remove(item) }
        }
        // Always: when this is answered, the server has sent all events of the same cause, but perhaps not those of our own
        // requests.
        ask(.server, of: connection)
        if model.isPipeWire, model.wirePlumber == nil { readClients() }
        end()
    }

    private func remove(_ item: ReadRound.Item) {
        switch item.facility {
        case .sink: if model.sinks.removeValue(forKey: item.index)?.isHold == true { holds.removed() }
        case .source: model.sources[item.index] = nil
        case .playing:
            model.playing[item.index] = nil
            model.unfinished[item.index] = nil
            reads.ended(item)
            endTakingBack(item.index)
            model.forgetClients()
        case .recording:
            if let stream = model.recording.removeValue(forKey: item.index) { recordingEnded(stream) }
            reads.ended(item)
            model.forgetClients()
        case .card: model.cards[item.index] = nil
        case .module: model.policyModules[item.index] = nil
        case .server: break
        }
    }

    /// Reads the object with this index; nil: all of them. Calls `missing` if it does not exist.
    private func ask(
        _ facility: PulseConnection.Facility, _ index: UInt32? = nil, of connection: PulseConnection,
        missing: @escaping () -> Void = {}
    ) {
        begin()
        let end: (Bool) -> Void = { [weak self] found in
            if !found { missing() }
            self?.end()
        }
        switch facility {
        case .sink:
            connection.readSinks(
                index,
                item: { [weak self] in
                    let sink = PulseDevice($0)
                    self?.wasRead(sink)
                    if sink.isHold, self?.holds.sink != .unproven { self?.settleHold(isThere: true) }
                }, end: end)
        case .source:
            connection.readSources(index, item: { [weak self] in self?.wasRead(PulseDevice($0)) }, end: end)
        case .playing:
            connection.readPlaying(
                index,
                item: { [weak self] in
                    guard let self else { return }
                    let stream = PulseStream($0)
                    let now = MonotonicClock.now()
                    let isComplete = model.add(playing: stream, now: now)
                    reads.wasShown(
                        ReadRound.Item(facility: .playing, index: stream.index), isComplete: isComplete, at: now)
                    if !stream.isCorked { endTakingBack(stream.index) }
                    readClient(of: stream)
                }, end: end)
        case .recording:
            connection.readRecording(
                index,
                item: { [weak self] in
                    guard let self else { return }
                    let stream = PulseStream($0)
                    let before = model.recording[stream.index]
                    let isComplete = model.add(recording: stream)
                    if let before, stream.isCorked, !before.isCorked { recordingEnded(before) }
                    reads.wasShown(
                        ReadRound.Item(facility: .recording, index: stream.index), isComplete: isComplete,
                        at: MonotonicClock.now())
                    readClient(of: stream)
                }, end: end)
        case .card:
            connection.readCards(
                index,
                item: { [weak self] in
                    let card = PulseCard($0)
                    self?.model.cards[card.index] = card
                    self?.requests.profileWasRead(card.activeProfile, of: card.name)
                }, end: end)
        case .module: connection.readModules(index, item: { [weak self] in self?.model.add($0) }, end: end)
        case .server:
            connection.readServer(
                item: { [weak self] in
                    self?.model.read($0)
                    if let self { requests.defaultWasRead(model.defaultSink) }
                }, end: end)
        }
    }

    /// Stores the device. If its streams may be others now, they are read again.
    private func wasRead(_ device: PulseDevice) {
        guard model.add(device), model.isPipeWire else { return }
        let facility: PulseConnection.Facility = device.isInput ? .recording : .playing
        let shown = (device.isInput ? model.recording : model.playing).keys
        let items = shown.map { ReadRound.Item(facility: facility, index: $0) } + reads.incompleteStreams(facility)
        for item in items { round.markAlso(item) }
    }

    /// Reads all clients.
    func readClients() {
        begin()
        var clients = PulseClients()
        connection?.readClients(
            nil,
            item: { [weak self] in
                self?.model.add($0)
                clients.add($0)
            },
            end: { [weak self] _ in
                self?.model.know(clients, now: MonotonicClock.now())
                self?.end()
            })
    }

    /// Reads the client of a new stream: PipeWire reports the process only for the client.
    private func readClient(of stream: PulseStream) {
        guard model.isPipeWire, stream.client != noIndex, model.clients[stream.client] == nil else { return }
        begin()
        connection?.readClients(
            stream.client, item: { [weak self] in self?.model.add($0) }, end: { [weak self] _ in self?.end() })
    }

    private func begin() { round.begin() }

    private func end() {
        guard isReady else { return }
        switch round.end(at: MonotonicClock.now()) {
        case .wait: return
        case .readAgain: return read()
        case .evaluate: break
        }
        evaluate(isSettled: false)
        let read = waiting
        waiting = []
        for completion in read { completion() }
        if isReady, !round.isAsking { self.read() }
    }
}
