import CPulse
import EventLoop
public import PluginAPI

/// Where the sound goes that must not go on elsewhere when its output is taken away (docs/adr/0010).
///
/// Two things can be taken away: a device, and a port of a device that stays (a jack). For the first, a sink that is
/// heard nowhere is put in beforehand, second in line to the default: the server itself moves there what played on the
/// device that went. For the second there is nothing to arm; the device is suspended as soon as the server tells.
extension PulseBackend {
    public func releaseOutput() {
        guard isReady, let connection, let to = model.output else { return }
        if model.isOnGuard {
            connection.command({ _ in }) { pa_context_set_default_sink($0, to.name, $1, $2) }
        }
        resumeDevice()
    }

    public func removeGuard(completion: @escaping Completion) {
        guardsOutput = false
        releaseOutput()
        let batch = Batch(self, completion)
        guard let connection = connection(for: batch) else { return }
        // Answered in order: by then everybody has been moved.
        for device in model.sinks.values where device.isGuard {
            awaitedGuard = false
            connection.command(batch.add()) { pa_context_unload_module($0, device.module, $1, $2) }
        }
        batch.close()
    }

    /// Makes or removes the guard as ``guardsOutput`` asks; called after everything that may matter to it.
    func keepGuard() {
        guard isReady, let connection else { return }
        let guardSink = model.sinks.values.first(where: \.isGuard)
        // Asked for and done is not yet seen: the picture must show it before anything else is asked for.
        if let awaitedGuard, awaitedGuard != (guardSink != nil) { return }
        awaitedGuard = nil
        if model.isOnGuard { return }
        if guardsOutput, guardSink == nil, !isGuardRefused, let output = model.output, !output.isNoPort {
            awaitedGuard = true
            // Whoever is the default must be so by choice: the guard comes before all others.
            connection.command({ _ in }) { pa_context_set_default_sink($0, output.name, $1, $2) }
            connection.loadModule("module-null-sink", PulseGuard.arguments) { [weak self] in
                guard let self, !$0 else { return }
                isGuardRefused = true
                awaitedGuard = nil
            }
            // What is suspended holds what comes; PipeWire's would wake up, and swallows it instead.
            connection.command({ _ in }) { pa_context_suspend_sink_by_name($0, PulseGuard.name, 1, $1, $2) }
        } else if !guardsOutput, let guardSink {
            awaitedGuard = false
            connection.command({ [weak self] in if !$0 { self?.awaitedGuard = nil } }) {
                pa_context_unload_module($0, guardSink.module, $1, $2)
            }
        }
    }

    /// A jack was pulled: its device goes on through another port, and must not.
    func suspendDevice(_ previous: Route) {
        guard guardsOutput, !model.isPipeWire, suspended == nil, let connection, let device = model.output,
            let port = previous.outputs.first, device.portName(of: port.uid) != nil, device.active?.uid != port.uid
        else { return }
        suspended = device.index
        connection.command({ _ in }) { pa_context_suspend_sink_by_index($0, device.index, 1, $1, $2) }
    }

    private func resumeDevice() {
        guard let suspended, let connection else { return }
        self.suspended = nil
        connection.command({ _ in }) { pa_context_suspend_sink_by_index($0, suspended, 0, $1, $2) }
    }
}

/// The sink behind ``PulseBackend/guardsOutput``.
enum PulseGuard {
    /// By which a later daemon finds it again.
    static let name = "sessiond.guard"

    /// Also one that a server made beside one that was there.
    static func isName(_ name: String) -> Bool { name.hasPrefix(PulseGuard.name) }

    /// The properties are those by which PulseAudio (`pa_device_init_priority`) and WirePlumber (`priority.session`)
    /// put a device in line.
    static let arguments =
        "sink_name=\(name) rate=48000 channels=2 sink_properties=\"device.description='Nowhere' device.class=sound "
        + "device.api=jack device.form_factor=headphone device.bus=bluetooth priority.session=30000 node.hidden=true\""
}
