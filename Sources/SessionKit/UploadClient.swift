public import DBus
import EventLoop
public import PluginAPI
import SessionBus

/// An upload for a program with its own loop; ``Upload`` is built on it.
///
/// The plugin for uploads sends the file, in a process of its own: the upload goes on without this object, unless its
/// options say otherwise, and also when the plugin or the machine starts again.
public final class UploadClient {
    public enum Event: Sendable, Hashable {
        /// It is a job now, at that path of the plugin; or the same job again, after the plugin was started again.
        case began(job: String)
        case changed(Upload.Progress)
        /// The plugin is gone. It is started again, and continues.
        case interrupted
        /// The last event.
        case ended(Result<Upload.Response, SessionError>)
    }

    /// Seconds after which an absent plugin is asked for again, and how long it is asked for.
    private static let patience = (interval: 1.0, total: 90.0)
    /// Seconds that a plugin may take to answer: it may have to look at a slow disk.
    private static let timeout = 60.0

    /// Nil until the plugin has it.
    public private(set) var job: String?
    public private(set) var progress = Upload.Progress()
    private let file: String
    private let url: String
    private let options: Upload.Options
    private let connection: Connection
    private let onEvent: (Event) -> Void
    /// The unique name of the plugin.
    private var place = ""
    private var fields: [String: Value] = [:]
    private var subscriptions: [Subscription] = []
    private var isOver = false
    private var isCancelled = false
    private var lostAt: UInt64?
    private lazy var retry = Timer(on: connection.loop) { [unowned self] in open() }

    /// Asks for the upload.
    ///
    /// - Parameters:
    ///   - file: an absolute path.
    ///   - url: `http` or `https`.
    ///   - onEvent: gets all events, from the loop.
    public init(
        _ file: String, to url: String, options: Upload.Options = .init(), on connection: Connection,
        onEvent: @escaping (Event) -> Void
    ) {
        (self.file, self.url, self.options, self.connection, self.onEvent) = (file, url, options, connection, onEvent)
        open()
    }

    /// Ends it; nothing of it stays at a server that speaks tus.
    public func cancel() {
        guard !isCancelled, !isOver else { return }
        isCancelled = true
        if job != nil { ask("Cancel") }
    }

    /// A pause of an upload that does not speak tus begins anew when it resumes.
    public func pause() { if job != nil { ask("Pause") } }
    public func resume() { if job != nil { ask("Resume") } }

    private func ask(_ member: String) {
        guard let job, !place.isEmpty else { return }
        connection.call(place, job, BusName.job, member, []) { _ in }
    }

    private func end(_ result: Result<Upload.Response, SessionError>) {
        guard !isOver else { return }
        isOver = true
        subscriptions = []
        retry.disarm()
        onEvent(.ended(result))
    }

    // MARK: The plugin

    /// Has the daemon start the plugin, if it does not run.
    private func open() {
        connection.call(
            BusName.service, ObjectPath.root, BusName.plugins, "Open",
            [.string(PluginKind.uploads.word), .string("https:")], timeout: Self.timeout
        ) { [weak self] answer in
            guard let self, !isOver else { return }
            switch answer {
            case .failure(let failure): refused(failure)
            case .success(let values): opened(values.first?.stringValue ?? "")
            }
        }
    }

    /// A plugin that ended unexpectedly is started again after a while.
    private func refused(_ failure: Failure) {
        let now = MonotonicClock.now()
        guard let lostAt, now < lostAt + MonotonicClock.microseconds(Self.patience.total) else {
            return end(.failure(SessionError(failure)))
        }
        retry.arm(after: Self.patience.interval)
    }

    private func opened(_ name: String) {
        place = name
        subscriptions = [connection.watchName(name) { [weak self] in self?.lost() }]
        guard let job else { return begin() }
        watch(job)
        if isCancelled { ask("Cancel") }
    }

    private func lost() {
        guard !isOver else { return }
        lostAt = MonotonicClock.now()
        place = ""
        onEvent(.interrupted)
        guard job == nil || options.isDetached else {
            return end(.failure(SessionError(.mediaServicesFailed, "the plugin for uploads ended; upload it again")))
        }
        retry.arm(after: Self.patience.interval)
    }

    private func begin() {
        if isCancelled { return end(.failure(SessionError(.cancelled, "the upload was cancelled"))) }
        connection.call(
            place, PluginKind.uploads.objectPath, PluginKind.uploads.interface, "Upload",
            [.string(file), .string(url), options.value], timeout: Self.timeout
        ) { [weak self] answer in
            guard let self, !isOver else { return }
            switch answer {
            case .failure(let failure):
                // It has just ended: another one is started.
                if !place.isEmpty { end(.failure(SessionError(failure))) }
            case .success(let values):
                job = values.first?.objectPathValue
                guard let job else { return }
                watch(job)
                if isCancelled { ask("Cancel") }
            }
        }
    }

    // MARK: The job

    private func watch(_ job: String) {
        subscriptions += [
            connection.subscribe(
                path: job, interface: StandardName.properties, member: "PropertiesChanged", sender: place,
                arg0: BusName.job
            ) { [weak self] message in
                guard let values = try? message.arguments(), values.count == 3 else { return }
                self?.learn(values[1].asProperties ?? [:])
            },
            connection.subscribe(path: job, interface: BusName.job, member: "Finished", sender: place) {
                [weak self] _ in
                self?.read()
            },
        ]
        onEvent(.began(job: job))
        // It may have changed, and ended, before the subscription.
        read()
    }

    private func read() {
        guard let job else { return }
        connection.call(place, job, StandardName.properties, "GetAll", [.string(BusName.job)], timeout: Self.timeout) {
            [weak self] answer in
            guard let self, !isOver, !place.isEmpty else { return }
            switch answer {
            case .failure(let failure): end(.failure(SessionError(failure)))
            case .success(let values): learn(values.first?.asProperties ?? [:])
            }
        }
    }

    private func learn(_ changed: [String: Value]) {
        guard !isOver else { return }
        fields.merge(changed) { $1 }
        let new = Upload.Progress(fields)
        if new != progress {
            progress = new
            onEvent(.changed(new))
        }
        guard new.state.isEnd else { return }
        subscriptions = []
        guard new.state == .finished else { return end(.failure(error)) }
        answer()
    }

    private var error: SessionError {
        SessionError(
            Failure(name: fields["Error"]?.stringValue ?? "", message: fields["Message"]?.stringValue ?? ""))
    }

    private func answer() {
        guard let job else { return }
        connection.call(
            place, PluginKind.uploads.objectPath, PluginKind.uploads.interface, "Answer", [.objectPath(job)],
            timeout: Self.timeout
        ) { [weak self] answer in
            // The file is there, whatever became of the answer.
            self?.end(.success(Upload.Response((try? answer.get()) ?? [])))
        }
    }
}
