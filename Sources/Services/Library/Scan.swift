import EventLoop
import Glibc
import MediaLibrary
import PluginAPI
import PluginKit
import Workers

/// One scan. It lists folders, reads new and changed files, and removes missing ones. It can be cancelled at any time:
/// committed transactions are complete, and the next scan continues from there.
final class Scan {
    /// The number of files in one task of a worker.
    private static let files = 32
    /// The time limits for a file and for a folder, in seconds.
    private static let (fileTime, folderTime) = (5.0, 60.0)

    let job: Job
    private unowned let plugin: LibraryPlugin
    private let workers: Workers
    private var targets = ScanTargets()
    private var isFull: Bool
    /// What a scan does.
    private enum Phase {
        /// A worker lists a folder; nil: the next one is about to be listed. Can transition to `reading` when no folder is
        /// left, and to `over`.
        case listing(Walk?)
        /// Workers read files. Can transition to `listing` when folders are added, and to `over`.
        case reading
        /// It is complete, failed or cancelled.
        case over
    }

    private typealias Walk = (task: UInt64, target: ScanTargets.Target)

    private var phase = Phase.listing(nil)
    private var reading = ScanReadings()
    private var hasFormerFingerprints = false
    private var lastPending: Int64 = 0
    private var done: UInt64 = 0
    private var total: UInt64 = 0
    private lazy var batch: ScanBatch = ScanBatch(in: plugin) { [unowned self] in commitNow() }

    private var store: Store { plugin.database.store }

    private var isOver: Bool {
        if case .over = phase { true } else { false }
    }

    /// The folder that is being listed.
    private var walk: Walk? {
        if case .listing(let walk) = phase { walk } else { nil }
    }

    init(_ targets: [ScanTargets.Target], isFull: Bool, as job: Job, _ workers: Workers, in plugin: LibraryPlugin) {
        (self.isFull, self.job, self.workers, self.plugin) = (isFull, job, workers, plugin)
        add(targets)
        job.onCancel = { [unowned self] in stop() }
    }

    func begin() {
        job.begin()
        nextFolder()
    }

    /// Adds folders to a running scan.
    func join(_ more: [ScanTargets.Target], isFull: Bool) {
        self.isFull = self.isFull || isFull
        add(more)
        guard case .reading = phase else { return }
        phase = .listing(nil)
        nextFolder()
    }

    private func add(_ more: [ScanTargets.Target]) { targets.add(more, whole: plugin.folders.whole) }

    private func addFolder(_ path: [UInt8]) { add([ScanTargets.Target(path: path, isDeep: false)]) }

    private func addWhole(_ path: [UInt8]) {
        if let folder = plugin.folders.folder(of: path) { add([ScanTargets.Target(path: folder.path, isDeep: true)]) }
    }

    /// Cancels the running tasks. Committed changes stay.
    func stop() {
        guard !isOver else { return }
        if let walk { workers.cancel(walk.task) }
        phase = .over
        for task in reading.running { workers.cancel(task) }
        try? batch.commit()
        plugin.ended(self)
    }

    private func attempt(_ body: () throws(SQLError) -> Void) {
        guard !isOver else { return }
        do throws(SQLError) {
            try body()
        } catch {
            fail(error)
        }
    }

    private func fail(_ error: SQLError) {
        batch.cancel()
        stop()
        job.fail(plugin.database.problem(error))
    }

    // MARK: Transactions

    private func write(_ count: Int = 1, _ body: () throws(SQLError) -> Void) {
        attempt { () throws(SQLError) in
            try batch.open()
            try body()
            batch.count(count)
            if batch.isFull { try batch.commit() }
        }
    }

    private func commitNow() {
        attempt { () throws(SQLError) in try batch.commit() }
    }

    /// Commits the changes so far, before the database is used for a client. If this fails, the scan fails too, because a
    /// part of its work is lost.
    func commitForClient() throws(SQLError) {
        do throws(SQLError) {
            try batch.commit()
        } catch {
            fail(error)
            throw error
        }
    }

    // MARK: Folders

