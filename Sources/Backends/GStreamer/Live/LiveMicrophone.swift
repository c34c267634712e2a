import CGStreamer
import GStreamerBackend
import GStreamerBase

/// The microphone before a mixer. The mixer gives silence without it, so it comes and goes while the stream runs: when it is
/// off, it is closed, and nothing records.
final class LiveMicrophone {
    private let pipeline: Pipeline
    private let mixer: UnsafeMutablePointer<GstElement>
    private let identity: StreamIdentity
    private let device: String?
    private var bin: UnsafeMutablePointer<GstElement>?
    /// Used only by ``Pipeline/perform(_:late:)``.
    private final class Hold { var pad: UnsafeMutablePointer<GstPad>? }
    private var hold = Hold()

    /// How late its sound may come, in nanoseconds: the mixer drops what comes later. Pictures wait for it by their times.
    static let latency = 100_000_000

    private static let description =
        "pulsesrc name=device provide-clock=false buffer-time=200000 latency-time=10000 "
        + "! audioconvert ! audioresample ! capsfilter name=out caps=\"audio/x-raw,rate=48000,channels=2\""

    /// - Parameter device: the server's name of the source; nil: its default one.
    init?(in pipeline: Pipeline, mixer: String, _ identity: StreamIdentity, device: String?) {
        guard let found = pipeline.child(mixer) else { return nil }
        (self.pipeline, self.mixer, self.identity, self.device) = (pipeline, found, identity, device)
    }

    var isOn: Bool {
        get { bin != nil }
        set { if newValue != isOn { if newValue { open() } else { close() } } }
    }

    /// Whether a message is from it.
    func owns(_ message: UnsafeMutablePointer<GstMessage>) -> Bool {
        bin.map { Elements.owns($0, message) } ?? false
    }

    private func open() {
        Runtime.provide(Self.description)
        guard case .success(let made) = Elements.bin(Self.description),
            let device = Elements.child("device", of: made), let last = Elements.child("out", of: made),
            let inner = gst_element_get_static_pad(last, "src")
        else { return }
        gst_object_ref_sink(made)
        let exit = gst_ghost_pad_new("src", inner)
        gst_object_unref(inner)
        gst_element_add_pad(made, exit)
        shim_set_string(device, "device", self.device)
        identity.apply(to: device, mediaName: "Live stream", role: "production")
        bin = made
        let hold = Hold()
        self.hold = hold
        pipeline.perform { [pipeline, mixer] in
            Elements.add(made, to: pipeline.element)
            // First linked, because a source begins at once; the mixer takes the data.
            if let exit, let pad = gst_element_request_pad_simple(mixer, "sink_%u") {
                gst_pad_link(exit, pad)
                hold.pad = pad
            }
            gst_element_sync_state_with_parent(made)
        }
    }

    private func close() {
        guard let bin else { return }
        self.bin = nil
        pipeline.perform { [pipeline, mixer, hold] in
            gst_element_set_locked_state(bin, 1)
            gst_element_set_state(bin, GST_STATE_NULL)
            if let pad = hold.pad {
                gst_element_release_request_pad(mixer, pad)
                gst_object_unref(pad)
                hold.pad = nil
            }
            Elements.remove(bin, from: pipeline.element)
            gst_object_unref(bin)
        }
    }
}
