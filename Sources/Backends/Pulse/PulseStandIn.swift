import CPulse
import EventLoop
import PluginAPI

/// Stand-in streams for programs that ended while they were ducked, or are held (docs/adr/0017).
///
/// WirePlumber 0.5 and later stores what it remembers of a stream only when the stream itself changes. So a stream with
/// the same name is created: it starts with the values of the last one, is corrected like any stream, and is closed. With
/// older versions only the device of held streams is corrected so, because volumes can be written.
extension PulseBackend {
    func keepStandIns() {
        guard isReady, model.memoryAccess != .readAndWrite else {
            standIns = [:]
            return
        }
        standIns = standIns.filter { name, _ in wantedStandIns.contains { $0.name == name } }
        for memory in wantedStandIns.prefix(PulseBackend.mostStandIns) where standIns[memory.name] == nil {
            standIns[memory.name] = PulseStandIn(for: memory, on: loop, server: server)
        }
    }

    /// The most at a time; the others follow when these are done.
    private static let mostStandIns = 8
}

/// A client with one stream that is paused and never plays; closing it ends both.
///
/// Used from the loop only.
final class PulseStandIn {
    private let context: OpaquePointer
    private let memory: StreamMemory
    private let property: (key: String, value: String)
    private var stream: OpaquePointer?

    /// The properties by which a stream is remembered, as the server names it (`module-stream-restore.id`).
    private static let keys = [
        ("sink-input-by-media-role:", "media.role"), ("sink-input-by-application-id:", "application.id"),
        ("sink-input-by-application-name:", "application.name"),
    ]

    /// The property and its value in such a name; nil: a client cannot have it.
    static func property(behind name: String) -> (key: String, value: String)? {
        for (prefix, key) in keys where name.hasPrefix(prefix) { return (key, String(name.dropFirst(prefix.count))) }
        return nil
    }

    /// Nil if a stream cannot be remembered under that name by properties of its client, or if libpulse refuses.
    init?(for memory: StreamMemory, on loop: EventLoop, server: String?) {
        guard let property = PulseStandIn.property(behind: memory.name) else { return nil }
        let list = pa_proplist_new()
        defer { pa_proplist_free(list) }
        pa_proplist_sets(list, property.key, property.value)
        let name = property.key == "application.name" ? property.value : "sessiond"
        guard let made = pa_context_new_with_proplist(loop.api, name, list) else { return nil }
        (context, self.memory, self.property) = (made, memory, property)
        pa_context_set_state_callback(
            context,
            { context, me in
                guard let me, let context, pa_context_get_state(context) == PA_CONTEXT_READY else { return }
                Unmanaged<PulseStandIn>.fromOpaque(me).takeUnretainedValue().play()
            }, Unmanaged.passUnretained(self).toOpaque())
        pa_context_connect(context, server, PA_CONTEXT_NOAUTOSPAWN, nil)
    }

    deinit {
        pa_context_set_state_callback(context, nil, nil)
        if let stream {
            pa_stream_disconnect(stream)
            pa_stream_unref(stream)
        }
        pa_context_disconnect(context)
        pa_context_unref(context)
    }

    private func play() {
        guard stream == nil else { return }
        var map = pa_channel_map()
        let channels = UInt8(clamping: max(1, memory.channels.count))
        pa_channel_map_init_extend(&map, UInt32(channels), PA_CHANNEL_MAP_DEFAULT)
        var format = pa_sample_spec(format: PA_SAMPLE_S16LE, rate: 48_000, channels: channels)
        let list = pa_proplist_new()
        defer { pa_proplist_free(list) }
        pa_proplist_sets(list, property.key, property.value)
        guard let made = pa_stream_new_with_proplist(context, "Volume correction by sessiond", &format, &map, list)
        else { return }
        stream = made
        pa_stream_connect_playback(made, nil, nil, PA_STREAM_START_CORKED, nil, nil)
    }
}
