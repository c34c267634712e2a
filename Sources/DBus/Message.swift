import CDBus
import Glibc

/// One D-Bus message; owns one reference to it (`DBusMessage`).
public final class Message {
    public enum Kind: Sendable { case methodCall, methodReturn, error, signal, other }

    package let raw: OpaquePointer
    /// Why the message cannot be sent: a value that is no value of its type was appended.
    public private(set) var failure: Failure?

    /// Takes over one reference.
    package init(owning raw: OpaquePointer) { self.raw = raw }

    /// Takes a reference of its own.
    convenience init(retaining raw: OpaquePointer) { self.init(owning: dbus_message_ref(raw)) }

    deinit { dbus_message_unref(raw) }

    // MARK: Making

    /// A call (`dbus_message_new_method_call`). Throws InvalidArgs where a name or the path is malformed.
    ///
    /// Without an interface the other end finds the member by its name alone.
    public static func methodCall(
        destination: String?, path: String, interface: String?, member: String
    ) throws(Failure) -> Message {
        if let destination, !Syntax.isBusName(destination) { throw .invalidArgs("Not a bus name") }
        try check(path: path, interface: interface, member: member)
        guard let raw = dbus_message_new_method_call(destination, path, interface, member) else { throw .noMemory }
        return Message(owning: raw)
    }

    /// A signal (`dbus_message_new_signal`), to everyone who asked for it unless a ``destination`` is set.
    public static func signal(path: String, interface: String, member: String) throws(Failure) -> Message {
        try check(path: path, interface: interface, member: member)
        guard let raw = dbus_message_new_signal(path, interface, member) else { throw .noMemory }
        return Message(owning: raw)
    }

    private static func check(path: String, interface: String?, member: String) throws(Failure) {
        guard Syntax.isPath(path) else { throw .invalidArgs("Not an object path") }
        // The bus disconnects whoever speaks in libdbus's own name.
        guard path != "/org/freedesktop/DBus/Local", interface != Names.localInterface else {
            throw .invalidArgs("A name that is reserved for libdbus")
        }
        guard interface.map(Syntax.isInterface) ?? true else { throw .invalidArgs("Not an interface name") }
        guard Syntax.isMember(member) else { throw .invalidArgs("Not a member name") }
    }

    /// An empty answer to this call (`dbus_message_new_method_return`). The call must have been sent or received.
    public func reply() -> Message {
        precondition(serial != 0, "a reply to a message that nobody has sent")
        guard let reply = dbus_message_new_method_return(raw) else { fatalError("dbus: out of memory") }
        return Message(owning: reply)
    }

    /// An error in answer to this call (`dbus_message_new_error`). A malformed name becomes `…Error.Failed`.
    public func error(name: String, text: String) -> Message {
        precondition(serial != 0, "a reply to a message that nobody has sent")
        let name = Syntax.isErrorName(name) ? name : Failure.Name.failed
        guard let error = dbus_message_new_error(raw, name, text) else { fatalError("dbus: out of memory") }
        return Message(owning: error)
    }

    // MARK: Header

    public var kind: Kind {
        switch dbus_message_get_type(raw) {
        case DBUS_MESSAGE_TYPE_METHOD_CALL: .methodCall
        case DBUS_MESSAGE_TYPE_METHOD_RETURN: .methodReturn
        case DBUS_MESSAGE_TYPE_ERROR: .error
        case DBUS_MESSAGE_TYPE_SIGNAL: .signal
        default: .other
        }
    }

    /// The unique name of who sent it, as the bus vouches for it; nil on a message that was made here.
    public var sender: String? { text(dbus_message_get_sender(raw)) }
    public var path: String? { text(dbus_message_get_path(raw)) }
    public var interface: String? { text(dbus_message_get_interface(raw)) }
    public var member: String? { text(dbus_message_get_member(raw)) }
    public var errorName: String? { text(dbus_message_get_error_name(raw)) }
    /// The types of all arguments, one after the other; empty without arguments.
    public var signature: String { text(dbus_message_get_signature(raw)) ?? "" }
    /// 0 until it is sent.
    public var serial: UInt32 { dbus_message_get_serial(raw) }
    /// The serial of the call that this answers; 0 for calls and signals.
    public var replySerial: UInt32 { dbus_message_get_reply_serial(raw) }

    /// Who it is for; nil is the other end of the connection, or everyone for a signal. A malformed name sets ``failure``.
    public var destination: String? {
        get { text(dbus_message_get_destination(raw)) }
        set {
            guard newValue.map(Syntax.isBusName) ?? true else {
                failure = failure ?? .invalidArgs("Not a bus name")
                return
            }
            if dbus_message_set_destination(raw, newValue) == 0 { failure = failure ?? .noMemory }
        }
    }

    /// Whether the caller does not want an answer.
    public var noReplyExpected: Bool {
        get { dbus_message_get_no_reply(raw) != 0 }
        set { dbus_message_set_no_reply(raw, newValue ? 1 : 0) }
    }

    /// Whether the bus may start the destination for this message. True unless set.
    public var autoStart: Bool {
        get { dbus_message_get_auto_start(raw) != 0 }
        set { dbus_message_set_auto_start(raw, newValue ? 1 : 0) }
    }

    private func text(_ pointer: UnsafePointer<CChar>?) -> String? { pointer.map { String(cString: $0) } }

    // MARK: Body

    /// Appends arguments. Strings end at a NUL; any other invalid value sets ``failure`` and the message is not sent.
    public func append(_ values: [Value]) {
        guard failure == nil, !values.isEmpty else { return }
        var iterator = DBusMessageIter()
        dbus_message_iter_init_append(raw, &iterator)
        var writer = MessageWriter()
        do throws(Failure) {
            for value in values { try writer.append(value, to: &iterator) }
        } catch {
            failure = error
        }
    }

    /// The arguments. Throws InvalidArgs for file descriptors and LimitsExceeded for more than a million values.
    public func arguments() throws(Failure) -> [Value] {
        // An abandoned container leaves the body unreadable.
        if let failure { throw failure }
        var iterator = DBusMessageIter()
        guard dbus_message_iter_init(raw, &iterator) != 0 else { return [] }
        var reader = MessageReader()
        return try reader.values(&iterator)
    }

    /// The first argument where it is a string; spares reading the others.
    var firstString: String? {
        var iterator = DBusMessageIter()
        guard dbus_message_iter_init(raw, &iterator) != 0,
            dbus_message_iter_get_arg_type(&iterator) == Int32(TypeCode.string)
        else { return nil }
        var pointer: UnsafePointer<CChar>?
        dbus_message_iter_get_basic(&iterator, &pointer)
        return text(pointer)
    }

    /// What an answer says: its arguments, or its error.
    func outcome() -> Result<[Value], Failure> {
        if let name = errorName { return .failure(Failure(name: name, message: firstString ?? "")) }
        do throws(Failure) { return .success(try arguments()) } catch { return .failure(error) }
    }
}

/// Names of the bus and of the standard interfaces.
enum Names {
    static let bus = "org.freedesktop.DBus"
    static let busPath = "/org/freedesktop/DBus"
    static let localInterface = "org.freedesktop.DBus.Local"
    static let properties = "org.freedesktop.DBus.Properties"
    static let introspectable = "org.freedesktop.DBus.Introspectable"
    static let peer = "org.freedesktop.DBus.Peer"
    static let objectManager = "org.freedesktop.DBus.ObjectManager"
}
