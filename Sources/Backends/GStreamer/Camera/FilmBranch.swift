import CGStreamer
import CStreaming
import Capturing
import EventLoop
import FileFormats
import GStreamerBackend
import GStreamerBase
import Glibc
import PluginAPI

/// A film that is being recorded: the branch of the pipeline behind both tees, and its file.
///
/// GStreamer's threads encode and write; what was written plays when the process is killed. At the end the fragments get one index.
package final class FilmBranch {
    typealias Element = Elements.Element

    package enum Outcome: Sendable, Hashable {
        /// The file is complete.
        case complete
        /// The end is missing, with the reason: what was written before plays. Or the file has not its name any more.
        case cut(String)
        /// Nothing was recorded, and there is no file.
        case empty
    }

    /// The most pictures were recorded: ``end()`` it.
    package var onFull: (() -> Void)?
    /// The file cannot be written any more.
    package var onFailed: ((_ message: String, _ isDiskFull: Bool) -> Void)?
    /// The file is closed.
    package var onFinished: ((Outcome) -> Void)?
    /// The engine has no film any more.
    var onClosed: (() -> Void)?

    package let path: String
    let bin: Element
    private let recipe: FilmRecipe
    private let rate: CaptureRate
    private let loop: EventLoop
    private let pipeline: Pipeline
    private let take: OpaquePointer
    /// The outputs of the tees, owned.
    private var outputs: [(tee: Element, pad: UnsafeMutablePointer<GstPad>, entry: UnsafeMutablePointer<GstPad>)] = []
    /// Where the take sees what arrives, owned.
    private var watches: [(pad: UnsafeMutablePointer<GstPad>, probe: gulong)] = []
    private let queue: Element
    /// Of a live stream, whose pictures it gets; nil: it encodes them itself, or is over.
    private(set) var encoder: StreamEncoder?
    private let encoded: UnsafeMutablePointer<guint64>
    private let descriptor: Int32
    private let disk: OpaquePointer
    /// The pictures that did not come, or came too late, since the camera is open; and those of them that were no part of the film.
    private let missing: () -> UInt64
    private var missedBefore: UInt64
    private var missedAtPause: UInt64?
    private var state = State.open
    private var failure: String?
    private var isReleased = false
    private lazy var diskTimer = Timer(on: loop) { [unowned self] in syncDisk() }
    private lazy var patience = Timer(on: loop) { [unowned self] in waitedLong() }

    private enum State { case open, closing, writing, settling, closed }

    /// Seconds for pictures that are on their way, and for the encoders and the disk at the end.
    private static let arrival = 3.0
    private static let writing = 10.0
    /// A film ends before less than this is left on the disk, in bytes.
    private static let reserve: UInt64 = 32 << 20
    /// Seconds that a loss of power may cost.
    private static let diskInterval = 1.0

    init(
        _ recipe: FilmRecipe, _ choice: CapturePreset.Choice, _ encoder: StreamEncoder?, hasSound: Bool,
        in pipeline: Pipeline, on loop: EventLoop, missing: @escaping () -> UInt64
    ) throws(SessionError) {
        self.encoder = encoder
        (self.recipe, self.pipeline, self.loop, path, rate) = (recipe, pipeline, loop, recipe.path, choice.rate)
        // Encoded pictures are small: they may wait for the sound of a microphone that was opened late.
        let wait = "queue max-size-time=0 max-size-buffers=0 max-size-bytes=67108864"
        // The first start of an encoder may take seconds on a busy machine.
        // What a disk does not take in time must not stop the encoder of a live stream.
        let pictures =
            encoder == nil
            ? "queue name=pictures leaky=downstream max-size-time=4000000000 max-size-buffers=0 max-size-bytes=134217728 "
                + "! \(recipe.video) ! \(wait) ! mux."
            : "queue name=pictures leaky=upstream max-size-time=0 max-size-buffers=0 max-size-bytes=67108864 ! mux.video_0"
        var description =
            "\(pictures) \(recipe.muxer) name=mux "
            + "! filesink name=file sync=false async=false buffer-mode=unbuffered"
        if hasSound {
            description +=
                " queue name=sound max-size-time=0 max-size-buffers=0 max-size-bytes=67108864 ! audioconvert "
                + "! \(recipe.audio) ! \(wait) ! mux."
        }
        let bin: Element
        switch Elements.bin(description) {
        case .success(let made): bin = made
        case .failure(let missing):
            throw SessionError(.encoderNotFound, "GStreamer cannot make a film: \(missing.message)")
        }
        guard let queue = Elements.child("pictures", of: bin), let file = Elements.child("file", of: bin),
            let end = gst_element_get_static_pad(file, "sink"),
            let encoderEntry = gst_element_get_static_pad(queue, "src")
        else { throw SessionError(.encoderNotFound, "GStreamer cannot make a film: the branch is incomplete") }
        do throws(SessionError) {
            descriptor = try Self.open(recipe)
        } catch {
            gst_object_unref(gst_object_ref_sink(bin))
            for pad in [end, encoderEntry] { gst_object_unref(pad) }
            throw error
        }
        (self.bin, self.queue, self.missing, missedBefore) = (bin, queue, missing, missing())
        let kept = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        // It writes to the opened file, even if another file has its name by now.
        shim_set_string(file, "location", "/proc/self/fd/\(kept)")
        disk = shim_disk_new(kept)
        encoded = .allocate(capacity: 1)
        encoded.initialize(to: 0)
        take = shim_take_new(
            pipeline.element, gint(choice.rate.numerator), gint(choice.rate.denominator),
            hasSound ? gint(CaptureEngine.soundRate) : 0)
        shim_count_buffers(encoderEntry, encoded)
        shim_watch_written(end, pipeline.element)
        for pad in [end, encoderEntry] { gst_object_unref(pad) }
        pipeline.add(bin)
        gst_element_sync_state_with_parent(bin)
        if let encoder {
            gst_object_ref(encoder.entry)
            watches.append((encoder.entry, shim_take_encoded(take, encoder.entry)))
        }
        connect("pictures", to: encoder == nil ? "all-pictures" : StreamEncoder.pictures)
        if hasSound { connect("sound", to: "all-sound", isSound: true) }
        shim_take_begin(take, guint64(recipe.limit))
        diskTimer.arm(after: Self.diskInterval)
    }

    deinit {
        abandon()
        encoded.deallocate()
        shim_take_free(UnsafeMutableRawPointer(take))
        shim_disk_free(UnsafeMutableRawPointer(disk))
        close(descriptor)
    }

    private static func open(_ recipe: FilmRecipe) throws(SessionError) -> Int32 {
        try checkSpace(for: recipe)
        if recipe.replaces { try GrowingFile.clear(recipe.path) }
        let descriptor = Glibc.open(recipe.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NONBLOCK, 0o600)
        guard descriptor >= 0 else {
            switch errno {
            case EEXIST: throw SessionError(.fileAlreadyExists, "'\(recipe.path)' exists already")
            case ENOENT, ENOTDIR: throw SessionError(.notFound, "'\(recipe.path)': there is no such folder")
            case ENOSPC, EDQUOT: throw SessionError(.diskFull, "'\(recipe.path)': no space is left on the disk")
            default:
                let reason = String(cString: strerror(errno))
                throw SessionError(.cannotStartRecording, "'\(recipe.path)' cannot be written: \(reason)")
            }
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, ftruncate(descriptor, 0) == 0,
            GrowingFile.take(descriptor)
        else {
            close(descriptor)
            throw SessionError(.cannotStartRecording, "'\(recipe.path)' is not an ordinary file")
        }
        return descriptor
    }

    /// A film that would end at once is refused before the file that it replaces is removed, whose space it gets.
    private static func checkSpace(for recipe: FilmRecipe) throws(SessionError) {
        var (file, disk) = (stat(), statvfs())
        let replaced = recipe.replaces && stat(recipe.path, &file) == 0 ? UInt64(file.st_blocks) * 512 : 0
        let folder = recipe.path.lastIndex(of: "/").map { String(recipe.path[...$0]) } ?? "."
        guard statvfs(folder, &disk) == 0 else { return }
        let space = space(disk) + replaced
        if space < reserve {
            throw SessionError(
                .diskFull,
                "'\(recipe.path)': \(space >> 20) MiB are left on the disk, and a film needs \(reserve >> 20): "
                    + "make space first")
        }
    }

    private func connect(_ name: String, to source: String, isSound: Bool = false) {
        guard let tee = pipeline.child(source), let arrives = gst_element_get_static_pad(tee, "sink"),
            let pad = gst_element_request_pad_simple(tee, "src_%u"), let entry = Self.entry(name, of: bin)
        else { return }
        watches.append((arrives, shim_take_watch(take, arrives, isSound ? 1 : 0)))
        shim_take_gate(take, pad, isSound ? 1 : 0)
        outputs.append((tee, pad, entry))
        gst_pad_link(pad, entry)
    }

    private static func entry(_ name: String, of bin: Element) -> UnsafeMutablePointer<GstPad>? {
        guard let element = Elements.child(name, of: bin), let inner = gst_element_get_static_pad(element, "sink")
        else {
            return nil
        }
        defer { gst_object_unref(inner) }
        guard let pad = gst_ghost_pad_new("\(name)_sink", inner) else { return nil }
        gst_pad_set_active(pad, 1)
        gst_object_ref(pad)
        gst_element_add_pad(bin, pad)
        return pad
    }

    // MARK: Requests

    package func pause() {
        shim_take_pause(take)
        missedAtPause = missing()
    }

    package func resume() {
        if let missedAtPause { missedBefore += missing() - missedAtPause }
        missedAtPause = nil
        shim_take_resume(take)
        // A film that goes on begins with a picture that needs no other. The encoder of a live stream is asked in time.
        if encoder == nil, let entry = outputs.first?.entry { shim_force_key(entry) }
    }

    /// Ends the film; ``onFinished`` follows.
    package func end() {
        guard state == .open else { return }
        state = .closing
        patience.arm(after: Self.arrival)
        shim_take_close(take)
        if isFull { write() }
    }

    /// Stops writing at once. The file stays as it is, and plays.
    func abandon() {
        guard state != .closed else { return }
        state = .closed
        release()
        onClosed = nil
        onFinished = nil
    }

    // MARK: What is recorded

    private var isFull = false

    package var pictures: UInt64 { UInt64(shim_take_pictures(take)) }
    /// Seconds, without pauses.
    package var length: Double { rate.seconds(of: pictures) }
    package var samples: UInt64 { UInt64(shim_take_samples(take)) }

    /// Bytes of the file.
    package var size: UInt64 {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? UInt64(max(0, status.st_size)) : 0
    }

    /// Whether the film must end before the disk is full.
    package var isDiskAlmostFull: Bool {
        var disk = statvfs()
        return fstatvfs(descriptor, &disk) == 0 && Self.space(disk) < Self.reserve
    }

    /// Bytes that an ordinary user may still write.
    private static func space(_ disk: statvfs) -> UInt64 { UInt64(disk.f_bavail) * UInt64(disk.f_frsize) }

    /// The pictures that the encoder did not get, because it is too slow, or that came too late or not at all.
    package var dropped: UInt64 {
        let waiting = state == .open || state == .closing ? Int(shim_get_uint(queue, "current-level-buffers")) : 0
        let missed = (missedAtPause ?? missing()) - missedBefore
        let number = Int(pictures) - Int(shim_counted_buffers(encoded)) - waiting + Int(missed)
        return UInt64(max(0, number))
    }

    // MARK: The end

    func take(_ message: UnsafeMutablePointer<GstMessage>) {
        guard let structure = gst_message_get_structure(message) else { return }
        switch String(cString: gst_structure_get_name(structure)) {
        case "take-full":
            isFull = true
            if state == .closing { write() } else { onFull?() }
        case "take-over": write()
        case "film-written": settle()
        default: break
        }
    }

    func fail(_ fault: Fault) {
        guard failure == nil, state == .open || state == .closing || state == .writing else { return }
        let isDiskFull = fault.reason == .noSpaceLeft
        failure = isDiskFull ? "no space is left on the disk" : fault.text
        let message = failure ?? ""
        let wasOpen = state == .open
        settle()
        if wasOpen { onFailed?(message, isDiskFull) }
    }

    private func waitedLong() {
        switch state {
        case .closing: write()
        case .writing:
            failure = failure ?? "its end could not be written in time"
            settle()
        case .open, .settling, .closed: break
        }
    }

    /// Everything that is in the film has passed: the encoders are told that this was the end.
    private func write() {
        guard state == .closing else { return }
        state = .writing
        patience.arm(after: Self.writing)
        for output in outputs { gst_pad_send_event(output.entry, gst_event_new_eos()) }
    }

    private func release() {
        guard !isReleased else { return }
        isReleased = true
        diskTimer.disarm()
        patience.disarm()
        gst_element_set_locked_state(bin, 1)
        for output in outputs {
            gst_pad_unlink(output.pad, output.entry)
            gst_element_release_request_pad(output.tee, output.pad)
            gst_object_unref(output.pad)
            gst_object_unref(output.entry)
        }
        for watch in watches {
            gst_pad_remove_probe(watch.pad, watch.probe)
            gst_object_unref(watch.pad)
        }
        (outputs, watches) = ([], [])
        gst_element_set_state(bin, GST_STATE_NULL)
        pipeline.remove(bin)
        encoder = nil
    }

    /// Tells players to turn the pictures, as soon as the file has an index: so does a film that is cut off.
    private func turn() {
        guard recipe.container.isFragmented, recipe.orientation != .upright else { return }
        let beginning = FileContent.bytes(of: descriptor, at: 0, count: Self.beginning)
        for patch in FilmTurn.patches(beginning, degrees: recipe.orientation.degrees) {
            let isDone = patch.bytes.withUnsafeBytes {
                pwrite(descriptor, $0.baseAddress, $0.count, off_t(patch.place)) == $0.count
            }
            isTurned = isTurned || isDone
        }
    }

    private var isTurned = false
    /// The first index of a film in fragments has no samples, so it is small.
    private static let beginning = 1 << 16

    /// The file has everything that it will get: one index for all of it.
    private func settle() {
        guard state != .settling, state != .closed else { return }
        state = .settling
        // Also if nothing of the pictures could be written.
        let wasEmpty = pictures == 0 || (failure != nil && size == 0)
        finalDropped = dropped
        release()
        // The muxer has written its header anew at the end.
        turn()
        if wasEmpty { return finish(.empty) }
        let (path, failure, delay) = ("/proc/self/fd/\(descriptor)", failure, recipe.soundDelay)
        guard recipe.container.isFragmented else {
            return finish(failure.map { .cut($0) } ?? .complete)
        }
        let isStarted = Errand.run(on: loop, { Self.mend(path, delay, failure) }) { self.finish($0) }
        if !isStarted { finish(.cut("no thread can be started; repair it with sessionctl repair")) }
    }

    private var finalDropped: UInt64 = 0
    /// ``dropped`` at the end.
    package var droppedInAll: UInt64 {
        state == .open || state == .closing || state == .writing ? dropped : finalDropped
    }

    private static func mend(_ path: String, _ delay: Int, _ failure: String?) -> Outcome {
        do throws(FilmRepair.Problem) {
            _ = try FilmRepair.mend(Array(path.utf8), alone: false, soundDelay: delay)
            return failure.map { .cut($0) } ?? .complete
        } catch {
            return .cut(failure ?? "the film \(error.message)")
        }
    }

    private func finish(_ outcome: Outcome) {
        guard state == .settling else { return }
        state = .closed
        let loss = GrowingFile.loss(of: path, descriptor)
        if outcome == .empty, loss == nil { unlink(path) }
        let (finished, closed) = (onFinished, onClosed)
        (onFinished, onClosed) = (nil, nil)
        finished?(outcome == .empty ? outcome : loss.map { .cut($0) } ?? outcome)
        closed?()
    }

    private func syncDisk() {
        if !isTurned { turn() }
        shim_disk_sync(disk, pipeline.element)
        diskTimer.arm(after: Self.diskInterval)
    }
}
