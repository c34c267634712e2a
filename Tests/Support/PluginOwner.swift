public import DBus
public import PluginAPI

extension Connection {
    /// Waits until the plugin owns the name of its instance.
    /// - Returns: its unique name on the bus.
    public func owner(of kind: PluginKind, _ plugin: Child) throws -> String {
        let name = "\(kind.busName).instance\(plugin.processID)"
        var owner: String?
        _ = eventually(timeout: 30) {
            owner = (try? askBusAndWait("GetNameOwner", [.string(name)], timeout: 5))?.first?.stringValue
            return owner != nil || !plugin.isRunning
        }
        guard let owner else { throw SupportError("there is no \(name): \(plugin.errors)") }
        return owner
    }
}
