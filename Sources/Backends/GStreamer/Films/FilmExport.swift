import CFilms
import FileFormats
import GStreamerBase
import Glibc
import PluginAPI

/// Exports a film to another file. One pipeline reads and decodes, a second one encodes and writes. So the first one
/// can seek, and the second one does not notice it.
struct FilmExport {
    /// The progress of a running export.
    struct Progress {
        /// Milliseconds of media that have been written.
        var done: Int
        /// 0 to 1.
        var share: Double
        /// Bytes that have been written so far, also to the disk itself: it grows also while the other values do not, such as
        /// for the sound after the last picture.
        var written = 0
    }

    /// The part of the progress for writing, if the index is moved to the front afterwards.
    private static let writingShare = 0.9
    private static let patience = 10.0

    let plan: ExportPlan
    let wish: ExportPlan.Wish
    let facts: FilmFacts
    /// An empty file, open for writing; owned by the caller.
    let output: Int32
    /// For an index at the front: a second empty file on the same disk, open for reading and writing; owned by the
    /// caller.
    let draft: Int32?
    /// The tags for the new file. If the client asked for it, tags with a location are left out.
    let tags: FilmFacts.Tags

    /// Milliseconds that will be written.
    var length: Int { Int(((to ?? facts.duration) - from) * 1000) }

    private var from: Double { wish.from ?? 0 }
    private var to: Double? { wish.to.map { facts.duration > 0 ? min($0, facts.duration) : $0 } }

    /// - Parameter tell: called several times a second.
    /// - Returns: what the new file lacks because the old one was cut off, as a phrase for people; nil: nothing.
    func run(_ tell: (Progress) -> Void) throws(FilmError) -> String? {
        let reader = try FilmPipeline(reading: facts.file, MovieIndex(facts.file.path), plan.reading) {
            films_deepen_queues($0)
        }
        let writer = try FilmPipeline(plan.writing)
        // The threads of the reader may be blocked in the writer.
        defer {
            writer.set(GST_STATE_NULL)
            reader.set(GST_STATE_NULL)
        }
        let file = try writer.child("file")
        shim_set_int(file, "fd", draft ?? output)
        films_gather(file)
        films_write_tags(try writer.child("mux"), tags.list)
        if plan.hasVideo { films_lengthen(try writer.child(plan.lastOfPictures)) }
        if plan.hasVideo, !plan.isCopy { films_limit_rate(try writer.child("scaler"), guint(wish.preset.largestRate)) }

        if plan.hasVideo, !plan.isCopy { films_accept_planes(try reader.child("video")) }
        if keepsLead { films_keep_lead(try reader.child("video")) }
        try reader.prepare(within: Self.patience)
        if plan.hasVideo, !plan.isCopy { films_keep_colours(try reader.child("video"), try writer.child("shape")) }
        let (start, stop) = try range()
        if start > 0 || stop != .max { try seek(reader, start, stop) }
        let chapters = plan.chapters(facts, from: Double(start) / 1e9)
        let end = (to ?? facts.duration) - Double(start) / 1e9
        Chapters.write(chapters, until: end, to: try writer.child("mux"))
        guard let written = films_tally_new() else { throw FilmError(.exportFailed, "no memory") }
        defer { films_tally_free(written) }
        let tracks = (plan.hasVideo ? ["video"] : []) + plan.sounds
        if let first = tracks.first, let pad = gst_element_get_static_pad(try writer.child(first), "src") {
            films_tally_pad(written, pad)
            gst_object_unref(pad)
        }
        guard let all = films_tally_new() else { throw FilmError(.exportFailed, "no memory") }
        defer { films_tally_free(all) }
        for track in tracks {
            guard let pad = gst_element_get_static_pad(try writer.child(track), "src") else { continue }
            films_tally_pad(all, pad)
            gst_object_unref(pad)
        }
        let lead = try lead(reader, before: start)
        writer.set(GST_STATE_PLAYING)
        for name in tracks {
            films_bridge_pads(
                try reader.child(name), try writer.child(name), gint64(start) - gint64(lead), plan.isCopy ? 1 : 0)
        }
        reader.set(GST_STATE_PLAYING)
        try wait(reader, writer, written, tell)
        try hide(lead)
        try list(chapters)
        if let draft { try bringIndexToFront(of: draft, tell) }
        try turn()
        try flush(tell)
        let missing = end - Double(films_tally_end(all)) / 1e9
        guard missing > Self.noticed, CutFile.isCut(facts.file.path) else { return nil }
        return "the last \((missing * 10).rounded() / 10) s, which the file does not have: it was cut off"
    }

