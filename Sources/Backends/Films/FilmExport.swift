import CFilms
import FileFormats
import Glibc
import PluginAPI

/// Writes a film into another file: one pipeline reads and decodes, another one encodes and writes, so that the first can
/// seek without the second knowing of it.
struct FilmExport {
    /// What is known of an export that runs.
    struct Progress {
        /// Milliseconds of media that are written.
        var done: Int
        /// 0…1.
        var share: Double
    }

    /// The part of the progress that writing takes, where the index is moved to the front afterwards.
    private static let writingShare = 0.9
    private static let patience = 10.0

    let plan: ExportPlan
    let wish: ExportPlan.Wish
    let facts: FilmFacts
    /// Open for writing, empty; they stay the caller's.
    let output: Int32
    /// For the index at the front: a second empty file on the same disk.
    let draft: Int32?
    /// Without those that name a place, where that was asked for.
    let tags: FilmFacts.Tags

    /// Milliseconds that will be written.
    var length: Int { Int(((to ?? facts.duration) - from) * 1000) }

    private var from: Double { wish.from ?? 0 }
    private var to: Double? { wish.to.map { facts.duration > 0 ? min($0, facts.duration) : $0 } }

    /// - Parameter tell: called several times in a second.
    func run(_ tell: (Progress) -> Void) throws(FilmError) {
        let reader = try FilmPipeline(reading: facts.file, MovieIndex(facts.file.path), plan.reading)
        let writer = try FilmPipeline(plan.writing)
        let file = try writer.child("file")
        films_set_int(file, "fd", output)
        let muxer = try writer.child("mux")
        if let draft, wish.isForNetwork, wish.type != .webm {
            films_set_string(muxer, "faststart-file", "/proc/self/fd/\(draft)")
        }
        films_write_tags(muxer, tags.list)
        if plan.hasVideo { films_lengthen(try writer.child("pictures")) }

        try reader.prepare(within: Self.patience)
        if plan.hasVideo, !plan.isCopy { films_keep_colours(try reader.child("video"), try writer.child("shape")) }
        let (start, stop) = try range()
        if start > 0 || stop != .max { try seek(reader, start, stop) }
        guard let written = films_tally_new() else { throw FilmError(.exportFailed, "no memory") }
        defer { films_tally_free(written) }
        guard let moved = films_tally_new() else { throw FilmError(.exportFailed, "no memory") }
        defer { films_tally_free(moved) }
        for name in (plan.hasVideo ? ["video"] : []) + (plan.hasAudio ? ["audio"] : []) {
            let (sink, source) = (try reader.child(name), try writer.child(name))
            if name == "video" || !plan.hasVideo, let pad = gst_element_get_static_pad(source, "src") {
                films_tally_pad(written, pad)
                gst_object_unref(pad)
            }
            films_bridge_pads(sink, source, start, plan.isCopy ? 1 : 0)
        }
        if let pad = gst_element_get_static_pad(file, "sink") {
            films_tally_pad(moved, pad)
            gst_object_unref(pad)
        }
        writer.set(GST_STATE_PLAYING)
        reader.set(GST_STATE_PLAYING)
        try wait(reader, writer, written, moved, tell)
        try turn()
        guard fdatasync(output) == 0 || errno == EINVAL else {
            throw FilmError(errno == ENOSPC ? .diskFull : .exportFailed, String(cString: strerror(errno)))
        }
    }

    /// The muxers of GStreamer do not write how copied pictures have to be turned.
    private func turn() throws(FilmError) {
        guard plan.isCopy, let video = facts.video, video.direction != 0, wish.type != .webm, plan.hasVideo,
            let place = MovieIndex(descriptor: output)?.matrix
        else { return }
        let bytes = MovieIndex.matrix(direction: video.direction, width: video.width, height: video.height)
        guard pwrite(output, bytes, bytes.count, off_t(place)) == bytes.count else {
            throw FilmError(.exportFailed, String(cString: strerror(errno)))
        }
    }

    private func seek(_ reader: FilmPipeline, _ start: GstClockTime, _ stop: GstClockTime) throws(FilmError) {
        guard gst_element_send_event(reader.element, films_seek(start, stop)) != 0 else {
            throw reader.failure() ?? FilmError(.notSupported, "one cannot seek in it")
        }
    }

    private func wait(
        _ reader: FilmPipeline, _ writer: FilmPipeline, _ written: UnsafeMutablePointer<films_tally>,
        _ moved: UnsafeMutablePointer<films_tally>, _ tell: (Progress) -> Void
    ) throws(FilmError) {
        let isMoved = draft != nil && wish.isForNetwork && wish.type != .webm
        let whole = max(1, length)
        while true {
            do throws(FilmError) {
                if case .ended = try writer.next(within: 0.1) { return }
                while try reader.next(within: 0) != nil {}
            } catch {
                throw isFull() ? FilmError(.diskFull, "no space is left on the disk") : error
            }
            let done = min(whole, Int(films_tally_end(written) / 1_000_000))
            var share = Double(done) / Double(whole)
            if isMoved {
                // The draft is complete when its bytes begin to appear in the target.
                let bytes = Double(films_tally_bytes(moved))
                let total = Double(draft.map(Self.size) ?? 0)
                share = share * Self.writingShare
                if total > 0, bytes > 65_536 { share = max(share, Self.writingShare + 0.1 * min(1, bytes / total)) }
            }
            tell(Progress(done: done, share: share))
        }
    }

    /// The error of a muxer that cannot write its draft does not say why.
    private func isFull() -> Bool {
        var space = statvfs()
        guard fstatvfs(output, &space) == 0 else { return false }
        return UInt64(space.f_bavail) * UInt64(space.f_frsize) < 1 << 20
    }

    private static func size(_ descriptor: Int32) -> Int {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? Int(status.st_size) : 0
    }

    /// Where to begin and to end, in nanoseconds. Copied pictures begin at a key frame.
    private func range() throws(FilmError) -> (GstClockTime, GstClockTime) {
        let stop = to.map(FilmRuntime.nanoseconds) ?? .max
        var start = FilmRuntime.nanoseconds(from)
        if plan.isCopy, plan.hasVideo, start > 0 { start = try Film(facts.file).keyFrames(around: start).before ?? 0 }
        return (start, stop)
    }
}
