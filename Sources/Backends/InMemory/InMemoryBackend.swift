public import PluginAPI

/// A sound server of values only, driven by whoever holds it: the contract of ``AudioBackend`` where there is no server.
///
/// Last in wins, as behaviour §7 says: what is plugged in becomes the route; when it goes, the one before it does.
/// Callbacks come from within the driving call.
public final class InMemoryBackend: AudioBackend {
    public private(set) var snapshot = AudioSnapshot.disconnected

    public var onServicesLost: (() -> Void)?
    public var onServicesReset: (() -> Void)?
    public var onRouteChanged: ((RouteChangeReason, Route, Route) -> Void)?
    public var onPortsChanged: (() -> Void)?
    public var onStreamsChanged: (() -> Void)?
    public var onInputMuteChanged: ((Bool) -> Void)?
    public var onOutputVolumeChanged: ((Double) -> Void)?
    public var onLatencyChanged: (() -> Void)?
    public var onPoliciesChanged: (() -> Void)?
    public var guardsOutput = false
    public var outputWish = OutputWish()
    public var onMemoryChanged: (() -> Void)?
    public var watchesMemory = false

    private let later: (@escaping () -> Void) -> Void
    private var picture = AudioSnapshot()
    private var memory: [String: StreamMemory] = [:]

    /// `later` runs its argument once, after the current call returned: `EventLoop.later`, or a test's own queue.
    public init(inputs: [Port] = [], outputs: [Port] = [], later: @escaping (@escaping () -> Void) -> Void) {
        self.later = later
        picture.isConnected = true
        picture.serverName = "in memory"
        picture.canHold = true
        picture.availableInputs = inputs
        picture.availableOutputs = outputs
        picture.route = Route(inputs: inputs.suffix(1), outputs: outputs.suffix(1))
    }

    public func start() {
        later { [self] in
            snapshot = picture
            onPortsChanged?()
            onStreamsChanged?()
        }
    }

    // MARK: Driving

    /// Plugs a port in. It becomes the route unless `becomesRoute` is false.
    public func plug(_ port: Port, isInput: Bool = false, becomesRoute: Bool = true) {
        change(.newDeviceAvailable) {
            if isInput {
                $0.availableInputs.append(port)
                if becomesRoute { $0.route.inputs = [port] }
            } else {
                $0.availableOutputs.append(port)
                if becomesRoute { $0.route.outputs = [port] }
            }
        }
    }

    /// Unplugs a port; the newest of the rest takes its place in the route, and its streams go there.
    public func unplug(_ uid: String) {
        change(.oldDeviceUnavailable) {
            $0.availableInputs.removeAll { $0.uid == uid }
            $0.availableOutputs.removeAll { $0.uid == uid }
            if $0.route.inputs.contains(where: { $0.uid == uid }) { $0.route.inputs = $0.availableInputs.suffix(1) }
            if $0.route.outputs.contains(where: { $0.uid == uid }) {
                $0.route.outputs = $0.availableOutputs.suffix(1)
                $0.isOutputHeld = $0.isOutputHeld || guardsOutput
            }
            for place in $0.streams.indices where $0.streams[place].portUID == uid {
                let ports = $0.streams[place].direction == .record ? $0.route.inputs : $0.route.outputs
                $0.streams[place].portUID = ports.first?.uid
                $0.streams[place].deviceName = ports.first?.uid ?? ""
            }
        }
    }

    /// Gives the port of that uid other settings (channels, rate, name).
    public func reconfigure(_ port: Port) {
        func replaced(_ ports: [Port]) -> [Port] { ports.map { $0.uid == port.uid ? port : $0 } }
        change(.routeConfigurationChange) {
            $0.availableInputs = replaced($0.availableInputs)
            $0.availableOutputs = replaced($0.availableOutputs)
            $0.route = Route(inputs: replaced($0.route.inputs), outputs: replaced($0.route.outputs))
        }
    }

    /// Adds a stream, or puts it in the place of the one with its id.
    public func put(_ stream: AudioStream) {
        change(.unknown) {
            if let place = $0.streams.firstIndex(where: { $0.id == stream.id }) {
                $0.streams[place] = stream
            } else {
                $0.streams.append(stream)
            }
        }
    }

    /// The server goes away. What is plugged in and out meanwhile is seen at ``reset()``.
    public func lose() {
        guard snapshot.isConnected else { return }
        picture.streams = []
        snapshot = .disconnected
        onServicesLost?()
    }

    /// The server is back.
    public func reset() {
        guard !snapshot.isConnected else { return }
        snapshot = picture
        onServicesReset?()
    }

    private func change(_ reason: RouteChangeReason, _ edit: (inout AudioSnapshot) -> Void) {
        edit(&picture)
        guard snapshot.isConnected else { return }
        let previous = snapshot
        snapshot = picture
        let ports = { (snapshot: AudioSnapshot) in
            Set((snapshot.availableInputs + snapshot.availableOutputs).map(\.uid))
        }
        let isNew = reason == .newDeviceAvailable && ports(previous) != ports(picture)
        if previous.route != picture.route || isNew { onRouteChanged?(reason, previous.route, picture.route) }
        if previous.availableInputs != picture.availableInputs || previous.availableOutputs != picture.availableOutputs
        {
            onPortsChanged?()
        }
        if previous.streams != picture.streams { onStreamsChanged?() }
    }

