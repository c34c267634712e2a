import Glibc

/// Where a bus is.
public enum BusAddress: Hashable, Sendable {
    case session
    case system
    /// The one that the program was started for (`DBUS_STARTER_ADDRESS`); the session bus where it was for none.
    case starter
    /// Such as `unix:path=/run/user/1000/bus`.
    case custom(String)

    /// Whether it is the one of the whole machine, which all users share. One of a custom address is not.
    public var isSystem: Bool {
        switch self {
        case .system: true
        case .starter: Self.variable("DBUS_STARTER_BUS_TYPE") == "system"
        case .session, .custom: false
        }
    }

    /// For messages: a bus that is not the machine's is somebody's session.
    public var name: String { isSystem ? "system" : "session" }

    /// What a program that is started for this bus finds it by as ``starter``; nothing for the session bus, which it finds
    /// by itself.
    public var starterEnvironment: [String: String] {
        guard isSystem else { return [:] }
        // Unless the environment says so, it is where the specification has it.
        let address = Self.variable("DBUS_SYSTEM_BUS_ADDRESS") ?? Self.systemAddress
        return ["DBUS_STARTER_BUS_TYPE": "system", "DBUS_STARTER_ADDRESS": address]
    }

    static let systemAddress = "unix:path=/var/run/dbus/system_bus_socket"

    private static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
}
