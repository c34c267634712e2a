import CFilms
import FileFormats
import FilmRequests
import Glibc
public import PluginAPI
public import Workers

/// The work of a worker for the plugin of films: it receives tasks and sends answers. Untrusted files are opened only
/// here.
public final class FilmWorker {
    private let process: WorkerProcess
    /// The open film of the last task.
    private var film: Film?
    /// The latest inspections, by path, size and time.
    private var inspected: [(file: FilmFile, answer: WorkerMessage)] = []
    private let maker = PictureMaker()
    /// The properties of the last file: a client that exports a file has usually inspected it just before.
    private var known: FilmFacts?

    /// The most that a worker answers. The data are those of pictures.
    public static let answers = AnswerLimits([
        "alive": MessageLimit(fields: 2),
        "image": MessageLimit(fields: 5, text: 16_384, data: 64 << 20),
        "progress": MessageLimit(fields: 3),
        "done": MessageLimit(fields: 8_192, text: 2 << 20, data: 64 << 20),
        "failed": MessageLimit(fields: 2, text: 16_384),
    ])

    /// Serves until the plugin ends. `socket` is the last argument of the program.
    public static func main(socket: Int32) -> Never {
        let process = WorkerProcess(socket: socket, answers)
        _ = FilmRuntime.ready
        process.limit()
        WorkerProcess.isolate()
        let worker = FilmWorker(process)
        process.serve { worker.perform($0, $1) }
        _exit(0)
    }

    private init(_ process: WorkerProcess) { self.process = process }

    private func perform(_ request: WorkerMessage, _ descriptors: [Int32]) -> WorkerMessage {
        do throws(FilmError) {
            do throws(FilmError) {
                return try answer(request, descriptors)
            } catch  where error.missing != nil {
                // The missing element may have been installed meanwhile.
                _ = FilmRuntime.lookAgain
                return try answer(request, descriptors)
            }
        } catch {
            film = nil
            return WorkerMessage("failed", ["code": .text(error.code.rawValue), "message": .text(error.message)])
        }
    }

    private func answer(_ request: WorkerMessage, _ descriptors: [Int32]) throws(FilmError) -> WorkerMessage {
        switch request.name {
        case FilmRequest.Inspect.name: return try inspect(read(request))
        case FilmRequest.Presets.name:
            let presets = ExportPlan.presets(
                for: try facts(of: FilmFile(read(request, FilmRequest.Presets.self).path)), find: FilmRuntime.find)
            return WorkerMessage("done", ["presets": .list(presets.map { WorkerMessage($0.rawValue) })])
        case FilmRequest.Images.name: return try images(read(request))
        case FilmRequest.Thumbnail.name: return try thumbnail(read(request))
        case FilmRequest.Export.name: return try export(read(request), descriptors)
        case FilmRequest.Estimate.name: return try estimate(read(request))
        default: throw FilmError(.notSupported, "unknown task '\(request.name)'")
        }
    }

    private func read<Request: WorkerRequest>(
        _ message: WorkerMessage, _: Request.Type = Request.self
    ) throws(FilmError) -> Request {
        do throws(BadRequest) {
            return try message.request()
        } catch {
            throw FilmError(.badParameter, error.message)
        }
    }

    private func inspect(_ request: FilmRequest.Inspect) throws(FilmError) -> WorkerMessage {
        let (file, isPrecise) = (try FilmFile(request.path), request.isPrecise)
        if !isPrecise, let known = inspected.first(where: { $0.file.isSame(as: file) }) { return known.answer }
        let facts = try facts(of: file, isPrecise: isPrecise)
        let answer = facts.message
        if !isPrecise, facts.missing.isEmpty {
            inspected.removeAll { $0.file.path == file.path }
            if inspected.count >= Self.inspectedLimit { inspected.removeFirst() }
            inspected.append((file, answer))
        }
        return answer
    }

    private static let inspectedLimit = 64

