import CPulse
import EventLoop
public import PluginAPI

/// The guard: an inaudible sink that catches sound whose output is unplugged (docs/adr/0010).
///
/// Either a device is removed, or a port of a device that stays (a jack). The guard is created in advance and ranks
/// second after the default: if a device goes, the server itself moves its streams to the guard. If a port
/// goes, the guard is ranked before all devices as soon as the server reports it.
///
/// The guard is never made the configured default, because servers and session managers remember that one.
extension PulseBackend {
    public func releaseOutput() {
        guard isReady, let connection else { return }
        guard model.isOnGuard || guards.guardDue != nil else { return }
        // A device whose port is unplugged would not become the default.
        if let (to, port, _) = model.fallback, let port, to.activePort != port {
            connection.command({ _ in }) { pa_context_set_sink_port_by_name($0, to.name, port, $1, $2) }
        }
        guard model.isOnGuard, let to = model.fallback?.device else {
            if guards.guardDue != nil {
                guards.guardDue = nil
                loop.later { [weak self] in self?.evaluate(isSettled: true) }
            }
            return
        }
        // If the server itself moves the streams there, the user's choice of the removed device stays remembered.
        let isAlone = model.isPipeWire && model.sinks.values.filter { !$0.isNoPort }.count == 1
        if to.name != guards.pinnedOutput, !isAlone {
            connection.command({ _ in }) { pa_context_set_default_sink($0, to.name, $1, $2) }
        }
        doubtDefault()
        // WirePlumber does not check a device again whose port went and was replaced before WirePlumber had checked it;
        // but it does when any device is removed.
        if model.isPipeWire { unloadGuard() }
    }

    private func unloadGuard(_ end: @escaping () -> (Bool) -> Void = { { _ in } }) {
        for device in model.sinks.values where device.isGuard {
            guards.remove()
            connection?.unloadModule(device.module, end())
        }
        guards.removeSecond(end())
    }

    /// Creates a second guard that ranks before all devices.
    private func loadSecondGuard(_ connection: PulseConnection) {
        guard guards.createSecond() else { return }
        var module = noIndex
        connection.loadModule("module-null-sink", PulseGuard.secondArguments, made: { module = $0 }) {
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

    /// Creates or removes the guard according to ``guardsOutput``. Called after every relevant change.
    func keepGuard() {
        guard isReady, let connection else { return }
        let guardSink = model.sinks.values.first(where: \.isGuard)
        // A finished request is not yet visible: the state must show it before the next request.
        guard guards.isSettled(isThere: guardSink != nil) else { return }
        if model.isOnGuard || guards.guardDue != nil { return }
        if guardsOutput, guardSink == nil, !guards.isRefused, !snapshot.isEnumerating, let output = outputToBe,
            !output.isNoPort
        {
            // The default must be a configured one, because the guard ranks before all others.
            connection.command({ _ in }) { pa_context_set_default_sink($0, output.name, $1, $2) }
            guards.create(beside: output.name)
            connection.loadModule("module-null-sink", PulseGuard.arguments(for: model.wirePlumber)) { [weak self] in
                if !$0 { self?.guards.creatingFailed() }
            }
            // Not suspended: PulseAudio discards what it has rendered ahead of a paused stream only on a
            // sink that is awake; otherwise the next sink plays it.
        } else if !guardsOutput, guardSink != nil {
            unloadGuard { [weak self] in { if !$0 { self?.guards.removingFailed() } } }
        }
    }

    /// The output that was requested, because the shown default may be outdated; otherwise the current
    /// one.
    private var outputToBe: PulseDevice? {
        guard let uid = requests.outputOnItsWay(at: MonotonicClock.now()),
            let (device, _) = model.find(uid, isInput: false)
        else { return model.output }
        return device
    }

    /// After a pulled jack the device would continue on another port: everything is moved to the guard instead.
    ///
    /// PulseAudio prefers any device to one whose port is unplugged, even to the configured default: therefore the
    /// unplugged port is made active again. On PipeWire a second guard ranks before the configured default.
    func moveToGuard(_ previous: AudioSnapshot, _ current: AudioSnapshot, _ now: UInt64) {
        if let until = guards.guardDue, model.isOnGuard || until < now { guards.guardDue = nil }
        guard guardsOutput, guards.guardDue == nil, let connection, let port = previous.route.outputs.first,
            !current.availableOutputs.contains(where: { $0.uid == port.uid }),
            let device = model.sinks.values.first(where: { $0.portName(of: port.uid) != nil }),
            let name = device.portName(of: port.uid), model.sinks.values.contains(where: \.isGuard)
        else { return }
        // Also if the server itself has moved the streams there, because it may move them back when it sees another
        // port.
        guards.guardDue = model.isOnGuard ? nil : now &+ PulseGuard.guardTime
        if model.isPipeWire {
            loadSecondGuard(connection)
        } else {
            connection.command({ [weak self] in if !$0 { self?.guards.guardDue = nil } }) {
                pa_context_set_sink_port_by_name($0, device.name, name, $1, $2)
            }
        }
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

    /// The properties by which PulseAudio (`pa_device_init_priority`) and WirePlumber (`priority.session`) rank
    /// devices.
    ///
    /// WirePlumber adds to that number for the user's choices: version 0.4 adds 340,000 for the last choice and 300,000
    /// for the one before; later versions 30,000 and 20,000. The guard must be between the two.
    static func arguments(for manager: WirePlumberVersion?) -> String {
        let rank = manager.map { $0 < WirePlumberVersion(0, 5) } == true ? 330_000 : 29_000
        return arguments(name, rank: rank)
    }

    /// The arguments of the second guard, which ranks also before chosen devices.
    static let secondArguments = arguments(secondName, rank: 1_000_000)

    private static func arguments(_ name: String, rank: Int) -> String {
        "sink_name=\(name) rate=48000 channels=2 sink_properties=\"device.description='Nowhere' "
            + "device.class=sound device.api=jack device.form_factor=headphone device.bus=bluetooth "
            + "priority.session=\(rank) node.hidden=true\""
    }
}