    private func nextFolder() {
        guard case .listing(.none) = phase else { return }
        guard let target = targets.next() else { return foundAll() }
        guard let folder = plugin.folders.folder(of: target.path) else { return nextFolder() }
        let request = WorkerMessage(
            LibraryRequest.Walk(path: target.path, root: folder.path, isDeep: target.isDeep))
        let task = workers.run(
            request, patience: Self.folderTime, isLong: true,
            onAnswer: { [weak self] in self?.heard($0) },
            onEnd: { [weak self] result in
                guard let self, !isOver else { return }
                phase = .listing(nil)
                if case .failure(let failure) = result {
                    plugin.complain("a folder cannot be listed: \(failure.reason); its items stay as they are")
                }
                nextFolder()
            })
        phase = .listing((task, target))
    }

    private func heard(_ message: WorkerMessage) {
        guard let path = message.bytes("path"), !path.isEmpty else { return }
        switch message.name {
        case "folder": listed(message, path)
        case "gone": write { () throws(SQLError) in try missing(path) }
        case "lost": write { () throws(SQLError) in try lost(path, message.text("reason") ?? "") }
        case "full":
            plugin.say(
                "\(quoted(Self.text(path))) has more folders than a scan enters; the others are left out")
        default:
            let reason = message.text("reason") ?? ""
            plugin.complain("\(quoted(Self.text(path))) cannot be listed: \(reason)")
            leaves(out: "\(Self.text(path)) (\(reason))")
        }
    }

    /// A folder that was to be listed does not exist.
    private func missing(_ path: [UInt8]) throws(SQLError) {
        let parent = plugin.folders.parent(of: path)
        let missing = try FolderPlan.missing(
            store.directory(path).map(FolderPlan.Known.init), isRoot: plugin.folders.isRoot(path)
        ) { () throws(SQLError) in
            guard let parent else { return false }
            return try store.directory(parent) != nil
        }
        switch missing {
        case .nothing: break
        case .parentDecides:
            guard let parent else { return }
            try store.forgetListing(parent)
            addFolder(parent)
        case .unavailable: try store.setUnavailable(below: path)
        case .removed: try store.goes(path)
        }
    }

    /// A folder cannot be examined: its disk is lost or fails, or the user may not see it.
    private func lost(_ path: [UInt8], _ reason: String) throws(SQLError) {
        guard let known = try store.directory(path), known.isAvailable else { return }
        plugin.complain("\(quoted(Self.text(path))) is not available: \(reason)")
        try store.setUnavailable(below: path)
        // The next listing of the folder that contains it looks for it again.
        if let parent = plugin.folders.parent(of: path) { try store.forgetListing(parent) }
    }

    /// A folder does not exist any more.
    private func gone(_ path: [UInt8]) throws(SQLError) {
        let known = try store.directory(path).map(FolderPlan.Known.init)
        switch FolderPlan.gone(known, isRoot: plugin.folders.isRoot(path)) {
        case .nothing, .parentDecides: break
        case .unavailable: try store.setUnavailable(below: path)
        case .removed: try store.goes(path)
        }
    }

    private func listed(_ message: WorkerMessage, _ path: [UInt8]) {
        let isMount = message.flag("mount") ?? false
        let digest = UInt64(bitPattern: message.whole("digest") ?? 0)
        let isWhole = message.flag("whole") ?? true
        guard let links = Self.names(message, "links") else { return }
        // Links may be entered only in a walk of the whole folder of the library.
        if let walk, walk.target.isDeep, !links.isEmpty { addWhole(path) }
        let listing = FolderPlan.Listing(isMount: isMount, digest: digest, isRoot: plugin.folders.isRoot(path))
        write(0) { () throws(SQLError) in
            let parentPath = plugin.folders.parent(of: path)
            var parent: Store.Directory?
            let known = try store.directory(path).map(FolderPlan.Known.init)
            let decision = try FolderPlan.listed(listing, known: known, isFull: isFull) { () throws(SQLError) in
                if let parentPath { parent = try store.directory(parentPath) }
                return parent?.isAvailable
            }
            switch decision {
            case .unavailable:
                batch.count(1)
                return try store.setUnavailable(below: path)
            case .unchanged: return watch(path, message)
            case .parentDecides:
                if walk?.target.path == path, let parentPath { addFolder(parentPath) }
                return
            case .compared: break
            }
            // Most folders have not changed: only now it is worth to decode their content.
            guard let files = ScanPlan.DiskFile.list(message.bytes("files") ?? []),
                let folders = Self.names(message, "folders"), let unknown = Self.names(message, "unknown").map(Set.init)
            else { return }
            let id = try store.saw(
                path, parent: parent?.id ?? 0, isMount: isMount, isWatchable: message.flag("watchable") ?? true,
                digest: isWhole ? digest : 0)
            watch(path, message)
            if message.flag("first") ?? true { try compare(folders, links, unknown, id, path) }
            var old = try store.files(in: id, after: message.bytes("after"), to: message.bytes("last"))
            if !unknown.isEmpty { old.removeAll { unknown.contains($0.name) } }
            for step in ScanPlan.steps(disk: files, known: old, isFull: isFull) {
                if let item = try store.carry(out: step, in: id, path) { batch.remove([item]) }
                batch.count(1)
            }
        }
    }