    /// Seconds at the end that nobody misses: tracks end at different times.
    private static let noticed = 0.25

    /// Whether the pictures before the start are copied, too: MP4 can say that they are not shown.
    private var keepsLead: Bool { plan.isCopy && plan.hasVideo && wish.type != .webm }

    /// How long before the start of a copy its pictures begin, in nanoseconds: the first shown picture may depend on
    /// earlier ones.
    private func lead(_ reader: FilmPipeline, before start: GstClockTime) throws(FilmError) -> GstClockTime {
        guard keepsLead else { return 0 }
        return films_lead(try reader.child("video"), start)
    }

    /// Players leave out what comes before the start: the earlier pictures of a copy, and the delay of the encoder of the
    /// sound.
    private func hide(_ lead: GstClockTime) throws(FilmError) {
        let seconds = Double(lead) / 1e9
        guard wish.type != .webm else { return }
        let patches =
            MovieIndex.patches(descriptor: draft ?? output, leavingOut: seconds, seconds + plan.soundDelay)
            + MovieIndex.opusPatches(descriptor: draft ?? output)
        for patch in patches {
            guard pwrite(draft ?? output, patch.bytes, patch.bytes.count, off_t(patch.place)) == patch.bytes.count
            else {
                throw Self.failure()
            }
        }
    }

    /// Writes the chapters into the index of the new file, because GStreamer's muxers of MP4 write none.
    private func list(_ chapters: [MediaChapter]) throws(FilmError) {
        guard !chapters.isEmpty, wish.type != .webm else { return }
        let file = draft ?? output
        guard let patch = MovieIndex.patch(descriptor: file, chapters: chapters) else {
            throw FilmError(
                .exportFailed, "the chapters cannot be written: the index of the new file is not behind its samples")
        }
        guard pwrite(file, patch.bytes, patch.bytes.count, off_t(patch.place)) == patch.bytes.count else {
            throw Self.failure()
        }
    }

    /// Writes the file to the disk, which may be slow.
    private func flush(_ tell: (Progress) -> Void) throws(FilmError) {
        let size = bytes(output)
        for place in stride(from: 0, to: size, by: Self.step) {
            // Only for the progress: what it does not write, the next call writes.
            _ = films_write_back(output, Int64(place), Int64(Self.step))
            tell(Progress(done: length, share: 1, written: size + place))
        }
        guard fdatasync(output) == 0 || errno == EINVAL else { throw Self.failure() }
    }

    private func bytes(_ descriptor: Int32) -> Int {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? Int(status.st_size) : 0
    }

    /// Writes the rotation of copied pictures into the new file, because the muxers of GStreamer do not write it.
    private func turn() throws(FilmError) {
        guard plan.isCopy, let video = facts.video, video.direction != 0, wish.type != .webm, plan.hasVideo,
            let place = MovieIndex(descriptor: output)?.matrix
        else { return }
        let bytes = MovieIndex.matrix(direction: video.direction, width: video.width, height: video.height)
        guard pwrite(output, bytes, bytes.count, off_t(place)) == bytes.count else { throw Self.failure() }
    }

