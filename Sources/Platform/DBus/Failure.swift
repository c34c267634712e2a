import CDBus
import Glibc

/// A D-Bus error: its name, and a text for the user.
public struct Failure: Error, Hashable, Sendable {
    /// Such as `org.freedesktop.DBus.Error.InvalidArgs`.
    public let name: String
    /// For the user; may be empty.
    public let message: String

    public init(name: String, message: String) {
        self.name = name
        self.message = message
    }

    /// The standard names that this module uses.
    public enum Name {
        private static let prefix = "org.freedesktop.DBus.Error."
        public static let failed = prefix + "Failed"
        public static let invalidArgs = prefix + "InvalidArgs"
        public static let unknownMethod = prefix + "UnknownMethod"
        public static let unknownObject = prefix + "UnknownObject"
        public static let unknownInterface = prefix + "UnknownInterface"
        public static let unknownProperty = prefix + "UnknownProperty"
        public static let propertyReadOnly = prefix + "PropertyReadOnly"
        public static let noReply = prefix + "NoReply"
        public static let disconnected = prefix + "Disconnected"
        public static let limitsExceeded = prefix + "LimitsExceeded"
        public static let nameHasNoOwner = prefix + "NameHasNoOwner"
        public static let serviceUnknown = prefix + "ServiceUnknown"
        public static let accessDenied = prefix + "AccessDenied"
        static let noMemory = prefix + "NoMemory"
    }

    public static func failed(_ message: String) -> Failure { Failure(name: Name.failed, message: message) }
    public static func invalidArgs(_ message: String) -> Failure { Failure(name: Name.invalidArgs, message: message) }
    public static func unknownMethod(_ message: String) -> Failure {
        Failure(name: Name.unknownMethod, message: message)
    }
    public static func unknownObject(_ message: String) -> Failure {
        Failure(name: Name.unknownObject, message: message)
    }
    public static func unknownInterface(_ message: String) -> Failure {
        Failure(name: Name.unknownInterface, message: message)
    }
    public static func unknownProperty(_ message: String) -> Failure {
        Failure(name: Name.unknownProperty, message: message)
    }
    static func propertyReadOnly(_ message: String) -> Failure {
        Failure(name: Name.propertyReadOnly, message: message)
    }
    public static func noReply(_ message: String) -> Failure { Failure(name: Name.noReply, message: message) }
    public static func limitsExceeded(_ message: String) -> Failure {
        Failure(name: Name.limitsExceeded, message: message)
    }
    /// The default answer to a call with too much text.
    static let longText = limitsExceeded("A text of a call has at most 64 KiB, and all of them 4 MiB")
    static let noDescriptors = invalidArgs("File descriptors are not accepted; send none")
    static func accessDenied(_ message: String) -> Failure { Failure(name: Name.accessDenied, message: message) }
    /// The error of every call after the bus is gone.
    public static var disconnected: Failure {
        Failure(name: Name.disconnected, message: "The connection to the bus is closed")
    }
    static var noMemory: Failure { Failure(name: Name.noMemory, message: "Out of memory") }

    /// Makes a C call with a `DBusError`; frees that, and returns its content.
    static func catching<Result>(
        _ body: (UnsafeMutablePointer<DBusError>) -> Result
    ) -> (result: Result, failure: Failure?) {
        var error = cdbus_error_init()
        let result = body(&error)
        guard dbus_error_is_set(&error) != 0 else { return (result, nil) }
        let failure = Failure(
            name: error.name.map { String(cString: $0) } ?? Name.failed,
            message: error.message.map { String(cString: $0) } ?? "")
        dbus_error_free(&error)
        return (result, failure)
    }
}
