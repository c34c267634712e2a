package import CGStreamer
import CStreaming
package import GStreamerBase

/// The buffers that a queue which drops what it cannot take did not pass on.
package final class QueueLosses {
    /// The output of the queue, valid while the queue is.
    package let exit: UnsafeMutablePointer<GstPad>
    private let queue: Elements.Element
    private let pipeline: Pipeline
    /// Before and after the queue; freed after its pipeline has let go of it.
    private let counts: UnsafeMutablePointer<guint64>

    /// - Parameter queue: of the pipeline. Nil: it has not the pads of a queue.
    package init?(of queue: Elements.Element, in pipeline: Pipeline) {
        guard let before = gst_element_get_static_pad(queue, "sink"),
            let after = gst_element_get_static_pad(queue, "src")
        else { return nil }
        (self.queue, self.pipeline, exit) = (queue, pipeline, after)
        counts = .allocate(capacity: 2)
        counts.initialize(repeating: 0, count: 2)
        shim_count_buffers(before, counts)
        shim_count_buffers(after, counts + 1)
        gst_object_unref(before)
    }

    deinit {
        pipeline.perform { [counts, exit] in
            gst_object_unref(exit)
            counts.deallocate()
        }
    }

    package var passed: UInt64 { UInt64(shim_counted_buffers(counts + 1)) }

    /// Those that still wait do not count.
    package var lost: UInt64 {
        let (after, before) = (shim_counted_buffers(counts + 1), shim_counted_buffers(counts))
        let gone = before - min(before, after)
        return UInt64(gone - min(gone, guint64(shim_get_uint(queue, "current-level-buffers"))))
    }
}