    // MARK: Requests

    public func selectOutput(_ uid: String, reason: RouteChangeReason, completion: @escaping Completion) {
        request(completion, needs: { [self] in port(uid, in: $0.availableOutputs) }) { [self] port in
            change(reason) { $0.route.outputs = [port] }
        }
    }

    public func selectInput(_ uid: String, reason: RouteChangeReason, completion: @escaping Completion) {
        request(completion, needs: { [self] in port(uid, in: $0.availableInputs) }) { [self] port in
            change(reason) { $0.route.inputs = [port] }
        }
    }

    /// Its headsets have all their ports at all times.
    public func setHandsFree(
        _ uid: String?, takesOver: Bool, reason: RouteChangeReason, completion: @escaping Completion
    ) {
        request(
            completion,
            needs: { [self] snapshot in
                uid.map { port($0, in: snapshot.availableInputs).map { _ in } } ?? .success(())
            }
        ) {}
    }

    public func moveStream(_ id: AudioStream.ID, to uid: String, completion: @escaping Completion) {
        request(
            completion,
            needs: { [self] in port(uid, in: id.direction == .record ? $0.availableInputs : $0.availableOutputs) }
        ) { [self] port in
            edit(id) {
                $0.portUID = port.uid
                $0.deviceName = port.uid
            }
        }
    }

    public func setMuted(_ muted: Bool, stream id: AudioStream.ID, completion: @escaping Completion) {
        request(completion, needs: { [self] in $0.streams.contains { $0.id == id } ? .success(()) : .failure(gone) }) {
            [self] in
            edit(id) { $0.isMuted = muted }
        }
    }

    public func removeGuard(completion: @escaping Completion) {
        request(completion, needs: { _ in .success(()) }) { [self] in
            guardsOutput = false
            change(.unknown) { $0.isOutputHeld = false }
        }
    }

    public func releaseOutput() { later { [self] in change(.unknown) { $0.isOutputHeld = false } } }

    public func setVolume(_ volume: [UInt32], stream id: AudioStream.ID, completion: @escaping Completion) {
        request(completion, needs: { [self] in stream(id, in: $0) }) { [self] _ in edit(id) { $0.volume = volume } }
    }

    public func hold(_ id: AudioStream.ID, completion: @escaping Completion) {
        request(completion, needs: { [self] in stream(id, in: $0) }) { [self] _ in
            edit(id) {
                $0.isHeld = true
                $0.portUID = nil
            }
        }
    }

    public func letGo(_ id: AudioStream.ID, to deviceName: String?, completion: @escaping Completion) {
        request(completion, needs: { [self] in stream(id, in: $0) }) { [self] _ in
            let port = picture.availableOutputs.first { $0.uid == deviceName } ?? picture.route.outputs.first
            edit(id) {
                $0.isHeld = false
                $0.portUID = port?.uid
                $0.deviceName = port?.uid ?? ""
            }
        }
    }

    public func removeHold(completion: @escaping Completion) {
        request(completion, needs: { _ in .success(()) }) { _ in }
    }

    public func readMemory(_ completion: @escaping ([StreamMemory]?) -> Void) {
        later { [self] in completion(snapshot.isConnected ? memory.values.sorted { $0.name < $1.name } : nil) }
    }

    public func writeMemory(_ entries: [StreamMemory], forgetting names: [String], completion: @escaping Completion) {
        request(completion, needs: { _ in .success(()) }) { [self] in
            for entry in entries { memory[entry.name] = entry }
            for name in names { memory[name] = nil }
            if watchesMemory { onMemoryChanged?() }
        }
    }

    private func stream(_ id: AudioStream.ID, in snapshot: AudioSnapshot) -> Result<AudioStream, SessionError> {
        snapshot.streams.first { $0.id == id }.map { .success($0) } ?? .failure(gone)
    }

    private var gone: SessionError { SessionError(.mediaServicesFailed, "no such stream") }

    private func edit(_ id: AudioStream.ID, _ body: (inout AudioStream) -> Void) {
        change(.unknown) {
            if let place = $0.streams.firstIndex(where: { $0.id == id }) { body(&$0.streams[place]) }
        }
    }

    private func port(_ uid: String, in ports: [Port]) -> Result<Port, SessionError> {
        ports.first { $0.uid == uid }.map { .success($0) }
            ?? .failure(.badParameter("no port \(quoted(uid)); read the available ones again"))
    }

    /// Judged and done after the call returned, as a server would.
    private func request<Subject>(
        _ completion: @escaping Completion, needs: @escaping (AudioSnapshot) -> Result<Subject, SessionError>,
        _ act: @escaping (Subject) -> Void
    ) {
        later { [self] in
            guard snapshot.isConnected else {
                return completion(.failure(SessionError(.mediaServicesFailed, "the sound server is away")))
            }
            switch needs(snapshot) {
            case .success(let subject):
                act(subject)
                completion(.success(()))
            case .failure(let error): completion(.failure(error))
            }
        }
    }
}
