import Glibc

/// An open file that came with a message (type `h`): open as long as anybody holds this object, and closed with it.
///
/// Two of them are equal only where they are the same object: the numbers of two may be of one file.
public final class FileDescriptor: Hashable, Sendable {
    /// The number in this process. Valid for the life of the object; whoever needs it longer calls `dup`.
    public let number: Int32

    /// Takes the open file over.
    init(owning number: Int32) { self.number = number }

    deinit { close(number) }

    public static func == (one: FileDescriptor, other: FileDescriptor) -> Bool { one === other }

    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
