import CFilms
import FileFormats
import GStreamerBase
import Glibc
import PluginAPI

/// One picture of a film, and the time at which it begins.
final class Frame {
    /// Owned by this object.
    let sample: OpaquePointer
    /// Nanoseconds from the start of the film.
    let time: GstClockTime

    init(owning sample: OpaquePointer, _ time: GstClockTime) {
        self.sample = sample
        self.time = time
    }

    deinit { gst_sample_unref(sample) }

    /// When the picture ends if no other picture follows, in nanoseconds.
    var end: GstClockTime {
        let length = films_sample_length(sample)
        return length == .max ? .max : time + length
    }
}

/// An open film, from which pictures can be taken at any time.
///
/// The picture of a time is the one that is on the screen then: the last picture that begins at that time or before. To
/// find it, the film is decoded from the key frame before that time, and the times of the pictures are compared. An
/// exact seek of GStreamer gives the same picture, but not its time.
final class Film {
    /// The longest time to wait for one picture, in seconds. After the quick decoder, another one needs time, too.
    private var patience: Double { Self.patience(isQuick) }
    private static func patience(_ isQuick: Bool) -> Double { isQuick ? 2 : 8 }
    /// The interval at which errors are checked while waiting, in seconds.
    private static let step = 0.05

    let file: FilmFile
    /// Nil if unknown. Not exact for all formats.
    let duration: GstClockTime?
    /// Whether ``duration`` is exactly the end of the film. In other films the end is known only when reading reaches
    /// it.
    private let isLengthExact: Bool
    /// A value of videoflip's `video-direction`.
    let orientation: Int32
    /// The time at which the first picture begins.
    let first: GstClockTime

    private let index: MovieIndex?
    private let isQuick: Bool
    private var pipeline: FilmPipeline
    private let gate: UnsafeMutablePointer<films_gate>
    private var sink: UnsafeMutablePointer<GstElement>
    /// Added to all times, because the times of some formats do not start at 0.
    private let origin: GstClockTime
    /// The film is not seekable; it can only be read again from the start.
    private let isSequential: Bool
    /// The last decoded picture, and the one after it if it is already decoded; valid until reading continues at
    /// another position.
    private var current: Frame?
    private var ahead: Frame?
    private var isBroken = false
    /// Pictures up to this far ahead, in nanoseconds, are decoded without a seek. A seek costs as much as decoding half
    /// of the pictures between two key frames.
    private var stride: GstClockTime = 1_500_000_000
    /// Known pairs of neighbouring key frames.
    private var keys: [(before: GstClockTime?, after: GstClockTime?)] = []

    /// Opens the film and decodes its first picture.
    convenience init(_ file: FilmFile) throws(FilmError) { try self.init(file, MovieIndex(file.path)) }

    /// Opens the film and decodes its first picture.
    /// - Parameter isQuick: for key frames only: H.264 and HEVC are decoded by the decoders that are loaded first, see
    ///   ``FilmRuntime/decode(quickly:)``, and no picture is decoded in advance.
    /// - Throws: also if the film has no picture; then its tags may have a cover.
    init(_ file: FilmFile, _ index: MovieIndex?, isQuick: Bool = false) throws(FilmError) {
        guard let gate = films_gate_new() else { throw FilmError(.decodeFailed, "no memory") }
        (self.file, self.gate, self.index, self.isQuick) = (file, gate, index, isQuick)
        var isOpen = false
        defer { if !isOpen { films_gate_free(gate) } }
        pipeline = try Self.pipeline(file, index, gate, isQuick)
        sink = try pipeline.child("sink")
        try pipeline.prepare(within: Self.patience(isQuick))
        guard let sample = try Self.firstSample(pipeline, sink, Self.patience(isQuick)) else {
            throw pipeline.failure() ?? FilmError(.noImageAtTime, "it has no picture")
        }
        let start = films_sample_time(sample)
        gst_sample_unref(sample)
        let origin = films_gate_is_rebased(gate) != 0 && start != .max ? start : 0
        first = start == .max ? 0 : start - origin
        duration = pipeline.duration.map { $0 > origin ? $0 - origin : $0 }
        self.origin = origin
        isLengthExact = films_gate_is_rebased(gate) == 0 && index?.isFragmented != true
        // Without a table of the fragments, GStreamer cannot seek in a fragmented film.
        isSequential = file.isGIF || index.map { $0.isFragmented && $0.firstPieces.isEmpty } ?? false
        let pad = gst_element_get_static_pad(sink, "sink")
        orientation = pad.map { films_orientation($0) } ?? 0
        if let pad { gst_object_unref(pad) }
        play()
        isOpen = true
    }

