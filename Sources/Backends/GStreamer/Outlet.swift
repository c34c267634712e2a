import CGStreamer

/// The sink at a pipeline's end: one stream to the server at a time.
final class Outlet {
    private let element: UnsafeMutablePointer<GstElement>
    private let pipeline: Pipeline
    private let before: UnsafeMutablePointer<GstElement>
    private let device: String?
    /// Where the sound comes to the sink from.
    private let way: UnsafeMutablePointer<GstPad>
    private var gate: gulong = 0
    /// Nothing of its stream was asked to sound yet.
    var isFresh = true

    /// What a loaded two-core machine needs to lose nothing (measured: 80 ms drops out, FLAC's blocks alone are 93 ms).
    /// A pause does not wait for it, a lowered gain is heard that much later. In microseconds.
    static let bufferTime: Int = 200_000
    /// How much goes to the server at once: with half of it the threads wake two thirds more often.
    private static let latencyTime: Int = 20_000

    /// Takes the pipeline's element "sink", which `before` is linked to; valid while the pipeline is.
    init?(
        in pipeline: Pipeline, after before: UnsafeMutablePointer<GstElement>, identity: StreamIdentity,
        device: String?, title: String
    ) {
        guard let sink = pipeline.child("sink"), let way = gst_element_get_static_pad(before, "src") else { return nil }
        (element, self.pipeline, self.before, self.device, self.way) = (sink, pipeline, before, device, way)
        shim_set_int64(sink, "buffer-time", Outlet.bufferTime)
        shim_set_int64(sink, "latency-time", Outlet.latencyTime)
        shim_set_string(sink, "device", device)
        shim_doubt_clock(sink)
        identity.apply(to: sink, mediaName: title, role: "music")
    }

    deinit { pipeline.perform { [way] in gst_object_unref(way) } }

    /// Its clock does not know any more what of the stream is heard.
    var isLost: Bool { shim_clock_is_lost(element) != 0 }

    /// Gives up the stream for a new one, in a paused pipeline; a flushing seek has to follow, and then ``open()``.
    ///
    /// Where a used stream goes on is known to a few hundredths of a second only: the server has taken more than was
    /// heard, and does not give all of it back. What is written before that place is never heard.
    func renew() {
        isFresh = true
        // What still comes waits here, and is thrown away by the seek: it must not find the way unlinked.
        gate = gst_pad_add_probe(
            way, GST_PAD_PROBE_TYPE_BLOCK_DOWNSTREAM, { _, _, _ in GST_PAD_PROBE_OK }, nil, nil)
        pipeline.perform { [element, before, device] in
            gst_element_set_state(element, GST_STATE_READY)
            // Linked again, the format is told again.
            gst_element_unlink(before, element)
            shim_renew_clock(element)
            // The sink has put the name of the one it got in its place.
            shim_set_string(element, "device", device)
            gst_element_link(before, element)
            gst_element_sync_state_with_parent(element)
        }
    }

    /// Lets through what comes.
    func open() {
        guard gate != 0 else { return }
        pipeline.perform { [way, gate] in gst_pad_remove_probe(way, gate) }
        gate = 0
    }
}