    private func facts(of file: FilmFile, isPrecise: Bool = false) throws(FilmError) -> FilmFacts {
        if !isPrecise, let known, known.file.isSame(as: file) { return known }
        var facts = try FilmFacts(file)
        if isPrecise || facts.isLengthUnknown, facts.missing.isEmpty {
            try facts.measure { process.send(WorkerMessage("alive")) }
        }
        known = isPrecise || !facts.missing.isEmpty ? nil : facts
        return facts
    }

    private func open(_ file: FilmFile) throws(FilmError) -> Film {
        if let film, film.file.isSame(as: file) { return film }
        film = nil
        do throws(FilmError) {
            let opened = try Film(file)
            film = opened
            return opened
        } catch {
            if try hasNoFilm(file) { throw FilmError(.noImageAtTime, Self.noPicture) }
            throw FilmFacts.unreadable(file) ?? error
        }
    }

    private static let noPicture = "it is a sound and has no picture"

    /// Whether it is a sound that can be read. For its missing pictures, GStreamer reports one error or another.
    private func hasNoFilm(_ file: FilmFile) throws(FilmError) -> Bool {
        let facts = try facts(of: file)
        return facts.missing.isEmpty && !facts.sounds.isEmpty && !facts.tracks.contains { $0.kind == .video }
    }

    // MARK: Pictures

    private func images(_ request: FilmRequest.Images) throws(FilmError) -> WorkerMessage {
        let file = try FilmFile(request.path)
        let film = try open(file)
        let times = request.times.map { GstClockTime($0) }
        var shape = PictureMaker.Shape()
        (shape.width, shape.height) = (request.width, request.height)
        (shape.format, shape.quality) = (request.format, request.quality)
        let before = GstClockTime(max(0, request.before))
        let after = GstClockTime(max(0, request.after))
        let orientation = request.isTurned ? film.orientation : 0
        var isTold = times.map { _ in false }
        func tell(_ index: Int, _ frame: Frame) throws(FilmError) {
            let data = try maker.encode(frame.sample, shape, orientation: orientation)
            isTold[index] = true
            process.send(
                WorkerMessage(
                    "image", ["index": .whole(Int64(index)), "actual": .whole(Int64(frame.time)), "data": .bytes(data)])
            )
        }
        // Requested exact pictures that are decoded on the way to an earlier one of the list are not decoded again.
        let isExact = before == 0 && after == 0
        let byTime = isExact ? times.indices.sorted { times[$0] < times[$1] } : []
        for (index, time) in times.enumerated() where !isTold[index] {
            var passed = 0
            do throws(FilmError) {
                if isExact {
                    let frame = try film.frame(at: time) { frame, end in
                        guard passed < Self.passedLimit else { return }
                        for other in Self.indices(of: byTime, from: frame.time, to: end, in: times)
                        where !isTold[other] && passed < Self.passedLimit {
                            // If sending fails, the error is reported when it is the turn of that picture.
                            if (try? tell(other, frame)) != nil { passed += 1 }
                        }
                    }
                    try tell(index, frame)
                } else {
                    try tell(index, try keyFrame(of: film, at: time, before, after))
                }
            } catch {
                // In a damaged film, later pictures may still be good, unless the file cannot be read any more.
                if error.code != .noImageAtTime, error.code != .decodeFailed { throw error }
                isTold[index] = true
                process.send(
                    WorkerMessage(
                        "image",
                        [
                            "index": .whole(Int64(index)), "code": .text(error.code.rawValue),
                            "message": .text(error.message),
                        ]))
            }
        }
        return WorkerMessage("done")
    }

    /// The number of pictures of other times that may be sent before one picture.
    private static let passedLimit = 16

