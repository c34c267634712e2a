import CPulse
import EventLoop
public import PluginAPI

/// What the server is asked to do.
extension PulseBackend {
    public func selectOutput(_ uid: String, reason: RouteChangeReason, completion: @escaping Completion) {
        select(uid, isInput: false, reason, completion)
    }

    public func selectInput(_ uid: String, reason: RouteChangeReason, completion: @escaping Completion) {
        select(uid, isInput: true, reason, completion)
    }

    private func select(_ uid: String, isInput: Bool, _ reason: RouteChangeReason, _ completion: @escaping Completion) {
        let batch = Batch(self, completion)
        guard let connection = connection(for: batch), let (device, port) = find(uid, isInput, batch) else { return }
        requested = (uid, reason, MonotonicClock.now() &+ PulseBackend.recently)
        choose(port, of: device, on: connection, batch)
        connection.command(batch.add()) {
            isInput
                ? pa_context_set_default_source($0, device.name, $1, $2)
                : pa_context_set_default_sink($0, device.name, $1, $2)
        }
        batch.close()
    }

    public func selectInput(_ uid: String, forProcess processID: UInt32, completion: @escaping Completion) {
        let batch = Batch(self, completion)
        guard let connection = connection(for: batch), let (device, port) = find(uid, true, batch) else { return }
        choose(port, of: device, on: connection, batch)
        for stream in snapshot.streams
        where stream.direction == .record && stream.processID == processID && stream.portUID != nil
            && stream.deviceName != device.name
        {
            connection.command(batch.add()) {
                pa_context_move_source_output_by_name($0, stream.id.number, device.name, $1, $2)
            }
        }
        batch.close()
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

    private func connection(for batch: Batch) -> PulseConnection? {
        if isReady, let connection { return connection }
        batch.fail(PulseBackend.away)
        return nil
    }

    private func find(_ uid: String, _ isInput: Bool, _ batch: Batch) -> (PulseDevice, String)? {
        if let found = model.find(uid, isInput: isInput) { return found }
        batch.fail(.badParameter("no \(isInput ? "input" : "output") \(quoted(uid)); read the available ones again"))
        return nil
    }

    private func choose(_ port: String, of device: PulseDevice, on connection: PulseConnection, _ batch: Batch) {
        guard !port.isEmpty, port != device.activePort else { return }
        connection.command(batch.add()) {
            device.isInput
                ? pa_context_set_source_port_by_name($0, device.name, port, $1, $2)
                : pa_context_set_sink_port_by_name($0, device.name, port, $1, $2)
        }
    }

    /// The commands of one request: completed once, when all are answered or the connection is lost.
    private final class Batch {
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
                    error = SessionError(.mediaServicesFailed, "the sound server refused; what it concerns may be gone")
                }
                close()
            }
        }

        func close() {
            open -= 1
            guard open == 0 else { return }
            let (number, error) = (number, error)
            // Later, so that no completion comes before its request returned.
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
