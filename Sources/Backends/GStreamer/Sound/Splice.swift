import CGStreamer
import CStreaming
import EventLoop

/// The connection between two elements, where filters are added and removed while the sound plays.
///
/// The pad before it is blocked at a buffer. GStreamer reports that on the bus, and then the loop links the elements
/// anew. A filter that is not wanted costs nothing.
final class Splice {
    enum Filter: Int, CaseIterable {
        case tempo, level, pan

        var description: String {
            switch self {
            case .tempo: "audioconvert ! scaletempo name=tempo"
            case .level: "audioconvert ! level name=level interval=50000000"
            case .pan: "audioconvert ! audiopanorama name=pan method=simple"
            }
        }
    }

    private let pipeline: Pipeline
    private let head: UnsafeMutablePointer<GstElement>
    private let tail: UnsafeMutablePointer<GstElement>
    private let pad: UnsafeMutablePointer<GstPad>
    private var present: [Filter: UnsafeMutablePointer<GstElement>] = [:]
    /// Created before the pad is blocked, because loading a plugin takes longer than the sink can wait.
    private var made: [Filter: UnsafeMutablePointer<GstElement>] = [:]
    private var hold: gulong = 0
    private let loop: EventLoop
    private lazy var again = Timer(on: loop) { [weak self] in self?.relinkIfHeld() }
    private var looks = 0
    /// Called on the loop when the wanted filters are in their places.
    var onChanged: (() -> Void)?

    /// The filters that must be there. A change takes effect at once before the pipeline is started, later between two
    /// buffers.
    private(set) var wanted: Set<Filter> = []

    init?(in pipeline: Pipeline, from head: String, to tail: String, on loop: EventLoop) {
        guard let from = pipeline.child(head), let to = pipeline.child(tail),
            let pad = gst_element_get_static_pad(from, "src")
        else { return nil }
        (self.pipeline, self.head, self.tail, self.pad, self.loop) = (pipeline, from, to, pad, loop)
    }

    deinit {
        if hold != 0 { gst_pad_remove_probe(pad, hold) }
        gst_object_unref(pad)
        for element in made.values { gst_object_unref(element) }
    }

    /// `flowing` is false before the pipeline was started.
    func want(_ filters: Set<Filter>, flowing: Bool) {
        wanted = filters
        for filter in filters where present[filter] == nil && made[filter] == nil {
            Runtime.provide(filter.description)
            // Without the plugin, the sound is not filtered.
            guard let bin = gst_parse_bin_from_description(filter.description, 1, nil) else { continue }
            made[filter] = UnsafeMutableRawPointer(bin).assumingMemoryBound(to: GstElement.self)
        }
        guard filters != Set(present.keys), hold == 0 else { return }
        if flowing { hold = shim_hold_pad(pad, pipeline.element) } else { relink() }
    }

    /// Must be called with each application message on the bus.
    func take(_ message: UnsafeMutablePointer<GstMessage>) {
        // A message from an earlier block does not count: the pad is not blocked now.
        guard hold != 0, shim_held_pad(message) == hold else { return }
        looks = 0
        relinkIfHeld()
    }

    private func relinkIfHeld() {
        guard hold != 0 else { return }
        if gst_pad_is_blocking(pad) != 0 {
            relink()
            let held = hold
            hold = 0
            gst_pad_remove_probe(pad, held)
        } else if looks < 50 {
            // The message comes a moment before the pad is blocked; or a seek has released it, and then another message
            // follows.
            looks += 1
            again.arm(after: 0.001)
        }
    }

    private func relink() {
        let before = chain()
        for (first, second) in zip(before, before.dropFirst()) { gst_element_unlink(first, second) }
        for (filter, element) in present where !wanted.contains(filter) {
            gst_element_set_state(element, GST_STATE_NULL)
            pipeline.remove(element)
            present[filter] = nil
        }
        for filter in wanted where present[filter] == nil {
            guard let element = made.removeValue(forKey: filter) else { continue }
            pipeline.add(element)
            present[filter] = element
            // The element must run before data can reach it: otherwise it refuses the data, and a live source then
            // stops forever.
            gst_element_sync_state_with_parent(element)
        }
        let after = chain()
        for (first, second) in zip(after, after.dropFirst()).reversed() { gst_element_link(first, second) }
        onChanged?()
    }

    private func chain() -> [UnsafeMutablePointer<GstElement>] {
        [head] + Filter.allCases.compactMap { present[$0] } + [tail]
    }
}
