import EventLoop
import Glibc
import PluginKit
import Workers

/// The workers of the library.
///
/// A worker keeps the mounts that existed when it was started. So it would still see a file system that was unmounted
/// since, and keep it busy: after each change of the mounts, the workers are replaced.
final class LibraryWorkers {
    private(set) var current: Workers
    let count = max(2, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    /// The folders of the library that a change of these mounts concerns.
    var concerned: (Set<MountWatch.Mount>) -> [[UInt8]] = { _ in [] }
    /// Whether the folders are being scanned.
    var isScanning: () -> Bool = { false }
    /// Scans these folders; false: that is not possible.
    var scan: ([[UInt8]]) -> Bool = { _ in false }

    private let host: PluginHost
    private var watch: MountWatch?
    /// The mounts that the workers see.
    private var mounts = MountWatch.mounts
    /// The mounts at the last scan of all folders that a change of the mounts concerned.
    private var scannedMounts: Set<MountWatch.Mount>
    private lazy var renewal = Timer(on: host.loop) { [unowned self] in mountsChanged() }

    init(_ host: PluginHost) {
        self.host = host
        current = Self.start(count, host)
        scannedMounts = mounts
        watch = MountWatch(on: host.loop) { [unowned self] in mountsChanged() }
    }

    private static func start(_ count: Int, _ host: PluginHost) -> Workers {
        Workers(
            "/proc/self/exe", ["--worker"], WorkerPool.Limits(workers: count), LibraryWorker.answers, on: host.loop
        ) { [unowned host] in host.complain($0) }
    }

    /// Before a scan: the change of the mounts may not have been reported yet.
    func renewIfMountsChanged() { if !current.isBusy, MountWatch.mounts != mounts { renew() } }

    private func renew() {
        mounts = MountWatch.mounts
        current = Self.start(count, host)
    }

    private func mountsChanged() {
        let now = MountWatch.mounts
        // A scan that began in between renewed the workers, and may have scanned other folders.
        let changed = now.symmetricDifference(mounts).union(now.symmetricDifference(scannedMounts))
        let concerned = concerned(changed)
        guard !concerned.isEmpty else {
            (mounts, scannedMounts) = (now, now)
            return
        }
        // The workers first finish their tasks.
        guard !isScanning(), !current.isBusy else { return renewal.arm(after: 0.5) }
        renew()
        if scan(concerned) { scannedMounts = now }
    }
}

extension Workers.Failure {
    /// Why a file or a folder was not read, for a user.
    var reason: String {
        switch self {
        case .tookTooLong(let seconds): "it took longer than \(Int(seconds.rounded())) s"
        case .silent(let seconds): "its worker sent nothing for \(Int(seconds.rounded())) s"
        case .ended: "its worker ended unexpectedly"
        case .notStarted: "no worker can be started to read it"
        }
    }
}
