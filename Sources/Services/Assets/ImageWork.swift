import DBus
import FilmRequests
import Glibc
import PluginAPI
import PluginKit
import Processes
import SessionBus
import Workers

/// The arguments of `GenerateImages`.
struct ImageRequest {
    static let options = [
        "mode", "tolerance-before", "tolerance-after", "maximum-size", "apply-preferred-transform", "format", "quality",
        "folder",
    ]
    private static let limit = 10_000
    private static let modes = ["exact", "nearest-key-frame"]

    /// The requested times, in seconds.
    let times: [Double]
    let format: ImageFormat
    /// Nil: a private folder.
    let folder: String?
    /// The request to the worker, without the path of the film.
    private var film = FilmRequest.Images()

    init(_ times: [Double], _ options: OptionReader) throws {
        guard !times.isEmpty, times.count <= Self.limit else {
            throw SessionError.badParameter("give 1 to \(Self.limit) times, not \(times.count)")
        }
        guard times.allSatisfy({ $0 >= 0 && $0 < 1e9 }) else {
            throw SessionError.badParameter("times are seconds from 0 on")
        }
        self.times = times
        let word = try options.string("format") ?? "jpeg"
        guard let format = ImageFormat(rawValue: word) else {
            throw SessionError.badParameter("unknown format \(quoted(word)); use jpeg, png or webp")
        }
        self.format = format
        let folder = try options.string("folder")
        if let folder, !folder.hasPrefix("/") {
            throw SessionError.badParameter("'folder' must be an absolute path, not \(quoted(folder))")
        }
        self.folder = folder
        let (before, after) = try Self.tolerances(options)
        let quality = try options.uint32("quality") ?? 85
        guard quality <= 100 else { throw SessionError.badParameter("'quality' is 0 to 100") }
        let size = try options.uint32s("maximum-size") ?? (0, 0)
        guard size.0 <= 16_384, size.1 <= 16_384 else { throw SessionError.badParameter("'maximum-size' is too large") }
        film.times = times.map { UInt64(Self.nanoseconds($0)) }
        (film.format, film.quality) = (format, Int(quality))
        film.isTurned = try options.bool("apply-preferred-transform") ?? true
        (film.width, film.height) = (Int(size.0), Int(size.1))
        (film.before, film.after) = (Self.nanoseconds(before), Self.nanoseconds(after))
    }

    /// The tolerances before and after. `exact` means none, and `nearest-key-frame` any.
    private static func tolerances(_ options: OptionReader) throws -> (Double, Double) {
        let mode = try options.string("mode")
        if let mode, !modes.contains(mode) {
            throw SessionError.badParameter("unknown mode \(quoted(mode)); use exact or nearest-key-frame")
        }
        let (before, after) = (try options.double("tolerance-before"), try options.double("tolerance-after"))
        guard before != nil || after != nil else { return mode == "exact" ? (0, 0) : (.infinity, .infinity) }
        guard mode == nil else { throw SessionError.badParameter("give either 'mode' or tolerances") }
        guard before ?? 0 >= 0, after ?? 0 >= 0 else { throw SessionError.badParameter("a tolerance is 0 s or more") }
        return (before ?? 0, after ?? 0)
    }

    /// Limited to a century.
    private static func nanoseconds(_ seconds: Double) -> Int { Int((min(seconds, 3.15e9) * 1e9).rounded()) }

    func message(_ source: AssetsPlugin.Source) -> WorkerMessage {
        var film = film
        film.path = source.path
        return WorkerMessage(film)
    }
}

/// The pictures of one job.
final class ImageWork {
    /// The result for one time.
    struct Image {
        let requested: Double
        var actual = 0.0
        var path = ""
        /// The name of an error; empty: no error.
        var error = ""
    }

    let job: Job
    var task: UInt64 = 0
    private let request: ImageRequest
    private let place: ImageFolders.Place
    private let tell: (Image) -> Void
    private var files: [String] = []
    /// The results before this index have been sent.
    private var next = 0
    /// Results that are made but not sent yet: the worker may make some earlier, but they are sent in the order of the
    /// times.
    private var made: [Int: Image] = [:]

    init(_ job: Job, _ request: ImageRequest, _ place: ImageFolders.Place, _ tell: @escaping (Image) -> Void) {
        (self.job, self.request, self.place, self.tell) = (job, request, place, tell)
    }

