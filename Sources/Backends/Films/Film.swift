import CFilms
import FileFormats
import Glibc
import PluginAPI

/// One picture of a film, and the time at which it begins.
final class Frame {
    /// Owned by this object.
    let sample: OpaquePointer
    /// Nanoseconds from the film's begin.
    let time: GstClockTime

    init(owning sample: OpaquePointer, _ time: GstClockTime) {
        self.sample = sample
        self.time = time
    }

    deinit { gst_sample_unref(sample) }

    /// Until when it is shown if no other one follows.
    var end: GstClockTime {
        let length = films_sample_length(sample)
        return length == .max ? .max : time + length
    }
}

/// A film that is open, of which pictures are taken at any times.
///
/// The picture of a time is the one that is on the screen then: the last that begins at that time or before. It is found by
/// decoding from the key frame before it, and comparing the times of the pictures themselves; an exact seek of GStreamer
/// gives the same picture, but not its time.
final class Film {
    /// Seconds for which one picture is waited for.
    private static let patience = 8.0
    /// Seconds after which is looked whether there was an error.
    private static let step = 0.05

    let file: FilmFile
    /// Nil if it is not known, and not exact for all formats.
    let duration: GstClockTime?
    /// Whether ``duration`` is where the film ends: in other films that is seen when reading gets there.
    private let isLengthExact: Bool
    /// A value of videoflip's `video-direction`.
    let orientation: Int32
    /// When the first picture begins.
    let first: GstClockTime

    private let index: MovieIndex?
    private var pipeline: FilmPipeline
    private let gate: UnsafeMutablePointer<films_gate>
    private var sink: UnsafeMutablePointer<GstElement>
    /// What is added to all times: those of some formats begin anywhere.
    private let origin: GstClockTime
    /// One cannot seek in it, only begin anew.
    private let isSequential: Bool
    /// The last picture that was decoded, and the one before it; valid while reading goes on from there.
    private var current: Frame?
    private var ahead: Frame?
    private var isBroken = false
    /// Pictures up to this far ahead are decoded without a seek: a seek costs as much as decoding half of the pictures between
    /// two key frames.
    private var stride: GstClockTime = 1_500_000_000
    /// Neighbouring key frames that are known.
    private var keys: [(before: GstClockTime?, after: GstClockTime?)] = []

    /// Opens the film and decodes its first picture.
    /// - Throws: also if it has no picture; then ``cover`` may have one.
    init(_ file: FilmFile) throws(FilmError) {
        guard let gate = films_gate_new() else { throw FilmError(.decodeFailed, "no memory") }
        (self.file, self.gate) = (file, gate)
        var isOpen = false
        defer { if !isOpen { films_gate_free(gate) } }
        index = MovieIndex(file.path)
        pipeline = try Self.pipeline(file, index, gate)
        sink = try pipeline.child("sink")
        try pipeline.prepare(within: Self.patience)
        guard let sample = try Self.firstSample(pipeline, sink) else {
            throw pipeline.failure() ?? FilmError(.noImageAtTime, "it has no picture")
        }
        let start = films_sample_time(sample)
        gst_sample_unref(sample)
        let origin = films_gate_is_rebased(gate) != 0 && start != .max ? start : 0
        first = start == .max ? 0 : start - origin
        duration = pipeline.duration.map { $0 > origin ? $0 - origin : $0 }
        self.origin = origin
        isLengthExact = films_gate_is_rebased(gate) == 0 && index?.isFragmented != true
        // Without such a table GStreamer cannot seek in pieces.
        isSequential = index.map { $0.isFragmented && $0.firstPieces.isEmpty } ?? false
        let pad = gst_element_get_static_pad(sink, "sink")
        orientation = pad.map { films_orientation($0) } ?? 0
        if let pad { gst_object_unref(pad) }
        pipeline.set(GST_STATE_PLAYING)
        isOpen = true
    }

    deinit { films_gate_free(gate) }

    private static func pipeline(
        _ file: FilmFile, _ index: MovieIndex?, _ gate: UnsafeMutablePointer<films_gate>
    ) throws(FilmError) -> FilmPipeline {
        try FilmPipeline(
            reading: file, index,
            "uridecodebin name=source caps=video/x-raw(ANY) expose-all-streams=false"
                + " ! appsink name=sink caps=video/x-raw sync=false max-buffers=2 enable-last-sample=false"
        ) { films_gate_watch(gate, $0) }
    }

    /// The first picture. A track of pictures that begins late has a gap before: then the sink is ready without one.
    private static func firstSample(
        _ pipeline: FilmPipeline, _ sink: UnsafeMutablePointer<GstElement>
    ) throws(FilmError) -> OpaquePointer? {
        if let sample = films_pull_preroll(sink, 0) { return sample }
        pipeline.set(GST_STATE_PLAYING)
        let end = g_get_monotonic_time() + gint64(patience * 1e6)
        while g_get_monotonic_time() < end {
            if let sample = films_pull(sink, FilmRuntime.nanoseconds(step)) { return sample }
            if films_is_over(sink) != 0 { return nil }
            if let failure = pipeline.failure() { throw failure }
        }
        return nil
    }

