import CPulse
import EventLoop
public import PluginAPI

/// Requests to the server.
extension PulseBackend {
    public func selectOutput(
        _ uid: String, reason: RouteChangeReason, isTemporary: Bool, completion: @escaping Completion
    ) {
        guard let coming = comingOutput(insteadOf: uid) else {
            if !isTemporary, model.isPipeWire, isHeadset(uid) { return selectLater(uid, reason, completion) }
            return select(uid, isInput: false, reason, isTemporary: isTemporary, completion)
        }
        keepFormerDefault(isInput: false, isTemporary: isTemporary)
        requests.selectComingOutput(coming)
        Batch(self, completion).close()
    }

    private func isHeadset(_ uid: String) -> Bool {
        model.cards.values.contains { card in
            card.address.map { Bluetooth.outputs($0).contains(uid) } ?? false
        }
    }

    /// WirePlumber itself chooses a headset again whose profile it has changed. A request before that would make it the
    /// configured default.
    private func selectLater(_ uid: String, _ reason: RouteChangeReason, _ completion: @escaping Completion) {
        let batch = Batch(self, completion)
        guard connection(for: batch) != nil else { return }
        keepFormerDefault(isInput: false, isTemporary: false)
        expect(uid, reason)
        requests.selectOutput(uid)
        let number = requests.number
        wait(PulseBackend.choosing) { [weak self] in
            guard let self, isReady, requests.number == number, snapshot.route.outputs.first?.uid != uid,
                model.find(uid, isInput: false) != nil
            else { return }
            select(uid, isInput: false, reason, isTemporary: false) { _ in }
        }
        batch.close()
    }

    /// Seconds in which WirePlumber chooses a default after a device has appeared.
    private static let choosing = 0.3

    /// The output that the headset with this output will have when its profile has changed, as requested; nil: it does not
    /// change its profile, or the output is there.
    private func comingOutput(insteadOf uid: String) -> String? {
        let now = MonotonicClock.now()
        for card in model.cards.values where requests.isChanging(card, at: now) {
            guard let address = card.address, Bluetooth.outputs(address).contains(uid),
                let coming = Bluetooth.output(address, profile: requests.profile(of: card, at: now))
            else { continue }
            return coming == uid && model.find(uid, isInput: false) != nil ? nil : coming
        }
        return nil
    }

    public func selectInput(
        _ uid: String, reason: RouteChangeReason, isTemporary: Bool, completion: @escaping Completion
    ) {
        select(uid, isInput: true, reason, isTemporary: isTemporary, completion)
    }

    private func select(
        _ uid: String, isInput: Bool, _ reason: RouteChangeReason, isTemporary: Bool,
        _ completion: @escaping Completion
    ) {
        let batch = Batch(self, completion)
        guard let connection = connection(for: batch) else { return }
        keepFormerDefault(isInput: isInput, isTemporary: isTemporary)
        expect(uid, reason)
        if isInput { requests.selectInput() } else { requests.selectOutput(uid) }
        if isInput, model.find(uid, isInput: true) == nil, card(of: uid) != nil {
            requests.awaitInput(uid)
            return batch.close()
        }
        guard let (device, port) = find(uid, isInput, batch) else { return }
        choose(port, of: device, on: connection, batch)
        setDefault(device.name, isInput, on: connection, batch.add())
        doubtDefault()
        if !isInput {
            requests.awaitedDefault = DefaultRequest(
                output: uid, sink: device.name, before: model.defaultSink, number: nextCompletion)
            if model.isPipeWire { lookForDefaultLater() }
        }
        batch.close()
    }

    /// Requests the default again some time later, if it is still awaited then.
    private func lookForDefaultLater() {
        guard let request = requests.awaitedDefault else { return }
        wait(PulseBackend.overlooked) { [weak self] in
            guard let self, requests.awaitedDefault == request, let connection,
                model.find(request.output, isInput: false) != nil
            else { return }
            for name in request.repetition {
                connection.command({ _ in }) { pa_context_set_default_sink($0, name, $1, $2) }
            }
            doubtDefault()
            requests.awaitedDefault = request.next
            lookForDefaultLater()
        }
    }

