import DBus
import EventLoop
import HTTP
import PluginAPI
public import PluginKit
import SessionBus
import Uploading

/// Uploads for other programs, on the bus as `org.sessiond1.Uploads`: at most three at the same time. They continue
/// after cuts, after the end of this process and after a restart of the machine.
public final class UploadsPlugin: Plugin {
    /// Limits in bytes: of a path; of the texts of all unfinished uploads, so that `List` fits into a message; and of
    /// the answers to ended uploads.
    private static let limits = (path: 4_096, all: 16 << 20, answers: 16 << 20)

    let loop: EventLoop
    let client: HTTPClient
    let store: UploadStore?
    let machine: MachineWatch
    private let host: PluginHost
    private let jobs: Jobs
    let callers: FreeCallers
    private let inhibitor: Inhibitor
    /// Unfinished uploads, and ended uploads that are still listed, by number.
    private var tasks: [UInt64: UploadTask] = [:]
    private var over: [UInt64: UploadTask] = [:]
    private var answers = AnswerShelf(limit: limits.answers)
    /// The size of the texts of all unfinished uploads, in bytes.
    private var weight = 0
    /// The uploads that may use the network now: at most three, so frequent changes are signalled only for these.
    private var active: Set<UInt64> = []
    /// The state of the machine at the last decision about the network.
    private var settledFor: (isMetered: Bool, isFallingAsleep: Bool)?
    private var isSettling = false
    private var announcement: Announcement<UploadsPlugin>?
    private var isEnding = false
    /// Timers of requests that remove an upload from a server, the oldest first. All of them wait equally long.
    private var retries: [Timer] = []

    public init(_ host: PluginHost) {
        self.host = host
        loop = host.loop
        client = HTTPClient(on: loop)
        store = UploadStore { host.complain($0) }
        machine = MachineWatch(on: loop)
        callers = FreeCallers(on: host.connection)
        inhibitor = Inhibitor(
            "sleep", .delay, who: "sessiond", why: "A file is being uploaded", on: machine.system)
        jobs = Jobs(.uploads, on: host.connection, loop, lastNumber: store?.lastNumber ?? 0)
        jobs.onBusyChanged = { [unowned host] in host.isBusy = $0 }
        host.connection.objects.export(self, at: PluginKind.uploads.objectPath, interfaces: [UploadsPlugin.interface])
        machine.onChanged = { [unowned self] in
            for task in tasks.values { task.show() }
            settleSoon()
        }
        machine.onNetworkChanged = { [unowned self] in for task in tasks.values { task.take(.networkChanged) } }
        announcement = Announcement(
            self, path: PluginKind.uploads.objectPath, interface: PluginKind.uploads.interface, Self.properties,
            on: host.connection.objects)
        for record in store?.records() ?? [] { resume(record) }
    }

    public func end(_ done: @escaping () -> Void) {
        isEnding = true
        for task in tasks.values { task.stop() }
        inhibitor.isHeld = false
        host.connection.flush()
        done()
    }

    // MARK: Uploads

    /// Continues an upload that an earlier process started.
    private func resume(_ record: UploadRecord) {
        do throws(SessionError) {
            let job = try jobs.add(
                "upload", name: UploadTask.name(of: record.path), for: "", isDetached: true, number: record.number,
                status(record.identity.size))
            guard let origin = WebAddress(record.address) else {
                store?.remove(record.number)
                job.fail(.badParameter("the record of this upload has no valid web address: upload it again"))
                return
            }
            start(record, to: origin, as: job, isKept: true, isNew: false)
            if record.isPaused { job.pause() }
        } catch {
            host.complain(error.message)
        }
    }

    private func status(_ size: UInt64) -> JobStatus { JobStatus(.bytes, total: size, canPause: true) }

    /// - Throws: `BadParameter`, `InvalidArgs`, `NotFound`, `InvalidSource`, `ResourceNotAvailable`, `LimitsExceeded`.
    func upload(_ path: String, to url: String, _ options: UploadRecord.Options, isDetached: Bool, for caller: String)
        throws(Failure) -> String
    {
        try callers.require(caller, to: "name a file to upload")
        try UploadRecord.Options.check(path, "path", Self.limits.path)
        try UploadRecord.Options.check(url, "url", WebAddress.limit)
        guard weight < Self.limits.all else {
            throw Failure(
                name: Failure.Name.limitsExceeded,
                message: "the texts of the waiting uploads have \(Self.limits.all >> 20) MiB already; "
                    + "wait for some of them to end")
        }
        do throws(SessionError) {
            guard path.hasPrefix("/"), !path.utf8.contains(0) else {
                throw .badParameter("'path' must be absolute, not \(quoted(path))")
            }
            guard let origin = WebAddress(url) else {
                throw .badParameter(
                    "'url' must be an address that begins with http:// or https://, names a host, and has at most "
                        + "\(WebAddress.limit >> 10) KiB with its escapes")
            }
            let identity = try SourceFile.identity(of: path)
            let job = try jobs.add(
                "upload", name: UploadTask.name(of: path), for: caller, isDetached: isDetached,
                status(identity.size))
            store?.took(job.number)
            let record = UploadRecord(
                number: job.number, path: path, address: origin.text, options: options, identity: identity)
            start(record, to: origin, as: job, isKept: isDetached, isNew: true)
            return job.path
        } catch {
            throw Failure(error)
        }
    }

