import EventLoop
import FilmRequests
import Glibc
import PluginAPI
import PluginKit
import SessionBus
import Workers

/// The arguments of `Export`.
struct ExportRequest {
    static let options = [
        "preset", "file-type", "optimize-for-network", "time-range", "overwrite", "metadata", "strip-location",
        "detached",
    ]

    let output: String
    let preset: ExportPreset
    let isForNetwork: Bool
    let overwrites: Bool
    let isDetached: Bool
    /// The request to the worker, without the path of the film.
    private var film = FilmRequest.Export()

    init(_ output: String, _ options: OptionReader) throws {
        func known(_ key: String) throws -> Bool { try options.has(key) && options.bool(key) ?? false }
        guard output.hasPrefix("/"), !output.utf8.contains(0) else {
            throw SessionError.badParameter("'output' must be an absolute path, not \(quoted(output))")
        }
        self.output = output
        let word = try options.string("preset") ?? ExportPreset.medium.rawValue
        guard let preset = ExportPreset(rawValue: word) else {
            let names = ExportPreset.allCases.map(\.rawValue).joined(separator: ", ")
            throw SessionError.badParameter("unknown preset \(quoted(word)); use one of \(names)")
        }
        self.preset = preset
        let type = try Self.type(options.string("file-type"), output, preset)
        isForNetwork = try known("optimize-for-network")
        overwrites = try known("overwrite")
        isDetached = try known("detached")
        (film.wish.preset, film.wish.type, film.wish.isForNetwork) = (preset, type, isForNetwork)
        film.stripsLocation = try known("strip-location")
        if let (from, to) = try options.doubles("time-range") {
            guard from >= 0, from < 1e9, to == 0 || to > from else {
                throw SessionError.badParameter(
                    "'time-range' is a begin and a later end in seconds; an end of 0 is the film's")
            }
            film.wish.from = from
            if to > 0 { film.wish.to = to }
        }
        if options.has("metadata"), let metadata = try options.textProperties("metadata") {
            film.metadata = metadata
        }
    }

    /// The type from the extension of the file, if no type is given.
    private static func type(
        _ word: String?, _ output: String, _ preset: ExportPreset
    ) throws(SessionError) -> ExportFileType {
        if let word {
            guard let type = ExportFileType(rawValue: word) else {
                let names = ExportFileType.allCases.map(\.rawValue).joined(separator: ", ")
                throw .badParameter("unknown file type \(quoted(word)); use one of \(names)")
            }
            return type
        }
        return ExportFileType(path: output) ?? (preset == .audio ? .m4a : .mp4)
    }

    func message(_ source: AssetsPlugin.Source) -> WorkerMessage {
        var film = film
        film.path = source.path
        return WorkerMessage(film)
    }

    func estimate(_ source: AssetsPlugin.Source) -> WorkerMessage {
        var estimate = FilmRequest.Estimate()
        (estimate.path, estimate.wish) = (source.path, film.wish)
        return WorkerMessage(estimate)
    }
}

/// One export: its files, until the target is complete.
final class ExportWork {
    private let job: Job
    private let request: ExportRequest
    private let target: WholeFile
    /// A second file, for the version with the index at the front.
    private let draft: WholeFile?
    private var begin: Double?
    private var length: UInt64 = 0

    init(_ job: Job, _ request: ExportRequest) throws(SessionError) {
        (self.job, self.request) = (job, request)
        target = try WholeFile(request.output, replaces: request.overwrites)
        draft = request.isForNetwork ? try WholeFile(request.output, replaces: true) : nil
    }

    /// The descriptors for the worker, which can write to no other files.
    var descriptors: [Int32] { [target.descriptor] + (draft.map { [$0.descriptor] } ?? []) }

    func take(_ answer: WorkerMessage) {
        guard answer.name == "progress" else { return }
        if begin == nil {
            begin = MonotonicClock.seconds
            job.begin()
        }
        length = UInt64(clamping: answer.whole("total") ?? 0)
        job.progressed(
            done: UInt64(clamping: answer.whole("done") ?? 0), total: length, share: answer.number("share"))
    }

    /// Returns the speed, 1 for real time, if the export succeeded and took long enough to measure it.
    func end(_ result: Result<WorkerMessage, SessionError>) -> Double? {
        var leftOut: [String] = []
        do throws(SessionError) {
            leftOut = try result.get().list("left-out")?.map(\.name) ?? []
            try target.keep(replaces: request.overwrites)
        } catch {
            job.fail(error)
            return nil
        }
        let seconds = begin.map { MonotonicClock.seconds - $0 } ?? 0
        job.finish(leavingOut: leftOut)
        return seconds > 0.5 && length > 1_000 ? Double(length) / 1000 / seconds : nil
    }
}

/// The speeds of the latest exports on this machine, by preset. They are stored on the disk.
final class ExportSpeeds {
    private let file: KeptFile?
    private lazy var speeds: [String: Double] = read()

    /// - Parameter file: nil if the user has no folder for it: the speeds last as long as the process.
    init(_ file: KeptFile?) { self.file = file }

    /// 1 is real time; nil: there was no export with this preset yet.
    subscript(_ preset: ExportPreset) -> Double? { speeds[preset.rawValue] }

    /// The new value is the mean of the old value and the latest speed.
    func add(_ speed: Double, of preset: ExportPreset) {
        speeds[preset.rawValue] = speeds[preset.rawValue].map { ($0 + speed) / 2 } ?? speed
        let text = speeds.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)\n" }.joined()
        try? file?.write(Array(text.utf8))
    }

    private func read() -> [String: Double] {
        guard let bytes = file?.read() else { return [:] }
        var speeds: [String: Double] = [:]
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            let words = line.split(separator: " ")
            if words.count == 2, let speed = Double(words[1]), speed > 0, speed.isFinite {
                speeds[String(words[0])] = speed
            }
        }
        return speeds
    }
}
