import CGStreamer
import CStreaming
import EventLoop
import FileFormats
import GStreamerBase
import Glibc
import PluginAPI

/// One recording in its pipeline, from the source to the file.
///
/// GStreamer's own thread reads the source, encodes and writes, each buffer at once: however late the loop is, nothing
/// is lost, and what was written survives a kill. The loop only makes sure that the data reaches the disk, and that the
/// header of a WAV is exact while nothing is written.
final class Take {
    enum Event {
        case limitReached
        /// The file is complete.
        case ended
        case failed(String)
    }

    var onEvent: ((Event) -> Void)?

    private let path: String
    /// The path of the file, through the descriptor that ``disk`` owns.
    private let place: String
    /// Its file, owned by ``disk``.
    private let kept: Int32
    private let encoding: Encoding
    private let loop: EventLoop
    private let pipeline: Pipeline
    private let source: UnsafeMutablePointer<GstElement>
    /// The pad after the source.
    private let entry: UnsafeMutablePointer<GstPad>
    private let splice: Splice
    /// Shared with GStreamer's thread, which counts in it; freed after the pipeline.
    private let tally: UnsafeMutablePointer<shim_tally>
    private var wave: WaveFile?
    /// Shared with those of GStreamer's threads that wait for the disk.
    private let disk: OpaquePointer
    private var meter = Meter()
    private lazy var headerTimer = Timer(on: loop) { [unowned self] in settleHeader() }
    private lazy var diskTimer = Timer(on: loop) { [unowned self] in sync() }
    /// Why it ended early, while the encoder still writes its buffers.
    private var failure: String?
    private var flushTimer: Timer?
    private var inspection: Inspection?
    /// The length of the file in seconds, if it is known that the end of the recording is missing.
    private var playable: Double?
    /// How long finishing the file may take, in seconds.
    private static let flushTime = 1.0
    private var isPaused = false
    /// The bytes of samples in the file at the last check during the pause; −1: not checked yet.
    private var bytesSeen = -1

    /// Two seconds are buffered for a busy disk before samples are lost.
    private static let bufferTime = 2_000_000
    private static let latencyTime = 10_000
    /// Seconds that a power failure may lose; without syncing, the kernel would wait for half a minute.
    private static let diskInterval = 1.0

