/// Which folders a scan enters, so that it ends whatever links there are.
///
/// What is in a folder of the library without a link is always entered. Through links, each folder is entered once, under the
/// name that comes first, and only so many are.
public struct WalkRules: Sendable {
    /// A folder, under whatever name.
    public struct Place: Hashable, Sendable {
        let device: UInt64
        let inode: UInt64

        public init(device: UInt64, inode: UInt64) { (self.device, self.inode) = (device, inode) }
    }

    /// Folders that are entered in one walk.
    public struct Limits: Sendable {
        public var all = 500_000
        /// Of them those through links.
        public var linked = 20_000

        public init() {}
    }

    /// File systems of the kernel, which nobody keeps music in. Their folders are many, and differ from look to look.
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

    /// - Parameter above: the folders that the first one is in.
    public init(above: [Place] = [], _ limits: Limits = Limits()) {
        (entered, self.limits) = (Set(above), limits)
    }

    /// The first folder of the walk.
    public mutating func begin(_ place: Place) { entered.insert(place) }

    /// - Parameter isThroughLink: it is a link, or below one.
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

    /// Whether a link may be followed: not to what is in the folder of the library anyway, nor to what that folder is in.
    public static func mayFollow(to target: String, from folder: String) -> Bool {
        target != folder && !target.hasPrefix(folder + "/") && !folder.hasPrefix(target == "/" ? "/" : target + "/")
    }

    /// - Parameter type: as `/proc/self/mountinfo` has it; empty if that is not known.
    public static func mayHoldMusic(_ type: some StringProtocol) -> Bool { !kernels.contains(Substring(type)) }
}
