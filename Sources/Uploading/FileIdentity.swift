/// Which file it is, and which state of it: another file in its place, or other content, has another identity.
public struct FileIdentity: Sendable, Hashable {
    public var device: UInt64
    public var inode: UInt64
    public var size: UInt64
    /// Nanoseconds since 1970 of its last change.
    public var modified: Int64

    public init(device: UInt64, inode: UInt64, size: UInt64, modified: Int64) {
        (self.device, self.inode, self.size, self.modified) = (device, inode, size, modified)
    }
}
