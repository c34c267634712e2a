/// Decides what a scan does with a folder that a worker has listed, or has not found.
public enum FolderPlan {
    /// A folder as a worker has listed it.
    public struct Listing: Sendable, Hashable {
        /// Whether a file system is mounted there.
        public var isMount: Bool
        /// ``ScanPlan/digest(_:folders:)`` of it.
        public var digest: UInt64
        /// Whether it is a folder of the library, which has no parent there.
        public var isRoot: Bool

        public init(isMount: Bool, digest: UInt64, isRoot: Bool) {
            (self.isMount, self.digest, self.isRoot) = (isMount, digest, isRoot)
        }
    }

    /// The same folder in the database.
    public struct Known: Sendable, Hashable {
        public var isAvailable: Bool
        public var isMount: Bool
        /// 0: the listing is unknown.
        public var digest: UInt64
        /// Whether it is stored as a folder of the library.
        public var isRoot: Bool

        public init(isAvailable: Bool = true, isMount: Bool = false, digest: UInt64 = 0, isRoot: Bool = false) {
            (self.isAvailable, self.isMount, self.digest, self.isRoot) = (isAvailable, isMount, digest, isRoot)
        }
    }

    public enum Listed: Sendable, Hashable {
        /// Its file system is not mounted: everything in it is unavailable.
        case unavailable
        /// Nothing in it has changed.
        case unchanged
        /// The folder that contains it is unavailable: this is no folder of its disk. That folder decides.
        case parentDecides
        /// Its files and folders are compared with the database.
        case compared
    }

    /// - Parameters:
    ///   - known: nil: it is new.
    ///   - isFull: whether all files are read again.
    ///   - parentIsAvailable: whether the folder that contains it is available; nil: the database does not have it. Called
    ///     at most once.
    public static func listed<E: Error>(
        _ listing: Listing, known: Known?, isFull: Bool, parentIsAvailable: () throws(E) -> Bool?
    ) throws(E) -> Listed {
        let presence = ScanPlan.presence(
            wasMount: known?.isMount ?? false, isThere: true, isMount: listing.isMount, isRoot: listing.isRoot)
        guard presence == .present else { return .unavailable }
        // A folder that was added to the library or removed from it has another parent now.
        if let known, known.digest == listing.digest, known.isAvailable, known.isMount == listing.isMount, !isFull,
            known.isRoot == listing.isRoot
        {
            return .unchanged
        }
        return try parentIsAvailable() == false ? .parentDecides : .compared
    }

    public enum Missing: Sendable, Hashable {
        /// It is not in the database, or already unavailable.
        case nothing
        /// The folder that contains it is listed. It is removed only if that one is there: if the disk with both is lost,
        /// both become unavailable.
        case parentDecides
        case unavailable
        case removed
    }

    /// A folder that was to be listed does not exist.
    /// - Parameter parentIsKnown: whether the database has the folder that contains it. Called at most once.
    public static func missing<E: Error>(
        _ known: Known?, isRoot: Bool, parentIsKnown: () throws(E) -> Bool
    ) throws(E) -> Missing {
        guard let known, known.isAvailable else { return .nothing }
        if !isRoot, try parentIsKnown() { return .parentDecides }
        return gone(known, isRoot: isRoot)
    }

    /// A folder does not exist, and the folder that contains it does.
    public static func gone(_ known: Known?, isRoot: Bool) -> Missing {
        switch ScanPlan.presence(wasMount: known?.isMount ?? false, isThere: false, isMount: false, isRoot: isRoot) {
        case .present: .nothing
        case .unavailable: .unavailable
        case .removed: .removed
        }
    }

    /// A folder in a listed folder, as the database has it.
    public struct Child: Sendable, Hashable {
        public var path: [UInt8]
        public var isAvailable: Bool
        /// Whether it is a folder of the library, which only a user removes.
        public var isRoot: Bool

        public init(_ path: [UInt8], isAvailable: Bool = true, isRoot: Bool = false) {
            (self.path, self.isAvailable, self.isRoot) = (path, isAvailable, isRoot)
        }
    }

    /// What happens to the folders in a listed folder.
    public struct Children: Sendable, Hashable {
        /// They do not exist any more.
        public var gone: [[UInt8]] = []
        /// They exist and cannot be examined.
        public var lost: [[UInt8]] = []
        /// They are listed next, with all folders below them: they are new, or available again.
        public var listed: Set<[UInt8]> = []
        /// Whether the whole folder of the library is walked, because only such a walk may enter new links.
        public var needsWholeWalk = false

        public init() {}
    }

    /// - Parameters:
    ///   - there: the paths of the folders that were found.
    ///   - links: those of them that only a walk of the whole folder of the library may enter.
    ///   - unknown: the paths of what cannot be examined.
    ///   - isWalkDeep: whether the walk lists the folders below anyway.
    public static func children(
        there: Set<[UInt8]>, links: Set<[UInt8]>, unknown: Set<[UInt8]>, known: [Child], isWalkDeep: Bool
    ) -> Children {
        var children = Children()
        for child in known where !there.contains(child.path) && !child.isRoot {
            if unknown.contains(child.path) {
                children.lost.append(child.path)
            } else {
                children.gone.append(child.path)
            }
        }
        guard !isWalkDeep else { return children }
        let new = there.subtracting(known.lazy.filter(\.isAvailable).map(\.path))
        children.listed = new.subtracting(links)
        children.needsWholeWalk = !links.isDisjoint(with: new)
        return children
    }
}
