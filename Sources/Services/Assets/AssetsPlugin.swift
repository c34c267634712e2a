import DBus
import EventLoop
import FilmRequests
import Glibc
import MediaValues
import PluginAPI
import PluginKit
import Processes
import SessionBus
import Workers

/// Films and sounds as files: their properties, pictures, thumbnails and exports; on the bus as `org.sessiond1.Assets`.
/// It has no session, because it plays no sound.
///
/// It opens no such file itself; workers do (``Workers``). If a file takes too long, or its worker crashes, the request
/// fails.
final class AssetsPlugin: Plugin {
    /// The longest times in which a worker may send nothing, in seconds.
    enum Patience {
        static let reading = 10.0
        static let exporting = 30.0
        /// The time limit for reading a file in seconds, even if the worker makes progress: some files have no end.
        static let readingAll = 120.0
    }

    typealias Reply<Success> = (Result<Success, Failure>) -> Void

    let connection: Connection
    let workers: Workers
    /// The running exports and picture jobs.
    let jobs: Jobs
    private let loop: EventLoop
    private let callers: FreeCallers
    let cache: ThumbnailCache
    let folders: ImageFolders
    private let speeds = ExportSpeeds(
        UserFolder.cache.path.map { KeptFile($0 + "/sessiond/export-speeds", limit: 4_096) })
    private var exports: [UInt64: ExportWork] = [:]
    private var images: [UInt64: ImageWork] = [:]
    /// Prevents sleep while a film is written; nil: sleep is not prevented.
    var inhibitor: Inhibitor?
    /// The exports that are not paused.
    private var active: Set<UInt64> = [] {
        didSet { if active.isEmpty != oldValue.isEmpty { inhibitor?.isHeld = !active.isEmpty } }
    }

    /// Exports the object. The objects on the connection keep this object alive.
    /// - Parameter md5: the MD5 of a text, in hexadecimal.
    init(
        _ workers: Workers, md5: @escaping (String) -> String, on connection: Connection, _ loop: EventLoop
    ) {
        cache = ThumbnailCache(in: UserFolder.cache.path.map { $0 + "/thumbnails" }, md5: md5)
        (self.workers, self.connection, self.loop) = (workers, connection, loop)
        callers = FreeCallers(on: connection)
        jobs = Jobs(.assets, on: connection, loop)
        folders = ImageFolders(connection)
        // A worker is started now, so that the first request does not wait for it.
        workers.prepare()
        export()
    }

    func end(_ done: @escaping () -> Void) {
        jobs.cancelAll()
        folders.removeAll()
        done()
    }

    // MARK: Files

    /// A file that a caller names. It is checked as far as possible without access to it.
    struct Source {
        let path: [UInt8]
        /// The URI in the form that the shared thumbnail cache uses.
        let uri: String
        let name: String
        /// The unique name of the caller; empty: this service itself.
        let caller: String

        init(_ uri: String, for caller: String = "") throws(SessionError) {
            guard let path = FileURI.path(of: uri) else {
                throw SessionError(.notSupported, "\(quoted(uri)) is no file on this machine; give a file: URI")
            }
            self.path = path
            self.uri = FileURI.shared(path)
            name = FileURI.title(self.uri) ?? uri
            self.caller = caller
        }
    }

    /// Refuses programs in sandboxes.
    func source(_ uri: String, for caller: String) throws(Failure) -> Source {
        try callers.require(caller, to: "name files to this service")
        do throws(SessionError) { return try Source(uri, for: caller) } catch { throw Failure(error) }
    }

    /// Asks a worker. A request that reads a part of the file takes seconds; one that reads the whole file may take
    /// minutes.
    func ask(
        _ request: WorkerMessage, about source: Source, isLong: Bool = false,
        onAnswer: @escaping (WorkerMessage) -> Void = { _ in },
        _ reply: @escaping (Result<WorkerMessage, SessionError>) -> Void
    ) {
        _ = workers.run(
            request, for: source.caller, patience: Patience.reading, longest: Patience.readingAll, isLong: isLong,
            affinity: source.uri, onAnswer: onAnswer
        ) { reply(Self.outcome($0, source.name)) }
    }

