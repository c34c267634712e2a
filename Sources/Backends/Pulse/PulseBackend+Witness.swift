import CPulse
import EventLoop
import PluginAPI

/// Checks that the defaults that the server shows this connection are the actual ones (docs/adr/0012).
///
/// PipeWire keeps them in its metadata. While a connection is being set up, PipeWire reports changes only to that
/// connection: each program that starts to play hides the changes of that millisecond from all others, until the next
/// change. So some time after anything that may have changed them, a second connection asks for them; if it sees
/// others, it replaces the first connection.
extension PulseBackend {
    /// Opens a second connection soon, if the change of the snapshot may have changed the defaults.
    func doubtDefault(_ previous: AudioSnapshot, _ current: AudioSnapshot) {
        guard model.isPipeWire else { return }
        // If only this connection shows a default device that does not exist, the default is checked at once.
        if isDefaultMissing, doubt.witnessed?.sink != model.defaultSink {
            doubtDefault(after: 0)
        } else if differs(previous, current) {
            doubtDefault()
        }
    }

    /// The same after a request that changes the default.
    func doubtDefault(after seconds: Double = DefaultDoubt.time) {
        guard model.isPipeWire, isReady else { return }
        doubt.raise()
        callWitness(after: seconds)
    }

    /// Whether there is no default device although there are devices.
    var isDefaultMissing: Bool { model.output == nil && model.canHold }

    /// Plans a check, unless an earlier one is planned.
    private func callWitness(after seconds: Double) {
        let due = MonotonicClock.now() &+ MonotonicClock.microseconds(seconds)
        if doubt.plan(at: due) { doubtTimer?.arm(at: due) }
    }

    func callWitness() {
        doubt.elapsed()
        // The current check is followed by another one.
        guard isReady, witness == nil, let made = PulseConnection(loop: loop, name: "sessiond", patience: patience)
        else { return }
        witness = made
        let isFirst = doubt.start()
        made.onState = { [weak self] state in
            switch state {
            case .ready: self?.hearWitness(isFirst)
            case .failed: self?.dismissFailed()
            }
        }
        made.onSilence = { [weak self] in self?.dismissFailed() }
        made.connect(to: server)
    }

    private func hearWitness(_ isFirst: Bool) {
        var seen: (sink: String, source: String)?
        witness?.readServer(
            item: { seen = (String(orEmpty: $0.default_sink_name), String(orEmpty: $0.default_source_name)) },
            end: { [weak self] _ in
                guard let self else { return }
                guard let seen, isReady else { return dismissFailed() }
                doubt.witnessed = seen
                if seen == (model.defaultSink, model.defaultSource) {
                    dismissSoon(then: doubt.confirm(isFirst: isFirst, isMissing: isDefaultMissing))
                } else if round.isAsking || !completions.isEmpty {
                    // Pending requests may change the defaults, and their answers must not be lost.
                    doubt.raise()
                    dismissSoon(then: SettleTime.quiet)
                } else {
                    trustWitness()
                }
            })
    }

    /// Uses the second connection. The known state stays until it is read again; then removed objects are detected.
    private func trustWitness() {
        guard let made = witness else { return }
        witness = nil
        connection?.close()
        use(made)
        guards.forgetAnswers()
        func items(_ facility: PulseConnection.Facility, _ indices: some Sequence<UInt32>) -> [ReadRound.Item] {
            indices.map { ReadRound.Item(facility: facility, index: $0) }
        }
        round.replace(
            with: items(.sink, model.sinks.keys) + items(.source, model.sources.keys) + items(.card, model.cards.keys)
                + items(.playing, model.playing.keys) + items(.recording, model.recording.keys)
                + items(.module, model.policyModules.keys), at: MonotonicClock.now())
        readEverything()
    }

    /// The check failed: it is repeated.
    private func dismissFailed() { dismissSoon(then: doubt.again()) }

    /// Closes the second connection later, because this is called from its callbacks.
    private func dismissSoon(then seconds: Double? = nil) {
        loop.later { [weak self] in
            guard let self else { return }
            witness?.close()
            witness = nil
            guard isReady, let seconds = doubt.next(after: seconds) else { return }
            callWitness(after: seconds)
        }
    }

    func dismissWitness() {
        doubtTimer?.disarm()
        doubt.elapsed()
        witness?.close()
        witness = nil
    }
}