    /// Seconds in which a default that was set has taken effect, also on a busy machine.
    static let overlooked = 1.5

    /// Microseconds that a headset may take for another profile.
    private static let profileTime: UInt64 = 10_000_000

    public func setHandsFree(_ uid: String?, reason: RouteChangeReason, completion: @escaping Completion) {
        let batch = Batch(self, completion)
        guard let connection = connection(for: batch) else { return }
        let talking = uid.flatMap(card)
        if uid != nil {
            keepFormerDefault(isInput: true, isTemporary: true)
            if let address = talking?.address, snapshot.route.outputs.first?.device == address[...] {
                keepFormerDefault(isInput: false, isTemporary: true)
            }
        }
        if uid != nil, talking == nil {
            return batch.fail(.badParameter("no headset has that input; read AvailableInputs again"))
        }
        for (name, profile) in headsets.use(talking?.name, of: connectedHeadsets, at: MonotonicClock.now()) {
            setProfile(profile, of: name, reason, on: connection, batch)
        }
        batch.close()
    }

    private func setProfile(
        _ profile: String, of name: String, _ reason: RouteChangeReason, on connection: PulseConnection, _ batch: Batch
    ) {
        guard let address = address(of: name) else { return }
        let type = Bluetooth.isHandsFree(profile) ? PortType.bluetoothHFP : .bluetoothA2DP
        for isInput in [false, true] { expect(Bluetooth.uid(address, type, isInput: isInput), reason) }
        // The sound stays on the same headset, even if the server selects another output while the profile changes.
        if snapshot.route.outputs.first?.device == address[...] {
            requests.keepOutput(Bluetooth.uid(address, type, isInput: false))
        }
        let until = MonotonicClock.now() &+ PulseBackend.profileTime
        let number = requests.setProfile(profile, of: name, until: until)
        let end = batch.add()
        connection.command({ [weak self] success in
            self?.requests.profileAnswered(number, of: name, succeeded: success)
            end(success)
        }) { pa_context_set_card_profile_by_name($0, name, profile, $1, $2) }
    }

    /// In the order of their cards' names. A profile that is on its way counts, because the next request follows it.
    private var connectedHeadsets: [HeadsetProfiles.Headset] {
        let now = MonotonicClock.now()
        return model.cards.values.filter { $0.address != nil }.sorted { $0.name < $1.name }.map { card in
            HeadsetProfiles.Headset(
                card: card.name, profile: requests.profile(of: card, at: now),
                isChanging: requests.isChanging(card, at: now), profiles: Set(card.profiles.map(\.name)),
                musicProfile: card.musicProfile, handsFreeProfile: card.handsFreeProfile)
        }
    }

    public var switchedHeadset: String? {
        let uid = handsFreeInput
        // PipeWire shows a card before its microphone. Until that is reported, no session can use it.
        return snapshot.availableInputs.contains { $0.uid == uid } ? uid : nil
    }

    /// The input of the headset that was made hands-free for a session.
    var handsFreeInput: String? {
        guard !headsets.former.isEmpty, let name = headsets.switched(of: connectedHeadsets) else { return nil }
        return address(of: name).map { Bluetooth.uid($0, .bluetoothHFP, isInput: true) }
    }

    /// The address of the headset with that card.
    private func address(of name: String) -> String? { model.cards.values.first { $0.name == name }?.address }

    /// Called when the server's state was read.
    func lookAtHeadsets() {
        for card in model.cards.values where !model.lacksOutput(of: card) { requests.devicesWereRead(of: card.name) }
        if !headsets.former.isEmpty { headsets.forgetChanged(of: connectedHeadsets) }
        guard let connection, let (card, profile) = headsets.insist(of: connectedHeadsets, at: MonotonicClock.now())
        else { return }
        let batch = Batch(self) { _ in }
        setProfile(profile, of: card, .categoryChange, on: connection, batch)
        batch.close()
    }

    /// A recording has ended, or was paused.
    func recordingEnded(_ stream: PulseStream) {
        guard let card = model.sources[stream.device].flatMap({ model.cards[$0.card] }) else { return }
        headsets.recordingEnded(on: card.name, at: MonotonicClock.now())
    }

