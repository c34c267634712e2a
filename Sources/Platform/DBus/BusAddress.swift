import Glibc

/// The address of a bus.
public enum BusAddress: Hashable, Sendable {
    case session
    case system
    /// The bus for which the program was started (`DBUS_STARTER_ADDRESS`); otherwise the session bus.
    case starter
    /// Such as `unix:path=/run/user/1000/bus`.
    case custom(String)

    /// Whether it is the system bus, which all users share; false for a custom address.
    public var isSystem: Bool {
        switch self {
        case .system: true
        case .starter: Self.variable("DBUS_STARTER_BUS_TYPE") == "system"
        case .session, .custom: false
        }
    }

    /// For messages: every bus except the system bus is called a session bus.
    public var name: String { isSystem ? "system" : "session" }

    /// The environment by which a started program finds this bus as ``starter``; empty for the session bus, which it
    /// finds itself.
    public var starterEnvironment: [String: String] {
        guard isSystem else { return [:] }
        // Without the variable, it is the address of the specification.
        let address = Self.variable("DBUS_SYSTEM_BUS_ADDRESS") ?? Self.systemAddress
        return ["DBUS_STARTER_BUS_TYPE": "system", "DBUS_STARTER_ADDRESS": address]
    }

    static let systemAddress = "unix:path=/var/run/dbus/system_bus_socket"

    private static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
}
