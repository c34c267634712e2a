package import CGStreamer
import CStreaming
import GStreamerBackend
import GStreamerBase
package import PluginAPI

/// One encoder of the pictures of a camera, and one of the sound, for a live stream and for the films beside it.
///
/// What is encoded comes to the tees ``pictures`` and ``sound`` of the pipeline, also while nothing takes it. It ends with the
/// last one that holds it.
package final class StreamEncoder {
    package static let pictures = "encoded-pictures"
    package static let sound = "encoded-sound"
    /// The names of the encoder of the pictures, and of the volume of the sound, in the descriptions.
    package static let encoder = "encoder"
    package static let volume = "stream-volume"

    private let pipeline: Pipeline
    private var parts: [Part] = []
    /// Of the queue before the encoder of the pictures.
    private let losses: QueueLosses

    /// A bin, the tee behind it, and where it gets its data from.
    private struct Part {
        let bin: Elements.Element
        let tee: Elements.Element
        var link: (tee: Elements.Element, pad: UnsafeMutablePointer<GstPad>, entry: UnsafeMutablePointer<GstPad>)?
    }

    /// - Parameters:
    ///   - pictures: elements after the queue, up to encoded pictures in units that can be decoded alone (`alignment=au`).
    ///   - sound: elements from raw sound to encoded one.
    ///   - interval: the distance of key frames, in nanoseconds.
    /// - Throws: `EncoderNotFound` if an element is missing.
    package init(
        pictures: String, sound: String, interval: guint64, on engine: CaptureEngine
    ) throws(SessionError) {
        pipeline = engine.pipeline
        let late = "queue name=entry leaky=downstream max-size-buffers=0 max-size-bytes=0 max-size-time=1000000000"
        let silence =
            "audiotestsrc name=stream-silence is-live=true wave=silence samplesperbuffer=480 ! \(CaptureEngine.soundCaps)"
        let heard =
            engine.hasSound ? "queue name=entry max-size-time=1000000000 max-size-bytes=0 max-size-buffers=0" : silence
        let seen = try Self.part("\(late) ! \(pictures)", Self.pictures)
        let other: Part
        do throws(SessionError) {
            other = try Self.part("\(heard) ! audioconvert ! volume name=\(Self.volume) ! \(sound)", Self.sound)
        } catch {
            Self.free(seen)
            throw error
        }
        guard let losses = Elements.child("entry", of: seen.bin).flatMap({ QueueLosses(of: $0, in: engine.pipeline) })
        else {
            for part in [seen, other] { Self.free(part) }
            throw SessionError(.encoderNotFound, "GStreamer cannot encode a stream: the branch has no entry")
        }
        self.losses = losses
        shim_beat_keys(losses.exit, interval)
        // It begins now, and not when the pipeline began.
        if let source = Elements.child("stream-silence", of: other.bin) {
            shim_set_int64(source, "timestamp-offset", gint64(clamping: pipeline.runningTime ?? 0))
        }
        parts = [seen, other]
        attach(0, to: "all-pictures")
        attach(1, to: engine.hasSound ? "all-sound" : nil)
    }

    deinit {
        for place in parts.indices { detach(place) }
    }

    /// The output of the queue before the encoder of the pictures.
    var entry: UnsafeMutablePointer<GstPad> { losses.exit }

    private static func part(_ description: String, _ tee: String) throws(SessionError) -> Part {
        Runtime.provide(description)
        switch Elements.bin(description + " ! identity name=end silent=true") {
        case .failure(let missing):
            throw SessionError(.encoderNotFound, "GStreamer cannot encode a stream: \(missing.message)")
        case .success(let bin):
            gst_object_ref_sink(bin)
            guard let tee = gst_element_factory_make("tee", tee) else {
                gst_object_unref(bin)
                throw SessionError(.encoderNotFound, "GStreamer cannot encode a stream: it has no tee")
            }
            gst_object_ref_sink(tee)
            shim_set_bool(tee, "allow-not-linked", 1)
            return Part(bin: bin, tee: tee)
        }
    }

    private static func free(_ part: Part) {
        gst_object_unref(part.bin)
        gst_object_unref(part.tee)
    }

    /// - Parameter name: the tee of the pipeline that gives it data; nil: it has a source of its own.
    private func attach(_ place: Int, to name: String?) {
        let part = parts[place]
        pipeline.add(part.tee)
        pipeline.add(part.bin)
        if let end = Elements.child("end", of: part.bin), let inner = gst_element_get_static_pad(end, "src"),
            let exit = gst_ghost_pad_new("src", inner), let way = gst_element_get_static_pad(part.tee, "sink")
        {
            gst_element_add_pad(part.bin, exit)
            gst_pad_link(exit, way)
            gst_object_unref(inner)
            gst_object_unref(way)
        }
        gst_element_sync_state_with_parent(part.tee)
        gst_element_sync_state_with_parent(part.bin)
        guard let name, let tee = pipeline.child(name), let entry = Elements.entry(to: "entry", of: part.bin),
            let pad = gst_element_request_pad_simple(tee, "src_%u")
        else { return }
        parts[place].link = (tee, pad, entry)
        gst_pad_link(pad, entry)
    }

    private func detach(_ place: Int) {
        let part = parts[place]
        gst_element_set_locked_state(part.bin, 1)
        gst_element_set_locked_state(part.tee, 1)
        if let link = part.link {
            gst_pad_unlink(link.pad, link.entry)
            gst_element_release_request_pad(link.tee, link.pad)
            gst_object_unref(link.pad)
            gst_object_unref(link.entry)
        }
        gst_element_set_state(part.bin, GST_STATE_NULL)
        gst_element_set_state(part.tee, GST_STATE_NULL)
        pipeline.remove(part.bin)
        pipeline.remove(part.tee)
        Self.free(part)
    }

    /// Pictures that came faster than they were encoded; those that still wait do not count.
    package var late: UInt64 { losses.lost }

    /// The element of the pictures, whose bit rate can change.
    package var element: UnsafeMutablePointer<GstElement>? {
        parts.first.flatMap { Elements.child(Self.encoder, of: $0.bin) }
    }

    package var isMuted = false {
        didSet {
            guard let volume = parts.last.flatMap({ Elements.child(Self.volume, of: $0.bin) }) else { return }
            shim_set_bool(volume, "mute", isMuted ? 1 : 0)
        }
    }

    /// Whether a message is from it.
    package func owns(_ message: UnsafeMutablePointer<GstMessage>) -> Bool {
        parts.contains { Elements.owns($0.bin, message) }
    }
}
