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

    /// The part of the progress that writing takes, where the index comes to the front afterwards.
    private static let writingShare = 0.9
    private static let patience = 10.0

    let plan: ExportPlan
    let wish: ExportPlan.Wish
    let facts: FilmFacts
    /// Open for writing, empty; they stay the caller's.
    let output: Int32
    /// For the index at the front: a second empty file on the same disk, open for reading and writing.
    let draft: Int32?
    /// Without those that name a place, where that was asked for.
    let tags: FilmFacts.Tags

    /// Milliseconds that will be written.
    var length: Int { Int(((to ?? facts.duration) - from) * 1000) }

    private var from: Double { wish.from ?? 0 }
    private var to: Double? { wish.to.map { facts.duration > 0 ? min($0, facts.duration) : $0 } }

    /// - Parameter tell: called several times in a second.
    func run(_ tell: (Progress) -> Void) throws(FilmError) {
        let reader = try FilmPipeline(reading: facts.file, MovieIndex(facts.file.path), plan.reading) {
            films_deepen_queues($0)
        }
        let writer = try FilmPipeline(plan.writing)
        // The reader's threads may wait in the writer.
        defer {
            writer.set(GST_STATE_NULL)
            reader.set(GST_STATE_NULL)
        }
        let file = try writer.child("file")
        films_set_int(file, "fd", draft ?? output)
        films_gather(file)
        films_write_tags(try writer.child("mux"), tags.list)
        if plan.hasVideo { films_lengthen(try writer.child(plan.lastOfPictures)) }

        try reader.prepare(within: Self.patience)
        if plan.hasVideo, !plan.isCopy { films_keep_colours(try reader.child("video"), try writer.child("shape")) }
        let (start, stop) = try range()
        if start > 0 || stop != .max { try seek(reader, start, stop) }
        guard let written = films_tally_new() else { throw FilmError(.exportFailed, "no memory") }
        defer { films_tally_free(written) }
        let tracks = (plan.hasVideo ? ["video"] : []) + (plan.hasAudio ? ["audio"] : [])
        if let first = tracks.first, let pad = gst_element_get_static_pad(try writer.child(first), "src") {
            films_tally_pad(written, pad)
            gst_object_unref(pad)
        }
        writer.set(GST_STATE_PLAYING)
        for name in tracks {
            films_bridge_pads(try reader.child(name), try writer.child(name), start, plan.isCopy ? 1 : 0)
        }
        reader.set(GST_STATE_PLAYING)
        try wait(reader, writer, written, tell)
        if let draft { try bringIndexToFront(of: draft, tell) }
        try turn()
        guard fdatasync(output) == 0 || errno == EINVAL else { throw Self.failure() }
    }

    /// The muxers of GStreamer do not write how copied pictures have to be turned.
    private func turn() throws(FilmError) {
        guard plan.isCopy, let video = facts.video, video.direction != 0, wish.type != .webm, plan.hasVideo,
            let place = MovieIndex(descriptor: output)?.matrix
        else { return }
        let bytes = MovieIndex.matrix(direction: video.direction, width: video.width, height: video.height)
        guard pwrite(output, bytes, bytes.count, off_t(place)) == bytes.count else { throw Self.failure() }
    }

    private func seek(_ reader: FilmPipeline, _ start: GstClockTime, _ stop: GstClockTime) throws(FilmError) {
        guard gst_element_send_event(reader.element, films_seek(start, stop)) != 0 else {
            throw reader.failure() ?? FilmError(.notSupported, "one cannot seek in it")
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
                // What stops the writer stops the reader, too, which does not know why.
                throw writer.failure() ?? error
            }
            let done = min(whole, Int(films_tally_end(written) / 1_000_000))
            let share = Double(done) / Double(whole)
            tell(Progress(done: done, share: draft == nil ? share : share * Self.writingShare))
        }
    }

    /// Copies what the muxer has written to the output, with the index, which it writes last, before the rest.
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

    /// Bytes between two reports of the progress.
    private static let step = 16 << 20

    private func write(_ bytes: [UInt8]) throws(FilmError) {
        var done = 0
        while done < bytes.count {
            let count = bytes[done...].withUnsafeBytes { Glibc.write(output, $0.baseAddress, $0.count) }
            guard count > 0 || errno == EINTR else { throw Self.failure() }
            done += max(0, count)
        }
    }

    /// Copies at most so many bytes within the kernel; returns how many.
    private func copy(_ source: Int32, _ place: Int, _ count: Int) throws(FilmError) -> Int {
        var from = off_t(place)
        let copied = sendfile(output, source, &from, count)
        guard copied > 0 || (copied < 0 && errno == EINTR) else {
            if copied == 0 { errno = EIO }
            throw Self.failure()
        }
        return max(0, copied)
    }

    /// After a call that failed.
    private static func failure() -> FilmError {
        errno == ENOSPC || errno == EDQUOT
            ? FilmError(.diskFull, "no space is left on the disk")
            : FilmError(.exportFailed, String(cString: strerror(errno)))
    }

    /// GStreamer does not always say why it cannot write.
    private func isFull() -> Bool {
        var space = statvfs()
        guard fstatvfs(output, &space) == 0 else { return false }
        return UInt64(space.f_bavail) * UInt64(space.f_frsize) < 1 << 20
    }

    /// Where to begin and to end, in nanoseconds. Copied pictures begin at a key frame.
    private func range() throws(FilmError) -> (GstClockTime, GstClockTime) {
        let stop = to.map(FilmRuntime.nanoseconds) ?? .max
        var start = FilmRuntime.nanoseconds(from)
        if plan.isCopy, plan.hasVideo, start > 0 { start = try Film(facts.file).keyFrames(around: start).before ?? 0 }
        return (start, stop)
    }
}
