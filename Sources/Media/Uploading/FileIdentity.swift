/// Identifies a file and its content: another file at the same path, or changed content, has another identity.
///
/// The number of the device is no part of it: some file systems get another one at each mount.
public struct FileIdentity: Sendable, Hashable {
    public var inode: UInt64
    public var size: UInt64
    /// The time of the last change, in nanoseconds since 1970.
    public var modified: Int64

    public init(inode: UInt64, size: UInt64, modified: Int64) {
        (self.inode, self.size, self.modified) = (inode, size, modified)
    }
}
