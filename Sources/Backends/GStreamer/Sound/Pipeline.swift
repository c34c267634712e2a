package import CGStreamer
package import EventLoop
import GStreamerBase
import PluginAPI

/// Owns one GStreamer pipeline; its bus is read on the loop. Dropping or closing it frees everything it held.
package final class Pipeline {
    /// The pipeline, owned by this object.
    package let element: UnsafeMutablePointer<GstElement>
    private let bus: UnsafeMutablePointer<GstBus>
    private let reachesServer: Bool
    private var watch: IOWatch?
    /// Called on the loop for each message, which is borrowed.
    package var onMessage: ((UnsafeMutablePointer<GstMessage>) -> Void)?

    /// Builds the pipeline from a description for gst-launch (`gst_parse_launch`), in state NULL.
    ///
    /// `reachesServer`: it has a sink or a source at the sound server, for which it may have to wait.
    package init(_ description: String, on loop: EventLoop, reachesServer: Bool = false) throws(PipelineError) {
        self.reachesServer = reachesServer
        Runtime.provide(description)
        var error: UnsafeMutablePointer<GError>?
        // It fails if an element is missing; without the flag, that element would be left out.
        let given = gst_parse_launch_full(description, nil, GST_PARSE_FLAG_FATAL_ERRORS, &error)
        defer { if let error { g_error_free(error) } }
        guard let parsed = given else {
            throw PipelineError(message: error.map { String(cString: $0.pointee.message) } ?? "")
        }
        var made = parsed
        if let bus = gst_element_get_bus(parsed) {
            gst_object_unref(bus)
        } else if let pipeline = gst_pipeline_new(nil) {
            // A description of one element gives that element.
            Elements.add(parsed, to: pipeline)
            made = pipeline
        }
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
    package func close() {
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

    /// Executes `body`, which may have to wait for the sound server. The order is kept, also if the server does not
    /// respond and `body` is executed later (``ServerThread``).
    ///
    /// `body` may use the pipeline's elements, but no objects that the loop uses.
    /// - Parameter late: called on another thread if it was done later.
    /// - Returns: nil if it is not done yet.
    @discardableResult
    package func perform<Answer>(_ body: @escaping () -> Answer, late: ((Answer) -> Void)? = nil) -> Answer? {
        reachesServer ? ServerThread.shared.run(body, late: late) : body()
    }

    /// Whether a state above NULL was requested and the pipeline is not closed.
    package private(set) var isStarted = false

    /// False if it is refused; a later refusal arrives as an error on the bus.
    @discardableResult
    package func setState(_ state: GstState) -> Bool {
        isStarted = true
        return perform { [element] in gst_element_set_state(element, state) != GST_STATE_CHANGE_FAILURE } ?? true
    }

    /// After ASYNC_DONE, waits until the change of state is complete; mostly it is already.
    ///
    /// ASYNC_DONE comes before the pipeline continues to the requested state. A request to pause in between blocks
    /// GStreamer 1.22: the pipeline then stays as it is, whatever is requested.
    func settle() { perform { [element] in gst_element_get_state(element, nil, nil, Pipeline.settlingTime) } }

    /// More than a busy machine needs to start a thread, in nanoseconds.
    private static let settlingTime: GstClockTime = 200_000_000

    /// The element of that name, valid while the pipeline holds it.
    package func child(_ name: String) -> UnsafeMutablePointer<GstElement>? { Pipeline.child(name, of: element) }

    /// The element of that name in a bin, valid while the bin holds it.
    static func child(_ name: String, of bin: UnsafeMutablePointer<GstElement>) -> UnsafeMutablePointer<GstElement>? {
        Elements.child(name, of: bin)
    }

    package func add(_ child: UnsafeMutablePointer<GstElement>) { Elements.add(child, to: element) }

    /// Removes the element, and frees it if this was the last reference.
    package func remove(_ child: UnsafeMutablePointer<GstElement>) { Elements.remove(child, from: element) }

    /// How long it has played, in nanoseconds without pauses; nil before it plays.
    package var runningTime: GstClockTime? {
        let time = gst_element_get_current_running_time(element)
        return time == GstClockTime.max ? nil : time
    }

    /// The position in the item in nanoseconds; nil if unknown.
    var position: Int? {
        var value = 0
        return gst_element_query_position(element, GST_FORMAT_TIME, &value) != 0 && value >= 0 ? value : nil
    }

    /// In nanoseconds; nil if unknown.
    var duration: Int? { Elements.duration(of: element) }

    /// The error on the bus after a failed change of state; earlier messages are dropped.
    package func popError(item: String) -> String? {
        guard let message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR) else { return nil }
        defer { gst_message_unref(message) }
        return Failure(Fault(message), item: item, missing: nil).message
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

/// A pipeline cannot be built, mostly because an element is not installed.
package struct PipelineError: Error {
    package let message: String
}