    static func outcome(
        _ result: Result<WorkerMessage, Workers.Failure>, _ name: String
    ) -> Result<WorkerMessage, SessionError> {
        switch result {
        case .success(let message) where message.name == "done": .success(message)
        case .success(let message):
            .failure(
                SessionError(
                    message.text("code").flatMap(SessionError.Code.init(rawValue:)) ?? .decodeFailed,
                    "'\(name)': \(message.text("message") ?? "no reason given")"))
        case .failure(let failure): .failure(error(failure, name))
        }
    }

    private static func error(_ failure: Workers.Failure, _ name: String) -> SessionError {
        switch failure {
        case .tookTooLong(let seconds):
            SessionError(.decodeFailed, "'\(name)': it took longer than \(Int(seconds.rounded())) s")
        case .silent(let seconds):
            SessionError(.decodeFailed, "'\(name)': its worker sent nothing for \(Int(seconds.rounded())) s")
        case .ended: SessionError(.decodeFailed, "'\(name)': its worker ended unexpectedly")
        case .notStarted:
            SessionError(.resourceNotAvailable, "no worker can be started to read '\(name)'; see the service's log")
        }
    }

    /// Reports the reason why a file cannot be played; nil: it can be played.
    func check(_ uri: String, _ reply: @escaping (String?) -> Void) {
        do throws(SessionError) {
            let source = try Source(uri)
            ask(WorkerMessage(FilmRequest.Inspect(source.path)), about: source) { result in
                switch result {
                case .failure(let error): reply(error.description)
                case .success(let message):
                    let missing = (message.list("missing") ?? []).map(\.name).joined(separator: ", ")
                    reply(
                        message.flag("playable") == true
                            ? nil : missing.isEmpty ? "it has nothing to play" : "missing: \(missing)")
                }
            }
        } catch {
            reply(error.description)
        }
    }

    // MARK: Thumbnails

    func thumbnail(_ source: Source, _ flavor: ThumbnailFlavor, _ reply: @escaping Reply<String>) {
        let known = cache.entry(of: source.uri, flavor)
        var request = FilmRequest.Thumbnail(source.path, side: flavor.size)
        switch known {
        case .picture(let modified), .failure(let modified): request.modified = modified
        case nil: break
        }
        var modified: Int?
        ask(WorkerMessage(request), about: source) { answer in
            modified = answer.whole("modified").flatMap { Int(exactly: $0) }
        } _: { [weak self] result in
            guard let self else { return }
            switch result {
            case .success(let message): reply(keep(message, source, flavor, known))
            case .failure(let error):
                // Only failures of the content are stored. After others, such as a missing plugin, the next request
                // tries again.
                if [.decodeFailed, .noImageAtTime].contains(error.code), let modified {
                    cache.addFailure(of: source.uri, modified: modified)
                }
                reply(.failure(Failure(error)))
            }
        }
    }

    private func keep(
        _ message: WorkerMessage, _ source: Source, _ flavor: ThumbnailFlavor, _ known: ThumbnailCache.Entry?
    ) -> Result<String, Failure> {
        do throws(SessionError) {
            guard let data = message.bytes("data"), let modified = message.whole("modified") else {
                if case .failure = known {
                    throw SessionError(.decodeFailed, "'\(source.name)': no thumbnail could be made of it before")
                }
                return .success(cache.path(of: source.uri, flavor) ?? "")
            }
            var details = [("Thumb::Size", String(message.whole("size") ?? 0))]
            if let duration = message.whole("duration") { details.append(("Thumb::Movie::Length", String(duration))) }
            return .success(try cache.add(data, of: source.uri, flavor, modified: Int(modified), details))
        } catch {
            return .failure(Failure(error))
        }
    }

    // MARK: Jobs