    /// The range of the indices, sorted by their times, whose times are in a range.
    private static func indices(
        of sorted: [Int], from begin: GstClockTime, to end: GstClockTime, in times: [GstClockTime]
    ) -> ArraySlice<Int> {
        func first(_ time: GstClockTime) -> Int {
            var (low, high) = (0, sorted.count)
            while low < high {
                let middle = (low + high) / 2
                if times[sorted[middle]] < time { low = middle + 1 } else { high = middle }
            }
            return low
        }
        let from = first(begin)
        return sorted[from..<max(from, first(end))]
    }

    /// A key frame within the tolerance, or the exact picture.
    private func keyFrame(
        of film: Film, at time: GstClockTime, _ before: GstClockTime, _ after: GstClockTime
    ) throws(FilmError) -> Frame {
        let keys = try film.keyFrames(around: time)
        let near = (
            keys.before.flatMap { $0 + before >= time ? $0 : nil },
            keys.after.flatMap { $0 <= (time > .max - after ? .max : time + after) ? $0 : nil }
        )
        return try film.frame(at: Film.nearer(near.0, near.1, to: time) ?? time)
    }

    /// Makes a thumbnail; nothing if the file has the same time as the thumbnail in the cache.
    private func thumbnail(_ request: FilmRequest.Thumbnail) throws(FilmError) -> WorkerMessage {
        let file = try FilmFile(request.path)
        var fields: [String: WorkerMessage.Field] = [
            "modified": .whole(Int64(file.modified)), "size": .whole(Int64(file.size)),
        ]
        if request.modified == file.modified { return WorkerMessage("done", fields) }
        // Sent before the work starts, so that the plugin has it even if the film crashes this process.
        process.send(WorkerMessage("alive", fields))
        let (data, duration) = try Self.thumbnail(
            of: file, PictureMaker.Shape(width: request.side, height: request.side, format: .png), maker)
        fields["data"] = .bytes(data)
        if duration > 0 { fields["duration"] = .whole(Int64(duration)) }
        return WorkerMessage("done", fields)
    }

    /// A picture for file managers, and the length in seconds. For a film, a typical picture; for a sound, its cover.
    private static func thumbnail(
        of file: FilmFile, _ shape: PictureMaker.Shape, _ maker: PictureMaker
    ) throws(FilmError) -> ([UInt8], Int) {
        let index = MovieIndex(file.path)
        // If the quick decoder fails, the other one is tried.
        if let index, index.isCommonAVC || index.isCommonHEVC,
            let made = try? picture(of: Film(file, index, isQuick: true), shape, maker)
        {
            return made
        }
        let film: Film
        do throws(FilmError) {
            film = try Film(file, index)
        } catch {
            let facts = try FilmFacts(file)
            guard let cover = facts.tags.cover else {
                // The same error as later, from the cache.
                let isSound = facts.missing.isEmpty && facts.video == nil && !facts.sounds.isEmpty
                throw isSound
                    ? FilmError(.decodeFailed, noPicture)
                    : error.code == .noImageAtTime ? FilmError(.decodeFailed, error.message) : error
            }
            defer { gst_sample_unref(cover) }
            return (try PictureMaker.encode(cover: cover, shape), Int(facts.duration))
        }
        return try picture(of: film, shape, maker)
    }

    private static func picture(
        of film: Film, _ shape: PictureMaker.Shape, _ maker: PictureMaker
    ) throws(FilmError) -> ([UInt8], Int) {
        let data = try maker.encode(film.typical().sample, shape, orientation: film.orientation)
        return (data, film.duration.map { Int($0 / 1_000_000_000) } ?? 0)
    }

    /// A thumbnail for a program without a plugin: a picture of a file as PNG. Isolates this process, which ends by
    /// itself if the work takes too long.
    public static func thumbnail(path: [UInt8], side: Int) -> Result<[UInt8], SessionError> {
        _ = FilmRuntime.ready
        WorkerProcess.isolate()
        let shape = PictureMaker.Shape(width: side, height: side, format: .png)
        do throws(FilmError) {
            return .success(try thumbnail(of: FilmFile(path), shape, PictureMaker()).0)
        } catch {
            return .failure(SessionError(error.code, error.message))
        }
    }

