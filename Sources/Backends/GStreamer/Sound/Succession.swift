import CGStreamer
import CStreaming
import EventLoop
import GStreamerBase

/// The next item in the same pipeline, so that there is no silence between the two.
///
/// The next chain is prepared and blocked at its first buffer. At the end of the current chain, the probe at the entry
/// of the sink's part drops the end and reports it to the loop. Until the sink's buffer is empty, the loop replaces the
/// chain; its running time begins where that of the last one ended.
final class Succession {
    private let pipeline: Pipeline
    /// The entry of the elements before the sink.
    private let entry: UnsafeMutablePointer<GstPad>
    /// Shared with GStreamer's thread, freed after the pipeline's end.
    private let flag: UnsafeMutablePointer<shim_succession>
    private var hold: gulong = 0
    /// The next chain: prepared, or being prepared.
    private(set) var waiting: Chain?
    /// The next chain could not be prepared.
    var onFailed: (() -> Void)?

    init?(in pipeline: Pipeline, to head: UnsafeMutablePointer<GstElement>) {
        guard let entry = gst_element_get_static_pad(head, "sink") else { return nil }
        (self.pipeline, self.entry) = (pipeline, entry)
        flag = .allocate(capacity: 1)
        flag.initialize(to: shim_succession(armed: 0, pipeline: pipeline.element))
        shim_watch_end(entry, flag)
    }

    deinit {
        // No thread runs any more: the owner has closed the pipeline.
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

    /// Handles messages of the next chain; false for all others.
    func take(_ message: UnsafeMutablePointer<GstMessage>, after present: Chain) -> Bool {
        guard let waiting else { return false }
        if message.pointee.type == GST_MESSAGE_APPLICATION, hold != 0, shim_held_pad(message) == hold {
            if waiting.hasSameFormat(as: present) { shim_succession_arm(flag, 1) }
            return true
        }
        guard waiting.isOrigin(of: message) else { return false }
        switch Notice(message) {
        case .tags: _ = waiting.tags.take(message)
        case .failed:
            forget()
            onFailed?()
        case .prerolled, .ended, .segmentDone, .durationChanged, .lacksPlugin, .buffered, .application, .element,
            .other:
            break
        }
        return true
    }

    /// Whether the message reports the end of the current chain, which was dropped because another one follows.
    static func isEnd(_ message: UnsafeMutablePointer<GstMessage>) -> Bool {
        guard let structure = gst_message_get_structure(message) else { return false }
        return gst_structure_has_name(structure, "source-ended") != 0
    }

    /// Replaces `present` by the next chain, which plays from that running time on.
    /// - Returns: nil if there is none.
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
