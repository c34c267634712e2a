import CPulse
import EventLoop
public import PluginAPI

/// The guard: an inaudible sink that catches sound whose output is unplugged (docs/adr/0010).
///
/// Either a device is removed, or a port of a device that stays (a jack). The guard is created in advance and ranks
/// second after the default: if a device goes, the server itself moves its streams to the guard. If a port
/// goes, the guard is ranked before all devices as soon as the server reports it.
///
/// Neither the guard nor another device is made the configured default for that, because servers and session managers
/// remember it as the user's choice.
extension PulseBackend {
    public func releaseOutput() {
        guard isReady, let connection else { return }
        guard model.isOnGuard || guards.guardDue != nil else { return }
        // A device whose port is unplugged would not become the default. The server may not show yet that the unplugged port
        // is active again.
        if let (to, port, _) = model.fallback, let port, guards.takesPortBack() || to.activePort != port {
            connection.command({ _ in }) { pa_context_set_sink_port_by_name($0, to.name, port, $1, $2) }
        }
        guard model.isOnGuard, let to = model.fallback?.device else {
            if guards.guardDue != nil {
                guards.guardDue = nil
                loop.later { [weak self] in self?.evaluate(isSettled: true) }
            }
            return
        }
        // If the server chooses it by itself, the device that the user chose stays the configured default.
        if guards.isFound || choiceWithoutGuard() != to.name {
            connection.command({ _ in }) { pa_context_set_default_sink($0, to.name, $1, $2) }
        }
        doubtDefault()
        unloadGuard()
    }

    func unloadGuard(_ end: @escaping () -> (Bool) -> Void = { { _ in } }) {
        for device in model.sinks.values where device.isGuard {
            guards.remove()
            connection?.unloadModule(device.module, end())
        }
        guards.removeSecond(end())
    }

    /// Creates a second guard, which ranks before all outputs.
    private func loadSecondGuard(_ rank: GuardPlan.Rank, _ connection: PulseConnection) {
        guard !model.sinks.values.contains(where: { PulseGuard.isSecond($0.name) }), guards.createSecond() else {
            return
        }
        var module = noIndex
        connection.loadModule("module-null-sink", PulseGuard.secondArguments(rank), made: { module = $0 }) {
            [weak self, weak connection] isThere in
            guard let left = self?.guards.secondCame(isThere) else { return }
            // Its removal was requested before it existed.
            guard isThere, let connection else { return left(!isThere) }
            connection.unloadModule(module, left)
        }
    }

    /// Removes a second guard that appears after its removal was requested.
    func dropSecondGuard() {
        guard guards.dropsSecond, let connection else { return }
        for device in model.sinks.values where PulseGuard.isSecond(device.name) {
            connection.unloadModule(device.module) { _ in }
        }
    }

    public func shutDown(completion: @escaping Completion) {
        guardsOutput = false
        releaseOutput()
        let batch = Batch(self, completion)
        guard let connection = connection(for: batch) else { return }
        // Answered in order: by then all streams have been moved.
        unloadGuard(batch.add)
        // The guard and the hold sink may be there, or be created, although the server has not shown them yet.
        connection.unloadModules(batch.add)
        batch.close()
    }

    /// Creates or removes the guard according to ``guardsOutput`` and ``GuardPlan``. Called after every relevant change.
    func keepGuard() {
        guard isReady, let connection else { return }
        let guardSinks = model.sinks.values.filter(\.isGuard)
        // A finished request is not yet visible: the state must show it before the next request.
        guard guards.isSettled(isThere: !guardSinks.isEmpty) else { return }
        if model.isOnGuard || guards.guardDue != nil { return }
        let plan = guardPlan
        if let guardSink = guardSinks.first {
            let isAlone = guardSinks.count == 1 && !PulseGuard.isSecond(guardSink.name)
            if isAlone, let plan, plan.admits(guardSink.properties) || plan.rank == guards.rank { return }
            // While the output changes, it is not replaced.
            if guardsOutput, isAlone, isChangingOutput { return }
            return unloadGuard { [weak self] in { if !$0 { self?.guards.removingFailed() } } }
        }
        guard !snapshot.isEnumerating, let rank = plan?.rank else { return }
        guards.create(rank)
        connection.loadModule("module-null-sink", PulseGuard.arguments(rank)) { [weak self] in
            if !$0 { self?.guards.creatingFailed() }
        }
        // Not suspended: PulseAudio discards what it has rendered ahead of a paused stream only on a
        // sink that is awake; otherwise the next sink plays it.
    }

    /// After a pulled jack the device would continue on another port: everything is moved to the guard instead.
    ///
    /// PulseAudio prefers any device to one whose port is unplugged, even to the configured default: therefore the
    /// unplugged port is made active again. On PipeWire a second guard ranks before the configured default.
    func moveToGuard(_ previous: AudioSnapshot, _ current: AudioSnapshot, _ now: UInt64) {
        if model.isOnGuard {
            guards.guardDue = nil
        } else if let until = guards.guardDue, until < now {
            releaseOutput()
        }
        guard guardsOutput, guards.guardDue == nil, let connection, let port = previous.route.outputs.first,
            !current.availableOutputs.contains(where: { $0.uid == port.uid }),
            let (device, name) = model.find(port.uid, isInput: false)
        else { return }
        if model.isPipeWire {
            guard let rank = secondRank else { return }
            loadSecondGuard(.session(rank), connection)
        } else {
            guard model.sinks.values.contains(where: \.isGuard) else { return }
            guards.hasMovedPort = true
            connection.command({ [weak self] in if !$0 { self?.guards.guardDue = nil } }) {
                pa_context_set_sink_port_by_name($0, device.name, name, $1, $2)
            }
        }
        // Also if the server itself has moved the streams there, because it may move them back when it sees another
        // port.
        guards.guardDue = model.isOnGuard ? nil : now &+ PulseGuard.guardTime
        doubtDefault()
    }
}

/// The sink behind ``PulseBackend/guardsOutput``.
enum PulseGuard {
    /// The name by which a later daemon finds it.
    static let name = "sessiond.nowhere"
    /// The name of the second one, which ranks before the configured default.
    private static let secondName = name + ".first"
    static func isSecond(_ name: String) -> Bool { name.hasPrefix(secondName) }
    /// The guard's name while it was made the configured default. No device may have that name again, because servers
    /// may remember it as a choice.
    private static let formerName = "sessiond.guard"

    /// Microseconds that PipeWire may take to make it the default.
    static let guardTime: UInt64 = 500_000

    /// Whether it is a guard's name, perhaps with a number that the server appended.
    static func isName(_ name: String) -> Bool {
        name.hasPrefix(PulseGuard.name) || name.hasPrefix(PulseGuard.formerName)
    }

    static func arguments(_ rank: GuardPlan.Rank) -> String { arguments(name, rank) }

    /// The arguments of the second guard.
    static func secondArguments(_ rank: GuardPlan.Rank) -> String { arguments(secondName, rank) }

    private static func arguments(_ name: String, _ rank: GuardPlan.Rank) -> String {
        let properties =
            switch rank {
            case .session(let number):
                // Desktops such as KDE's do not list virtual devices.
                [
                    "priority.session": String(number), "device.class": "filter", "node.virtual": "true",
                    "state.restore-props": "false",
                ]
            case .properties(let properties): properties
            }
        let list = properties.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
        return "sink_name=\(name) rate=48000 channels=2 "
            + "sink_properties=\"device.description='\(description)' \(list)\""
    }

    /// What people read who see it in a list of outputs.
    private static let description = "Silence after unplugging (not an output)"
}
