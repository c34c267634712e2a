/// Identifies a file and its content: another file at the same path, or changed content, has another identity.
public struct FileIdentity: Sendable, Hashable {
    public var device: UInt64
    public var inode: UInt64
    public var size: UInt64
    /// The time of the last change, in nanoseconds since 1970.
    public var modified: Int64

    public init(device: UInt64, inode: UInt64, size: UInt64, modified: Int64) {
        (self.device, self.inode, self.size, self.modified) = (device, inode, size, modified)
    }
}
