import CGStreamer
import EventLoop

/// What follows an item in its own pipeline, so that no sample of silence is between the two.
///
/// The chain that follows is made ready and held at its first buffer. At the end of the one before it the probe at the
/// tail's entry drops the end and tells the loop, which has the whole of the sink's buffer to put the other chain in
/// its place, its running time beginning where the other's ended.
final class Succession {
    private let pipeline: Pipeline
    /// The tail's entry.
    private let entry: UnsafeMutablePointer<GstPad>
    /// Shared with GStreamer's thread, freed after the pipeline's end.
    private let flag: UnsafeMutablePointer<shim_succession>
    private var hold: gulong = 0
    /// Made ready, or about to be.
    private(set) var waiting: Chain?
    /// The waiting one could not be made ready.
    var onFailed: (() -> Void)?

    init?(in pipeline: Pipeline, to head: UnsafeMutablePointer<GstElement>) {
        guard let entry = gst_element_get_static_pad(head, "sink") else { return nil }
        (self.pipeline, self.entry) = (pipeline, entry)
        flag = .allocate(capacity: 1)
        flag.initialize(to: shim_succession(armed: 0, pipeline: pipeline.element))
        shim_watch_end(entry, flag)
    }

    deinit {
        // No thread runs any more then: what holds this closed the pipeline.
        pipeline.perform { [entry, flag] in
            gst_object_unref(entry)
            flag.deallocate()
        }
    }

    func link(_ chain: Chain) -> Bool { gst_pad_link(chain.pad, entry) == GST_PAD_LINK_OK }

    func prepare(_ source: MediaSource) throws(PipelineError) {
        forget()
        let chain = try Chain(source, in: pipeline)
        waiting = chain
        hold = shim_hold_pad(chain.pad, pipeline.element)
        chain.start()
    }

    func forget() {
        shim_succession_arm(flag, 0)
        waiting?.remove()
        waiting = nil
        hold = 0
    }

    /// Takes what concerns the waiting chain; false for all else.
    func take(_ message: UnsafeMutablePointer<GstMessage>, after present: Chain) -> Bool {
        guard let waiting else { return false }
        if message.pointee.type == GST_MESSAGE_APPLICATION, hold != 0, shim_held_pad(message) == hold {
            if waiting.sounds(like: present) { shim_succession_arm(flag, 1) }
            return true
        }
        guard waiting.isOrigin(of: message) else { return false }
        switch message.pointee.type {
        case GST_MESSAGE_TAG: _ = waiting.tags.take(message)
        case GST_MESSAGE_ERROR:
            forget()
            onFailed?()
        default: break
        }
        return true
    }

    /// Whether it tells that what flows has ended, and that the end is held back because another one is to follow.
    static func isEnd(_ message: UnsafeMutablePointer<GstMessage>) -> Bool {
        guard let structure = gst_message_get_structure(message) else { return false }
        return gst_structure_has_name(structure, "source-ended") != 0
    }

    /// Puts the waiting chain in the place of `present`, to sound from that running time on.
    /// - Returns: nil where nothing waits.
    func replace(_ present: Chain, at runningTime: GstClockTime) -> Chain? {
        guard let chain = waiting else { return nil }
        shim_succession_arm(flag, 0)
        waiting = nil
        gst_pad_unlink(present.pad, entry)
        present.remove()
        gst_pad_set_offset(chain.pad, Int(clamping: runningTime))
        guard link(chain) else { return nil }
        let held = hold
        hold = 0
        gst_pad_remove_probe(chain.pad, held)
        return chain
    }
}