    deinit { films_gate_free(gate) }

    private static func pipeline(
        _ file: FilmFile, _ index: MovieIndex?, _ gate: UnsafeMutablePointer<films_gate>, _ isQuick: Bool
    ) throws(FilmError) -> FilmPipeline {
        FilmRuntime.decode(quickly: isQuick)
        let pipeline = try FilmPipeline(
            reading: file, index,
            "uridecodebin name=source caps=video/x-raw(ANY) expose-all-streams=false"
                + " ! appsink name=sink caps=video/x-raw sync=false max-buffers=2 enable-last-sample=false"
        ) { films_gate_watch(gate, $0) }
        films_accept_planes(try pipeline.child("sink"))
        return pipeline
    }

    /// The first picture. A video track that begins late has a gap before its first picture; then the sink is ready
    /// without a picture.
    private static func firstSample(
        _ pipeline: FilmPipeline, _ sink: UnsafeMutablePointer<GstElement>, _ patience: Double
    ) throws(FilmError) -> OpaquePointer? {
        if let sample = films_pull_preroll(sink, 0) { return sample }
        pipeline.set(GST_STATE_PLAYING)
        let end = g_get_monotonic_time() + gint64(patience * 1e6)
        while g_get_monotonic_time() < end {
            if let sample = films_pull(sink, Times.nanoseconds(step)) { return sample }
            if films_is_over(sink) != 0 { return nil }
            if let failure = pipeline.failure() { throw failure }
        }
        return nil
    }

    // MARK: Pictures

    /// The picture that is shown at a time. For times before the first picture, the first picture.
    /// - Parameter pass: gets each picture that is decoded on the way to it, and the time at which that picture ends.
    /// - Throws: `NoImageAtTime` after the end.
    func frame(
        at time: GstClockTime, passing pass: (Frame, GstClockTime) -> Void = { _, _ in }
    ) throws(FilmError) -> Frame {
        try mend { () throws(FilmError) in try shownFrame(at: time, pass) }
    }

    /// Runs an operation on the film. If it fails because of the content of the file, the next operation starts a new
    /// pipeline, because a pipeline that has failed does not work any more.
    private func mend<Result>(_ body: () throws(FilmError) -> Result) throws(FilmError) -> Result {
        if isBroken { try begin(keys: nil) }
        isBroken = true
        do throws(FilmError) {
            let result = try body()
            isBroken = false
            return result
        } catch {
            isBroken = error.code != .noImageAtTime
            throw error
        }
    }

    private func shownFrame(
        at time: GstClockTime, _ pass: (Frame, GstClockTime) -> Void
    ) throws(FilmError) -> Frame {
        if isLengthExact, let duration, time >= duration {
            throw FilmError(.noImageAtTime, "the film ends before that time")
        }
        let wanted = max(time, first)
        if let frame = try frameAhead(at: wanted, pass) { return frame }
        if isSequential { return try readFromStart(to: wanted, pass) }
        var back: GstClockTime = 0
        while true {
            // Times are whole nanoseconds. The demuxer of AVI counts pictures: without one microsecond more, it goes to the picture
            // before, and from there to an earlier key frame.
            let place = isLengthExact && wanted + 1_000 >= duration ?? .max ? wanted : wanted + 1_000
            try seek(to: place > back ? place - back : 0)
            guard let frame = try pull() else {
                throw FilmError(.noImageAtTime, "there is no picture at that time")
            }
            if frame.time <= wanted {
                if back == 0 { stride = max(stride, (wanted - frame.time) / 2) }
                return try readOn(from: frame, to: wanted, pass)
            }
            // The picture begins after the requested time, as happens in formats without an index. In an MPEG program stream
            // even a seek to the start skips the first pictures.
            guard back < wanted else { return try readFromStart(to: wanted, pass) }
            back = back * 2 + 1_000_000_000
        }
    }