    private func start(_ record: UploadRecord, to origin: WebAddress, as job: Job, isKept: Bool, isNew: Bool) {
        let task = UploadTask(record, to: origin, as: job, isKept: isKept, in: self)
        tasks[job.number] = task
        weight += record.weight
        task.begin(isNew: isNew)
        settleSoon()
    }

    /// Its machine has handled an input.
    func changed(_ task: UploadTask) {
        if task.machine.isAllowed, !task.machine.isOver {
            active.insert(task.job.number)
        } else {
            active.remove(task.job.number)
        }
        settleSoon()
    }

    /// The upload has ended; it is listed as long as its job.
    func ended(_ task: UploadTask) {
        tasks[task.job.number] = nil
        weight -= task.record.weight
        over[task.job.number] = task
        for number in answers.add(task.job.number, bytes: task.answer?.weight ?? 0) { over[number]?.forgetAnswer() }
        changed(task)
    }

    func task(_ path: String) -> UploadTask? {
        guard let number = path.split(separator: "/").last.flatMap({ UInt64($0) }),
            let task = tasks[number] ?? over[number], task.job.path == path
        else { return nil }
        return task
    }

    /// All listed uploads, oldest first.
    var listed: [UploadTask] {
        forgetOld()
        return (Array(tasks.values) + Array(over.values)).sorted { $0.job.number < $1.job.number }
    }

    private func forgetOld() {
        for (number, task) in over where !task.job.isListed {
            over[number] = nil
            answers.remove(number)
        }
    }

    func reasonToWait(_ upload: UploadMachine, _ record: UploadRecord) -> String {
        if machine.isKnown, machine.isMetered, !record.options.sendsOnMetered {
            return "it waits for a network that is not metered"
        }
        if machine.isFallingAsleep { return "the machine is going to sleep" }
        return sendingCount >= UploadSlots.limit ? "other uploads are sent first" : ""
    }

    // MARK: Use of the network

    /// Decides once for all changes that happen at the same time.
    func settleSoon() {
        guard !isSettling, !isEnding else { return }
        isSettling = true
        loop.later { [weak self] in self?.settle() }
    }

    private func settle() {
        isSettling = false
        guard !isEnding else { return }
        if !isSettled { decide() }
        inhibitor.isHeld = sendingCount > 0 && !machine.isFallingAsleep
        announcement?.update(self)
    }

    /// Whether a new decision could change nothing: running uploads continue, and all slots are used. So thousands of
    /// waiting uploads cost nothing.
    private var isSettled: Bool {
        guard let settledFor, settledFor == (machine.isMetered, machine.isFallingAsleep) else { return false }
        return active.count == UploadSlots.limit && active.allSatisfy { tasks[$0]?.machine.wantsNetwork == true }
    }

    private func decide() {
        settledFor = (machine.isMetered, machine.isFallingAsleep)
        forgetOld()
        let wishes = tasks.values.map { task in
            UploadSlots.Wish(
                number: task.job.number, wantsNetwork: task.machine.wantsNetwork, isAllowed: task.machine.isAllowed,
                sendsOnMetered: task.record.options.sendsOnMetered, continues: task.machine.method == .tus)
        }
        let allowed = UploadSlots.allowed(
            wishes, isMetered: machine.isMetered, isFallingAsleep: machine.isFallingAsleep)
        // First, uploads that must stop.
        let changed = tasks.values.filter { allowed.contains($0.job.number) != $0.machine.isAllowed }
        for task in changed.sorted(by: { $0.machine.isAllowed && !$1.machine.isAllowed }) {
            task.take(.allowed(!task.machine.isAllowed))
        }
    }

    var sendingCount: Int { active.count { tasks[$0]?.isSending == true } }
    var waitsForNetwork: Bool {
        machine.isMetered && tasks.values.contains { $0.machine.wantsNetwork && !$0.record.options.sendsOnMetered }
    }
    var waitingCount: Int { tasks.count - sendingCount }

    // MARK: Removing uploads from servers

    /// Tries several times, because the server may still be busy with the connection that was just closed.
    func removeAtServer(_ request: HTTPRequest, tries: Int = 4) {
        client.start(request) { [weak self] outcome in
            guard let self, tries > 1, !isEnding else { return }
            switch outcome {
            case .success(let answer) where ![408, 409, 423, 429].contains(answer.status) && answer.status < 500: return
            case .success, .failure:
                let timer = Timer(on: loop) { [weak self] in self?.retry(request, tries - 1) }
                timer.arm(after: 1)
                retries.append(timer)
            }
        }
    }

    private func retry(_ request: HTTPRequest, _ tries: Int) {
        retries.removeFirst()
        removeAtServer(request, tries: tries)
    }
}
