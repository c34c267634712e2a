import DBus
import EventLoop
import Glibc
import Installation
import MediaLibrary
import MediaValues
import PluginAPI
import PluginKit
import Processes
import SessionBus
import Workers

/// The music library of a user, on the bus as `org.sessiond1.Library`. It has no session, because it plays no sound.
final class LibraryPlugin: Plugin {
    let loop: EventLoop
    private(set) var workers: Workers
    let workerCount: Int
    let watcher: FolderWatcher
    let covers = ArtworkCache(in: UserFolder.cache.path.map { $0 + "/sessiond/artwork" })
    /// The number of covers that each caller waits for.
    private var coversAwaited: [String: Int] = [:]
    private let players: PlayerWatch?
    private var isPlaying = false
    private(set) var store: Store
    private let host: PluginHost
    private let jobs: Jobs
    let callers: FreeCallers
    /// The encoding of texts in tags that do not state one.
    let tagEncoding: Settings.TagEncoding
    private var scan: Scan?
    private var folders: [Store.Folder] = []
    /// Damage that was found in the database.
    private var findings: [String] = []
    private var told: [String: Value] = [:]
    /// The items that have changed since the last signal.
    private var news: (added: [Int64], changed: [Int64], removed: [Int64]) = ([], [], [])
    private var toldRevision: UInt64 = 0
    private var lastTold = -10.0
    private lazy var telling = Timer(on: loop) { [unowned self] in tell() }
    private var isTelling = false

    private var mountWatch: MountWatch?
    /// The mounts that the workers see.
    private var mounts: Set<MountWatch.Mount> = []
    /// The mounts at the last scan of all folders that a change of the mounts concerned.
    private var scannedMounts: Set<MountWatch.Mount> = []
    private lazy var renewal = Timer(on: loop) { [unowned self] in mountsChanged() }
    private lazy var merging = Timer(on: loop) { [unowned self] in mergeWords() }

    /// Seconds between two steps of the merge of the search index.
    private static let mergePause = 0.01

    /// If more folders than this change at the same time, the whole library is scanned.
    private static let changedLimit = 64
    /// The largest number of ids in each list of a signal.
    private static let newsLimit = 256