    /// Nil: more names than a worker lists.
    private static func names(_ message: WorkerMessage, _ key: String) -> [[UInt8]]? {
        let names = (message.bytes(key) ?? []).split(separator: 0, maxSplits: FolderWalk.folderLimit)
        return names.count <= FolderWalk.folderLimit ? names.map { Array($0) } : nil
    }

    private func watch(_ path: [UInt8], _ message: WorkerMessage) {
        plugin.watcher.saw(
            path, isWatchable: message.flag("watchable") ?? true, modified: message.whole("modified") ?? 0)
    }

    /// Removes folders that are missing, and adds new ones, unless they are listed anyway.
    /// - Parameters:
    ///   - links: folders that only a walk of the whole folder of the library may enter.
    ///   - unknown: the names of files and folders that cannot be examined.
    private func compare(
        _ folders: [[UInt8]], _ links: [[UInt8]], _ unknown: Set<[UInt8]>, _ id: Int64, _ path: [UInt8]
    ) throws(SQLError) {
        func paths(_ names: some Sequence<[UInt8]>) -> Set<[UInt8]> {
            Set(names.map { path + [UInt8(ascii: "/")] + $0 })
        }
        let known = try store.children(of: id).map {
            FolderPlan.Child($0.path, isAvailable: $0.isAvailable, isRoot: plugin.folders.isRoot($0.path))
        }
        let children = FolderPlan.children(
            there: paths(folders), links: paths(links), unknown: paths(unknown), known: known,
            isWalkDeep: walk?.target.isDeep != false)
        batch.count(children.gone.count + children.lost.count)
        for child in children.lost { try lost(child, "it cannot be examined") }
        for child in children.gone { try gone(child) }
        add(children.listed.map { ScanTargets.Target(path: $0, isDeep: true) })
        if children.needsWholeWalk { addWhole(path) }
    }

    // MARK: Files

    private var hasTriedAgain = false
    /// Reasons that may go without a change of the file.
    private static let passing = [EACCES, EPERM, EIO, EMFILE, ENFILE, ENOMEM, ESTALE, ENODEV].map {
        String(cString: strerror($0))
    }

    private func foundAll() {
        phase = .reading
        attempt { () throws(SQLError) in
            try batch.open()
            batch.remove(try store.findMoved().removed)
            // Once in a scan, which would not end otherwise.
            if !hasTriedAgain { try store.readAgain(failedBecause: Self.passing) }
            hasTriedAgain = true
            try batch.commit()
            total = done + UInt64(try store.pendingCount())
            lastPending = 0
            hasFormerFingerprints = try store.hasFormerFingerprints()
        }
        guard !isOver else { return }
        job.progressed(done: done, total: total)
        readMore()
    }

    private func readMore() {
        guard case .reading = phase else { return }
        attempt { () throws(SQLError) in
            while reading.count < plugin.workers.count + 1 {
                let busy = reading.items
                let files = try store.pending(after: lastPending, max: Self.files).filter { !busy.contains($0.id) }
                guard let last = files.last else { break }
                lastPending = last.id
                give(files.map { ScanReadings.Reading(request: $0.id, id: $0.id, path: $0.path) })
            }
            if reading.isEmpty { try finish() }
        }
    }

