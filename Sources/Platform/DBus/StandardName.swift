/// Names of the D-Bus specification.
public enum StandardName {
    /// The bus itself, as a name and as its interface.
    public static let bus = "org.freedesktop.DBus"
    /// The bus's object.
    public static let busPath = "/org/freedesktop/DBus"
    public static let properties = "org.freedesktop.DBus.Properties"
    static let localInterface = "org.freedesktop.DBus.Local"
    public static let introspectable = "org.freedesktop.DBus.Introspectable"
    static let peer = "org.freedesktop.DBus.Peer"
    static let objectManager = "org.freedesktop.DBus.ObjectManager"
}
