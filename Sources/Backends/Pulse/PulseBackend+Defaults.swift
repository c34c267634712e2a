import CPulse
import EventLoop
public import PluginAPI

/// The default devices that are changed only for as long as sessions need others.
///
/// PulseAudio is asked for the former default by its name. PipeWire's session manager remembers each requested default as
/// the choice of the user: if there was none, none may remain, and the session manager chooses as before.
extension PulseBackend {
    /// Called before the default is changed. The default from before is kept if the change is temporary; it stays if a
    /// headset has no output for a moment, because it changes its profile.
    func keepFormerDefault(isInput: Bool, isTemporary: Bool) {
        guard isTemporary else {
            if !model.cards.values.contains(where: model.lacksOutput) { forgetFormerDefault(isInput: isInput) }
            return
        }
        guard (isInput ? formerDefaults.input : formerDefaults.output) == nil else { return }
        let device = isInput ? model.input : model.output
        let name = device?.name ?? (isInput ? model.defaultSource : model.defaultSink)
        let chosen = ChosenDefaults(environment: ServerAddress.environment)
        let isChosen = !model.isPipeWire || (isInput ? chosen.sources : chosen.sinks).configured != nil
        let former = FormerDefaults.Device(uid: device?.active?.uid ?? "", name: name, isChosen: isChosen)
        if isInput { formerDefaults.input = former } else { formerDefaults.output = former }
    }

    /// The default is not temporary any more: the user has chosen it, or it is the newest device.
    func forgetFormerDefault(isInput: Bool) {
        if isInput { formerDefaults.input = nil } else { formerDefaults.output = nil }
    }

    public func restoreDefault(isInput: Bool, reason: RouteChangeReason, completion: @escaping Completion) {
        let batch = Batch(self, completion)
        guard let connection = connection(for: batch) else { return }
        guard let former = isInput ? formerDefaults.input : formerDefaults.output else { return batch.close() }
        forgetFormerDefault(isInput: isInput)
        if !former.uid.isEmpty { expect(former.uid, reason) }
        if isInput { requests.selectInput() } else { requests.selectOutput(former.uid) }
        if let (device, port) = model.find(former.uid, isInput: isInput) {
            choose(port, of: device, on: connection, batch)
        }
        // Also if none was configured: WirePlumber 0.4 ranks a device that was configured before all others, even when it
        // is not configured any more.
        if let device = device(of: former, isInput: isInput) {
            setDefault(device.name, isInput, on: connection, batch.add())
        }
        if !former.isChosen {
            setDefault(nil, isInput, on: connection, batch.add())
            lookWhatIsChosen(insteadOf: former, isInput: isInput)
        }
        doubtDefault()
        batch.close()
    }

    /// The same device, or another one of the same headset, whose devices change with its profile.
    private func device(of former: FormerDefaults.Device, isInput: Bool) -> PulseDevice? {
        let devices = (isInput ? model.sources : model.sinks).values
        if let same = devices.first(where: { $0.name == former.name }) { return same }
        guard !isInput,
            let card = model.cards.values.first(where: { card in
                card.address.map { Bluetooth.outputs($0).contains(former.uid) } ?? false
            })
        else { return nil }
        return card.output.flatMap { model.find($0, isInput: false)?.device }
    }

    /// `name` nil: none is configured.
    func setDefault(
        _ name: String?, _ isInput: Bool, on connection: PulseConnection, _ end: @escaping (Bool) -> Void
    ) {
        if isInput { configuredSource.request(name) } else { configuredSink.request(name) }
        connection.command(end) {
            isInput ? pa_context_set_default_source($0, name, $1, $2) : pa_context_set_default_sink($0, name, $1, $2)
        }
    }

    /// If the session manager chooses another device than before, the former one was chosen by the user after all, but
    /// WirePlumber has not stored it.
    private func lookWhatIsChosen(insteadOf former: FormerDefaults.Device, isInput: Bool) {
        let number = requests.number
        wait(PulseBackend.overlooked) { [weak self] in
            guard let self, isReady, requests.number == number, let connection else { return }
            let (devices, shown) = isInput ? (model.sources, model.defaultSource) : (model.sinks, model.defaultSink)
            guard shown != former.name, devices.values.contains(where: { $0.name == former.name }) else { return }
            setDefault(former.name, isInput, on: connection) { _ in }
            doubtDefault()
        }
    }
}