    private func readFromStart(
        to time: GstClockTime, _ pass: (Frame, GstClockTime) -> Void
    ) throws(FilmError) -> Frame {
        try begin(keys: nil)
        guard let frame = try pull() else { throw FilmError(.noImageAtTime, "there is no picture") }
        return try readOn(from: frame, to: time, pass)
    }

    /// The key frame that is nearest to a time.
    func keyFrame(nearest time: GstClockTime) throws(FilmError) -> Frame {
        let (before, after) = try keyFrames(around: time)
        guard let nearest = Self.nearer(before, after, to: time) else { return try frame(at: time) }
        return try frame(at: nearest)
    }

    /// The last key frame at or before a time, and the next key frame after it.
    /// - Throws: `NoImageAtTime` for a time after the end. The end itself is not after it.
    func keyFrames(around time: GstClockTime) throws(FilmError) -> (before: GstClockTime?, after: GstClockTime?) {
        if let duration, time > duration {
            guard !isLengthExact else { throw FilmError(.noImageAtTime, "the film ends before that time") }
            // The film may be longer than its file states. If it is not, reading reaches its end.
            _ = try frame(at: time)
        }
        // A seek beyond the end has no defined result.
        let last = isLengthExact ? duration.map { $0 - 1 } ?? .max : .max
        return try mend { () throws(FilmError) in try searchedKeyFrames(around: min(time, last)) }
    }

    private func searchedKeyFrames(
        around time: GstClockTime
    ) throws(FilmError) -> (before: GstClockTime?, after: GstClockTime?) {
        if let known = keys.first(where: {
            $0.before.map { $0 <= time } ?? false && $0.after.map { $0 > time } ?? false
        }) {
            return known
        }
        var back: GstClockTime = 0
        while true {
            (current, ahead) = (nil, nil)
            if isSequential {
                try begin(keys: time)
            } else {
                films_gate_set(gate, 1, time + origin, 1)
                try sendSeek(to: time > back ? time - back : 0)
            }
            try wait("no key frame") { films_gate_wait(gate, gint64(Self.step * 1e6)) != 0 ? true : nil }
            let found = (before: place(films_gate_before(gate)), after: place(films_gate_after(gate)))
            guard found.before == nil, back < time else {
                keys.append(found)
                return found
            }
            back = back * 2 + 1_000_000_000
        }
    }

    private func place(_ time: GstClockTime) -> GstClockTime? { time == .max ? nil : time > origin ? time - origin : 0 }

    static func nearer(_ before: GstClockTime?, _ after: GstClockTime?, to time: GstClockTime) -> GstClockTime? {
        guard let before else { return after }
        guard let after else { return before }
        return time < before || time - before <= after - time ? before : after
    }

    // MARK: Reading

    private func sendSeek(to time: GstClockTime) throws(FilmError) {
        guard gst_element_send_event(pipeline.element, films_seek(time + origin, .max)) != 0 else {
            throw pipeline.failure() ?? FilmError(.notSupported, "it is not seekable")
        }
    }

    private func seek(to time: GstClockTime) throws(FilmError) {
        (current, ahead) = (nil, nil)
        films_gate_set(gate, 0, 0, 1)
        try sendSeek(to: time)
    }

