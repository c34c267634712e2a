import CGStreamer
import CStreaming
import CameraBackend
import GStreamerBackend
import GStreamerBase

/// One user of ``EncodedStreams``: a bin that is added to the running pipeline and taken out of it, without any effect on the
/// encoders and on other branches.
///
/// Each of its entrances is `errorignore ! queue`: a failure ends the branch alone. The queues have no limit of their own;
/// the gate before them drops what does not fit (live.c).
final class StreamBranch {
    /// The elements at both entrances, for a description in which `mux` collects them.
    static let pictures = entrance("pictures") + "name=pictures-queue"
    static let sound = entrance("sound") + "name=sound-queue"

    private static func entrance(_ name: String) -> String {
        "errorignore name=\(name) ignore-error=true ignore-notnegotiated=true convert-to=ok "
            + "! queue max-size-buffers=0 max-size-bytes=0 max-size-time=0 "
    }

    let id: UInt32
    let bin: UnsafeMutablePointer<GstElement>
    private let streams: EncodedStreams
    private let gate: OpaquePointer
    /// The entrances: pictures, then sound.
    private let entries: [UnsafeMutablePointer<GstPad>]
    private let hold = Hold()

    /// What only the thread of ``Pipeline/perform(_:late:)`` uses.
    private final class Hold {
        /// Of the tees.
        var pads: [UnsafeMutablePointer<GstPad>] = []
        var isAdded = false
        var runs = false
    }

    /// - Parameters:
    ///   - id: not 0.
    ///   - description: of a bin with ``pictures`` and, with sound, ``sound``.
    ///   - limit: how much may wait in its queues, in seconds.
    ///   - needed: after how many buffers at `sender` the stream counts as taken; 0: with the first picture.
    ///   - sender: the name of the element that sends, with one entrance; nil: the bytes of its entrances are counted.
    init(
        _ id: UInt32, _ description: String, on streams: EncodedStreams, limit: Double, needed: Int, sender: String?
    ) throws(Elements.Missing) {
        (self.id, self.streams) = (id, streams)
        Runtime.provide(description)
        bin = try Elements.bin(description).get()
        gst_object_ref_sink(bin)
        shim_set_string(bin, "name", "\(CaptureEngine.streamName)-\(id)")
        shim_set_bool(bin, "message-forward", 1)
        gate = shim_gate_new(streams.pipeline.element, id, Times.nanoseconds(limit), guint(needed))
        var entries: [UnsafeMutablePointer<GstPad>] = []
        let names = streams.sound == nil ? ["pictures"] : ["pictures", "sound"]
        for (place, name) in names.enumerated() {
            guard let element = Elements.child(name, of: bin), let queue = Elements.child(name + "-queue", of: bin),
                let inner = gst_element_get_static_pad(element, "sink")
            else { continue }
            shim_gate_add(gate, inner, queue, place == 1 ? 1 : 0)
            if let entry = gst_ghost_pad_new(place == 1 ? "sound" : "pictures", inner) {
                gst_object_ref(entry)
                gst_element_add_pad(bin, entry)
                entries.append(entry)
            }
            gst_object_unref(inner)
        }
        self.entries = entries
        let counted: [(String, String)] =
            sender.map { [($0, "sink")] } ?? [("pictures-queue", "src"), ("sound-queue", "src")]
        for (name, side) in counted {
            guard let element = Elements.child(name, of: bin), let pad = gst_element_get_static_pad(element, side)
            else { continue }
            shim_gate_watch(gate, pad)
            gst_object_unref(pad)
        }
    }

    deinit {
        streams.pipeline.perform { [bin, gate, entries] in
            for entry in entries { gst_object_unref(entry) }
            gst_object_unref(bin)
            shim_gate_free(UnsafeMutableRawPointer(gate))
        }
    }

    /// An element of the bin.
    func child(_ name: String) -> UnsafeMutablePointer<GstElement>? { Elements.child(name, of: bin) }

    struct Facts {
        /// Pictures.
        let passed, dropped: UInt64
        /// Buffers and bytes that came to the element that sends.
        let arrived, bytes: UInt64
        /// Seconds in the longer queue.
        let queued: Double
    }

    var facts: Facts {
        let facts = shim_gate_read(gate)
        return Facts(
            passed: UInt64(facts.passed), dropped: UInt64(facts.dropped), arrived: UInt64(facts.arrived),
            bytes: UInt64(facts.bytes), queued: Times.seconds(facts.queued))
    }

    /// Whether a message is from an element of the bin.
    func owns(_ message: UnsafeMutablePointer<GstMessage>) -> Bool { Elements.owns(bin, message) }

    /// Starts it, and then links it: an element that does not run yet would refuse the data, and stop the encoders. If it
    /// does not start, its error is on the bus.
    func attach() {
        start()
        link()
    }

    /// Starts it; it gets nothing yet.
    func start() {
        streams.pipeline.perform { [streams, bin, hold] in
            Elements.add(bin, to: streams.pipeline.element)
            hold.isAdded = true
            hold.runs = gst_element_sync_state_with_parent(bin) != 0
        }
    }

    /// From now on it gets the streams.
    func link() {
        streams.pipeline.perform { [streams, entries, hold] in
            guard hold.runs, hold.pads.isEmpty else { return }
            for (tee, entry) in zip([streams.pictures, streams.sound].compactMap(\.self), entries) {
                guard let pad = gst_element_request_pad_simple(tee, "src_%u") else { continue }
                gst_pad_link(pad, entry)
                hold.pads.append(pad)
            }
        }
    }

    /// No more data comes; what is in it is sent to its end. A message with the end follows, unless it cannot be sent.
    func finish() {
        streams.pipeline.perform { [streams, entries, hold] in
            StreamBranch.unlink(hold, streams)
            for entry in entries { gst_pad_send_event(entry, gst_event_new_eos()) }
        }
    }

    /// Ends it at once, and takes it out of the pipeline.
    func remove() {
        streams.pipeline.perform { [streams, bin, hold] in
            StreamBranch.unlink(hold, streams)
            gst_element_set_locked_state(bin, 1)
            gst_element_set_state(bin, GST_STATE_NULL)
            guard hold.isAdded else { return }
            (hold.isAdded, hold.runs) = (false, false)
            Elements.remove(bin, from: streams.pipeline.element)
        }
    }

    private static func unlink(_ hold: Hold, _ streams: EncodedStreams) {
        for (tee, pad) in zip([streams.pictures, streams.sound].compactMap(\.self), hold.pads) {
            if let peer = gst_pad_get_peer(pad) {
                gst_pad_unlink(pad, peer)
                gst_object_unref(peer)
            }
            gst_element_release_request_pad(tee, pad)
            gst_object_unref(pad)
        }
        hold.pads = []
    }
}
