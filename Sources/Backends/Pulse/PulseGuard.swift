import CPulse
import EventLoop
public import PluginAPI

/// Where the sound goes that must not go on elsewhere when its output is taken away (docs/adr/0010).
///
/// Two things can be taken away: a device, and a port of a device that stays (a jack). A sink that is heard nowhere is
/// put in beforehand, second in line to the default: where a device goes, the server itself moves there what played on
/// it. Where a port does, the guard is put before all devices as soon as the server tells.
///
/// The guard is never made the configured default: servers and session managers remember that one.
extension PulseBackend {
    public func releaseOutput() {
        guard isReady, let connection else { return }
        guard model.isOnGuard || flight != nil else { return }
        // A device whose port is unplugged would not become the default.
        if let (to, port, _) = model.fallback, let port, to.activePort != port {
            connection.command({ _ in }) { pa_context_set_sink_port_by_name($0, to.name, port, $1, $2) }
        }
        guard model.isOnGuard, let to = model.fallback?.device else {
            if flight != nil {
                flight = nil
                loop.later { [weak self] in self?.evaluate(isSettled: true) }
            }
            return
        }
        // Where the server goes there by itself, a choice that somebody made of a device that went stays remembered.
        let isAlone = model.isPipeWire && model.sinks.values.filter { !$0.isNoPort }.count == 1
        if to.name != pinnedOutput, !isAlone {
            connection.command({ _ in }) { pa_context_set_default_sink($0, to.name, $1, $2) }
        }
        doubtDefault()
        // WirePlumber does not look again at a device whose port went and was replaced before it had looked; but it does
        // so when any device goes.
        if model.isPipeWire { unloadGuard() }
    }

    private func unloadGuard(_ end: @escaping () -> (Bool) -> Void = { { _ in } }) {
        for device in model.sinks.values where device.isGuard {
            awaitedGuard = false
            connection?.command(end()) { pa_context_unload_module($0, device.module, $1, $2) }
        }
        isFirstWanted = false
        if isFirstComing { firstLeft = end() }
    }

    /// Puts a second guard before all devices.
    private func loadFirst(_ connection: PulseConnection) {
        (isFirstWanted, isFirstComing) = (true, true)
        var module = noIndex
        connection.loadModule("module-null-sink", PulseGuard.firstArguments, made: { module = $0 }) {
            [weak self, weak connection] isThere in
            guard let self else { return }
            isFirstComing = false
            if !isThere { flight = nil }
            guard let left = firstLeft else { return }
            firstLeft = nil
            // It was to be taken away before it had come.
            guard isThere, let connection else { return left(!isThere) }
            connection.command(left) { pa_context_unload_module($0, module, $1, $2) }
        }
    }

    /// Takes away a second guard that was seen only after it was to go.
    func dropFirst() {
        guard !isFirstWanted, let connection else { return }
        for device in model.sinks.values where PulseGuard.isFirst(device.name) {
            connection.command({ _ in }) { pa_context_unload_module($0, device.module, $1, $2) }
        }
    }

    public func removeGuard(completion: @escaping Completion) {
        guardsOutput = false
        releaseOutput()
        let batch = Batch(self, completion)
        guard connection(for: batch) != nil else { return }
        // Answered in order: by then everybody has been moved.
        unloadGuard(batch.add)
        batch.close()
    }

    /// Makes or removes the guard as ``guardsOutput`` asks; called after everything that may matter to it.
    func keepGuard() {
        guard isReady, let connection else { return }
        let guardSink = model.sinks.values.first(where: \.isGuard)
        // Asked for and done is not yet seen: the picture must show it before anything else is asked for.
        if let awaitedGuard, awaitedGuard != (guardSink != nil) { return }
        awaitedGuard = nil
        if model.isOnGuard || flight != nil { return }
        if guardsOutput, guardSink == nil, !isGuardRefused, !snapshot.isEnumerating, let output = outputToBe,
            !output.isNoPort
        {
            awaitedGuard = true
            // Whoever is the default must be so by choice: the guard comes before all others.
            connection.command({ _ in }) { pa_context_set_default_sink($0, output.name, $1, $2) }
            pinnedOutput = output.name
            connection.loadModule("module-null-sink", PulseGuard.arguments(for: model.wirePlumber)) { [weak self] in
                guard let self, !$0 else { return }
                isGuardRefused = true
                awaitedGuard = nil
            }
            // Not suspended: PulseAudio takes back what it has rendered ahead of a stream that is paused only where the
            // sink is awake, and plays it on the next one.
        } else if !guardsOutput, guardSink != nil {
            unloadGuard { [weak self] in { if !$0 { self?.awaitedGuard = nil } } }
        }
    }