    /// Reads from the start, with a new pipeline: a pipeline from a gst-launch text is linked only once.
    /// - Parameter keys: the time around which key frames are searched, without decoding; nil: pictures are decoded.
    private func begin(keys: GstClockTime?) throws(FilmError) {
        (current, ahead) = (nil, nil)
        pipeline.set(GST_STATE_NULL)
        pipeline = try Self.pipeline(file, index, gate, isQuick)
        sink = try pipeline.child("sink")
        films_gate_set(gate, keys == nil ? 0 : 1, keys ?? 0, 0)
        if keys == nil { try pipeline.prepare(within: patience) }
        play()
    }

    /// While the pipeline is paused, it decodes one picture after each seek. The pictures of file managers are key frames, so
    /// the quick decoder decodes nothing else.
    private func play() { if !isQuick { pipeline.set(GST_STATE_PLAYING) } }

    private func frameAhead(
        at time: GstClockTime, _ pass: (Frame, GstClockTime) -> Void
    ) throws(FilmError) -> Frame? {
        guard let current, current.time <= time else { return nil }
        if let ahead, ahead.time > time { return current }
        let next = ahead ?? current
        return isSequential || next.time + stride >= time ? try readOn(from: next, to: time, pass) : nil
    }

    /// Decodes further until a picture begins after the requested time.
    private func readOn(
        from frame: Frame, to time: GstClockTime, _ pass: (Frame, GstClockTime) -> Void
    ) throws(FilmError) -> Frame {
        (current, ahead) = (frame, nil)
        var shown = frame
        while shown.time < time {
            guard let next = try pull() else {
                guard isLengthExact || time < shown.end else {
                    throw FilmError(.noImageAtTime, "the film ends before that time")
                }
                break
            }
            if next.time > time {
                ahead = next
                break
            }
            pass(shown, next.time)
            shown = next
            current = next
        }
        return shown
    }

    /// Waits until there is a result, or until the pipeline has failed: a failed pipeline does not wake a thread that
    /// waits for its data.
    /// - Parameter body: waits for ``step`` seconds.
    @discardableResult
    private func wait<Result>(_ what: String, _ body: () -> Result?) throws(FilmError) -> Result {
        let end = g_get_monotonic_time() + gint64(patience * 1e6)
        while true {
            if let result = body() { return result }
            if let failure = pipeline.failure() { throw failure }
            guard g_get_monotonic_time() < end else {
                throw FilmError(.decodeFailed, "\(what) came within \(Int(patience)) s")
            }
        }
    }

    /// The next picture; nil at the end.
    private func pull() throws(FilmError) -> Frame? {
        while true {
            let found = try wait("no picture") { () -> OpaquePointer?? in
                let step = Times.nanoseconds(Self.step)
                let sample = isQuick ? films_pull_preroll(sink, step) : films_pull(sink, step)
                if let sample { return .some(sample) }
                return films_is_over(sink) != 0 ? .some(nil) : nil
            }
            guard let sample = found else {
                if let failure = pipeline.failure() { throw failure }
                return nil
            }
            let time = films_sample_time(sample)
            guard time != .max else {
                gst_sample_unref(sample)
                continue
            }
            return Frame(owning: sample, time > origin ? time - origin : 0)
        }
    }

    // MARK: Pictures for file managers

    /// A typical picture of the film: the first of five places whose picture is not nearly a single colour. A picture that
    /// cannot be decoded is left out, except by the quick decoder: another one may decode it.
    func typical() throws(FilmError) -> Frame {
        guard let duration, duration > 0 else { return try frame(at: first) }
        var best: (frame: Frame, contrast: Double)?
        for share in [1.0 / 3, 2.0 / 3, 0.1, 0.9, 0.5] {
            let frame: Frame
            do throws(FilmError) {
                frame = try keyFrame(nearest: GstClockTime(Double(duration) * share))
            } catch {
                if isQuick { throw error }
                continue
            }
            let contrast = Brightness.contrast(of: frame.sample)
            if contrast > 12 { return frame }
            if best.map({ $0.contrast < contrast }) ?? true { best = (frame, contrast) }
        }
        if let best { return best.frame }
        return try frame(at: first)
    }
}
