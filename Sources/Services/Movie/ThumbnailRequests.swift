import DBus
import EventLoop
import MediaValues
import PluginAPI
import PluginKit
import SessionBus

/// Pictures of the loaded film, which the plugin for films as files takes while it plays
/// (requestThumbnailImagesAtTimes).
///
/// A request is a job of the movie player. The files are in a private folder, which is removed when the movie player ends.
final class ThumbnailRequests {
    /// The arguments of the signal `ThumbnailImage`.
    typealias Tell = ([Value]) -> Void

    private let connection: Connection
    private let jobs: Jobs
    private var running: [UInt64: Work] = [:]

    /// One request.
    private final class Work {
        let job: Job
        let tell: Tell
        /// The process of the other plugin, and its job, once known.
        var place = ""
        var other = ""
        var subscriptions: [Subscription] = []
        /// What came before its job was known.
        var early: [Message] = []
        var done: UInt64 = 0

        init(_ job: Job, _ tell: @escaping Tell) { (self.job, self.tell) = (job, tell) }
    }

    init(on connection: Connection, _ loop: EventLoop, onBusyChanged: @escaping (Bool) -> Void) {
        self.connection = connection
        jobs = Jobs(.moviePlayer, on: connection, loop)
        jobs.onBusyChanged = onBusyChanged
    }

    /// Seconds for the other plugin to start, and to answer.
    private static let patience = 60.0
    static let options = ["exact", "nearest-key-frame"]

    /// - Parameters:
    ///   - times: seconds of the film, from 0.
    ///   - option: `exact` or `nearest-key-frame`.
    ///   - tell: called once for each time, in their order.
    /// - Returns: the path of the job.
    func request(
        _ uri: String, _ times: [Double], _ option: String, for caller: String, _ tell: @escaping Tell
    ) throws(SessionError) -> String {
        guard Self.options.contains(option) else {
            throw .badParameter("the option must be exact or nearest-key-frame, not \(quoted(option))")
        }
        guard (1...10_000).contains(times.count), times.allSatisfy({ $0 >= 0 && $0 < 1e9 }) else {
            throw .badParameter("give 1 to 10000 times, in seconds from 0")
        }
        let job = try jobs.add(
            "request-thumbnails", name: FileURI.title(uri) ?? "film", for: caller,
            JobStatus(.images, total: UInt64(times.count)))
        let work = Work(job, tell)
        running[job.number] = work
        job.onCancel = { [weak self, weak work] in if let work { self?.cancel(work) } }
        connection.call(
            BusName.service, ObjectPath.root, BusName.plugins, "Open",
            [.string(PluginKind.assets.word), .string(uri)], timeout: Self.patience
        ) { [weak self] answer in
            switch answer {
            case .success(let values): self?.find(values.first?.stringValue ?? "", work, uri, times, option)
            case .failure(let failure): self?.end(work, SessionError(failure))
            }
        }
        return job.path
    }

    /// Signals come from the unique name of the process that has this name.
    private func find(_ name: String, _ work: Work, _ uri: String, _ times: [Double], _ option: String) {
        connection.askBus("GetNameOwner", [.string(name)]) { [weak self] answer in
            guard let self, running[work.job.number] != nil else { return }
            guard case .success(let values) = answer, let owner = values.first?.stringValue else {
                return end(work, SessionError(.mediaServicesFailed, "the plugin for pictures has ended"))
            }
            work.place = owner
            work.subscriptions = [
                connection.subscribe(path: ObjectPath.assets, interface: BusName.assets, sender: owner) {
                    [weak self] in self?.heard($0, work)
                },
                connection.subscribe(interface: BusName.job, member: "Finished", sender: owner) {
                    [weak self] in self?.heard($0, work)
                },
                connection.watchName(owner) { [weak self] in
                    self?.end(work, SessionError(.mediaServicesFailed, "the plugin for pictures has ended"))
                },
            ]
            connection.call(
                owner, ObjectPath.assets, BusName.assets, "GenerateImages",
                [
                    .string(uri), .array(of: "d", times.map(Value.double)), .properties([("mode", .string(option))]),
                ], timeout: Self.patience
            ) { [weak self] answer in
                switch answer {
                case .success(let values): self?.began(work, values.first?.objectPathValue ?? "")
                case .failure(let failure): self?.end(work, SessionError(failure))
                }
            }
        }
    }

    private func began(_ work: Work, _ path: String) {
        work.other = path
        if work.job.status.state.isEnd { return cancel(work) }
        work.job.begin()
        let early = work.early
        work.early = []
        for message in early { heard(message, work) }
    }

    private func heard(_ message: Message, _ work: Work) {
        guard !work.other.isEmpty else { return work.early.append(message) }
        guard let values = try? message.arguments() else { return }
        if message.member == "Image", values.count == 5, values[0].objectPathValue == work.other {
            work.done += 1
            work.tell([.objectPath(work.job.path)] + values.dropFirst())
            work.job.progressed(done: work.done, total: work.job.status.total)
        } else if message.member == "Finished", message.path == work.other {
            if values.first?.boolValue == true { return end(work, nil) }
            let reason = values.last?.stringValue ?? ""
            end(work, SessionError(.decodeFailed, reason.isEmpty ? "the pictures could not be taken" : reason))
        }
    }

    private func cancel(_ work: Work) {
        // Its images are told as cancelled, and then it ends.
        guard !work.other.isEmpty else { return }
        connection.call(work.place, work.other, BusName.job, "Cancel", []) { _ in }
    }

    private func end(_ work: Work, _ error: SessionError?) {
        guard running.removeValue(forKey: work.job.number) != nil else { return }
        work.subscriptions = []
        if let error { work.job.fail(error) } else { work.job.finish() }
    }
}
