import DBus
import EventLoop
import SessionBus
import TestSupport

/// A `sessiond-player`: its process, its player on the bus, and the signals that its session has received.
final class Player {
    let name: String
    let process: Child
    let busName: String
    /// The signals that its session has received, in order.
    private(set) var told: [SessionEvent] = []
    private let stage: Stage
    private var proxy: SessionProxy?

    init(_ name: String, _ file: String, arguments: [String] = [], on stage: Stage) throws {
        self.name = name
        self.stage = stage
        process = try Child(
            try builtProduct(named: "sessiond-player"), ["--name", name] + arguments + ["file://" + file],
            environment: stage.environment)
        busName = "org.mpris.MediaPlayer2.sessiond_player.instance\(process.processID)"
        try listen()
    }

    /// The player's position in seconds.
    func position() throws -> Double {
        let values = try stage.connection.callAndWait(
            busName, ObjectPath.player, "org.freedesktop.DBus.Properties", "Get",
            [.string(BusName.player), .string("Position")])
        return values.first?.unwrapped.doubleValue ?? 0
    }

    func state() throws -> String {
        let values = try stage.connection.callAndWait(
            busName, ObjectPath.player, "org.freedesktop.DBus.Properties", "Get",
            [.string(BusName.player), .string("State")])
        return values.first?.unwrapped.stringValue ?? ""
    }

    /// Waits for the session of its process, and subscribes to the session's signals.
    private func listen() throws {
        let found = eventually(timeout: 10) {
            let listed = try? stage.connection.callAndWait(
                BusName.service, ObjectPath.root, BusName.manager, "ListSessions", [])
            let own = listed?.first?.arrayValue?.compactMap(\.asProperties).first {
                $0["ProcessId"]?.uint32Value == UInt32(process.processID)
            }
            guard let path = own?["path"]?.objectPathValue else { return false }
            proxy = SessionProxy(path, on: stage.connection) { [weak self] in self?.told.append($0) }
            return true
        }
        guard found else { throw SupportError("\(name) has no session: \(process.errors)") }
    }
}
