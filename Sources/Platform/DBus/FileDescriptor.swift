import Glibc

/// An open file received with a message (type `h`): closed when the last reference to this object is released.
///
/// Two of them are equal only if they are the same object, even if they refer to the same file.
public final class FileDescriptor: Hashable, Sendable {
    /// The descriptor in this process, valid while the object exists; use `dup` to keep it longer.
    public let number: Int32

    /// Takes ownership of the descriptor.
    init(owning number: Int32) { self.number = number }

    deinit { close(number) }

    public static func == (one: FileDescriptor, other: FileDescriptor) -> Bool { one === other }

    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