    /// Writes a picture. Returns an error if the job cannot continue.
    func take(_ answer: WorkerMessage) -> SessionError? {
        guard answer.name == "image", let index = answer.whole("index").flatMap({ Int(exactly: $0) }),
            request.times.indices[next...].contains(index), made[index] == nil
        else { return nil }
        job.begin()
        var image = Image(requested: request.times[index])
        if let data = answer.bytes("data") {
            let number = String(index + 1)
            let path =
                place.prefix + String(repeating: "0", count: max(0, 5 - number.count)) + number
                + "." + request.format.ending
            do throws(SessionError) {
                let file = try WholeFile(path, replaces: true, mode: 0o600 | place.mode)
                try file.write(data)
                try file.keep(replaces: true)
            } catch {
                return error
            }
            files.append(path)
            image.path = path
            image.actual = Double(answer.whole("actual") ?? 0) / 1e9
        } else {
            image.error = BusName.errorPrefix + (answer.text("code") ?? SessionError.Code.decodeFailed.rawValue)
        }
        made[index] = image
        while let image = made.removeValue(forKey: next) {
            next += 1
            tell(image)
        }
        job.progressed(done: UInt64(next + made.count), total: UInt64(request.times.count))
        return nil
    }

    func end(_ result: Result<WorkerMessage, SessionError>) {
        switch result {
        case .success: job.finish()
        case .failure(let error):
            giveUp(error.code)
            job.fail(error)
        }
    }

    func cancel() { giveUp(.cancelled) }

    private func giveUp(_ code: SessionError.Code) {
        for time in request.times[next...] { tell(Image(requested: time, error: BusName.errorPrefix + code.rawValue)) }
        next = request.times.count
        made = [:]
        for file in files { unlink(file) }
        files = []
        if place.isPrivate { rmdir(place.folder) }
    }
}

/// The folder of pictures: one that the caller names, or a private one that is removed when the caller leaves the bus.
final class ImageFolders {
    struct Place {
        let folder: String
        /// The start of the paths of the files.
        let prefix: String
        let isPrivate: Bool
        /// The permissions of other users to read the files.
        var mode: mode_t { isPrivate ? 0 : 0o066 }
    }

    private let connection: Connection
    private var owned: [String: (watch: Subscription, folders: [String])] = [:]

    init(_ connection: Connection) {
        self.connection = connection
        sweep()
    }

    func place(_ folder: String?, for caller: String, _ job: UInt64) throws(SessionError) -> Place {
        let number = "\(getpid())-\(job)"
        if let folder { return Place(folder: folder, prefix: "\(folder)/sessiond-\(number)-", isPrivate: false) }
        let own = "\(Self.parent)/\(number)"
        guard makeFolders(Self.parent), isPrivate(Self.top), mkdir(own, 0o700) == 0 else {
            throw SessionError(
                errno == ENOSPC ? .diskFull : .exportFailed,
                "'\(own)' cannot be made: \(String(cString: strerror(errno)))")
        }
        if owned[caller] == nil {
            owned[caller] = (connection.watchName(caller) { [weak self] in self?.remove(caller) }, [])
        }
        owned[caller]?.folders.append(own)
        return Place(folder: own, prefix: own + "/", isPrivate: true)
    }

    func removeAll() { for caller in owned.keys { remove(caller) } }

    private func remove(_ caller: String) {
        for folder in owned.removeValue(forKey: caller)?.folders ?? [] { Self.remove(folder) }
    }

    /// The common parent of our private folders. In /tmp, another user may have created it first.
    private static var top: String {
        absolutePath("XDG_RUNTIME_DIR").map { $0 + "/sessiond" } ?? "/tmp/sessiond-\(getuid())"
    }
    private static var parent: String { top + "/images" }

    private static func remove(_ folder: String) {
        for name in namesIn(folder) { unlink("\(folder)/\(name)") }
        rmdir(folder)
    }

    /// Removes folders of processes that were killed.
    private func sweep() {
        guard isPrivate(Self.top) else { return }
        for name in namesIn(Self.parent) {
            guard let process = name.split(separator: "-").first.flatMap({ Int32($0) }) else { continue }
            if process != getpid(), kill(process, 0) != 0, errno == ESRCH { Self.remove("\(Self.parent)/\(name)") }
        }
    }
}
