import CGStreamer
import EventLoop
import PluginAPI

/// Owns one GStreamer pipeline; its bus is read on the loop. Dropping or closing it frees everything it held.
final class Pipeline {
    /// The pipeline itself, ours until the end.
    let element: UnsafeMutablePointer<GstElement>
    private let bus: UnsafeMutablePointer<GstBus>
    private let reachesServer: Bool
    private var watch: IOWatch?
    /// Called on the loop for each message, which is borrowed.
    var onMessage: ((UnsafeMutablePointer<GstMessage>) -> Void)?

    /// Builds what `description` says, in the words of gst-launch (`gst_parse_launch`), in state NULL.
    ///
    /// `reachesServer`: it has a sink or a source at the sound server, which may keep it waiting.
    init(_ description: String, on loop: EventLoop, reachesServer: Bool = false) throws(PipelineError) {
        self.reachesServer = reachesServer
        Runtime.provide(description)
        var error: UnsafeMutablePointer<GError>?
        // Whole or not at all: without the flag a missing element is left out.
        let made = gst_parse_launch_full(description, nil, GST_PARSE_FLAG_FATAL_ERRORS, &error)
        defer { if let error { g_error_free(error) } }
        guard let made else { throw PipelineError(message: error.map { String(cString: $0.pointee.message) } ?? "") }
        gst_object_ref_sink(made)
        element = made
        guard let bus = gst_element_get_bus(made) else {
            gst_object_unref(made)
            throw PipelineError(message: "the pipeline has no bus")
        }
        self.bus = bus
        var poll = GPollFD()
        gst_bus_get_pollfd(bus, &poll)
        watch = IOWatch(on: loop, descriptor: poll.fd, events: .readable) { [weak self] _ in self?.readBus() }
    }

    deinit { release() }

    /// Stops everything now; no message comes after it. The elements stay valid until the object goes.
    func close() {
        onMessage = nil
        guard watch != nil else { return }
        watch = nil
        perform { [element] in gst_element_set_state(element, GST_STATE_NULL) }
    }

    private func release() {
        close()
        perform { [bus, element] in
            gst_object_unref(bus)
            gst_object_unref(element)
        }
    }

    /// Does what may have to wait for the sound server; in its order, also where the server is stopped and it is done
    /// later (``ServerThread``).
    ///
    /// `body` may touch the pipeline's elements, and nothing that the loop touches.
    /// - Parameter late: called on another thread where it was done later.
    /// - Returns: nil where it is not done yet.
    @discardableResult
    func perform<Answer>(_ body: @escaping () -> Answer, late: ((Answer) -> Void)? = nil) -> Answer? {
        reachesServer ? ServerThread.shared.run(body, late: late) : body()
    }

    /// Was asked to be more than NULL, and is not closed.
    private(set) var isStarted = false

    /// False where it is refused; what is refused later comes as an error on the bus.
    @discardableResult
    func setState(_ state: GstState) -> Bool {
        isStarted = true
        return perform { [element] in gst_element_set_state(element, state) != GST_STATE_CHANGE_FAILURE } ?? true
    }

    /// Waits, once ASYNC_DONE is read, until the change of state that it belongs to is over; mostly it is.
    ///
    /// It is told before the pipeline goes on to what was asked for. Asked to pause in between, GStreamer 1.22 would do
    /// neither, and leave the pipeline as it is whatever it is asked for later.
    func settle() { perform { [element] in gst_element_get_state(element, nil, nil, Pipeline.settlingTime) } }

    /// More than a busy machine needs to start a thread, in nanoseconds.
    private static let settlingTime: GstClockTime = 200_000_000

    /// The element of that name, valid while the pipeline holds it.
    func child(_ name: String) -> UnsafeMutablePointer<GstElement>? { Pipeline.child(name, of: element) }

    /// The element of that name in a bin, valid while the bin holds it.
    static func child(_ name: String, of bin: UnsafeMutablePointer<GstElement>) -> UnsafeMutablePointer<GstElement>? {
        guard let found = bin.withMemoryRebound(to: GstBin.self, capacity: 1, { gst_bin_get_by_name($0, name) })
        else { return nil }
        gst_object_unref(found)
        return found
    }

    func add(_ child: UnsafeMutablePointer<GstElement>) {
        element.withMemoryRebound(to: GstBin.self, capacity: 1) { _ = gst_bin_add($0, child) }
    }

    /// Drops it, where nobody else holds it.
    func remove(_ child: UnsafeMutablePointer<GstElement>) {
        element.withMemoryRebound(to: GstBin.self, capacity: 1) { _ = gst_bin_remove($0, child) }
    }

    /// How much of what was asked to sound was heard, in nanoseconds, pauses left out; nil before it sounds.
    var runningTime: GstClockTime? {
        let time = gst_element_get_current_running_time(element)
        return time == GstClockTime.max ? nil : time
    }

    /// Nanoseconds of the item heard so far; nil where the pipeline does not know.
    var position: Int? {
        var value = 0
        return gst_element_query_position(element, GST_FORMAT_TIME, &value) != 0 && value >= 0 ? value : nil
    }

    /// Nanoseconds; nil where unknown.
    var duration: Int? {
        var value = 0
        return gst_element_query_duration(element, GST_FORMAT_TIME, &value) != 0 && value > 0 ? value : nil
    }

    /// The error that waits on the bus, where a state change just failed; what came before it is dropped.
    func popError(item: String) -> String? {
        guard let message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR) else { return nil }
        defer { gst_message_unref(message) }
        return Failure(message, item: item, missing: nil).message
    }

    private func readBus() {
        withExtendedLifetime(self) {
            while watch != nil, let message = gst_bus_pop(bus) {
                onMessage?(message)
                gst_message_unref(message)
            }
        }
    }
}

/// A pipeline that cannot be built; mostly an element that is not installed.
struct PipelineError: Error {
    let message: String
}
