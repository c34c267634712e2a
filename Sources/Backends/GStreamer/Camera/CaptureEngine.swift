package import CGStreamer
import CStreaming
package import Capturing
package import EventLoop
package import GStreamerBackend
import GStreamerBase
package import PluginAPI
import VideoBackend

/// A camera and, if there is sound, a microphone in one pipeline that runs: photos and films are taken from it.
///
///     camera ─ selector ─ steady rate ─ tee ─┬ last picture      microphone ─┐
///                                            ├ preview, frames               │
///                                            └ film ◄───── tee ─ meter ─ mixer ┴ silence
///
/// The pictures have a fixed size and a fixed rate, whatever camera sends them. The sound never stops, so a microphone can come
/// and go while a film is recorded: without it, there is silence.
package final class CaptureEngine {
    typealias Element = Elements.Element

    /// The pictures arrive, for the first time or again.
    package var onPictures: (() -> Void)?
    /// No picture has come for two seconds, or the camera reports an error; with its words. The camera is closed.
    package var onCameraLost: ((String) -> Void)?
    /// The microphone, or the sound server, is gone; with its words.
    package var onSoundLost: ((String) -> Void)?
    /// How a camera is opened now: it may have left and come back meanwhile. Nil: it is gone.
    package var onReopen: ((_ id: String) -> CameraMonitor.Camera?)?
    /// The pipeline cannot go on.
    package var onFailed: ((String) -> Void)?

    package let choice: CapturePreset.Choice
    package let hasSound: Bool
    package private(set) var film: FilmBranch?
    package private(set) var preview: PreviewBranch?
    package private(set) var frames: FramesBranch?
    /// Of a live stream, and of films beside it; it lives as long as one of them holds it.
    package weak var encoder: StreamEncoder?
    /// Sees each message of the bus first; true: it was about the live stream.
    package var onStreamMessage: ((UnsafeMutablePointer<GstMessage>) -> Bool)?
    /// The encoder of the live stream has failed; with its words.
    package var onEncoderFailed: ((String) -> Void)?
    /// How the names of the bins begin that send a live stream: their errors concern nothing else.
    package static let streamName = "live-stream"
    /// The preview is gone, with the reason.
    package var onPreviewLost: ((String) -> Void)?
    private var meter = Meter()

    static let soundRate = 48_000
    /// Nanoseconds that the sound of a microphone may come after it was there. What is later is missing in films.
    private static let mixing = 100_000_000
    static let soundCaps = "audio/x-raw,format=S16LE,layout=interleaved,rate=48000,channels=2"
    /// Seconds without a picture after which the camera is opened again, and then counts as lost.
    private static let silence = 2.0

    private let loop: EventLoop
    private let identity: StreamIdentity
    package let pipeline: Pipeline
    private let selector: Element
    private let view: Element
    /// The camera that is open, its pad at the selector, and the pictures that it has sent.
    private var camera: Source?
    /// A camera that is opened to replace it, whose first picture is awaited.
    private var next: Source?
    private var opened: CameraMonitor.Camera?
    private var microphone: Source?
    /// Cameras that are being closed.
    private var leaving: [Element] = []
    private var lastCount: guint64 = 0
    private var silentFor = 0.0
    private var wasReopened = false
    private var isSeen = false
    private var whenHeard: (() -> Void)?
    /// Photos that wait for a picture, and how often they are still tried.
    private var photos:
        [(
            format: PhotoFormat, orientation: CaptureOrientation, tries: Int,
            done: (Result<[UInt8], SessionError>) -> Void
        )] = []
    /// Photos that follow each other, until all of them have come.
    private var bursts: [Burst] = []
    private lazy var burstTimer = Timer(on: loop) { [unowned self] in endBursts() }
    private lazy var photoTimer = Timer(on: loop) { [unowned self] in takePhotos() }
    private lazy var watchdog = Timer(on: loop) { [unowned self] in watch() }
    private lazy var hearing = Timer(on: loop) { [unowned self] in heard() }

    private struct Burst {
        let burst: OpaquePointer
        let count: Int
        let format: PhotoFormat
        let orientation: CaptureOrientation
        let done: (Int, Result<[UInt8], SessionError>) -> Void
    }

    /// Digital; 1: the whole picture.
    package var controls = CaptureControls() {
        didSet {
            guard controls != oldValue else { return }
            for source in [next, camera].compactMap({ $0 }) { zoom(source) }
        }
    }

    /// A bin with a source, its pad at the element that it leads to, and a counter of its buffers.
    // SAFETY: the pointers do not change, and what they lead to is GStreamer's, which any thread may use.
    private final class Source: @unchecked Sendable {
        let bin: Element
        let pad: UnsafeMutablePointer<GstPad>
        let count: UnsafeMutablePointer<guint64>
        /// The pictures that it has numbered and not sent.
        let lost: UnsafeMutablePointer<guint64>
        /// Used on the loop alone.
        var isOpening = false
        var isLeft = false
        /// Of the pictures of a camera.
        var size = PictureSize.unknown

        init(_ bin: Element, _ pad: UnsafeMutablePointer<GstPad>) {
            (self.bin, self.pad) = (bin, pad)
            (count, lost) = (.allocate(capacity: 1), .allocate(capacity: 1))
            for counter in [count, lost] { counter.initialize(to: 0) }
        }

        /// After its bin.
        func free() {
            gst_object_unref(pad)
            for counter in [count, lost] { counter.deallocate() }
        }
    }

    /// Builds the pipeline. ``start(_:)`` opens the camera.
    /// - Throws: `NotSupported`, naming the Debian package, if a part of GStreamer is missing.
    package init(
        _ choice: CapturePreset.Choice, hasSound: Bool, _ identity: StreamIdentity, on loop: EventLoop
    ) throws(SessionError) {
        (self.choice, self.hasSound, self.identity, self.loop) = (choice, hasSound, identity, loop)
        Runtime.prepare()
        let rate = "\(choice.rate.numerator)/\(choice.rate.denominator)"
        // Cameras are not compared with the clock here: each picture has its time already.
        var description =
            "input-selector name=cameras sync-streams=false ! videorate name=steady skip-to-first=true "
            + "! capsfilter caps=\"video/x-raw,framerate=\(rate)\" ! tee name=all-pictures allow-not-linked=true "
            + "! queue leaky=downstream max-size-buffers=2 max-size-bytes=0 max-size-time=0 "
            + "! fakesink name=view sync=false async=false enable-last-sample=true"
        if hasSound {
            description +=
                " audiotestsrc name=silence is-live=true wave=silence samplesperbuffer=480 ! \(Self.soundCaps) "
                + "! audiomixer name=mixer start-time-selection=first latency=\(Self.mixing) min-upstream-latency=\(Self.mixing) "
                + "! \(Self.soundCaps) "
                + "! level name=meter interval=100000000 post-messages=false "
                + "! tee name=all-sound allow-not-linked=true ! fakesink sync=false async=false enable-last-sample=false"
        }
        do throws(PipelineError) {
            pipeline = try Pipeline(description, on: loop, reachesServer: true)
        } catch {
            throw SessionError(.notSupported, "GStreamer cannot use a camera: \(error.message)")
        }
        guard let selector = pipeline.child("cameras"), let view = pipeline.child("view") else {
            throw SessionError(.notSupported, "GStreamer cannot use a camera: the pipeline is incomplete")
        }
        (self.selector, self.view) = (selector, view)
        // PipeWire's sources would bring a clock of their own.
        if let clock = gst_system_clock_obtain() {
            pipeline.element.withMemoryRebound(to: GstPipeline.self, capacity: 1) { gst_pipeline_use_clock($0, clock) }
            gst_object_unref(clock)
        }
        pipeline.onMessage = { [weak self] in self?.received($0) }
    }

    deinit { close() }

    /// Stops everything. A film that is not closed stays as it is.
    package func close() {
        watchdog.disarm()
        hearing.disarm()
        photoTimer.disarm()
        let waiting = photos
        photos = []
        for photo in waiting { photo.done(.failure(SessionError(.cancelled, "the session was stopped"))) }
        endBursts()
        film?.abandon()
        film = nil
        hidePreview()
        stopFrames()
        closeCamera()
        pipeline.close()
        microphone?.free()
        microphone = nil
    }

    // MARK: Cameras

    /// Opens a camera; ``onPictures`` follows, or ``onCameraLost``.
    /// - Parameter records: whether films will follow.
    package func start(_ camera: CameraMonitor.Camera, records: Bool) throws(SessionError) {
        if records { FilmRecipe.loadEncoders(on: loop) }
        (wasReopened, silentFor, isSeen) = (false, 0, false)
        pipeline.setState(GST_STATE_PLAYING)
        try open(camera)
        watchdog.arm(after: 0.25)
    }

    /// Shows another camera, or the same one again, in the place of the current one. The current one is closed when the first picture
    /// of the other one has come; a camera that is gone at once.
    package func show(_ camera: CameraMonitor.Camera) throws(SessionError) {
        (wasReopened, silentFor) = (false, 0)
        if opened === camera || self.camera == nil { closeCamera() }
        try open(camera)
        if !watchdog.isArmed { watchdog.arm(after: 0.25) }
    }

    /// Closes the camera; the film has no pictures until ``show(_:)``.
    package func closeCamera() {
        for source in [next, camera].compactMap({ $0 }) { leave(source) }
        (camera, next, isSeen) = (nil, nil, false)
    }

    /// Whether a camera has been silent until it was given up, or it or the microphone has failed: PipeWire's library may not open others in this
    /// process then, and does not find a server that was started again.
    // SAFETY: used on the one thread of the loop.
    package private(set) nonisolated(unsafe) static var hasLostCamera = false

    /// Of cameras that are closed.
    private var lostBefore: UInt64 = 0

    /// The pictures that are missing since it runs: those that a camera has numbered, and that did not come to this process; and those
    /// that came too late for their step.
    private var missing: UInt64 {
        let late = pipeline.child("steady").map { UInt64(shim_get_uint64($0, "drop")) } ?? 0
        return late + lostBefore + (camera.map { UInt64(shim_counted_buffers($0.lost)) } ?? 0)
    }

    /// Closes a camera that may hang: nothing waits for it.
    private func leave(_ source: Source) {
        if source === camera { lostBefore += UInt64(shim_counted_buffers(source.lost)) }
        gst_element_set_locked_state(source.bin, 1)
        gst_element_release_request_pad(selector, source.pad)
        leaving.append(source.bin)
        source.isLeft = true
        guard source.isOpening else { return close(source) }
        // The thread that opens it may hang for half a minute. Whoever stops the pipeline would wait for it, and so would all
        // pipelines after that one.
        gst_object_ref(source.bin)
        pipeline.remove(source.bin)
    }

    private func close(_ source: Source, isRemoved: Bool = false) {
        let pipeline = pipeline
        _ = Errand.run(
            on: loop, { gst_element_set_state(source.bin, GST_STATE_NULL) },
            done: { [weak self] _ in
                self?.leaving.removeAll { $0 == source.bin }
                if isRemoved { gst_object_unref(source.bin) } else { pipeline.remove(source.bin) }
                source.free()
            })
    }

    private func open(_ camera: CameraMonitor.Camera) throws(SessionError) {
        let format =
            camera.device.formats.contains(choice.format)
            ? choice.format : CapturePreset.inputPriority.choice(from: camera.device.formats)?.format
        guard let format, let source = camera.makeSource() else {
            throw SessionError(.resourceNotAvailable, "the camera '\(camera.device.name)' is gone")
        }
        let isJPEG = format.pixels == CaptureFormat.jpeg
        let kind = isJPEG ? "image/jpeg" : "video/x-raw,format=\(format.pixels)"
        // Without a filter, some providers hang. Two readers of PipeWire must not ask for different rates.
        let description =
            "capsfilter name=wanted caps=\"\(kind),width=\(format.width),height=\(format.height)\" "
            + (isJPEG ? "! jpegdec " : "")
            + "! videocrop name=zoom ! videoconvertscale name=scaled ! capsfilter name=end caps=\"video/x-raw,format=I420,width=\(choice.width),"
            + "height=\(choice.height),pixel-aspect-ratio=1/1\""
        switch Elements.bin(description) {
        case .failure(let missing):
            gst_object_unref(gst_object_ref_sink(source))
            throw SessionError(.notSupported, "GStreamer cannot use a camera: \(missing.message)")
        case .success(let bin):
            Elements.add(source, to: bin)
            gst_element_set_locked_state(bin, 1)
            guard let wanted = Elements.child("wanted", of: bin), gst_element_link(source, wanted) != 0,
                let made = add(bin, to: selector, "sink_%u")
            else {
                throw SessionError(.resourceNotAvailable, "the camera '\(camera.device.name)' cannot be connected")
            }
            // The format is fixed. PipeWire's source would leave the camera and come back when a film is connected, and with
            // PipeWire 1.4 a camera that no other program reads is gone meanwhile.
            shim_keep_format(made.pad)
            if let entry = gst_element_get_static_pad(wanted, "sink") {
                shim_count_lost(entry, made.lost)
                gst_object_unref(entry)
            }
            if let next { leave(next) }
            made.size = PictureSize(width: format.width, height: format.height)
            zoom(made)
            opened = camera
            next = made
            lastCount = 0
            // A camera that hangs may keep its caller waiting for half a minute.
            made.isOpening = true
            let isStarted = Errand.run(
                on: loop,
                {
                    gst_element_set_locked_state(made.bin, 0)
                    gst_element_sync_state_with_parent(made.bin)
                },
                done: { [self] in
                    made.isOpening = false
                    if made.isLeft { close(made, isRemoved: true) }
                })
            if !isStarted {
                made.isOpening = false
                throw SessionError(.resourceNotAvailable, "no thread can be started")
            }
        }
    }

    /// Adds a bin to the pipeline and links its end to a new pad of an element.
    private func add(_ bin: Element, to element: Element, _ template: String) -> Source? {
        guard let end = Elements.child("end", of: bin), let inner = gst_element_get_static_pad(end, "src"),
            let outer = gst_ghost_pad_new("src", inner)
        else { return nil }
        gst_object_unref(inner)
        gst_element_add_pad(bin, outer)
        pipeline.add(bin)
        guard let pad = gst_element_request_pad_simple(element, template) else { return nil }
        guard gst_pad_link(outer, pad) == GST_PAD_LINK_OK else { return nil }
        let source = Source(bin, pad)
        shim_count_buffers(outer, source.count)
        shim_watch_first(outer, bin, pipeline.element)
        return source
    }

    /// The part of the pictures of a camera that is used.
    private func zoom(_ source: Source) {
        guard let element = Elements.child("zoom", of: source.bin) else { return }
        let crop = controls.crop(width: source.size.width, height: source.size.height)
        for (side, length) in [
            ("left", crop.left), ("right", crop.right), ("top", crop.top), ("bottom", crop.bottom),
        ] { shim_set_int(element, side, gint(length)) }
    }

    private func remove(_ source: Source, from element: Element) {
        gst_element_set_locked_state(source.bin, 1)
        pipeline.perform { gst_element_set_state(source.bin, GST_STATE_NULL) }
        gst_element_release_request_pad(element, source.pad)
        pipeline.remove(source.bin)
        source.free()
    }

    private func watch() {
        watchdog.arm(after: 0.25)
        guard let source = next ?? camera else { return }
        let count = shim_counted_buffers(source.count)
        if count != lastCount {
            (lastCount, silentFor) = (count, 0)
            if source === camera { wasReopened = false }
            return
        }
        silentFor += 0.25
        guard silentFor >= Self.silence, let opened else { return }
        silentFor = 0
        if wasReopened {
            return lost("it has sent no picture for \(Int(2 * Self.silence)) s")
        }
        // A reader that hangs can stop the pictures of others, too.
        wasReopened = true
        closeCamera()
        do throws(SessionError) {
            // With PipeWire 1.4, a camera without hardware leaves with its last reader, and comes back as another node.
            try open(onReopen?(opened.device.id) ?? opened)
        } catch {
            lost(error.reason)
        }
    }

    private func lost(_ message: String) {
        Self.hasLostCamera = true
        closeCamera()
        opened = nil
        onCameraLost?(message)
    }

    // MARK: The microphone

    /// Opens a microphone; without one, the sound is silence.
    /// - Parameters:
    ///   - device: the server's name of a source; nil: the default.
    ///   - ready: called when its first sound has come, after a tenth of a second, or after a second without sound.
    package func openMicrophone(_ device: String?, ready: @escaping () -> Void) {
        closeMicrophone()
        guard hasSound, let mixer = pipeline.child("mixer") else { return ready() }
        // The sound gets the times at which it was there. Those need it to be read in time, so what waits is in the queue.
        let description =
            "pulsesrc name=device provide-clock=false slave-method=re-timestamp buffer-time=2000000 latency-time=10000 "
            + "! queue max-size-buffers=0 max-size-bytes=0 max-size-time=2000000000 ! audioconvert ! audioresample ! capsfilter name=end caps=\"\(Self.soundCaps)\""
        guard case .success(let bin) = Elements.bin(description), let source = Elements.child("device", of: bin) else {
            onSoundLost?("GStreamer cannot record: install gstreamer1.0-pulseaudio")
            return ready()
        }
        shim_set_string(source, "device", device)
        shim_time_moments(source)
        identity.apply(to: source, mediaName: "Camera", role: "production")
        gst_element_set_locked_state(bin, 1)
        guard let made = add(bin, to: mixer, "sink_%u") else {
            onSoundLost?("the microphone cannot be connected")
            return ready()
        }
        microphone = made
        whenHeard = ready
        hearing.arm(after: 1)
        pipeline.perform {
            gst_element_set_locked_state(bin, 0)
            gst_element_sync_state_with_parent(bin)
        }
    }

    package func closeMicrophone() {
        hearing.disarm()
        whenHeard = nil
        guard let microphone, let mixer = pipeline.child("mixer") else { return }
        self.microphone = nil
        remove(microphone, from: mixer)
    }

    package var hasMicrophone: Bool { microphone != nil }

    private func heard() {
        hearing.disarm()
        let ready = whenHeard
        whenHeard = nil
        ready?()
    }

    /// Peak and average of each channel; none before the first sound, and without sound.
    ///
    /// The first call begins to measure.
    package var levels: [ChannelLevel] {
        guard hasSound, let element = pipeline.child("meter") else { return [] }
        shim_set_bool(element, "post-messages", 1)
        return meter.levels(at: nil)
    }

    // MARK: The preview, and pictures for other programs

    /// - Parameters:
    ///   - display: the X11 server; nil: that of the environment.
    ///   - parent: a window of a client; nil: a window of our own.
    package func showPreview(display: String?, in parent: UInt32?, title: String) throws(SessionError) {
        hidePreview()
        let screen = try PreviewScreen(on: loop, display: display, in: parent, title: title)
        let made = try PreviewBranch(on: screen, PictureSize(width: choice.width, height: choice.height), in: pipeline)
        screen.onLost = { [weak self] in self?.losePreview($0) }
        preview = made
    }

    package func hidePreview() {
        preview?.remove()
        preview = nil
    }

    private func losePreview(_ message: String) {
        guard preview != nil else { return }
        hidePreview()
        onPreviewLost?(message)
    }

    /// - Parameter path: a FIFO.
    package func startFrames(to path: String, _ pixels: CapturePixels, hasHeader: Bool) throws(SessionError) {
        stopFrames()
        try FramesBranch.check(path)
        frames = try FramesBranch(to: path, pixels, hasHeader: hasHeader, choice, in: pipeline)
    }

    package func stopFrames() {
        frames?.remove()
        frames = nil
    }

    // MARK: Photos and films

    /// The last picture, as the bytes of a file. A film that is recorded does not notice.
    ///
    /// Waits for the first picture, for a moment.
    package func photo(
        _ format: PhotoFormat, _ orientation: CaptureOrientation,
        _ done: @escaping (Result<[UInt8], SessionError>) -> Void
    ) {
        photos.append((format, orientation, 100, done))
        takePhotos()
    }

    /// The next pictures of the camera, one directly after the other.
    /// - Parameter done: called once for each, with its number from 1.
    package func photos(
        _ count: Int, _ format: PhotoFormat, _ orientation: CaptureOrientation,
        _ done: @escaping (Int, Result<[UInt8], SessionError>) -> Void
    ) {
        guard let pad = gst_element_get_static_pad(view, "sink"),
            let burst = shim_burst_new(pad, pipeline.element, guint(count))
        else { return }
        gst_object_unref(pad)
        bursts.append(
            Burst(burst: burst, count: count, format: format, orientation: orientation, done: done))
        burstTimer.arm(after: Double(count) / choice.rate.perSecond + Self.patience)
    }

    /// Seconds that the pictures of a burst may be late.
    private static let patience = 5.0

    /// Saves the pictures of the bursts that are complete.
    private func takeBursts() {
        let full = bursts.filter { Int(shim_burst_count($0.burst)) >= $0.count }
        bursts.removeAll { Int(shim_burst_count($0.burst)) >= $0.count }
        if bursts.isEmpty { burstTimer.disarm() }
        for burst in full { save(burst) }
    }

    /// Saves the pictures that there are; the camera sends no more.
    private func endBursts() {
        burstTimer.disarm()
        let ended = bursts
        bursts = []
        for burst in ended { save(burst) }
    }

    private func save(_ burst: Burst) {
        shim_burst_end(burst.burst)
        let pictures = (0..<burst.count).map { place in
            shim_burst_sample(burst.burst, guint(place)).map { PhotoEncoder.Picture(sample: $0) }
        }
        shim_burst_free(UnsafeMutableRawPointer(burst.burst))
        saveNext(pictures[...], 1, burst)
    }

    /// One after the other: a thread for each would take the processors from a film.
    private func saveNext(_ pictures: ArraySlice<PhotoEncoder.Picture?>, _ number: Int, _ burst: Burst) {
        guard let first = pictures.first else { return }
        guard let picture = first else {
            burst.done(number, .failure(SessionError(.notReady, "the camera has sent no more pictures")))
            return saveNext(pictures.dropFirst(), number + 1, burst)
        }
        save(picture, burst.format, burst.orientation) { [self] result in
            burst.done(number, result)
            saveNext(pictures.dropFirst(), number + 1, burst)
        }
    }

    private func takePhotos() {
        let waiting = photos
        photos = []
        for photo in waiting {
            if isSeen, let sample = shim_last_sample(view) {
                save(PhotoEncoder.Picture(sample: sample), photo.format, photo.orientation, photo.done)
            } else if photo.tries > 0 {
                photos.append((photo.format, photo.orientation, photo.tries - 1, photo.done))
            } else {
                photo.done(.failure(SessionError(.notReady, "no picture has come from the camera yet")))
            }
        }
        if !photos.isEmpty { photoTimer.arm(after: 0.02) }
    }

    private func save(
        _ picture: PhotoEncoder.Picture, _ format: PhotoFormat, _ orientation: CaptureOrientation,
        _ done: @escaping (Result<[UInt8], SessionError>) -> Void
    ) {
        let isStarted = Errand.run(on: loop, { PhotoEncoder.encode(picture, format, orientation) }, done: done)
        if !isStarted { done(.failure(SessionError(.resourceNotAvailable, "no thread can be started"))) }
    }

    /// Begins a film with the next picture.
    /// - Parameter encoder: its pictures are those of a live stream; nil: it has an encoder of its own.
    package func begin(_ recipe: FilmRecipe, by encoder: StreamEncoder? = nil) throws(SessionError) {
        film?.abandon()
        film = try FilmBranch(
            recipe, choice, encoder, hasSound: hasSound, in: pipeline, on: loop
        ) { [unowned self] in missing }
        film?.onClosed = { [weak self] in self?.film = nil }
    }

    // MARK: Messages

    private func received(_ message: UnsafeMutablePointer<GstMessage>) {
        if onStreamMessage?(message) == true { return }
        switch Notice(message) {
        case .application:
            if let name = shim_first_buffer(message) {
                began(String(cString: name))
            } else {
                film?.take(message)
                takeBursts()
            }
        case .failed(let fault): failed(fault, message)
        case .element: meter.take(message)
        case .prerolled, .ended, .segmentDone, .durationChanged, .lacksPlugin, .tags, .buffered, .other: break
        }
    }

    private func began(_ name: String) {
        if let microphone, name == String(cString: microphone.bin.pointee.object.name) { return heard() }
        guard let next, name == String(cString: next.bin.pointee.object.name) else { return }
        shim_select_pad(selector, next.pad)
        if let camera { leave(camera) }
        camera = next
        self.next = nil
        (silentFor, isSeen) = (0, true)
        onPictures?()
    }

    private func failed(_ fault: Fault, _ message: UnsafeMutablePointer<GstMessage>) {
        func isFrom(_ bin: Element?) -> Bool { bin.map { Elements.owns($0, message) } ?? false }
        if isFrom(microphone?.bin) {
            closeMicrophoneAfterError()
            onSoundLost?(fault.text)
        } else if isFrom(next?.bin) || isFrom(camera?.bin) {
            // A camera that is being replaced may end before the other one has begun.
            if next != nil, isFrom(camera?.bin), let old = camera {
                camera = nil
                return leave(old)
            }
            lost(fault.text)
        } else if let film, isFrom(film.bin) {
            film.fail(fault)
        } else if let encoder, encoder.owns(message) {
            if let film, film.encoder === encoder { film.fail(fault) }
            onEncoderFailed?(fault.text)
        } else if Self.isOfStream(message) {
            // Of a connection that was given up meanwhile.
            return
        } else if isFrom(preview?.branch.bin) {
            losePreview(fault.text)
        } else if isFrom(frames?.branch.bin) {
            stopFrames()
        } else if isFrom(pipeline.element), !leaving.contains(where: { isFrom($0) }) {
            onFailed?(fault.text)
        }
    }

    private static func isOfStream(_ message: UnsafeMutablePointer<GstMessage>) -> Bool {
        var object = message.pointee.src
        while let current = object {
            if let name = current.pointee.name, String(cString: name).hasPrefix(streamName) { return true }
            object = current.pointee.parent
        }
        return false
    }

    private func closeMicrophoneAfterError() {
        // The cameras may be those of the same server, which has ended.
        Self.hasLostCamera = true
        let ready = whenHeard
        closeMicrophone()
        ready?()
    }
}
