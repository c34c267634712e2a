import CGStreamer
import CStreaming
import EventLoop
import GStreamerBase

/// A pipeline that ends at a server, and whose changes of state may have to wait for it: the loop does not.
///
/// It plays until it is dropped.
final class FarPipeline {
    /// The server is gone, or refuses it.
    var onFailed: (() -> Void)?
    private let pipeline: Elements.Element
    private let bus: UnsafeMutablePointer<GstBus>
    private let far: OpaquePointer
    private var watch: IOWatch?

    /// - Parameters:
    ///   - description: for gst-launch; its last element is called `end`.
    ///   - prepare: sets properties of the elements in the bin; false: it cannot be used.
    init?(_ description: String, on loop: EventLoop, prepare: (_ bin: Elements.Element) -> Bool) {
        guard case .success(let bin) = Elements.bin(description), let pipeline = gst_pipeline_new(nil) else {
            return nil
        }
        gst_object_ref_sink(pipeline)
        Elements.add(bin, to: pipeline)
        guard prepare(bin), let end = Elements.child("end", of: bin), let bus = gst_element_get_bus(pipeline) else {
            gst_object_unref(pipeline)
            return nil
        }
        (self.pipeline, self.bus, far) = (pipeline, bus, shim_far_new(pipeline, end))
        var poll = GPollFD()
        gst_bus_get_pollfd(bus, &poll)
        watch = IOWatch(on: loop, descriptor: poll.fd, events: .readable) { [unowned self] _ in readBus() }
        shim_far_play(far)
    }

    deinit {
        watch = nil
        shim_far_free(UnsafeMutableRawPointer(far))
        gst_object_unref(bus)
        gst_object_unref(pipeline)
    }

    /// The pictures that have come to its end.
    var count: UInt32 { shim_far_count(far) }

    private func readBus() {
        withExtendedLifetime(self) {
            var hasFailed = false
            while let message = gst_bus_pop(bus) {
                if case .failed = Notice(message) { hasFailed = true }
                gst_message_unref(message)
            }
            if hasFailed { onFailed?() }
        }
    }
}
