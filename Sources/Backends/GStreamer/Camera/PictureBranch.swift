import CGStreamer
import GStreamerBackend
import GStreamerBase
import PluginAPI

/// A part of the pipeline behind the tee of the pictures, which comes and goes while the pipeline runs.
final class PictureBranch {
    let bin: Elements.Element
    private let pipeline: Pipeline
    /// The output of the tee and the entry of the bin, both owned.
    private var link: (tee: Elements.Element, pad: UnsafeMutablePointer<GstPad>, entry: UnsafeMutablePointer<GstPad>)?
    private var isAdded = false

    /// Builds it; ``attach()`` connects it.
    /// - Parameter description: its first element is named `entry`.
    init(_ description: String, in pipeline: Pipeline) throws(SessionError) {
        self.pipeline = pipeline
        switch Elements.bin(description) {
        case .success(let made): bin = made
        case .failure(let missing):
            throw SessionError(.notSupported, "GStreamer cannot give the pictures: \(missing.message)")
        }
        gst_object_ref_sink(bin)
    }

    deinit {
        remove()
        gst_object_unref(bin)
    }

    func attach() {
        pipeline.add(bin)
        isAdded = true
        gst_element_sync_state_with_parent(bin)
        guard let tee = pipeline.child("all-pictures"), let entry = Elements.entry(to: "entry", of: bin),
            let pad = gst_element_request_pad_simple(tee, "src_%u")
        else { return }
        link = (tee, pad, entry)
        gst_pad_link(pad, entry)
    }

    func remove() {
        guard isAdded else { return }
        isAdded = false
        gst_element_set_locked_state(bin, 1)
        if let link {
            gst_pad_unlink(link.pad, link.entry)
            gst_element_release_request_pad(link.tee, link.pad)
            gst_object_unref(link.pad)
            gst_object_unref(link.entry)
        }
        link = nil
        gst_element_set_state(bin, GST_STATE_NULL)
        pipeline.remove(bin)
    }
}
