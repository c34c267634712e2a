import CDBus
import Glibc

/// libdbus's own validators, made safe for strings that contain NUL.
enum Syntax {
    private static func check(
        _ text: String, _ validate: (UnsafePointer<CChar>, UnsafeMutablePointer<DBusError>?) -> dbus_bool_t
    ) -> Bool {
        text.withCString { strlen($0) == text.utf8.count && validate($0, nil) != 0 }
    }

    static func isPath(_ text: String) -> Bool { check(text, dbus_validate_path) }
    static func isInterface(_ text: String) -> Bool { check(text, dbus_validate_interface) }
    static func isMember(_ text: String) -> Bool { check(text, dbus_validate_member) }
    static func isErrorName(_ text: String) -> Bool { check(text, dbus_validate_error_name) }
    static func isBusName(_ text: String) -> Bool { check(text, dbus_validate_bus_name) }

    /// Any number of complete types, none included.
    static func isSignature(_ text: String) -> Bool { check(text, dbus_signature_validate) }

    /// One complete type, as a variant contains.
    static func isType(_ text: String) -> Bool {
        isLetter(text) || check(text, dbus_signature_validate_single)
    }

    /// One complete type that an array may contain: also a dictionary entry.
    static func isElement(_ text: String) -> Bool {
        isLetter(text) || check("a" + text, dbus_signature_validate_single)
    }

    /// The common case, without calling libdbus.
    private static func isLetter(_ text: String) -> Bool {
        guard text.utf8.count == 1, let code = text.utf8.first else { return false }
        return TypeCode.isBasic(code) || code == TypeCode.variant
    }

    /// For texts of errors: shortened to one or two lines.
    static func shortened(_ text: String) -> String {
        text.utf8.count <= 255 ? text : String(decoding: text.utf8.prefix(255), as: UTF8.self) + "…"
    }
}
