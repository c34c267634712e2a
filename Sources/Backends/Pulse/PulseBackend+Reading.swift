import CPulse
import EventLoop

/// What the server shows: everything at first, then what its events marked. A round of questions ends with an evaluation.
extension PulseBackend {
    func readEverything() {
        guard let connection else { return }
        if watchesMemory { connection.watchMemory(true) }
        // Held until all questions are out: one that is refused at once must not end the round.
        begin()
        begin()
        connection.subscribe { [weak self] _ in self?.end() }
        readClients()
        for facility: PulseConnection.Facility in [.server, .module, .sink, .source, .card, .playing, .recording] {
            ask(facility, of: connection)
        }
        end()
    }

    func mark(_ facility: PulseConnection.Facility, _ index: UInt32, isRemoved: Bool) {
        guard isReady else { return }
        round.mark(ReadRound.Item(facility: facility, index: index), isRemoved: isRemoved, at: MonotonicClock.now())
        // PipeWire's session manager sends who comes to where it remembers the last one to have been, which may be where we
        // held it.
        if facility == .playing, !isRemoved, model.playing[index] == nil, model.sinks.values.contains(where: \.isHold) {
            awaitMove(index)
        }
        // Who comes or goes may have the device run otherwise, which is not told.
        if facility == .playing, isRemoved || model.playing[index] == nil, let output = model.output {
            round.markAlso(ReadRound.Item(facility: .sink, index: output.index))
        }
        guard round.schedule() else { return }
        // What came in one go is asked for in one go.
        loop.later { [weak self] in
            if let self, round.startScheduled(), isReady { read() }
        }
    }

    private func read() {
        guard let connection, !round.marked.isEmpty else { return }
        let items = round.take()
        begin()
        for (item, isRemoved) in items where item.facility != .server {
            // No such entity: it went meanwhile, and its removal may be told after the next thing of that number.
            isRemoved
                ? remove(item) : ask(item.facility, item.index, of: connection) { [weak self] in self?.remove(item) }
        }
        // Always, as the fence behind which everything of the same cause has been told.
        ask(.server, of: connection)
        if model.isPipeWire, model.wirePlumber == nil { readClients() }
        end()
    }

    private func remove(_ item: ReadRound.Item) {
        switch item.facility {
        case .sink: if model.sinks.removeValue(forKey: item.index)?.isHold == true { holds.isCreated = false }
        case .source: model.sources[item.index] = nil
        case .playing:
            model.playing[item.index] = nil
            endTakingBack(item.index)
            model.forgetClients()
        case .recording:
            model.recording[item.index] = nil
            model.forgetClients()
        case .card: model.cards[item.index] = nil
        case .module: model.policyModules[item.index] = nil
        case .server: break
        }
    }

    /// Asks for the one of that index; nil: for all there are. `missing`: it was not there.
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
                    self?.model.sinks[sink.index] = sink
                    if sink.isHold { self?.settleHold(isThere: true) }
                }, end: end)
        case .source:
            connection.readSources(
                index, item: { [weak self] in self?.model.sources[$0.index] = PulseDevice($0) }, end: end)
        case .playing:
            connection.readPlaying(
                index,
                item: { [weak self] in
                    let stream = PulseStream($0)
                    self?.model.add(stream)
                    if !stream.isCorked { self?.endTakingBack(stream.index) }
                    self?.readClient(of: stream)
                }, end: end)
        case .recording:
            connection.readRecording(
                index,
                item: { [weak self] in
                    let stream = PulseStream($0)
                    self?.model.recording[stream.index] = stream
                    self?.readClient(of: stream)
                }, end: end)
        case .card:
            connection.readCards(index, item: { [weak self] in self?.model.cards[$0.index] = PulseCard($0) }, end: end)
        case .module: connection.readModules(index, item: { [weak self] in self?.model.add($0) }, end: end)
        case .server:
            connection.readServer(
                item: { [weak self] in
                    self?.model.read($0)
                    if let self { requests.defaultWasRead(model.defaultSink) }
                }, end: end)
        }
    }

    /// All clients there are.
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

    /// Who is at the other end of a stream that is new: PipeWire says so of the client alone.
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
        if isReady, !round.isAsking { read() }
    }
}
