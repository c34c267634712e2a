public import DBus
import PluginAPI

/// The requests of the exported plugins interface to the daemon, on the loop's thread.
public protocol PluginService: AnyObject {
    /// Each an a{sv}: id, name, kind, version, schemes, mime-types, interface, state, message, bus-name, busy.
    var plugins: [Value] { get }
    /// Answers with the bus name and the object's path, when the plugin is ready.
    func open(
        kind: String, uri: String, caller: String,
        _ reply: @escaping (Result<(busName: String, path: String), Failure>) -> Void)
    /// Registers the caller as that plugin, until it leaves the bus. Fails if `info` is invalid, if the caller may not
    /// be that plugin, or if another process is.
    func register(
        _ id: String, _ info: [String: Value], caller: String, _ reply: @escaping (Result<Void, Failure>) -> Void)
}

/// `/org/sessiond1`, `org.sessiond1.Plugins`: answers from a ``PluginService``.
public final class PluginsObject {
    private let service: any PluginService
    private let objects: ObjectTable

    /// Exports itself; exists while the object table keeps it.
    public init(_ service: any PluginService, on objects: ObjectTable) {
        self.service = service
        self.objects = objects
        objects.export(self, at: ObjectPath.root, interfaces: [PluginsObject.interface])
    }

    /// A plugin started, stopped or crashed; the message gives the reason, or is empty.
    public func stateChanged(_ id: String, _ state: String, _ message: String) {
        objects.emit(
            path: ObjectPath.root, interface: BusName.plugins, member: "StateChanged",
            [.string(id), .string(state), .string(message)])
    }

    private static let interface = Interface<PluginsObject>(
        name: BusName.plugins, introspection: InterfaceXML.plugins,
        methods: [
            .init("List", "") { object, call in call.reply([.array(of: "a{sv}", object.service.plugins)]) },
            .init("Open", "ss") { object, call in
                let kind = call.arguments[0].stringValue ?? ""
                object.service.open(kind: kind, uri: call.arguments[1].stringValue ?? "", caller: call.sender) {
                    result in
                    switch result {
                    case .success(let place): call.reply([.string(place.busName), .objectPath(place.path)])
                    case .failure(let failure): call.fail(failure)
                    }
                }
            },
            .init("Register", "sa{sv}") { object, call in
                object.service.register(
                    call.arguments[0].stringValue ?? "", call.arguments[1].asProperties ?? [:], caller: call.sender
                ) { result in
                    switch result {
                    case .success: call.reply()
                    case .failure(let failure): call.fail(failure)
                    }
                }
            },
        ])
}