    private func give(_ files: [ScanReadings.Reading]) {
        let list = files.map { file in
            let folder = plugin.folders.folder(of: file.path)
            return LibraryRequest.File(
                id: Int(file.request), path: file.path, base: folder?.path.count ?? 0, type: folder?.mediaType?.word,
                wantsFormer: hasFormerFingerprints)
        }
        var task: UInt64 = 0
        task = workers.run(
            WorkerMessage(LibraryRequest.Tags(files: list, encoding: plugin.tagEncoding)), patience: Self.fileTime,
            onAnswer: { [weak self] in self?.read($0, task) },
            onEnd: { [weak self] in self?.ended(task, $0) })
        reading.begin(files, in: task)
    }

    private func read(_ message: WorkerMessage, _ task: UInt64) {
        guard let request = message.whole("id"), let file = reading.answered(request, in: task) else { return }
        done += 1
        let sound = UInt64(bitPattern: message.whole("sound") ?? 0)
        write { () throws(SQLError) in
            switch message.name {
            case "tag":
                let stored = try store.store(
                    Track(message), for: file.id, sound: sound,
                    former: message.whole("former").map { UInt64(bitPattern: $0) }, now: Int64(time(nil)))
                if let (known, other) = stored.exchanged { reading.exchange(known, other) }
                if stored.isNew { batch.add(stored.id) } else { batch.change(stored.id) }
            case "list":
                let entries = (message.list("entries") ?? []).compactMap { $0.bytes("path") }
                let path = try store.path(of: file.id) ?? []
                try store.store(list: file.id, name: Self.listName(path), entries, content: sound)
            default: try failed(file.id, message.text("reason") ?? "it cannot be read")
            }
        }
        job.progressed(done: done, total: max(total, done))
    }

    /// Phrases for people: folders that cannot be listed.
    private var leftOut: [String] = []
    /// Files that this scan could not read.
    private var unreadable = 0

    private func leaves(out phrase: String) {
        if leftOut.count < 16, !leftOut.contains(phrase) { leftOut.append(phrase) }
    }

    private func failed(_ id: Int64, _ reason: String) throws(SQLError) {
        unreadable += 1
        if try store.failed(id, reason) { batch.remove([id]) }
    }

    private func ended(_ task: UInt64, _ result: Result<WorkerMessage, Workers.Failure>) {
        let rest = reading.end(task)
        switch result {
        case .success: break
        case .failure(let failure):
            // The worker reads the files in order, so the first unanswered file caused the failure.
            guard let first = rest.first else { break }
            done += 1
            write { () throws(SQLError) in try failed(first.id, failure.reason) }
            if rest.count > 1 { give(Array(rest.dropFirst())) }
        }
        readMore()
    }

    static func text(_ path: [UInt8]) -> String { String(decoding: path, as: UTF8.self) }

    private static func listName(_ path: [UInt8]) -> String {
        let name = text(path).split(separator: "/").last ?? ""
        return String(name.lastIndex(of: ".").map { name[..<$0] } ?? name)
    }

    private func finish() throws(SQLError) {
        // Files may have changed after the search for unread files.
        if try store.pendingCount() > 0, lastPending > 0 {
            lastPending = 0
            return readMore()
        }
        try batch.open()
        batch.remove(try store.finish())
        try store.setMeta("scanned", Int64(time(nil)))
        try batch.commit()
        phase = .over
        plugin.ended(self)
        if unreadable > 0 {
            let files = unreadable == 1 ? "1 file that cannot be read" : "\(unreadable) files that cannot be read"
            leaves(out: "\(files) (sessionctl library --failed lists them)")
        }
        job.finish(leavingOut: leftOut)
    }
}

extension FolderPlan.Known {
    fileprivate init(_ directory: Store.Directory) {
        self.init(
            isAvailable: directory.isAvailable, isMount: directory.isMount, digest: directory.digest,
            isRoot: directory.parent == 0)
    }
}
