public import DBus
public import EventLoop
public import PluginAPI
import SessionBus

/// The jobs of a plugin.
///
/// A job that is not detached is cancelled when the connection that started it ends. A job that has ended is listed for
/// a minute. The ObjectManager on `/org/sessiond1` lists all jobs.
public final class Jobs {
    /// The largest number of unfinished jobs.
    private static let limit = 16_384
    /// The time for which an ended job is listed in seconds, and the largest number of ended jobs that are listed.
    private static let listed = 60.0
    private static let listedLimit = 1_000

    /// The largest number of a job from an earlier process, so that counting up from it does not overflow.
    public static let largestNumber: UInt64 = 1 << 53

    /// Called when the first job starts to wait or run, and when the last one has ended.
    public var onBusyChanged: (_ isBusy: Bool) -> Void = { _ in }

    let kind: PluginKind
    let connection: Connection
    let loop: EventLoop
    private let callers: FreeCallers
    private var lastNumber: UInt64
    private var live: [UInt64: Job] = [:]
    /// The ended jobs that are listed, oldest first, with the times at which they are removed.
    private var over: [(job: Job, until: UInt64)] = []
    /// The jobs that are not detached.
    private lazy var owned = OwnedObjects(on: connection) { [weak self] in self?.live[$0]?.cancel() }
    private lazy var cleaning = Timer(on: loop) { [unowned self] in clean() }

    /// - Parameter lastNumber: the last number of the jobs from earlier processes.
    public init(_ kind: PluginKind, on connection: Connection, _ loop: EventLoop, lastNumber: UInt64 = 0) {
        (self.kind, self.connection, self.loop) = (kind, connection, loop)
        self.lastNumber = min(lastNumber, Self.largestNumber)
        callers = FreeCallers(on: connection)
        connection.objects.enableObjectManager(at: ObjectPath.root)
    }

    /// Whether there are unfinished jobs.
    public var isBusy: Bool { !live.isEmpty }

    /// The unfinished jobs, oldest first.
    public var unfinished: [Job] { live.values.sorted { $0.number < $1.number } }

    /// Creates a job with its own object on the bus, in the state `waiting`.
    ///
    /// - Parameters:
    ///   - kind: the method that starts it, in lower case with dashes.
    ///   - name: a name for people; other users of the bus may see it.
    ///   - owner: the unique name of the connection that starts it.
    ///   - number: the number of a job from an earlier process.
    /// - Throws: `ResourceNotAvailable` if there are too many jobs, `BadParameter` if the number is not possible.
    public func add(
        _ kind: String, name: String, for owner: String, isDetached: Bool = false, number: UInt64? = nil,
        _ status: JobStatus
    ) throws(SessionError) -> Job {
        guard live.count < Self.limit else {
            throw SessionError(.resourceNotAvailable, "\(live.count) jobs wait already; wait for some of them to end")
        }
        if let number {
            guard number <= Self.largestNumber, live[number] == nil else {
                throw .badParameter("\(number) cannot be the number of a job")
            }
            lastNumber = max(lastNumber, number)
        } else {
            lastNumber += 1
        }
        let job = Job(
            number ?? lastNumber, kind, name: name, owner: owner, isDetached: isDetached, status, in: self)
        let wasBusy = isBusy
        live[job.number] = job
        job.export()
        if !isDetached { owned.add(job.number, of: owner) }
        if !wasBusy { onBusyChanged(true) }
        return job
    }

    /// Cancels all jobs, or only those that are not detached.
    public func cancelAll(detachedToo: Bool = true) {
        cancel(live.values.filter { detachedToo || !$0.isDetached }.map(\.number))
    }

    /// Whether the caller may control the job: its owner may, and every program outside of sandboxes.
    func require(_ caller: String, toControl job: Job) throws(Failure) {
        if caller != job.owner { try callers.require(caller, to: "control the jobs of other programs") }
    }

    /// Cancels the newest job first: newer jobs wait, and must not start when an older one ends.
    private func cancel(_ numbers: [UInt64]) {
        connection.batch { for number in numbers.sorted(by: >) { live[number]?.cancel() } }
    }

    func ended(_ job: Job) {
        guard live.removeValue(forKey: job.number) != nil else { return }
        owned.remove(job.number, of: job.owner)
        over.append((job, MonotonicClock.now() + MonotonicClock.microseconds(Self.listed)))
        clean()
        if live.isEmpty { onBusyChanged(false) }
    }

    private func clean() {
        let now = MonotonicClock.now()
        let surplus = max(0, over.count - Self.listedLimit)
        let count = over.indices.first { $0 >= surplus && over[$0].until > now } ?? over.count
        for (job, _) in over[..<count] {
            connection.objects.remove(path: job.path)
            job.isListed = false
        }
        over.removeSubrange(..<count)
        if let next = over.first?.until { cleaning.arm(at: next) }
    }
}