    // MARK: Export

    private func export(
        _ request: FilmRequest.Export, _ descriptors: [Int32]
    ) throws(FilmError) -> WorkerMessage {
        film = nil
        let file = try FilmFile(request.path)
        let facts = try facts(of: file)
        let wish = try wish(request.wish, facts)
        let plan = try ExportPlan(wish, facts, find: FilmRuntime.find)
        guard let output = descriptors.first else { throw FilmError(.exportFailed, "no file to write to") }
        guard
            let tags = request.stripsLocation
                ? PlaceTags.removed(from: facts.tags.list) : gst_tag_list_copy(facts.tags.list)
        else { throw FilmError(.exportFailed, "no memory") }
        // A tag that GStreamer does not know would crash the process.
        for (name, text) in request.metadata where films_kind_of_tag(name) == films_tag_text {
            films_add_tag(tags, name, text)
        }
        let wanted = ExportEstimate(plan, wish, facts)
        try wanted.check(output)
        let export = FilmExport(
            plan: plan, wish: wish, facts: facts, output: output,
            draft: wish.movesIndex ? descriptors.dropFirst().first : nil, tags: FilmFacts.Tags(owning: tags))
        let length = Int64(export.length)
        process.send(WorkerMessage("progress", ["done": .whole(0), "total": .whole(length), "share": .number(0)]))
        var last = FilmExport.Progress(done: -1, share: -1)
        let lost = try export.run { progress in
            // If there is no progress, nothing is sent. The plugin detects from this that the export has stopped.
            guard progress.done != last.done || progress.share != last.share || progress.written != last.written else {
                return
            }
            last = progress
            process.send(
                WorkerMessage(
                    "progress",
                    ["done": .whole(Int64(progress.done)), "total": .whole(length), "share": .number(progress.share)]))
        }
        var status = stat()
        let size = fstat(output, &status) == 0 ? Int64(status.st_size) : 0
        return WorkerMessage(
            "done",
            [
                "size": .whole(size), "done": .whole(length),
                "left-out": .list((plan.leftOut + (lost.map { [$0] } ?? [])).map { WorkerMessage($0) }),
            ])
    }

    private func wish(_ request: FilmRequest.Wish, _ facts: FilmFacts) throws(FilmError) -> ExportPlan.Wish {
        var wish = ExportPlan.Wish()
        (wish.preset, wish.type, wish.isForNetwork) = (request.preset, request.type, request.isForNetwork)
        (wish.from, wish.to) = (request.from, request.to)
        if (wish.from ?? 0) > 0 || wish.to != nil, MovieIndex(facts.file.path)?.hasPlainStart == true {
            // qtdemux loses everything before the first fragment if it seeks there.
            throw FilmError(
                .notSupported,
                "GStreamer cannot export a part of a film whose start is not fragmented; export all of it, or convert it"
                    + " first, for example with ffmpeg -i FILE -c copy NEW.mp4")
        }
        if (wish.from ?? 0) > 0 || wish.to != nil, facts.file.isGIF {
            throw FilmError(.notSupported, "GStreamer cannot export a part of a GIF file; export all of it")
        }
        if let from = wish.from, facts.duration > 0, from >= facts.duration {
            throw FilmError(.badParameter, "the time range begins after the end of the film")
        }
        return wish
    }

    private func estimate(_ request: FilmRequest.Estimate) throws(FilmError) -> WorkerMessage {
        let facts = try facts(of: FilmFile(request.path))
        let wish = try wish(request.wish, facts)
        let estimate = ExportEstimate(try ExportPlan(wish, facts, find: FilmRuntime.find), wish, facts)
        return WorkerMessage(
            "done",
            [
                "bytes": .whole(Int64(estimate.bytes)), "length": .number(estimate.length),
                "confidence": .whole(Int64(estimate.confidence)),
            ])
    }
}
