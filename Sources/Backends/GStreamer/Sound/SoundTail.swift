import CGStreamer
import EventLoop
import GStreamerBase
import PluginAPI

/// The end of an item's sound in its pipeline: the converter, the filters while they are wanted, the user's volume and the
/// duck's, and the stream to the sound server.
///
/// What an item has before it, one file or a film with pictures, does not matter here.
final class SoundTail {
    /// gst-launch text of its elements: a pipeline has them before the tail takes them.
    static let description =
        "audioconvert name=head ! volume name=volume ! volume name=duck ! pulsesink name=sink"

    /// The first element, which raw sound of any format is linked to.
    let head: UnsafeMutablePointer<GstElement>
    let volume: GainRamp
    let duck: GainRamp
    let outlet: Outlet
    private let splice: Splice
    private var meter = Meter()
    private let pipeline: Pipeline

    /// Takes the elements of ``description`` in the pipeline, which must be in the state NULL.
    /// - Parameters:
    ///   - device: the name of a sink at the server; nil: the default.
    ///   - title: the name of the stream.
    ///   - isLive: it is to be heard soon.
    init(
        in pipeline: Pipeline, identity: StreamIdentity, device: String?, title: String, isLive: Bool = false,
        on loop: EventLoop
    ) throws(PipelineError) {
        guard let head = pipeline.child("head"), let volume = pipeline.child("volume"),
            let duck = pipeline.child("duck"),
            let outlet = Outlet(
                in: pipeline, after: duck, identity: identity, device: device, title: title, isLive: isLive),
            let splice = Splice(in: pipeline, from: "head", to: "volume", on: loop)
        else { throw PipelineError(message: "the pipeline is incomplete") }
        (self.pipeline, self.head, self.outlet, self.splice) = (pipeline, head, outlet, splice)
        self.volume = GainRamp(volume, gain: 1)
        self.duck = GainRamp(duck, gain: 1)
    }

    /// Sets the filters that must be there, and the panorama: −1 left, 1 right.
    func apply(filters: Set<Splice.Filter>, pan: Double) {
        splice.onChanged = { [weak self] in self?.turn(pan) }
        if !filters.contains(.level) { meter.clear() }
        splice.want(filters, flowing: pipeline.isStarted)
        turn(pan)
    }

    private func turn(_ pan: Double) {
        if let element = pipeline.child("pan") { shim_set_float(element, "panorama", pan) }
    }

    /// Takes a message of the pipeline's bus that may be from one of its elements.
    func take(_ message: UnsafeMutablePointer<GstMessage>) {
        if message.pointee.type == GST_MESSAGE_APPLICATION { splice.take(message) } else { meter.take(message) }
    }

    /// The levels that are heard at that time of the item; empty if there are none.
    func levels(at time: GstClockTime?) -> [ChannelLevel] { meter.levels(at: time) }

    func clearMeter() { meter.clear() }

    /// Another item begins after the last buffer, at its own time 0.
    func carryOver() {
        volume.carryOver()
        duck.carryOver()
        meter.clear()
    }

    /// How far it was heard, in seconds of the item, after the server is gone: the end of the decoded sound, minus the part
    /// in the sink's buffer. Nil before the first buffer.
    var heardBeforeLoss: Double? { volume.head.map { Times.seconds($0) - Double(outlet.bufferTime) / 1e6 } }

    /// The channels of the sound; 0 while unknown.
    var channels: Int {
        guard let pad = gst_element_get_static_pad(head, "src") else { return 0 }
        defer { gst_object_unref(pad) }
        guard let caps = gst_pad_get_current_caps(pad) else { return 0 }
        defer { gst_caps_unref(caps) }
        var count: gint = 0
        gst_structure_get_int(gst_caps_get_structure(caps, 0), "channels", &count)
        return Int(count)
    }
}
