import DBus
import EventLoop
public import PluginAPI
import SessionBus

/// Something that takes long, on the bus as `org.sessiond1.Job`. ``Jobs/add(_:name:for:isDetached:_:)`` makes one.
///
/// The work calls ``begin()``, ``progressed(done:total:share:)`` and, at its end, ``finish()`` or ``fail(_:)``; what it has
/// to do for clients is in ``onCancel``, ``onPause`` and ``onResume``.
public final class Job {
    /// Never used again by this process.
    public let number: UInt64
    public let path: String
    /// The method that started it, in lower case with dashes.
    public let kind: String
    /// For people.
    public let name: String
    /// The unique name of the connection that asked for it; empty: none, it was there before this process.
    public let owner: String
    /// Whether it goes on when its owner is gone.
    public let isDetached: Bool
    public private(set) var status: JobStatus

    /// The work shall end, and remove what it has made. Called once, and not after the job's end.
    public var onCancel: () -> Void = {}
    /// Why it cannot be paused now; nil: it can.
    public var refusalToPause: () -> SessionError? = { nil }
    /// Called for a job whose status can pause.
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

    /// The work has begun, or goes on after it had to wait.
    public func begin() { handle(.begun) }

    /// The work has to wait.
    public func wait(_ reason: String) { handle(.waits(reason)) }

    /// This much is done of `total`, which is 0 if it is not known; in the status's unit.
    /// - Parameter share: the progress, 0…1, where it is not the quotient of both.
    public func progressed(done: UInt64, total: UInt64, share: Double? = nil) {
        handle(.progressed(done: done, total: total, share: share))
    }

    /// The result is there, whole.
    public func finish() { handle(.succeeded) }

    /// Nothing of the result is there.
    public func fail(_ error: SessionError) { handle(.failed(error)) }

    /// As a client does it.
    public func cancel() { handle(.cancel) }
    public func pause() { handle(.pause) }

    /// Whether it is still on the bus, which it is for a while after its end.
    public internal(set) var isListed = true

    private func handle(_ input: JobStatus.Input) {
        do throws(SessionError) {
            try take(input)
        } catch {
            // Only a client's pause is refused.
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