    /// Where the output is going by what we asked for, which a default that is as yet seen would take back; else where it
    /// is.
    private var outputToBe: PulseDevice? {
        guard let uid = requestedOutput, let request = requested[uid], MonotonicClock.now() < request.until,
            let (device, _) = model.find(uid, isInput: false)
        else { return model.output }
        return device
    }

    /// Where a jack was pulled, its device would go on through another port: everything is sent to the guard instead.
    ///
    /// PulseAudio prefers any device to one whose port is unplugged, also to the configured default: the port that was pulled
    /// is made the active one again. On PipeWire a second guard comes before the configured default by its rank.
    func flee(_ previous: AudioSnapshot, _ current: AudioSnapshot, _ now: UInt64) {
        if let until = flight, model.isOnGuard || until < now { flight = nil }
        guard guardsOutput, flight == nil, let connection, let port = previous.route.outputs.first,
            !current.availableOutputs.contains(where: { $0.uid == port.uid }),
            let device = model.sinks.values.first(where: { $0.portName(of: port.uid) != nil }),
            let name = device.portName(of: port.uid), model.sinks.values.contains(where: \.isGuard)
        else { return }
        // Also where the server is there by itself: it may go back when it sees that another port is left.
        flight = model.isOnGuard ? nil : now &+ PulseGuard.flightTime
        if model.isPipeWire {
            if !isFirstComing { loadFirst(connection) }
        } else {
            connection.command({ [weak self] in if !$0 { self?.flight = nil } }) {
                pa_context_set_sink_port_by_name($0, device.name, name, $1, $2)
            }
        }
        doubtDefault()
    }
}

/// The sink behind ``PulseBackend/guardsOutput``.
enum PulseGuard {
    /// By which a later daemon finds it again.
    static let name = "sessiond.nowhere"
    /// Of the second one, which comes before the configured default.
    private static let firstName = name + ".first"
    static func isFirst(_ name: String) -> Bool { name.hasPrefix(firstName) }
    /// What the guard was called when it was made the configured default. Whoever remembers that name as a choice must not
    /// find a device of that name again.
    private static let formerName = "sessiond.guard"

    /// Microseconds that PipeWire may take to make it the default.
    static let flightTime: UInt64 = 500_000

    /// Also one that a server made beside one that was there.
    static func isName(_ name: String) -> Bool {
        name.hasPrefix(PulseGuard.name) || name.hasPrefix(PulseGuard.formerName)
    }

    /// The properties are those by which PulseAudio (`pa_device_init_priority`) and WirePlumber (`priority.session`)
    /// put a device in line.
    ///
    /// WirePlumber adds to that number for what a person chose: version 0.4 340,000 for the last choice, 300,000 for the
    /// one before; later ones 30,000 and 20,000. The guard is to be between the two.
    static func arguments(for manager: WirePlumberVersion?) -> String {
        let rank = manager.map { $0 < WirePlumberVersion(0, 5) } == true ? 330_000 : 29_000
        return arguments(name, rank: rank)
    }

    /// Of the second one: before what was chosen, too.
    static let firstArguments = arguments(firstName, rank: 1_000_000)

    private static func arguments(_ name: String, rank: Int) -> String {
        "sink_name=\(name) rate=48000 channels=2 sink_properties=\"device.description='Nowhere' "
            + "device.class=sound device.api=jack device.form_factor=headphone device.bus=bluetooth "
            + "priority.session=\(rank) node.hidden=true\""
    }
}
