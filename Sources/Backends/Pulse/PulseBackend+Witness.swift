import CPulse
import EventLoop
import PluginAPI

/// Whether the defaults that the server shows this connection are the ones there are (docs/adr/0012).
///
/// PipeWire keeps them in its metadata, and tells none of a change there but those who are just coming, for as long as
/// somebody is: each program that starts to play hides what changes in that millisecond from all others, until the next
/// change. So a while after anything that may have changed them somebody new is sent to ask; where he knows better, he
/// is the connection from then on.
extension PulseBackend {
    /// Seconds that the session manager is given to choose, and a slow one.
    private static let doubtTime = 0.2
    private static let longDoubtTime = 1.0

    /// Sends a witness soon, where the picture is one in which the defaults may have changed.
    func doubtDefault(_ previous: AudioSnapshot, _ current: AudioSnapshot) {
        guard model.isPipeWire else { return }
        // A default that is not there, which nobody has seen but us, is not waited for.
        let isMissing = model.output == nil && model.canHold && witnessed?.sink != model.defaultSink
        if isMissing { doubtDefault(after: 0) } else if differs(previous, current) { doubtDefault() }
    }

    /// The same, where something was asked for that changes the default.
    func doubtDefault(after seconds: Double = PulseBackend.doubtTime) {
        guard model.isPipeWire, isReady else { return }
        isDoubtNew = true
        callWitness(after: seconds)
    }

    /// Or sooner, where one is called sooner.
    private func callWitness(after seconds: Double) {
        let due = MonotonicClock.now() &+ MonotonicClock.microseconds(seconds)
        if let doubtDue, doubtDue <= due { return }
        doubtDue = due
        doubt?.arm(at: due)
    }

    func callWitness() {
        doubtDue = nil
        // One that is on its way is followed by another.
        guard isReady, witness == nil, let made = PulseConnection(loop: loop, name: "sessiond", patience: patience)
        else { return }
        witness = made
        let isFirst = isDoubtNew
        isDoubtNew = false
        made.onState = { [weak self] state in
            switch state {
            case .ready: self?.hearWitness(isFirst)
            case .failed: self?.dismissSoon()
            }
        }
        made.onSilence = { [weak self] in self?.dismissSoon() }
        made.connect(to: server)
    }

    private func hearWitness(_ isFirst: Bool) {
        var seen: (sink: String, source: String)?
        witness?.readServer(
            item: { seen = (String(orEmpty: $0.default_sink_name), String(orEmpty: $0.default_source_name)) },
            end: { [weak self] _ in
                guard let self else { return }
                guard let seen, isReady else { return dismissSoon() }
                witnessed = seen
                if seen == (model.defaultSink, model.defaultSource) {
                    dismissSoon(then: isFirst ? PulseBackend.longDoubtTime : nil)
                } else if outstanding > 0 || !completions.isEmpty {
                    // What is under way may be just that change; nor must its answers be lost.
                    isDoubtNew = true
                    dismissSoon(then: PulseBackend.settleTime)
                } else {
                    trustWitness()
                }
            })
    }

    /// Everything known stays so until it is read anew; what went meanwhile is found to be gone.
    private func trustWitness() {
        guard let made = witness else { return }
        witness = nil
        connection?.close()
        use(made)
        (awaitedGuard, isFirstComing, firstLeft) = (nil, false, nil)
        dirtySince = MonotonicClock.now()
        dirty = [:]
        func mark(_ facility: PulseConnection.Facility, _ indices: some Sequence<UInt32>) {
            for index in indices { dirty[Item(facility: facility, index: index)] = false }
        }
        mark(.sink, model.sinks.keys)
        mark(.source, model.sources.keys)
        mark(.card, model.cards.keys)
        mark(.playing, model.playing.keys)
        mark(.recording, model.recording.keys)
        mark(.module, model.policyModules.keys)
        readEverything()
    }

    /// Not from within its own callbacks.
    private func dismissSoon(then seconds: Double? = nil) {
        loop.later { [weak self] in
            guard let self else { return }
            witness?.close()
            witness = nil
            guard isReady, doubtDue == nil else { return }
            if let seconds = isDoubtNew ? min(seconds ?? .infinity, PulseBackend.doubtTime) : seconds {
                callWitness(after: seconds)
            }
        }
    }

    func dismissWitness() {
        doubt?.disarm()
        doubtDue = nil
        witness?.close()
        witness = nil
    }
}