    /// Starts a job that takes pictures; returns its path.
    func generate(_ source: Source, _ request: ImageRequest, for caller: String) throws(SessionError) -> String {
        let job = try jobs.add(
            "generate-images", name: source.name, for: caller,
            JobStatus(.images, total: UInt64(request.times.count), canPause: true))
        let place: ImageFolders.Place
        do throws(SessionError) {
            place = try folders.place(request.folder, for: caller, job.number)
        } catch {
            job.fail(error)
            return job.path
        }
        let work = ImageWork(job, request, place) { [connection, path = job.path] in
            connection.objects.emit(
                path: ObjectPath.assets, interface: BusName.assets, member: "Image",
                [.objectPath(path), .double($0.requested), .double($0.actual), .string($0.path), .string($0.error)],
                to: caller)
        }
        images[job.number] = work
        let task = workers.run(
            request.message(source), for: caller, patience: Patience.reading, isLong: request.times.count > 20,
            affinity: source.uri,
            onAnswer: { [weak self] answer in
                if let error = work.take(answer) { self?.stop(work, error) }
            },
            onEnd: { [weak self] result in
                work.end(Self.outcome(result, source.name))
                self?.images[job.number] = nil
            })
        work.task = task
        job.refusalToPause = { [workers] in Self.refusalToPause(workers.canPause(task)) }
        job.onPause = { [workers] in workers.pause(task) }
        job.onResume = { [workers] in workers.resume(task) }
        job.onCancel = { [weak self] in
            self?.workers.cancel(task)
            work.cancel()
            self?.images[job.number] = nil
        }
        return job.path
    }

    /// A paused job keeps its worker.
    private static func refusalToPause(_ canPause: Bool) -> SessionError? {
        canPause
            ? nil : SessionError(.resourceNotAvailable, "too many jobs are paused; resume or cancel one of them first")
    }

    private func stop(_ work: ImageWork, _ error: SessionError) {
        workers.cancel(work.task)
        images[work.job.number] = nil
        work.end(.failure(error))
    }

    /// Starts an export; returns the path of its job. Errors of the file are errors of the job.
    func export(_ source: Source, _ request: ExportRequest, for caller: String) throws(SessionError) -> String {
        let job = try jobs.add(
            "export", name: FileURI.title(FileURI.uri(request.output)) ?? request.output, for: caller,
            isDetached: request.isDetached, JobStatus(.milliseconds, canPause: true))
        let work: ExportWork
        do throws(SessionError) {
            work = try ExportWork(job, request)
        } catch {
            job.fail(error)
            return job.path
        }
        exports[job.number] = work
        active.insert(job.number)
        let task = workers.run(
            request.message(source), for: caller, descriptors: work.descriptors, patience: Patience.exporting,
            isLong: true,
            onAnswer: { work.take($0) },
            onEnd: { [weak self] result in
                self?.exports[job.number] = nil
                self?.active.remove(job.number)
                if let speed = work.end(Self.outcome(result, source.name)) {
                    self?.speeds.add(speed, of: request.preset)
                }
            })
        job.refusalToPause = { [workers] in Self.refusalToPause(workers.canPause(task)) }
        job.onPause = { [weak self] in
            self?.workers.pause(task)
            self?.active.remove(job.number)
        }
        job.onResume = { [weak self] in
            self?.workers.resume(task)
            self?.active.insert(job.number)
        }
        job.onCancel = { [weak self] in
            self?.workers.cancel(task)
            self?.exports[job.number] = nil
            self?.active.remove(job.number)
        }
        return job.path
    }

    func estimate(
        _ source: Source, _ request: ExportRequest, _ reply: @escaping Reply<(UInt64, Double, UInt32)>
    ) {
        ask(request.estimate(source), about: source) { [speeds] result in
            switch result {
            case .failure(let error): reply(.failure(Failure(error)))
            case .success(let message):
                let length = message.number("length") ?? 0
                let seconds = speeds[request.preset].map { length / $0 } ?? -1
                reply(
                    .success(
                        (
                            UInt64(max(0, message.whole("bytes") ?? 0)), seconds,
                            UInt32(clamping: message.whole("confidence") ?? 0)
                        )))
            }
        }
    }
}
