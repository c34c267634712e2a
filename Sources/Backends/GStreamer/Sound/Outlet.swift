import CGStreamer
import CStreaming
import GStreamerBase

/// The sink at a pipeline's end: one stream to the server at a time.
final class Outlet {
    private let element: UnsafeMutablePointer<GstElement>
    private let pipeline: Pipeline
    private let before: UnsafeMutablePointer<GstElement>
    private let device: String?
    /// The pad through which sound reaches the sink.
    private let way: UnsafeMutablePointer<GstPad>
    private var gate: gulong = 0
    /// How much of the sound waits in it, in microseconds.
    let bufferTime: Int
    /// Its stream has not played yet.
    var isFresh = true

    /// In microseconds. It is long enough that a busy machine with two cores has no drop-outs (with 80 ms it has some;
    /// one block of FLAC has 93 ms). A pause does not wait for the buffer, but a change of the gain is heard this much
    /// later.
    static let bufferTime: Int = 200_000
    /// Of a live stream, which is to be heard soon.
    static let liveBufferTime: Int = 60_000
    /// The length of one transfer to the server, in microseconds: with half of it, the threads wake two thirds more
    /// often.
    private static let latencyTime: Int = 20_000

    /// Takes the pipeline's element "sink", which `before` is linked to; valid while the pipeline is.
    init?(
        in pipeline: Pipeline, after before: UnsafeMutablePointer<GstElement>, identity: StreamIdentity,
        device: String?, title: String, isLive: Bool
    ) {
        guard let sink = pipeline.child("sink"), let way = gst_element_get_static_pad(before, "src") else { return nil }
        (element, self.pipeline, self.before, self.device, self.way) = (sink, pipeline, before, device, way)
        bufferTime = isLive ? Outlet.liveBufferTime : Outlet.bufferTime
        shim_set_int64(sink, "buffer-time", bufferTime)
        shim_set_int64(sink, "latency-time", isLive ? Outlet.latencyTime / 2 : Outlet.latencyTime)
        shim_set_string(sink, "device", device)
        shim_doubt_clock(sink)
        identity.apply(to: sink, mediaName: title, role: identity.role)
    }

    deinit {
        pipeline.perform { [way, element, isRemoved] in
            gst_object_unref(way)
            if isRemoved { gst_object_unref(element) }
        }
    }

    /// Whether its clock no longer knows which part of the stream is heard.
    var isLost: Bool { !isRemoved && shim_clock_is_lost(element) != 0 }

    /// Whether the pipeline has no sink for sound any more.
    private var isRemoved = false

    /// Removes the sink: the item is a film without sound, and a sink that gets nothing would never be ready.
    func remove() {
        guard !isRemoved else { return }
        isRemoved = true
        gst_object_ref(element)
        pipeline.perform { [element, pipeline = pipeline.element] in
            Elements.remove(element, from: pipeline)
            gst_element_set_state(element, GST_STATE_NULL)
        }
    }

    /// Replaces the stream by a new one, in a paused pipeline. A flushing seek must follow, and then ``open()``.
    ///
    /// The position of a used stream is known only to a few hundredths of a second: the server has taken more data than
    /// it has played, and does not give all of them back. Data that are written before that position are never played.
    func renew() {
        isFresh = true
        guard !isRemoved else { return }
        // Data that still arrives waits here until the seek discards it: it must not reach the sink while that is
        // unlinked.
        gate = gst_pad_add_probe(
            way, GST_PAD_PROBE_TYPE_BLOCK_DOWNSTREAM, { _, _, _ in GST_PAD_PROBE_OK }, nil, nil)
        pipeline.perform { [element, before, device] in
            gst_element_set_state(element, GST_STATE_READY)
            // Linking again sends the format again.
            gst_element_unlink(before, element)
            shim_renew_clock(element)
            // The sink has replaced it by the name of the device that it uses.
            shim_set_string(element, "device", device)
            gst_element_link(before, element)
            gst_element_sync_state_with_parent(element)
        }
    }

    /// Lets data through again.
    func open() {
        guard gate != 0 else { return }
        pipeline.perform { [way, gate] in gst_pad_remove_probe(way, gate) }
        gate = 0
    }
}
