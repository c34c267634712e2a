import CDBus
import Glibc

/// One D-Bus message: received, or to be sent.
///
/// A received one is a `DBusMessage` of libdbus, of which this owns a reference. One to be sent is stored as values and
/// bytes; libdbus creates its own message only if it is asked for (``raw``).
public final class Message {
    /// `other`: a type of a later specification.
    public enum Kind: Sendable { case methodCall, methodReturn, error, signal, other }

    /// Until libdbus has created its own message.
    private var draft: Draft?
    private var owned: OpaquePointer?
    /// Why the message cannot be sent: an invalid value was appended.
    public private(set) var failure: Failure?
    /// 0 until it is sent.
    private var sentSerial: UInt32 = 0

    /// Takes over one reference.
    package init(owning raw: OpaquePointer) { owned = raw }

    /// Takes another reference.
    convenience init(retaining raw: OpaquePointer) { self.init(owning: dbus_message_ref(raw)) }

    /// The names must be valid: they are not checked again.
    init(_ draft: Draft) { self.draft = draft }

    /// From the bytes of the wire; nil if they are not a message.
    convenience init?(_ bytes: [UInt8]) {
        guard let raw = Self.demarshalled(bytes).result else { return nil }
        self.init(owning: raw)
    }

    deinit { if let owned { dbus_message_unref(owned) } }

    /// libdbus's message, created at the first use. Later changes are made there.
    package var raw: OpaquePointer {
        if let owned { return owned }
        let made = demarshalled() ?? dbus_message_new(DBUS_MESSAGE_TYPE_SIGNAL)
        guard let made else { fatalError("dbus: out of memory") }
        draft = nil
        owned = made
        return made
    }

    private func demarshalled() -> OpaquePointer? {
        var bytes: [UInt8] = []
        do throws(Failure) {
            // libdbus requires a serial; sending sets another one.
            try draft?.write(serial: 1, to: &bytes)
        } catch {
            failure = failure ?? error
        }
        let made = Self.demarshalled(bytes)
        guard let message = made.result else {
            failure = failure ?? made.failure ?? .noMemory
            return nil
        }
        dbus_message_set_serial(message, sentSerial)
        return message
    }

    private static func demarshalled(_ bytes: [UInt8]) -> (result: OpaquePointer?, failure: Failure?) {
        Failure.catching { error in
            bytes.withUnsafeBytes { buffer in
                dbus_message_demarshal(
                    buffer.bindMemory(to: CChar.self).baseAddress, Int32(clamping: buffer.count), error)
            }
        }
    }

    /// Appends the message as bytes of the wire. Returns its serial: `new` if it had none.
    func write(to bytes: inout [UInt8], serial new: UInt32) throws(Failure) -> UInt32 {
        if let failure { throw failure }
        let serial = serial == 0 ? new : serial
        if let draft {
            try draft.write(serial: serial, to: &bytes)
            sentSerial = serial
        } else {
            if self.serial == 0 { dbus_message_set_serial(raw, serial) }
            var pointer: UnsafeMutablePointer<CChar>?
            var count: Int32 = 0
            guard dbus_message_marshal(raw, &pointer, &count) != 0, let pointer else { throw .noMemory }
            bytes.append(contentsOf: UnsafeRawBufferPointer(start: pointer, count: Int(count)))
            dbus_free(pointer)
        }
        return serial
    }

    // MARK: Making

    /// A call. Throws InvalidArgs if a name or the path is malformed.
    ///
    /// Without an interface the other end finds the member by its name alone.
    public static func methodCall(
        destination: String?, path: String, interface: String?, member: String
    ) throws(Failure) -> Message {
        if let destination, !Syntax.isBusName(destination) { throw .invalidArgs("Not a bus name") }
        try check(path: path, interface: interface, member: member)
        var draft = Draft(.methodCall)
        draft.destination = destination
        draft.path = path
        draft.interface = interface
        draft.member = member
        return Message(draft)
    }

    /// A signal, to everyone who asked for it unless a ``destination`` is set.
    public static func signal(path: String, interface: String, member: String) throws(Failure) -> Message {
        try check(path: path, interface: interface, member: member)
        return Message(Draft(signal: member, path: path, interface: interface))
    }

    private static func check(path: String, interface: String?, member: String) throws(Failure) {
        guard Syntax.isPath(path) else { throw .invalidArgs("Not an object path") }
        // The bus disconnects a sender that uses libdbus's own name.
        guard path != "/org/freedesktop/DBus/Local", interface != StandardName.localInterface else {
            throw .invalidArgs("A name that is reserved for libdbus")
        }
        guard interface.map(Syntax.isInterface) ?? true else { throw .invalidArgs("Not an interface name") }
        guard Syntax.isMember(member) else { throw .invalidArgs("Not a member name") }
    }