    /// The card of the headset with that input.
    private func card(of uid: String) -> PulseCard? {
        model.cards.values.first { card in
            card.address.map { Bluetooth.uid($0, .bluetoothHFP, isInput: true) == uid } ?? false
        }
    }

    /// If that port becomes the route soon, this request is the reason.
    func expect(_ uid: String, _ reason: RouteChangeReason) {
        requests.expect(uid, reason, until: MonotonicClock.now() &+ PulseBackend.recently)
    }

    /// Selects the port that had to appear first, if it has appeared.
    func selectAwaited() {
        let input = requests.takeComingInput { model.find($0, isInput: true) != nil }
        if let input, snapshot.route.inputs.first?.uid != input {
            select(input, isInput: true, requests.reason(of: input), isTemporary: true) { _ in }
        }
        let output = requests.takeComingOutput { model.find($0, isInput: false) != nil }
        if let output, snapshot.route.outputs.first?.uid != output {
            select(output, isInput: false, requests.reason(of: output), isTemporary: true) { _ in }
        }
    }

    public func moveStream(_ id: AudioStream.ID, to uid: String, completion: @escaping Completion) {
        let batch = Batch(self, completion)
        guard let connection = connection(for: batch),
            let (device, port) = find(uid, id.direction == .record, batch)
        else { return }
        choose(port, of: device, on: connection, batch)
        connection.command(batch.add()) {
            switch id.direction {
            case .playback: pa_context_move_sink_input_by_name($0, id.number, device.name, $1, $2)
            case .record: pa_context_move_source_output_by_name($0, id.number, device.name, $1, $2)
            }
        }
        batch.close()
    }

    public func setMuted(_ muted: Bool, stream id: AudioStream.ID, completion: @escaping Completion) {
        let batch = Batch(self, completion)
        guard let connection = connection(for: batch) else { return }
        connection.command(batch.add()) {
            switch id.direction {
            case .playback: pa_context_set_sink_input_mute($0, id.number, muted ? 1 : 0, $1, $2)
            case .record: pa_context_set_source_output_mute($0, id.number, muted ? 1 : 0, $1, $2)
            }
        }
        batch.close()
    }

    func connection(for batch: Batch) -> PulseConnection? {
        if isReady, let connection { return connection }
        batch.fail(PulseBackend.away)
        return nil
    }

    private func find(_ uid: String, _ isInput: Bool, _ batch: Batch) -> (PulseDevice, String)? {
        if let found = model.find(uid, isInput: isInput) { return found }
        batch.fail(.badParameter("no \(isInput ? "input" : "output") \(quoted(uid)); read the available ones again"))
        return nil
    }

    func choose(_ port: String, of device: PulseDevice, on connection: PulseConnection, _ batch: Batch) {
        // Also if the port seems to be active, because another change may be pending. A device with only one port, such
        // as a headset, may refuse the request.
        guard device.ports.count > 1 else { return }
        connection.command(batch.add()) {
            device.isInput
                ? pa_context_set_source_port_by_name($0, device.name, port, $1, $2)
                : pa_context_set_sink_port_by_name($0, device.name, port, $1, $2)
        }
    }

    /// The commands of one request: completed once, when all are answered or the connection is lost.
    final class Batch {
        private weak var backend: PulseBackend?
        private let number: UInt64
        private var open = 1
        private var error: SessionError?

        init(_ backend: PulseBackend, _ completion: @escaping Completion) {
            self.backend = backend
            number = backend.nextCompletion
            backend.nextCompletion += 1
            backend.completions[number] = completion
        }

        func add() -> (Bool) -> Void {
            open += 1
            return { [self] success in
                if !success {
                    error = SessionError(.mediaServicesFailed, "the server refused; the stream or device may be gone")
                }
                close()
            }
        }

        func close() {
            open -= 1
            guard open == 0 else { return }
            let (number, error) = (number, error)
            // Later, because no completion may be called before its request has returned.
            backend?.loop.later { [weak backend] in
                backend?.completions.removeValue(forKey: number)?(error.map { .failure($0) } ?? .success(()))
            }
        }

        func fail(_ error: SessionError) {
            self.error = error
            close()
        }
    }
}
