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
    /// Seconds between two steps of the merge of the search index.
    private static let mergePause = 0.01

    let loop: EventLoop
    let database: LibraryDatabase
    let workers: LibraryWorkers
    let watcher: FolderWatcher
    private(set) var folders = LibraryFolders()
    private(set) lazy var news = LibraryNews(of: self, on: host.connection.objects)
    let callers: FreeCallers
    private lazy var covers = Covers(
        ArtworkCache(in: UserFolder.cache.path.map { $0 + "/sessiond/artwork" })
    ) { [unowned self] request, caller, reply in
        _ = workers.current.run(WorkerMessage(request), for: caller, patience: 5, onEnd: reply)
    }
    /// The encoding of texts in tags that do not state one.
    let tagEncoding: Settings.TagEncoding
    private let host: PluginHost
    private let jobs: Jobs
    private var scan: Scan?
    private let players: PlayerWatch?
    private var isPlaying = false
    private lazy var merging = Timer(on: loop) { [unowned self] in mergeWords() }

    init(_ host: PluginHost) throws(Failure) {
        self.host = host
        loop = host.loop
        workers = LibraryWorkers(host)
        let settings = SettingsFiles(isSystem: host.bus.isSystem).read { host.complain($0) }.library
        tagEncoding = settings.tagEncoding
        watcher = FolderWatcher(on: host.loop, interval: settings.interval)
        callers = FreeCallers(on: host.connection)
        database = try LibraryDatabase()
        jobs = Jobs(.library, on: host.connection, host.loop)
        players = PlayerWatch(on: host.connection, callers)
        connectParts()
        for finding in database.findings { complain(finding) }
        host.connection.objects.export(self, at: PluginKind.library.objectPath, interfaces: [LibraryPlugin.interface])
        offerMusic()
        folders = LibraryFolders((try? database.store.folders()) ?? [])
        if !folders.isEmpty { _ = try? startScan([], isFull: false) }
        // What is there now is told to nobody.
        _ = news
    }

    private func connectParts() {
        database.onFinding = { [unowned self] in complain($0) }
        database.onChanged = { [unowned self] in news.tellSoon() }
        database.onDamage = { [unowned self] in loop.later { [weak self] in self?.reopen() } }
        database.commit = { [unowned self] () throws(SQLError) in try scan?.commitForClient() }
        workers.concerned = { [unowned self] in folders.concerned(by: $0) }
        workers.isScanning = { [unowned self] in isScanning }
        workers.scan = { [unowned self] in (try? startScan($0, isFull: false)) != nil }
        watcher.isWanted = { [unowned self] in folders.folder(of: $0)?.isWatched ?? false }
        watcher.onChanged = { [unowned self] in look(at: $0) }
        jobs.onBusyChanged = { [unowned self] _ in settleBusy() }
        players?.onBusyChanged = { [unowned self] isPlaying in
            self.isPlaying = isPlaying
            settleBusy()
        }
        players?.find = { [unowned self] in item(of: $0) }
        players?.onNote = { [unowned self] in note($0, $1) }
    }

    func end(_ done: @escaping () -> Void) {
        scan?.stop()
        database.store.close()
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
        let found = try? database.store.items(query, offset: 0, max: 1).items.first
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
            _ = try database.change { store throws(SQLError) in try store.set(item, [change]) }
            news.add(changed: [item])
        } catch {
            host.complain(error)
        }
    }

    // MARK: The database

    /// Adds a finding to the log and to `Status`, once.
    func say(_ finding: String) { if database.say(finding) { news.tellSoon() } }

    private func reopen() {
        scan?.job.cancel()
        do throws(Failure) {
            try database.reopen()
            learnFolders()
            _ = try? startScan([], isFull: false)
        } catch {
            host.complain(error)
        }
    }

    // MARK: Folders

    private func learnFolders() {
        folders = LibraryFolders((try? database.store.folders()) ?? [])
        news.tellSoon()
    }

    /// Adds the user's music folder when the library is created. If the user removes it, it is not added again.
    private func offerMusic() {
        let store = database.store
        guard store.keptMeta("music-offered") == nil, let home = absolutePath("HOME") else { return }
        let settings = UserFolder.config.path.flatMap { readFile($0 + "/user-dirs.dirs", limit: 65_536) } ?? []
        guard let music = LibraryFolders.music(home: home, settings: String(decoding: settings, as: UTF8.self)),
            Self.folder(Array(music.utf8)) != nil
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
        let known = folders.paths.first { known in
            Self.folder(known).map { ($0.st_dev, $0.st_ino) == (status.st_dev, status.st_ino) } ?? false
        }
        let path = known ?? named
        try database.change { store throws(SQLError) in
            try store.setKeptMeta("music-offered", 1)
            try store.add(folder: path, type, isWatched: isWatched)
        }
        learnFolders()
        _ = try startScan([path], isFull: false)
    }

    func remove(folder path: [UInt8]) throws(Failure) {
        let missing = Failure(
            SessionError(.notFound, "\(quoted(String(decoding: path, as: UTF8.self))) is not a folder of the library"))
        guard folders.isRoot(path) else { throw missing }
        // A running scan must not continue in the removed folder.
        scan?.job.cancel()
        guard let removed = try database.change({ store throws(SQLError) in try store.remove(folder: path) }) else {
            throw missing
        }
        watcher.forget(below: path)
        learnFolders()
        news.add(removed: removed)
        if !folders.isEmpty { _ = try startScan([], isFull: false) }
    }

    // MARK: Scans

    var isScanning: Bool { scan != nil }

    /// - Parameter paths: empty: all folders of the library.
    /// - Returns: the path of the job.
    func startScan(_ paths: [[UInt8]], isFull: Bool) throws(Failure) -> String {
        for path in paths where folders.folder(of: path) == nil {
            throw Failure(
                SessionError(
                    .notFound, "\(quoted(String(decoding: path, as: UTF8.self))) is in no folder of the library; add it"
                ))
        }
        let targets = paths.isEmpty ? folders.whole : paths.map { ScanTargets.Target(path: $0, isDeep: true) }
        return try scan(targets, isFull: isFull)
    }

    private func scan(_ targets: [ScanTargets.Target], isFull: Bool) throws(Failure) -> String {
        if let scan {
            scan.join(targets, isFull: isFull)
            return scan.job.path
        }
        workers.renewIfMountsChanged()
        do throws(SessionError) {
            let job = try jobs.add("scan", name: "Music library", for: "", isDetached: true, JobStatus(.files))
            let scan = Scan(targets, isFull: isFull, as: job, workers.current, in: self)
            self.scan = scan
            news.tellSoon()
            scan.begin()
            return job.path
        } catch {
            throw Failure(error)
        }
    }

    /// Scans folders that have changed.
    private func look(at paths: [[UInt8]]) {
        let targets = folders.targets(changed: paths)
        if !targets.isEmpty { _ = try? scan(targets, isFull: false) }
    }

    func ended(_ ended: Scan) {
        if scan === ended { scan = nil }
        news.tellSoon()
        merging.arm(after: 0)
    }

    /// The plugin serves its clients between two steps.
    private func mergeWords() {
        guard scan == nil else { return }
        do throws(SQLError) {
            if try database.store.mergeWords() { merging.arm(after: Self.mergePause) }
        } catch {
            say("the index for the search could not be merged: \(database.problem(error).message)")
        }
    }

    // MARK: For clients

    var status: Value {
        .properties([
            ("watched", .uint32(UInt32(clamping: watcher.watchedCount))),
            ("polled", .uint32(UInt32(clamping: watcher.polledCount))),
            ("failed", .uint32(UInt32(clamping: (try? database.store.failureCount()) ?? 0))),
            ("message", .string(database.findings.joined(separator: "; "))),
        ])
    }

    /// Answers with the URI of the cover of an item; empty: it has none.
    func artwork(_ id: Int64, size: Int, for caller: String, _ reply: @escaping Covers.Reply) throws(Failure) {
        guard let path = try database.use({ store throws(SQLError) in try store.path(of: id) }),
            try database.use({ store throws(SQLError) in try store.item(id) }) != nil
        else { throw Failure(SessionError(.notFound, "there is no item \(id)")) }
        try covers.cover(of: path, item: id, size: size, for: caller, reply)
    }
}
