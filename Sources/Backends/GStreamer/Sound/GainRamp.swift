import CGStreamer
import GStreamerBase
import Glibc

/// Moves a `volume` element's gain along a curve, computed for every sample by GStreamer's controller.
///
/// The curve uses the item's time and begins where the element's last buffer ended. So the gain never jumps, whatever
/// the size of the buffers and however late the loop is. The element's property holds the end value while no curve is
/// set.
final class GainRamp {
    private let element: UnsafeMutablePointer<GstElement>
    /// The curve while it is bound to the element.
    private var curve: UnsafeMutablePointer<GstControlSource>?
    private var points: [(time: GstClockTime, gain: Double)] = []
    /// The gain at the end of the curve, linear.
    private(set) var target: Double

    /// The steepest ramp, in seconds for each decibel.
    static let secondsPerDecibel = 0.006
    /// The gain in decibels that counts as silence: a fall ends and a rise begins there.
    static let floor = -80.0

    init(_ element: UnsafeMutablePointer<GstElement>, gain: Double) {
        self.element = element
        target = gain
        shim_set_double(element, "volume", gain)
        gst_object_ref(element)
    }

    deinit {
        unbind()
        gst_object_unref(element)
    }

    static func decibels(_ gain: Double) -> Double { gain > 0 ? max(floor, 20 * log10(gain)) : floor }
    static func gain(_ decibels: Double) -> Double { decibels <= floor ? 0 : pow(10, decibels / 20) }

    /// Sets the gain at once. This is a jump: only for silence.
    func set(_ gain: Double) {
        unbind()
        target = gain
        shim_set_double(element, "volume", gain)
    }

    /// Moves from the current gain to `gain`, linear in decibels, in `seconds` of the item's time or longer.
    func move(to gain: Double, over seconds: Double, rate: Double) {
        let head = shim_transform_position(element)
        guard head != GstClockTime.max else { return set(gain) }
        let from = GainRamp.decibels(value(at: head))
        let to = GainRamp.decibels(gain)
        let span = max(seconds, abs(to - from) * GainRamp.secondsPerDecibel) * max(rate, 0.1)
        let steps = max(2, Int(min(span, 60) * 100))
        var next = points.filter { $0.time < head }.suffix(1)
        for step in 0...steps {
            let part = Double(step) / Double(steps)
            let time = head &+ Times.nanoseconds(span * part)
            next.append((time, step == steps ? gain : GainRamp.gain(max(from + (to - from) * part, -79.9))))
        }
        // At exactly 1, the element does not change a buffer at all, even if the curve leaves 1 within it.
        for place in next.indices.dropLast() where next[place].gain > 0.998 { next[place].gain = 0.998 }
        target = gain
        bind(Array(next))
    }

    /// Removes the curve when the sound has passed its end.
    func settle() {
        guard curve != nil, let end = points.last?.time else { return }
        let head = shim_transform_position(element)
        if head != GstClockTime.max, head >= end { set(target) }
    }

    /// The item's time starts again at 0 after the element's last buffer: the rest of the curve is moved there.
    func carryOver() {
        guard curve != nil else { return }
        let head = shim_transform_position(element)
        guard head != GstClockTime.max, let end = points.last?.time, end > head else { return set(target) }
        let first = (time: GstClockTime(0), gain: value(at: head))
        bind([first] + points.filter { $0.time > head }.map { ($0.time - head, $0.gain) })
    }

    /// The end of the element's last buffer, in the item's time; nil before the first one.
    var head: GstClockTime? {
        let head = shim_transform_position(element)
        return head == GstClockTime.max ? nil : head
    }

    /// The same in running time.
    var runningHead: GstClockTime? {
        let head = shim_transform_running_time(element)
        return head == GstClockTime.max ? nil : head
    }

    var isMoving: Bool { curve != nil }

    private func value(at time: GstClockTime) -> Double {
        guard let after = points.firstIndex(where: { $0.time > time }) else { return target }
        guard after > 0 else { return points[after].gain }
        let (first, second) = (points[after - 1], points[after])
        let part = Double(time - first.time) / Double(max(1, second.time - first.time))
        return first.gain + (second.gain - first.gain) * part
    }

    private func bind(_ next: [(time: GstClockTime, gain: Double)]) {
        points = next
        // A new curve with a new binding replaces the old one in a single step under the element's lock.
        guard let source = gst_interpolation_control_source_new() else { return set(target) }
        gst_object_ref_sink(source)
        gst_util_set_object_arg(
            UnsafeMutableRawPointer(source).assumingMemoryBound(to: GObject.self), "mode", "linear")
        let timed = UnsafeMutableRawPointer(source).assumingMemoryBound(to: GstTimedValueControlSource.self)
        for point in next { gst_timed_value_control_source_set(timed, point.time, point.gain) }
        let object = UnsafeMutableRawPointer(element).assumingMemoryBound(to: GstObject.self)
        if let binding = gst_direct_control_binding_new_absolute(object, "volume", source) {
            gst_object_add_control_binding(object, binding)
        }
        if let curve { gst_object_unref(curve) }
        curve = source
    }

    private func unbind() {
        guard let curve else { return }
        let object = UnsafeMutableRawPointer(element).assumingMemoryBound(to: GstObject.self)
        if let binding = gst_object_get_control_binding(object, "volume") {
            gst_object_remove_control_binding(object, binding)
            gst_object_unref(binding)
        }
        gst_object_unref(curve)
        self.curve = nil
        points = []
    }
}