    private func seek(_ reader: FilmPipeline, _ start: GstClockTime, _ stop: GstClockTime) throws(FilmError) {
        guard gst_element_send_event(reader.element, films_seek(start, stop)) != 0 else {
            throw reader.failure() ?? FilmError(.notSupported, "it is not seekable")
        }
        try reader.settle(within: Self.patience)
    }

    private func wait(
        _ reader: FilmPipeline, _ writer: FilmPipeline, _ written: UnsafeMutablePointer<films_tally>,
        _ tell: (Progress) -> Void
    ) throws(FilmError) {
        let whole = max(1, length)
        while true {
            do throws(FilmError) {
                if case .ended = try writer.next(within: 0.1) { return }
                while try reader.next(within: 0) != nil {}
            } catch {
                if isFull() { throw FilmError(.diskFull, "no space is left on the disk") }
                // An error of the writer also stops the reader, but the reader does not know the reason.
                throw writer.failure() ?? error
            }
            let done = min(whole, Int(films_tally_end(written) / 1_000_000))
            let share = Double(done) / Double(whole)
            tell(
                Progress(
                    done: done, share: draft == nil ? share : share * Self.writingShare,
                    written: bytes(draft ?? output)))
        }
    }

    /// Copies the muxer's output to the target. The muxer writes the index last; it is copied first.
    private func bringIndexToFront(of draft: Int32, _ tell: (Progress) -> Void) throws(FilmError) {
        guard let parts = MovieIndex.partsWithIndexFirst(descriptor: draft) else {
            throw FilmError(.exportFailed, "the muxer has written no index")
        }
        let total = parts.reduce(0) { $0 + $1.count }
        var done = 0
        for part in parts {
            switch part {
            case .bytes(let bytes): try write(bytes)
            case .range(let place, let count):
                var copied = 0
                while copied < count {
                    copied += try copy(draft, place + copied, min(count - copied, Self.step))
                    let share = Double(done + copied) / Double(total)
                    tell(Progress(done: length, share: Self.writingShare + (1 - Self.writingShare) * share))
                }
            }
            done += part.count
        }
    }

    /// Bytes between two progress reports.
    private static let step = 16 << 20

    private func write(_ bytes: [UInt8]) throws(FilmError) {
        var done = 0
        while done < bytes.count {
            let count = bytes[done...].withUnsafeBytes { Glibc.write(output, $0.baseAddress, $0.count) }
            guard count > 0 || errno == EINTR else { throw Self.failure() }
            done += max(0, count)
        }
    }

    /// Copies at most `count` bytes within the kernel; returns the number of copied bytes.
    private func copy(_ source: Int32, _ place: Int, _ count: Int) throws(FilmError) -> Int {
        var from = off_t(place)
        let copied = sendfile(output, source, &from, count)
        guard copied > 0 || (copied < 0 && errno == EINTR) else {
            if copied == 0 { errno = EIO }
            throw Self.failure()
        }
        return max(0, copied)
    }

    /// The error of the system call that has just failed.
    private static func failure() -> FilmError {
        errno == ENOSPC || errno == EDQUOT
            ? FilmError(.diskFull, "no space is left on the disk")
            : FilmError(.exportFailed, String(cString: strerror(errno)))
    }

    /// Whether the disk is full: GStreamer does not always report why it cannot write.
    private func isFull() -> Bool {
        var space = statvfs()
        guard fstatvfs(output, &space) == 0 else { return false }
        return UInt64(space.f_bavail) * UInt64(space.f_frsize) < 1 << 20
    }

    /// The start and the end, in nanoseconds. Copied pictures start at a key frame.
    private func range() throws(FilmError) -> (GstClockTime, GstClockTime) {
        let stop = to.map(Times.nanoseconds) ?? .max
        var start = Times.nanoseconds(from)
        if plan.isCopy, plan.hasVideo, start > 0 { start = try Film(facts.file).keyFrames(around: start).before ?? 0 }
        return (start, stop)
    }
}
