import CPulse
import Foundation

/// A connection to a sound server with libpulse's own thread and lock, so that sound continues while a test waits.
public final class PulseThread {
    /// The connection (`pa_context`). Use it only within ``locked(_:)``.
    public let context: OpaquePointer
    private let loop: OpaquePointer

    /// Connects and waits until the server is ready. `properties` are those of the client (`application.process.id`,
    /// …).
    public init(server: String, name: String, properties: [String: String] = [:]) throws {
        guard let loop = pa_threaded_mainloop_new() else { throw SupportError("pa_threaded_mainloop_new") }
        self.loop = loop
        let list = pa_proplist_new()
        for (key, value) in properties { pa_proplist_sets(list, key, value) }
        context = pa_context_new_with_proplist(pa_threaded_mainloop_get_api(loop), name, list)
        pa_proplist_free(list)
        pa_context_connect(context, server, PA_CONTEXT_NOAUTOSPAWN, nil)
        pa_threaded_mainloop_start(loop)
        let context = self.context
        var state = PA_CONTEXT_UNCONNECTED
        eventually(timeout: 10) {
            state = locked { pa_context_get_state(context) }
            return state == PA_CONTEXT_READY || state == PA_CONTEXT_FAILED
        }
        guard state == PA_CONTEXT_READY else {
            throw SupportError("\(name): no connection to \(server): \(state.rawValue)")
        }
    }

    deinit {
        pa_threaded_mainloop_lock(loop)
        pa_context_disconnect(context)
        pa_threaded_mainloop_unlock(loop)
        pa_threaded_mainloop_stop(loop)
        pa_context_unref(context)
        pa_threaded_mainloop_free(loop)
    }

    /// Runs `body` while libpulse's thread waits.
    public func locked<R>(_ body: () throws -> R) rethrows -> R {
        pa_threaded_mainloop_lock(loop)
        defer { pa_threaded_mainloop_unlock(loop) }
        return try body()
    }

    /// Sends a request and waits until the server has carried it out. Throws if that takes more than `timeout` seconds,
    /// or if the connection ends.
    public func wait(timeout: Double = 10, _ request: () -> OpaquePointer?) throws {
        guard let operation = locked(request) else { throw SupportError("request refused: not connected?") }
        var state = PA_OPERATION_RUNNING
        eventually(timeout: timeout) {
            state = locked { pa_operation_get_state(operation) }
            return state != PA_OPERATION_RUNNING
        }
        locked {
            // No callback comes after that.
            pa_operation_cancel(operation)
            pa_operation_unref(operation)
        }
        switch state {
        case PA_OPERATION_DONE: break
        case PA_OPERATION_RUNNING: throw SupportError("no answer from the sound server in \(timeout) s")
        default: throw SupportError("the connection to the sound server ended")
        }
    }
}