    /// Creates or empties the file when the sound server is reached.
    init(
        path: String, encoding: Encoding, identity: StreamIdentity, device: String?, loop: EventLoop
    ) throws(SessionError) {
        self.path = path
        self.encoding = encoding
        self.loop = loop
        let isNew = access(path, F_OK) != 0
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0o600)
        guard descriptor >= 0 else { throw Take.refused(path) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            Glibc.close(descriptor)
            throw SessionError(.cannotStartRecording, "'\(path)' is not an ordinary file")
        }
        guard GrowingFile.take(descriptor) else {
            Glibc.close(descriptor)
            throw GrowingFile.busy(path)
        }
        let isWave = encoding.encoder.isEmpty
        let pipeline: Pipeline
        let description =
            "pulsesrc name=device provide-clock=false slave-method=none ! audioconvert name=head "
            + "! audioconvert name=tail ! capsfilter name=samples caps=\"\(encoding.caps)\" ! "
            + (isWave ? "" : encoding.encoder + " ! ")
            + "filesink name=file sync=false async=false buffer-mode=unbuffered append=\(isWave)"
        do throws(PipelineError) {
            pipeline = try Pipeline(description, on: loop, reachesServer: true)
        } catch {
            Glibc.close(descriptor)
            throw SessionError(.cannotStartRecording, "GStreamer cannot record: \(error.message)")
        }
        guard let source = pipeline.child("device"), let file = pipeline.child("file"),
            let samples = pipeline.child("samples"), let head = pipeline.child("head"),
            let entry = gst_element_get_static_pad(head, "sink"),
            let splice = Splice(in: pipeline, from: "head", to: "tail", on: loop),
            let pad = gst_element_get_static_pad(samples, "src")
        else {
            Glibc.close(descriptor)
            throw SessionError(.cannotStartRecording, "the pipeline is incomplete")
        }
        (self.pipeline, self.source, self.entry, self.splice) = (pipeline, source, entry, splice)
        tally = .allocate(capacity: 1)
        tally.initialize(to: shim_tally(bytes: 0, limit: .max, pipeline: pipeline.element))
        shim_count_bytes(pad, tally)
        gst_object_unref(pad)
        shim_set_int64(source, "buffer-time", Take.bufferTime)
        shim_set_int64(source, "latency-time", Take.latencyTime)
        shim_set_string(source, "device", device)
        // It writes to the opened file, even if another file has its name by now.
        kept = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        place = "/proc/self/fd/\(kept)"
        shim_set_string(file, "location", place)
        disk = shim_disk_new(kept)
        let title = path.split(separator: "/").last.map(String.init) ?? path
        identity.apply(to: source, mediaName: title, role: "production")
        // The old content is kept if the recording never begins. The sink empties the file as soon as it is ready.
        gst_element_set_locked_state(file, 1)
        let isReady = pipeline.perform { [element = pipeline.element] in
            gst_element_set_state(element, GST_STATE_READY) != GST_STATE_CHANGE_FAILURE
        }
        guard isReady == true else {
            Glibc.close(descriptor)
            if isNew { unlink(path) }
            throw isReady == nil ? SessionError(.mediaServicesFailed, "the sound server does not answer") : refusal
        }
        gst_element_set_locked_state(file, 0)
        _ = ftruncate(descriptor, 0)
        if isWave {
            wave = WaveFile(
                taking: descriptor, sampleRate: encoding.sampleRate, channels: encoding.channels,
                bytesPerFrame: encoding.bytesPerFrame, isFloat: encoding.isFloat)
        } else {
            Glibc.close(descriptor)
        }
        pipeline.onMessage = { [weak self] in self?.received($0) }
    }

    deinit {
        pipeline.close()
        pipeline.perform { [entry, tally, disk] in
            gst_object_unref(entry)
            tally.deallocate()
            shim_disk_free(UnsafeMutableRawPointer(disk))
        }
    }

    /// Stops everything now, and makes the content of the file playable.
    func close() {
        onEvent = nil
        inspection = nil
        settle()
        shim_disk_sync(disk, pipeline.element)
        // The sound server may keep the rest of it for long.
        GrowingFile.release(kept)
    }

    /// What became of the name of the file; nil: it still leads to it.
    var loss: String? { GrowingFile.loss(of: path, kept) }

    private func settle() {
        headerTimer.disarm()
        diskTimer.disarm()
        flushTimer?.disarm()
        pipeline.close()
        wave?.settle()
        if encoding.isMP4 { FragmentedMP4.settle(place) }
    }

    /// Connects to the source, but does not start it.
    func prepare() throws(SessionError) {
        if !pipeline.setState(GST_STATE_PAUSED) { throw refusal }
    }

    /// The reason of the source's refusal.
    private var refusal: SessionError {
        SessionError(.cannotStartRecording, pipeline.popError(item: path) ?? "the source cannot be opened")
    }

    func record() {
        headerTimer.disarm()
        wave?.grow()
        // Only the source was paused: the other elements had to process their data.
        if isPaused {
            pipeline.perform { [source] in gst_element_set_state(source, GST_STATE_PLAYING) }
        } else {
            pipeline.setState(GST_STATE_PLAYING)
        }
        isPaused = false
        diskTimer.arm(after: Take.diskInterval)
    }

    func pause() {
        isPaused = true
        pipeline.perform { [source] in gst_element_set_state(source, GST_STATE_PAUSED) }
        meter.clear()
        bytesSeen = -1
        headerTimer.arm(after: 0.02)
    }

    /// Reports `ended` when the file is complete.
    func end() {
        // The source itself is not asked to end: it would answer only with its next data, and a suspended source has
        // none.
        pipeline.perform { [source, entry] in
            gst_element_set_locked_state(source, 1)
            gst_element_set_state(source, GST_STATE_NULL)
            gst_pad_send_event(entry, gst_event_new_eos())
        }
    }

    /// Records at most that many seconds from now on; nil: no limit.
    func limit(_ seconds: Double?) {
        guard let seconds else { return shim_tally_limit(tally, .max) }
        let frames = (seconds * Double(encoding.sampleRate)).rounded()
        let bytes = max(1, Int(exactly: frames) ?? 1).multipliedReportingOverflow(by: encoding.bytesPerFrame)
        shim_tally_limit(tally, bytes.overflow ? .max : shim_tally_bytes(tally) &+ bytes.partialValue)
    }

    func meters(_ enabled: Bool) {
        if !enabled { meter.clear() }
        splice.want(enabled ? [.level] : [], flowing: pipeline.isStarted)
    }

    func levels() -> [ChannelLevel] {
        let levels = meter.levels(at: nil)
        return levels.isEmpty ? Array(repeating: .silence, count: encoding.channels) : levels
    }

    var position: Double { playable ?? Double(shim_tally_bytes(tally)) / Double(encoding.bytesPerSecond) }

    static func remove(_ path: String) throws(SessionError) {
        guard unlink(path) == 0 || errno == ENOENT else {
            throw .badParameter("'\(path)' cannot be removed: \(String(cString: strerror(errno)))")
        }
    }

    private func sync() {
        shim_disk_sync(disk, pipeline.element)
        // Once more after a pause, because some data was still being written.
        if !isPaused { diskTimer.arm(after: Take.diskInterval) }
    }

    /// The header becomes exact when the last buffer is written.
    private func settleHeader() {
        let bytes = wave?.bytes ?? 0
        if bytes == bytesSeen, bytes >= shim_tally_bytes(tally) {
            wave?.settle()
        } else {
            bytesSeen = bytes
            headerTimer.arm(after: 0.1)
        }
    }

    private func received(_ message: UnsafeMutablePointer<GstMessage>) {
        switch Notice(message) {
        case .ended: if let failure { over(failure) } else { onEvent?(.ended) }
        case .failed(let fault): failed(fault)
        case .application:
            guard let structure = gst_message_get_structure(message) else { return }
            if gst_structure_has_name(structure, "limit-reached") != 0 {
                onEvent?(.limitReached)
            } else {
                splice.take(message)
            }
        case .element: meter.take(message)
        case .prerolled, .segmentDone, .durationChanged, .lacksPlugin, .tags, .buffered, .other: break
        }
    }

    /// The source is gone, or the disk is full. The encoder's buffers are written first, if possible.
    private func failed(_ fault: Fault) {
        guard failure == nil else { return }
        let reason = Failure(fault, item: path, missing: nil).message
        failure = reason
        guard fault.origin != "file", !encoding.encoder.isEmpty else { return over(reason) }
        flushTimer = Timer(on: loop) { [weak self] in self?.over(reason) }
        flushTimer?.arm(after: Take.flushTime)
        end()
    }

    /// It ended early: from now on, the reported length is the length that plays.
    private func over(_ reason: String) {
        settle()
        if let bytes = wave?.bytes { return over(reason, Double(bytes) / Double(encoding.bytesPerSecond)) }
        inspection = Inspection(path, encoding, on: loop) { [weak self] in self?.over(reason, $0) }
        if inspection == nil { over(reason, nil) }
    }

    private func over(_ reason: String, _ seconds: Double?) {
        playable = seconds
        onEvent?(.failed(reason))
    }

    private static func refused(_ path: String) -> SessionError {
        let number = errno
        var reason = String(cString: strerror(number))
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
        if number == ENOENT, access(folder.isEmpty ? "/" : folder, F_OK) != 0 {
            reason = "the folder '\(folder)' does not exist; create it first"
        }
        return SessionError(.cannotStartRecording, "'\(path)' cannot be written: \(reason)")
    }
}
