public import DBus
public import EventLoop
public import PluginAPI
import SessionBus

/// The jobs of a plugin.
///
/// A job that is not detached is cancelled when the connection that asked for it ends. A job that has ended is listed for a
/// minute. The ObjectManager on `/org/sessiond1` lists them all.
public final class Jobs {
    /// Jobs that have not ended.
    private static let limit = 16_384
    /// Seconds for which a job is listed after its end, and how many ended ones are listed.
    private static let listed = 60.0
    private static let listedLimit = 1_000

    /// The largest number of a job that was there before this process: no number that is counted up from it overflows.
    public static let largestNumber: UInt64 = 1 << 53

    /// Called when the first job begins to wait or run, and when the last one has ended.
    public var onBusyChanged: (_ isBusy: Bool) -> Void = { _ in }

    let kind: PluginKind
    let connection: Connection
    let loop: EventLoop
    private let callers: FreeCallers
    private var lastNumber: UInt64
    private var live: [UInt64: Job] = [:]
    /// The ended ones that are listed, oldest first, and when they go.
    private var over: [(job: Job, until: UInt64)] = []
    /// The connections with jobs that are not detached.
    private var owners: [String: (watch: Subscription, jobs: Set<UInt64>)] = [:]
    private lazy var cleaning = Timer(on: loop) { [unowned self] in clean() }

    /// - Parameter lastNumber: of the jobs that were there before this process.
    public init(_ kind: PluginKind, on connection: Connection, _ loop: EventLoop, lastNumber: UInt64 = 0) {
        (self.kind, self.connection, self.loop) = (kind, connection, loop)
        self.lastNumber = min(lastNumber, Self.largestNumber)
        callers = FreeCallers(on: connection)
        connection.objects.enableObjectManager(at: ObjectPath.root)
    }

    /// Whether there are jobs that have not ended.
    public var isBusy: Bool { !live.isEmpty }

    /// The jobs that have not ended, oldest first.
    public var unfinished: [Job] { live.values.sorted { $0.number < $1.number } }

    /// A job with its own object on the bus, in the state `waiting`.
    ///
    /// - Parameters:
    ///   - kind: the method that starts it, in lower case with dashes.
    ///   - name: for people; other users of the bus may see it.
    ///   - owner: the unique name of the connection that asks for it.
    ///   - number: that of a job that was there before this process.
    /// - Throws: `ResourceNotAvailable` if there are too many jobs, `BadParameter` if that number cannot be one.
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
        if !isDetached { watch(owner, for: job.number) }
        if !wasBusy { onBusyChanged(true) }
        return job
    }

    /// Cancels all jobs, or those that are not detached.
    public func cancelAll(detachedToo: Bool = true) {
        cancel(live.values.filter { detachedToo || !$0.isDetached }.map(\.number))
    }

    /// Whether that caller may control the job: its owner may, and every program that is in no sandbox.
    func require(_ caller: String, toControl job: Job) throws(Failure) {
        if caller != job.owner { try callers.require(caller, to: "control the jobs of other programs") }
    }

    private func watch(_ owner: String, for number: UInt64) {
        if owners[owner] == nil {
            let watch = connection.watchName(owner) { [weak self] in
                guard let numbers = self?.owners.removeValue(forKey: owner)?.jobs else { return }
                self?.cancel(Array(numbers))
            }
            owners[owner] = (watch, [])
        }
        owners[owner]?.jobs.insert(number)
    }

    /// The newest first: they wait, and none of them shall begin because an older one has ended.
    private func cancel(_ numbers: [UInt64]) {
        connection.batch { for number in numbers.sorted(by: >) { live[number]?.cancel() } }
    }

    func ended(_ job: Job) {
        guard live.removeValue(forKey: job.number) != nil else { return }
        if var owner = owners[job.owner] {
            owner.jobs.remove(job.number)
            owners[job.owner] = owner.jobs.isEmpty ? nil : owner
        }
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
