/// Decides which folders a scan enters, so that it ends whatever links exist.
///
/// A folder that is reached without a link is always entered. A folder that is reached through links is entered once,
/// under the first name that is found, and the number of such folders is limited.
public struct WalkRules: Sendable {
    /// The identity of a folder, independent of its name.
    public struct Place: Hashable, Sendable {
        let device: UInt64
        let inode: UInt64

        public init(device: UInt64, inode: UInt64) { (self.device, self.inode) = (device, inode) }
    }

    /// Limits of the folders that are entered in one walk.
    public struct Limits: Sendable {
        public var all = 500_000
        /// The limit of those that are reached through links.
        public var linked = 20_000

        public init() {}
    }

    /// File systems of the kernel, which contain no music. They have many folders, which differ from scan to scan.
    private static let kernels: Set<Substring> = [
        "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs",
        "fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "selinuxfs", "sysfs",
        "tracefs",
    ]

    private let limits: Limits
    private var entered: Set<Place>
    private var all = 0
    private var linked = 0
    /// Whether a folder was left out because there are too many.
    public private(set) var isFull = false

    /// - Parameter above: the folders that contain the first folder.
    public init(above: [Place] = [], _ limits: Limits = Limits()) {
        (entered, self.limits) = (Set(above), limits)
    }

    /// Begins the walk with its first folder.
    public mutating func begin(_ place: Place) { entered.insert(place) }

    /// - Parameter isThroughLink: the folder is a link, or is below one.
    public mutating func enters(_ place: Place, isThroughLink: Bool) -> Bool {
        guard all < limits.all, !isThroughLink || linked < limits.linked else {
            isFull = true
            return false
        }
        guard entered.insert(place).inserted || !isThroughLink else { return false }
        all += 1
        if isThroughLink { linked += 1 }
        return true
    }

    /// Whether a link may be followed. It may not lead to a folder inside of the library's folder, which is read
    /// anyway, or to a folder that contains it.
    public static func mayFollow(to target: String, from folder: String) -> Bool {
        target != folder && !target.hasPrefix(folder + "/") && !folder.hasPrefix(target == "/" ? "/" : target + "/")
    }

    /// - Parameter type: the type from `/proc/self/mountinfo`; empty if unknown.
    public static func mayHoldMusic(_ type: some StringProtocol) -> Bool { !kernels.contains(Substring(type)) }
}
