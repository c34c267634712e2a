import CPulse
import EventLoop
import PluginAPI

/// Where the guard ranks among the devices that the server shows.
extension PulseBackend {
    /// What the guard should be; nil: there should be none, or the output is changing.
    var guardPlan: GuardPlan? {
        guard guardsOutput, !isChangingOutput, let output = model.output, !output.isNoPort,
            guards.mayCreate(for: output.name)
        else { return nil }
        // The session manager writes what the user has chosen a little later.
        let defaults = GuardState.Defaults(sink: model.defaultSink, source: model.defaultSource)
        if model.isPipeWire, guards.isNew(defaults) {
            wait(PulseBackend.memoryTime) { [weak self] in self?.keepGuard() }
        }
        return GuardPlan(
            rule: defaultRule, output: output.forRule,
            others: sinkRivals.filter { $0.index != output.index }.map(\.forRule),
            sources: sourceRivals.map(\.forRule),
            source: sourceRivals.first { $0.name == model.defaultSource }?.forRule)
    }

    /// Whether the output is changing to one that was requested.
    var isChangingOutput: Bool {
        guard let uid = requests.outputOnItsWay(at: MonotonicClock.now()) else { return false }
        return model.output?.portName(of: uid) == nil
    }

    /// The rank of the second guard: before all outputs, and behind the microphone if possible. Nil: it would take the
    /// microphone away from a program that records.
    var secondRank: Int? {
        let rule = defaultRule
        let outputs = sinkRivals.map { rule.rank(ofSink: $0.forRule) }.max() ?? 0
        let inputs = sourceRivals.filter { !$0.isMonitor }.map { rule.rank(ofSource: $0.forRule) }.max()
        if let inputs, inputs > outputs + 1 { return inputs - 1 }
        let isRecording = model.recording.values.contains { model.sources[$0.device]?.isMonitor == false }
        return isRecording ? nil : PulseBackend.firstRank
    }

    /// More than WirePlumber adds for a device that the user has chosen.
    private static let firstRank = 1_000_000

    /// The sinks that the server may choose, without ours.
    private var sinkRivals: [PulseDevice] { model.sinks.values.filter { !$0.isOurs && $0.isUsable } }

    /// The sources that the server may choose, without ours.
    private var sourceRivals: [PulseDevice] { model.sources.values.filter { !$0.isOurs && $0.isUsable } }

    private var defaultRule: DefaultRule {
        var rule = DefaultRule(
            server: .pulseAudio, configuredSink: configuredSink.name, configuredSource: configuredSource.name)
        guard model.isPipeWire else { return rule }
        let chosen = ChosenDefaults(environment: ServerAddress.environment)
        let isOld = model.wirePlumber.map { $0 < WirePlumberVersion(0, 5) } ?? false
        rule.server = isOld ? .wirePlumber4(chosen) : .wirePlumber5(chosen)
        return rule
    }

    /// The sink that the server chooses by itself without the guard; nil: not known.
    func choiceWithoutGuard() -> String? {
        let rule = defaultRule
        return rule.choice(sinkRivals.sorted { $0.index < $1.index }.map(\.forRule), rule.rank(ofSink:))
    }

    /// Seconds after which the session manager has written what the user has chosen.
    private static let memoryTime = 1.5

    /// Notes which defaults are known to be configured.
    func noteDefaults(at now: UInt64) {
        configuredSink.show(model.defaultSink, of: sinkRivals.map(\.name), at: now)
        configuredSource.show(model.defaultSource, of: sourceRivals.map(\.name), at: now)
    }

    /// Removes a guard that has taken the place of an output that is still there, or of a microphone: it was not known
    /// what the server ranks by, or somebody chose the guard by hand.
    ///
    /// If the output was unplugged, the server may show the new default before it shows the unplugged port. So the place of an
    /// output counts as taken only after ``GuardState/intrusionTime``.
    func dropDisplacingGuard(_ previous: AudioSnapshot, _ current: AudioSnapshot, _ now: UInt64) {
        guard model.isOnGuard else {
            (guards.isFound, guards.intrusion) = (false, nil)
            if let output = model.output, displacesMicrophone {
                guards.displace(output.name)
                unloadGuard()
            }
            return
        }
        guard !previous.isOutputHeld || guards.intrusion != nil, guards.guardDue == nil,
            let port = previous.route.outputs.first,
            current.availableOutputs.contains(where: { $0.uid == port.uid }),
            let device = model.find(port.uid, isInput: false)?.device
        else {
            guards.intrusion = nil
            return
        }
        guard let begin = guards.intrusion else {
            guards.intrusion = now
            return wait(GuardState.intrusionTime) { [weak self] in self?.evaluate(isSettled: true) }
        }
        guard now &- begin >= UInt64(GuardState.intrusionTime * 1_000_000) else { return }
        guards.displace(device.name)
        unloadGuard()
    }

    /// Whether the guard's monitor is the default source although it should rank behind a microphone.
    private var displacesMicrophone: Bool {
        guard model.isPipeWire, model.sources.values.contains(where: { $0.name == model.defaultSource && $0.isOurs }),
            sourceRivals.contains(where: { !$0.isMonitor }),
            let guardSink = model.sinks.values.first(where: \.isGuard)
        else { return false }
        // One with another rank is replaced anyway.
        return guardPlan?.admits(guardSink.properties) == true
    }
}