    init(_ host: PluginHost) throws(Failure) {
        self.host = host
        loop = host.loop
        workerCount = max(2, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        workers = Self.workers(workerCount, host)
        let settings = Self.settings(host).library
        tagEncoding = settings.tagEncoding
        watcher = FolderWatcher(on: host.loop, interval: settings.interval)
        callers = FreeCallers(on: host.connection)
        store = try LibraryPlugin.open()
        jobs = Jobs(.library, on: host.connection, host.loop)
        toldRevision = store.revision
        players = PlayerWatch(on: host.connection, callers)
        jobs.onBusyChanged = { [unowned self] _ in settleBusy() }
        players?.onBusyChanged = { [unowned self] isPlaying in
            self.isPlaying = isPlaying
            settleBusy()
        }
        players?.find = { [unowned self] in item(of: $0) }
        players?.onNote = { [unowned self] in note($0, $1) }
        found(store.findings)
        host.connection.objects.export(self, at: PluginKind.library.objectPath, interfaces: [LibraryPlugin.interface])
        watcher.isWanted = { [unowned self] in folder(of: $0)?.isWatched ?? false }
        watcher.onChanged = { [unowned self] in look(at: $0) }
        mounts = MountWatch.mounts
        scannedMounts = mounts
        mountWatch = MountWatch(on: loop) { [unowned self] in mountsChanged() }
        offerMusic()
        learnFolders()
        if !folders.isEmpty { _ = try? startScan([], isFull: false) }
        for (name, value) in LibraryPlugin.values(self) { told[name] = value }
    }

    func end(_ done: @escaping () -> Void) {
        scan?.stop()
        store.close()
        host.connection.flush()
        done()
    }

    func complain(_ text: String) { host.complain(text) }

    /// The plugin stays busy while it works, and while one of its items is played, so the daemon does not stop it as
    /// idle.
    private func settleBusy() { host.isBusy = jobs.isBusy || isPlaying }

    // MARK: Played items

    private func item(of uri: String) -> (id: Int64, duration: Double, type: ItemType)? {
        var query = Query()
        query.predicates = [Query.Predicate(.uri, .is, .text(uri))]
        let found = try? store.items(query, offset: 0, max: 1).items.first
        return found.map { ($0.id, $0.duration, $0.mediaType) }
    }

    private func note(_ item: Int64, _ note: Listening.Note) {
        let change: Store.KeptChange =
            switch note {
            case .played: .played(at: Int64(time(nil)))
            case .skipped: .skipped
            case .bookmark(let seconds): .bookmark(seconds)
            }
        do throws(Failure) {
            _ = try self.change { store throws(SQLError) in try store.set(item, [change]) }
            changed(added: [], changed: [item], removed: [])
        } catch {
            host.complain(error)
        }
    }

    // MARK: The database

    private static func open() throws(Failure) -> Store {
        guard let data = UserFolder.data.path else {
            throw .failed("neither XDG_DATA_HOME nor HOME is set: there is no place for the library")
        }
        do throws(SQLError) {
            return try Store(data + "/sessiond")
        } catch {
            throw .failed("the library in \(data)/sessiond cannot be opened: \(error.message)")
        }
    }

    /// Adds a finding to the log and to `Status`, once.
    func say(_ finding: String) {
        guard !findings.contains(finding) else { return }
        found([finding])
        settleSoon()
    }

    private func found(_ findings: [String]) {
        for finding in findings { complain(finding) }
        self.findings += findings
    }

    /// The error for the client. A damaged database is renamed, and a new one is created.
    func problem(_ error: SQLError) -> SessionError {
        if error.isFull { return SessionError(.diskFull, "the disk of the library is full: \(store.folder)") }
        if error.isReadOnly {
            return SessionError(
                .resourceNotAvailable, "the library in \(store.folder) cannot be written to: \(error.message)")
        }
        if error.isDamage { loop.later { [weak self] in self?.reopen() } }
        return SessionError(.resourceNotAvailable, "the database of the library: \(error.message)")
    }

    private func reopen() {
        scan?.job.cancel()
        do throws(Failure) {
            store = try LibraryPlugin.open()
            found(store.findings)
            learnFolders()
            _ = try? startScan([], isFull: false)
        } catch {
            host.complain(error)
        }
    }

    /// Reads or changes the database for a client.
    func use<Result>(_ body: (Store) throws(SQLError) -> Result) throws(Failure) -> Result {
        do throws(SQLError) {
            return try body(store)
        } catch {
            if error.isTooLong {
                throw .limitsExceeded(
                    "this took longer than \(Int(Self.readTime)) s; ask for fewer items, or with fewer conditions or words"
                )
            }
            throw Failure(problem(error))
        }
    }

    /// The processor time that a call may use for reading, in seconds. Other calls wait meanwhile.
    private static let readTime = 2.0

    /// Reads for a client. The client gets `LimitsExceeded` if the read takes too long.
    func read<Result>(_ body: (Store) throws(SQLError) -> Result) throws(Failure) -> Result {
        try use { store throws(SQLError) in
            // If a read inside a transaction is ended, SQLite also ends the transaction.
            try scan?.commitForClient()
            return try store.within(Self.readTime) { () throws(SQLError) in try body(store) }
        }
    }

    /// Changes the database for a client. The change is on the disk when this returns.
    func change<Result>(_ body: (Store) throws(SQLError) -> Result) throws(Failure) -> Result {
        let result = try use { store throws(SQLError) in
            try scan?.commitForClient()
            return try body(store)
        }
        settleSoon()
        return result
    }

    // MARK: Folders

    private func learnFolders() {
        folders = (try? store.folders()) ?? []
        settleSoon()
    }

    var folderTexts: [String] { folders.map { String(decoding: $0.path, as: UTF8.self) } }

    func isRoot(_ path: [UInt8]) -> Bool { folders.contains { $0.path == path } }

    /// The innermost folder of the library that contains a path.
    func folder(of path: [UInt8]) -> Store.Folder? {
        folders.filter { path.starts(with: $0.path) && (path.count == $0.path.count || path[$0.path.count] == 0x2F) }
            .max { $0.path.count < $1.path.count }
    }

    /// Adds the user's music folder when the library is created. If the user removes it, it is not added again.
    private func offerMusic() {
        guard store.keptMeta("music-offered") == nil else { return }
        guard let home = absolutePath("HOME") else { return }
        var music = home + "/Music"
        if let config = UserFolder.config.path, let bytes = readFile(config + "/user-dirs.dirs", limit: 65_536) {
            for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n")
            where line.hasPrefix("XDG_MUSIC_DIR=\"") && line.hasSuffix("\"") {
                let text = line.dropFirst(15).dropLast()
                music = text.hasPrefix("$HOME/") ? home + text.dropFirst(5) : text == "$HOME/" ? home : String(text)
            }
        }
        while music.hasSuffix("/"), music.count > 1 { music.removeLast() }
        var status = stat()
        // The home folder is not added: `XDG_MUSIC_DIR` is the home folder if there is no music folder.
        guard music != home, music.hasPrefix("/"), music != "/", stat(music, &status) == 0,
            status.st_mode & S_IFMT == S_IFDIR
        else { return }
        do throws(SQLError) {
            try store.setKeptMeta("music-offered", 1)
            try store.add(folder: Array(music.utf8), nil, isWatched: true)
        } catch {
            complain("\(music) cannot be added: \(error.message)")
        }
    }

    private static func folder(_ path: [UInt8]) -> stat? {
        var status = stat()
        let isThere = (path + [0]).withUnsafeBytes {
            stat($0.baseAddress!.assumingMemoryBound(to: CChar.self), &status) == 0
        }
        return isThere && status.st_mode & S_IFMT == S_IFDIR ? status : nil
    }

    func add(folder named: [UInt8], _ type: ItemType?, isWatched: Bool) throws(Failure) {
        guard let status = Self.folder(named) else {
            throw Failure(SessionError(.notFound, "\(quoted(String(decoding: named, as: UTF8.self))) is not a folder"))
        }
        // The same folder under another name, such as a link to it, is not added again.
        let known = folders.first { known in
            Self.folder(known.path).map { ($0.st_dev, $0.st_ino) == (status.st_dev, status.st_ino) } ?? false
        }
        let path = known?.path ?? named
        try change { store throws(SQLError) in
            try store.setKeptMeta("music-offered", 1)
            try store.add(folder: path, type, isWatched: isWatched)
        }
        learnFolders()
        _ = try startScan([path], isFull: false)
    }

    func remove(folder path: [UInt8]) throws(Failure) {
        let missing = Failure(
            SessionError(.notFound, "\(quoted(String(decoding: path, as: UTF8.self))) is not a folder of the library"))
        guard isRoot(path) else { throw missing }
        // A running scan must not continue in the removed folder.
        scan?.job.cancel()
        guard let removed = try change({ store throws(SQLError) in try store.remove(folder: path) }) else {
            throw missing
        }
        watcher.forget(below: path)
        learnFolders()
        changed(added: [], changed: [], removed: removed)
        if !folders.isEmpty { _ = try startScan([], isFull: false) }
    }

    // MARK: Scans

    var isScanning: Bool { scan != nil }
    var wholeFolders: [Scan.Target] { folders.map { Scan.Target(path: $0.path, isDeep: true) } }

    /// - Parameter paths: empty: all folders of the library.
    /// - Returns: the path of the job.
    func startScan(_ paths: [[UInt8]], isFull: Bool) throws(Failure) -> String {
        for path in paths where folder(of: path) == nil {
            throw Failure(
                SessionError(
                    .notFound, "\(quoted(String(decoding: path, as: UTF8.self))) is in no folder of the library; add it"
                ))
        }
        let targets = paths.isEmpty ? wholeFolders : paths.map { Scan.Target(path: $0, isDeep: true) }
        return try scan(targets, isFull: isFull)
    }

    private func scan(_ targets: [Scan.Target], isFull: Bool) throws(Failure) -> String {
        if let scan {
            scan.join(targets, isFull: isFull)
            return scan.job.path
        }
        // The change of the mounts may not have been reported yet.
        if !workers.isBusy, MountWatch.mounts != mounts { renewWorkers() }
        do throws(SessionError) {
            let job = try jobs.add("scan", name: "Music library", for: "", isDetached: true, JobStatus(.files))
            let scan = Scan(targets, isFull: isFull, as: job, workers, in: self)
            self.scan = scan
            settleSoon()
            scan.begin()
            return job.path
        } catch {
            throw Failure(error)
        }
    }

    /// The daemon reports errors in the settings. The library then uses the defaults.
    private static func settings(_ host: PluginHost) -> Settings {
        (try? SettingsFiles(isSystem: host.bus.isSystem).read()) ?? Settings()
    }

    private static func workers(_ count: Int, _ host: PluginHost) -> Workers {
        Workers(
            "/proc/self/exe", ["--worker"], WorkerPool.Limits(workers: count), LibraryWorker.answers, on: host.loop
        ) { [unowned host] in host.complain($0) }
    }

    /// A worker keeps the mounts that existed when it was started. So it would still see a file system that was
    /// unmounted since, and keep it busy.
    private func mountsChanged() {
        let now = MountWatch.mounts
        // A scan that began in between renewed the workers, and may have scanned other folders.
        let changed = now.symmetricDifference(mounts).union(now.symmetricDifference(scannedMounts))
        let concerned = folders.map(\.path).filter { path in changed.contains { $0.concerns(path) } }
        guard !concerned.isEmpty else {
            (mounts, scannedMounts) = (now, now)
            return
        }
        // The workers first finish their tasks.
        guard scan == nil, !workers.isBusy else { return renewal.arm(after: 0.5) }
        renewWorkers()
        if (try? startScan(concerned, isFull: false)) != nil { scannedMounts = now }
    }

    private func renewWorkers() {
        mounts = MountWatch.mounts
        workers = Self.workers(workerCount, host)
    }

    /// Scans folders that have changed.
    private func look(at paths: [[UInt8]]) {
        let inside = paths.filter { folder(of: $0) != nil }
        guard !inside.isEmpty else { return }
        let targets =
            inside.count > Self.changedLimit
            ? wholeFolders
            : inside.map { Scan.Target(path: $0, isDeep: false) }
        _ = try? scan(targets, isFull: false)
    }

    func ended(_ ended: Scan) {
        if scan === ended { scan = nil }
        settleSoon()
        merging.arm(after: 0)
    }

    /// The plugin serves its clients between two steps.
    private func mergeWords() {
        guard scan == nil else { return }
        do throws(SQLError) {
            if try store.mergeWords() { merging.arm(after: Self.mergePause) }
        } catch {
            say("the index for the search could not be merged: \(problem(error).message)")
        }
    }

    // MARK: Signals

    func changed(added: [Int64], changed: [Int64], removed: [Int64]) {
        news.added += added
        news.changed += changed
        news.removed += removed
        settleSoon()
    }

    /// Signals are sent at most once a second.
    func settleSoon() {
        guard !isTelling else { return }
        isTelling = true
        telling.arm(after: max(0, lastTold + 1 - MonotonicClock.seconds))
    }

    private func tell() {
        isTelling = false
        lastTold = MonotonicClock.seconds
        let (path, interface) = (PluginKind.library.objectPath, PluginKind.library.interface)
        if store.revision != toldRevision {
            toldRevision = store.revision
            let lists = [news.added, news.changed, news.removed]
            if lists.contains(where: { !$0.isEmpty }), lists.allSatisfy({ $0.count <= Self.newsLimit }) {
                host.connection.objects.emit(
                    path: path, interface: interface, member: "ItemsChanged",
                    lists.map { .array(of: "t", $0.map { .uint64(UInt64($0)) }) })
            }
            host.connection.objects.emit(
                path: path, interface: interface, member: "Changed", [.uint64(store.revision)])
        }
        news = ([], [], [])
        var changes: [(String, Value)] = []
        for (name, value) in LibraryPlugin.values(self) where told[name] != value {
            told[name] = value
            changes.append((name, value))
        }
        if !changes.isEmpty { host.connection.objects.propertiesChanged(path: path, interface: interface, changes) }
    }

    var status: Value {
        .properties([
            ("watched", .uint32(UInt32(clamping: watcher.watchedCount))),
            ("polled", .uint32(UInt32(clamping: watcher.polledCount))),
            ("failed", .uint32(UInt32(clamping: (try? store.failureCount()) ?? 0))),
            ("message", .string(findings.joined(separator: "; "))),
        ])
    }

    // MARK: Covers

    /// The number of covers that one caller may wait for.
    private static let coverLimit = 256

    /// - Parameter caller: callers take turns.
    func artwork(
        _ id: Int64, size: Int, for caller: String, _ reply: @escaping (Result<String, Failure>) -> Void
    ) throws(Failure) {
        let size = ArtworkCache.step(size)
        guard let path = try use({ store throws(SQLError) in try store.path(of: id) }),
            try use({ store throws(SQLError) in try store.item(id) }) != nil
        else { throw Failure(SessionError(.notFound, "there is no item \(id)")) }
        let key = covers.key(of: path, size)
        if let known = covers.known(key) { return reply(.success(known.isEmpty ? "" : FileURI.uri(known))) }
        func unreadable() -> Result<String, Failure> {
            .failure(Failure(SessionError(.decodeFailed, "the cover of item \(id) cannot be read")))
        }
        switch covers.miss(path) {
        case .none?: return reply(.success(""))
        case .failed?: return reply(unreadable())
        case nil: break
        }
        guard coversAwaited[caller, default: 0] < Self.coverLimit else {
            throw .limitsExceeded("you wait for \(Self.coverLimit) covers; ask for others when some have come")
        }
        coversAwaited[caller, default: 0] += 1
        _ = workers.run(
            WorkerMessage(LibraryRequest.Art(path: path, size: size)), for: caller, patience: 5
        ) { [weak self] result in
            guard let self else { return }
            coversAwaited[caller, default: 0] -= 1
            if coversAwaited[caller] == 0 { coversAwaited[caller] = nil }
            switch result {
            case .success(let message):
                guard let data = message.bytes("data"), let ending = message.text("ending") else {
                    covers.remember(.none, of: path)
                    return reply(.success(""))
                }
                let isOriginal = message.flag("original") ?? false
                let file = covers.keep(data, key, ending, original: isOriginal ? covers.key(of: path, 0) : nil)
                reply(
                    file.map { .success(FileURI.uri($0)) }
                        ?? .failure(
                            Failure(SessionError(.diskFull, "the cover cannot be written to \(covers.folder ?? "")"))))
            case .failure(let failure):
                // If no worker can be started, the next request tries again.
                if failure != .notStarted { covers.remember(.failed, of: path) }
                reply(unreadable())
            }
        }
    }
}