    /// An empty answer to this call, which must have been sent or received.
    public func reply() -> Message { CallHeader(self).reply() }

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

    /// The sender's unique name, guaranteed by the bus; nil for a message that was created here.
    public var sender: String? { draft == nil ? text(dbus_message_get_sender(raw)) : nil }
    /// Of a call: the called object; of a signal: the emitting object. Nil for answers.
    public var path: String? { text(dbus_message_get_path(raw)) }
    /// Nil for answers, and for calls without one.
    public var interface: String? { text(dbus_message_get_interface(raw)) }
    /// The method or the signal; nil for answers.
    public var member: String? { text(dbus_message_get_member(raw)) }
    /// Nil except for errors.
    public var errorName: String? { text(dbus_message_get_error_name(raw)) }
    /// The types of all arguments, one after the other; empty without arguments.
    public var signature: String { text(dbus_message_get_signature(raw)) ?? "" }
    /// Whether open files came with it (`dbus_message_contains_unix_fds`).
    public var hasFileDescriptors: Bool { draft == nil && dbus_message_contains_unix_fds(raw) != 0 }
    /// 0 until it is sent.
    public var serial: UInt32 { owned.map { dbus_message_get_serial($0) } ?? sentSerial }
    /// The serial of the call that this answers; 0 for calls and signals.
    public var replySerial: UInt32 { dbus_message_get_reply_serial(raw) }

    /// The receiver; nil: the other end of the connection or, for a signal, every subscriber. A malformed name sets
    /// ``failure``.
    public var destination: String? {
        get { draft.map(\.destination) ?? text(dbus_message_get_destination(raw)) }
        set {
            guard newValue.map(Syntax.isBusName) ?? true else {
                failure = failure ?? .invalidArgs("Not a bus name")
                return
            }
            if draft != nil {
                draft?.destination = newValue
            } else if dbus_message_set_destination(raw, newValue) == 0 {
                failure = failure ?? .noMemory
            }
        }
    }

    /// Whether the caller does not want an answer.
    public var noReplyExpected: Bool {
        get { draft?.noReplyExpected ?? (dbus_message_get_no_reply(raw) != 0) }
        set {
            if draft == nil {
                dbus_message_set_no_reply(raw, newValue ? 1 : 0)
            } else {
                draft?.noReplyExpected = newValue
            }
        }
    }

    /// Whether the bus may start the destination for this message. True by default.
    public var autoStart: Bool {
        get { draft.map { !$0.noAutoStart } ?? (dbus_message_get_auto_start(raw) != 0) }
        set {
            if draft == nil {
                dbus_message_set_auto_start(raw, newValue ? 1 : 0)
            } else {
                draft?.noAutoStart = !newValue
            }
        }
    }

    private func text(_ pointer: UnsafePointer<CChar>?) -> String? { pointer.map { String(cString: $0) } }

    // MARK: Body

    /// Appends arguments to a message before it is sent. Strings end at a NUL; any other invalid value sets
    /// ``failure``, and the message is not sent.
    public func append(_ values: [Value]) {
        guard failure == nil, !values.isEmpty else { return }
        precondition(draft != nil, "a message that was read already takes no more arguments")
        do throws(Failure) {
            try draft?.append(values)
        } catch {
            failure = error
        }
    }

    /// The arguments. Each file descriptor is a duplicate, which its ``FileDescriptor`` closes. Throws LimitsExceeded
    /// for more than a million values, or if the process has no descriptor left.
    public func arguments() throws(Failure) -> [Value] {
        // Part of the value may have been written.
        if let failure { throw failure }
        var iterator = DBusMessageIter()
        guard dbus_message_iter_init(raw, &iterator) != 0 else { return [] }
        var reader = MessageReader(isCall: dbus_message_get_type(raw) == DBUS_MESSAGE_TYPE_METHOD_CALL)
        return try reader.values(&iterator)
    }

    /// The first argument, if it is a string; the others are not read.
    var firstString: String? {
        var iterator = DBusMessageIter()
        guard dbus_message_iter_init(raw, &iterator) != 0,
            dbus_message_iter_get_arg_type(&iterator) == Int32(TypeCode.string)
        else { return nil }
        var pointer: UnsafePointer<CChar>?
        dbus_message_iter_get_basic(&iterator, &pointer)
        return text(pointer)
    }

    /// The content of an answer: its arguments, or its error.
    func outcome() -> Result<[Value], Failure> {
        if let name = errorName { return .failure(Failure(name: name, message: firstString ?? "")) }
        do throws(Failure) { return .success(try arguments()) } catch { return .failure(error) }
    }
}
