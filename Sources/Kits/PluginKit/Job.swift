import DBus
import EventLoop
public import PluginAPI
import SessionBus

/// A long task, on the bus as `org.sessiond1.Job`. ``Jobs/add(_:name:for:isDetached:_:)`` creates one.
///
/// The task calls ``begin()``, ``progressed(done:total:share:)`` and, at its end, ``finish()`` or ``fail(_:)``. It
/// reacts to clients in ``onCancel``, ``onPause`` and ``onResume``.
public final class Job {
    /// The number of the job; this process never uses it again.
    public let number: UInt64
    public let path: String
    /// The method that started it, in lower case with dashes.
    public let kind: String
    /// A name for people.
    public let name: String
    /// The unique name of the connection that started it; empty: an earlier process of the plugin started it.
    public let owner: String
    /// Whether it continues when its owner has left.
    public let isDetached: Bool
    public private(set) var status: JobStatus

    /// The task must end and remove its unfinished result. Called once, and not after the end of the job.
    public var onCancel: () -> Void = {}
    /// The reason why it cannot be paused now; nil: it can be paused.
    public var refusalToPause: () -> SessionError? = { nil }
    /// Called if the status allows a pause.
    public var onPause: () -> Void = {}
    public var onResume: () -> Void = {}

    private weak var jobs: Jobs?
    private let objects: ObjectTable
    private var announcement: Announcement<Job>?
    private lazy var notice = jobs.map { Timer(on: $0.loop) { [weak self] in self?.handle(.timePassed) } }

    init(
        _ number: UInt64, _ kind: String, name: String, owner: String, isDetached: Bool, _ status: JobStatus,
        in jobs: Jobs
    ) {
        (self.number, self.kind, self.name, self.owner) = (number, kind, name, owner)
        (self.isDetached, self.status, self.jobs) = (isDetached, status, jobs)
        path = ObjectPath.job(number, of: jobs.kind)
        objects = jobs.connection.objects
    }

    func export() {
        objects.export(self, at: path, interfaces: [Job.interface])
        announcement = Announcement(self, path: path, interface: BusName.job, Job.properties, on: objects)
    }

    /// The task has started, or continues after it had to wait.
    public func begin() { handle(.begun) }

    /// The task has to wait.
    public func wait(_ reason: String) { handle(.waits(reason)) }

    /// Reports progress: `done` of `total`, in the unit of the status; `total` is 0 if unknown.
    /// - Parameter share: the progress, 0…1, if it is not the quotient of both.
    public func progressed(done: UInt64, total: UInt64, share: Double? = nil) {
        handle(.progressed(done: done, total: total, share: share))
    }

    /// The result is complete.
    /// - Parameter leavingOut: what it does not have, one phrase each for people, such as a track of a film.
    public func finish(leavingOut phrases: [String] = []) {
        if !phrases.isEmpty { handle(.leavesOut(phrases)) }
        handle(.succeeded)
    }

    /// The task has failed, and left no result.
    public func fail(_ error: SessionError) { handle(.failed(error)) }

    /// Cancels the job, as a client can.
    public func cancel() { handle(.cancel) }
    public func pause() { handle(.pause) }

    /// Whether it is on the bus; it stays there for a while after its end.
    public internal(set) var isListed = true

    private func handle(_ input: JobStatus.Input) {
        do throws(SessionError) {
            try take(input)
        } catch {
            // Only a pause can be refused, and clients do not call it through here.
        }
    }

    private func take(_ input: JobStatus.Input) throws(SessionError) {
        if case .pause = input, let error = refusalToPause() { throw error }
        let effects = try status.handle(input, at: MonotonicClock.now())
        for effect in effects {
            switch effect {
            case .pauseWork: onPause()
            case .resumeWork: onResume()
            case .cancelWork: onCancel()
            case .tell: announcement?.update(self)
            case .wait(let until): notice?.arm(at: until)
            case .end(let success): ended(success)
            }
        }
    }

    private func ended(_ success: Bool) {
        notice?.disarm()
        (onCancel, onPause, onResume, refusalToPause) = ({}, {}, {}, { nil })
        objects.emit(
            path: path, interface: BusName.job, member: "Finished", [.bool(success), .string(status.message)])
        jobs?.ended(self)
    }

    // MARK: The bus

    private static let properties: [Announcement<Job>.Property] = [
        .init("Kind", "s", isTold: false) { .string($0.kind) },
        .init("Name", "s", isTold: false) { .string($0.name) },
        .init("Owner", "s", isTold: false) { .string($0.owner) },
        .init("Detached", "b", isTold: false) { .bool($0.isDetached) },
        .init("State", "s") { .string($0.status.state.rawValue) },
        .init("Progress", "d") { .double($0.status.progress ?? -1) },
        .init("Done", "t") { .uint64($0.status.done) },
        .init("Total", "t") { .uint64($0.status.total) },
        .init("Unit", "s", isTold: false) { .string($0.status.unit.rawValue) },
        .init("Speed", "d") { .double($0.status.speed) },
        .init("Remaining", "d") { .double($0.status.remaining ?? -1) },
        .init("Error", "s") { .string($0.status.error.map { BusName.errorPrefix + $0.code.rawValue } ?? "") },
        .init("Message", "s") { .string($0.status.message) },
        .init("LeftOut", "as") { .strings($0.status.leftOut) },
    ]

    private static func method(_ name: String, _ input: JobStatus.Input) -> Interface<Job>.Method {
        .init(name, "") { job, call in
            do throws(Failure) {
                try job.jobs?.require(call.sender, toControl: job)
                do throws(SessionError) {
                    try job.take(input)
                } catch {
                    throw Failure(error)
                }
                call.reply()
            } catch {
                call.fail(error)
            }
        }
    }

    private static let interface = Interface<Job>(
        name: BusName.job, introspection: InterfaceXML.fragment(PackageResources.org_sessiond1_Job_xml),
        methods: [method("Cancel", .cancel), method("Pause", .pause), method("Resume", .resume)],
        properties: properties.map(\.exported))
}
