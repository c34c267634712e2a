public import DBus
import EventLoop
public import PluginAPI
import SessionBus

/// An upload for a program with its own loop; ``Upload`` is built on it.
///
/// The plugin for uploads sends the file in a separate process. The upload continues without this object, unless its
/// options say otherwise, and also after a restart of the plugin or of the machine.
public final class UploadClient {
    public enum Event: Sendable, Hashable {
        /// The upload is a job at that path of the plugin. Also sent for the same job after a restart of the plugin.
        case began(job: String)
        case changed(Upload.Progress)
        /// The plugin has ended. It is started again, and continues.
        case interrupted
        /// The last event.
        case ended(Result<Upload.Response, SessionError>)
    }

    /// The time between two tries to find a plugin that has ended, and the time for all tries, in seconds.
    private static let patience = (interval: 1.0, total: 90.0)
    /// The time limit for an answer of the plugin, in seconds: its disk may be slow.
    private static let timeout = 60.0

    /// Nil until the plugin has accepted the upload.
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

    /// Starts the upload.
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

    /// Cancels the upload. A server that supports tus also removes its part.
    public func cancel() {
        guard !isCancelled, !isOver else { return }
        isCancelled = true
        if job != nil { ask("Cancel") }
    }

    /// Pauses the upload. With a method other than tus, it starts again when it resumes.
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

    /// Asks the daemon to start the plugin, if it does not run.
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
                // If the plugin has just ended, `place` is empty, and a new plugin is started.
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
        // The job may have changed or ended before the subscription.
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
            // The upload has succeeded even if its answer cannot be read.
            self?.end(.success(Upload.Response((try? answer.get()) ?? [])))
        }
    }
}