    // MARK: Pictures

    /// The picture that is shown at a time; the first one for times before it.
    /// - Parameter pass: gets the pictures that are decoded on the way to it, and when each of them ends.
    /// - Throws: `NoImageAtTime` behind the end.
    func frame(
        at time: GstClockTime, passing pass: (Frame, GstClockTime) -> Void = { _, _ in }
    ) throws(FilmError) -> Frame {
        try mend { () throws(FilmError) in try shownFrame(at: time, pass) }
    }

    /// Does something with the film. If that fails because of what is in the file, the next begins with a new pipeline: one
    /// that has failed does nothing any more.
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
        if isSequential {
            try begin(keys: nil)
            guard let frame = try pull() else { throw FilmError(.noImageAtTime, "there is no picture") }
            return try readOn(from: frame, to: wanted, pass)
        }
        var back: GstClockTime = 0
        while true {
            try seek(to: wanted > back ? wanted - back : 0)
            guard let frame = try pull() else {
                throw FilmError(.noImageAtTime, "there is no picture at that time")
            }
            if frame.time <= wanted {
                if back == 0 { stride = max(stride, (wanted - frame.time) / 2) }
                return try readOn(from: frame, to: wanted, pass)
            }
            // It began behind the time, as formats without an index do.
            guard back < wanted else { return frame }
            back = back * 2 + 1_000_000_000
        }
    }

    /// The picture of the key frame that is nearest to a time.
    func keyFrame(nearest time: GstClockTime) throws(FilmError) -> Frame {
        let (before, after) = try keyFrames(around: time)
        guard let nearest = Self.nearer(before, after, to: time) else { return try frame(at: time) }
        return try frame(at: nearest)
    }

    /// The key frame before or at a time, and the next one.
    func keyFrames(around time: GstClockTime) throws(FilmError) -> (before: GstClockTime?, after: GstClockTime?) {
        // A seek behind the end goes anywhere.
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
            throw pipeline.failure() ?? FilmError(.notSupported, "one cannot seek in it")
        }
    }

    private func seek(to time: GstClockTime) throws(FilmError) {
        (current, ahead) = (nil, nil)
        films_gate_set(gate, 0, 0, 1)
        try sendSeek(to: time)
    }

    /// Reads from the begin, with another pipeline: one that was made of a text is linked only once.
    /// - Parameter keys: around which time key frames are looked for, and nothing is decoded; nil: pictures are wanted.
    private func begin(keys: GstClockTime?) throws(FilmError) {
        (current, ahead) = (nil, nil)
        pipeline.set(GST_STATE_NULL)
        pipeline = try Self.pipeline(file, index, gate)
        sink = try pipeline.child("sink")
        films_gate_set(gate, keys == nil ? 0 : 1, keys ?? 0, 0)
        if keys == nil { try pipeline.prepare(within: Self.patience) }
        pipeline.set(GST_STATE_PLAYING)
    }

    private func frameAhead(
        at time: GstClockTime, _ pass: (Frame, GstClockTime) -> Void
    ) throws(FilmError) -> Frame? {
        guard let current, current.time <= time else { return nil }
        if let ahead, ahead.time > time { return current }
        let next = ahead ?? current
        return isSequential || next.time + stride >= time ? try readOn(from: next, to: time, pass) : nil
    }

    /// Decodes on until a picture begins behind the time.
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

    /// Waits until there is a result, or the pipeline has failed: it does not say so to who waits for its data.
    /// - Parameter body: waits for ``step`` seconds.
    @discardableResult
    private func wait<Result>(_ what: String, _ body: () -> Result?) throws(FilmError) -> Result {
        let end = g_get_monotonic_time() + gint64(Self.patience * 1e6)
        while true {
            if let result = body() { return result }
            if let failure = pipeline.failure() { throw failure }
            guard g_get_monotonic_time() < end else {
                throw FilmError(.decodeFailed, "\(what) came in \(Int(Self.patience)) s")
            }
        }
    }

    /// The next picture; nil at the end.
    private func pull() throws(FilmError) -> Frame? {
        while true {
            let found = try wait("no picture") { () -> OpaquePointer?? in
                if let sample = films_pull(sink, FilmRuntime.nanoseconds(Self.step)) { return .some(sample) }
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

    // MARK: What a file manager shows

    /// A picture that says something of the film: at one of five places, the first that is not nearly of one colour.
    func typical() throws(FilmError) -> Frame {
        guard let duration, duration > 0 else { return try frame(at: first) }
        var best: (frame: Frame, contrast: Double)?
        for share in [1.0 / 3, 2.0 / 3, 0.1, 0.9, 0.5] {
            guard let frame = try? keyFrame(nearest: GstClockTime(Double(duration) * share)) else { continue }
            let contrast = films_contrast(frame.sample)
            if contrast > 12 { return frame }
            if best.map({ $0.contrast < contrast }) ?? true { best = (frame, contrast) }
        }
        if let best { return best.frame }
        return try frame(at: first)
    }
}
