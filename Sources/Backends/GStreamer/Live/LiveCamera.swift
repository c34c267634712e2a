import CGStreamer
import CStreaming
import CameraBackend
import Capturing
import EventLoop
import GStreamerBackend
import GStreamerBase
import PluginAPI

/// The camera whose pictures are sent.
final class LiveCamera {
    private let monitor: CameraMonitor
    private let camera: CameraMonitor.Camera
    private let choice: CapturePreset.Choice
    /// Owned by the pipeline.
    private var element: Elements.Element?

    /// - Throws: `ResourceNotAvailable` if there is no such camera.
    init(_ name: String?, on loop: EventLoop) throws(SessionError) {
        monitor = CameraMonitor(on: loop)
        monitor.refresh()
        guard let camera = monitor.camera(called: name) else {
            let names = monitor.cameras.map { "'\($0.device.name)'" }.joined(separator: ", ")
            throw SessionError(
                .resourceNotAvailable,
                names.isEmpty
                    ? "there is no camera; with PipeWire, the package gstreamer1.0-pipewire must be installed"
                    : "there is no camera '\(name ?? "")'; there are \(names)")
        }
        guard let choice = CapturePreset.high.choice(from: camera.device.formats) else {
            throw SessionError(
                .resourceNotAvailable, "the camera '\(camera.device.name)' has no pictures that can be sent")
        }
        (self.camera, self.choice) = (camera, choice)
    }

    /// The elements between the camera and what changes its pictures. Without a filter, some providers hang.
    var description: String {
        let isJPEG = choice.format.pixels == CaptureFormat.jpeg
        let kind = isJPEG ? "image/jpeg" : "video/x-raw,format=\(choice.format.pixels)"
        let rate = "\(choice.rate.numerator)/\(choice.rate.denominator)"
        return "capsfilter name=wanted caps=\"\(kind),width=\(choice.format.width),height=\(choice.format.height)\" "
            + (isJPEG ? "! jpegdec " : "")
            + "! queue leaky=downstream max-size-buffers=2 max-size-bytes=0 max-size-time=0 "
            + "! videorate skip-to-first=true ! capsfilter caps=\"video/x-raw,framerate=\(rate)\""
    }

    /// Adds the camera to the pipeline of the description, in the state NULL.
    func enter(_ pipeline: Pipeline) throws(SessionError) {
        guard let wanted = pipeline.child("wanted"), let source = camera.makeSource() else {
            throw SessionError(.resourceNotAvailable, "the camera '\(camera.device.name)' is gone")
        }
        pipeline.add(source)
        // Pictures that come before the time of the pipeline has begun would have other times.
        gst_element_set_locked_state(source, 1)
        element = source
        guard gst_element_link(source, wanted) != 0, let pad = gst_element_get_static_pad(wanted, "sink") else {
            throw SessionError(.resourceNotAvailable, "the camera '\(camera.device.name)' cannot be connected")
        }
        // PipeWire's source would leave the camera when another branch is connected.
        shim_keep_format(pad)
        gst_object_unref(pad)
        // It would bring a clock of its own.
        if let clock = gst_system_clock_obtain() {
            pipeline.element.withMemoryRebound(to: GstPipeline.self, capacity: 1) { gst_pipeline_use_clock($0, clock) }
            gst_object_unref(clock)
        }
    }

    /// The pipeline plays.
    func open(in pipeline: Pipeline) {
        guard let element else { return }
        pipeline.perform {
            gst_element_set_locked_state(element, 0)
            gst_element_sync_state_with_parent(element)
        }
    }

    var name: String { camera.device.name }
}
