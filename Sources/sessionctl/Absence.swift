import DBus
import EventLoop
import Installation
import SessionBus

/// Why no daemon answers: its process is stopped, its settings are refused, or systemd may not start it.
///
/// Looked up only after a call has failed. The settings and the unit count only while nobody owns the daemon's name: a
/// daemon that runs keeps the settings that it has read.
enum Absence {
    /// Seconds in which the bus must answer.
    private static let patience = 1.0

    /// The cause and what to do, or nil if the failure has another cause.
    static func reason(for failure: Failure, on connection: Connection, system: Bool) -> Complaint? {
        guard canMeanAbsence(failure) else { return nil }
        let systemctl = system ? "systemctl" : "systemctl --user"
        if failure.name == masked {
            return .unreachable("sessiond.service is masked, so nothing can start it: \(systemctl) unmask sessiond")
        }
        let owner = try? connection.askBusAndWait("NameHasOwner", [.string(BusName.service)], timeout: patience)
        guard let isOwned = owner?.first?.boolValue else { return nil }
        if isOwned { return isSilence(failure) ? silence(on: connection) : nil }
        if let error = SettingsFiles(isSystem: system).errors.first {
            return .unreachable("sessiond does not start, because of its settings: \(error.message.escaped)")
        }
        let unit = ServiceUnit(on: connection, patience: patience)
        switch unit?.condition {
        case .masked:
            return .unreachable("sessiond.service is masked, so nothing can start it: \(systemctl) unmask sessiond")
        case .failed:
            return .unreachable("sessiond.service has failed: \(unit?.remedy(system: system) ?? "sessionctl doctor")")
        case .missing, .broken, .usable, nil:
            // The bus waited for a start that never came.
            return isSilence(failure) ? .notRunning(system: system) : nil
        }
    }

    /// The service has not answered; nil if it does now, so that another program was silent.
    private static func silence(on connection: Connection) -> Complaint? {
        let answer = Result { () throws(Failure) -> [Value] in
            try connection.callAndWait(
                BusName.service, ObjectPath.root, "org.freedesktop.DBus.Peer", "Ping", [], timeout: patience)
        }
        guard case .failure(let failure) = answer, isSilence(failure) else { return nil }
        let credentials = try? connection.credentialsAndWait(of: BusName.service, timeout: patience)
        return .unreachable(SilentService(process: credentials?.processID).sentence)
    }

    /// How systemd says it to the bus.
    private static let masked = "org.freedesktop.systemd1.UnitMasked"

    private static func isSilence(_ failure: Failure) -> Bool {
        [Failure.Name.noReply, "org.freedesktop.DBus.Error.Timeout", "org.freedesktop.DBus.Error.TimedOut"]
            .contains(failure.name)
    }

    /// A daemon that cannot start is seen as a missing name, a child that ended, or an answer that never comes.
    private static func canMeanAbsence(_ failure: Failure) -> Bool {
        failure.isDaemonMissing
            || isSilence(failure) || failure.name == masked
            || failure.name.hasPrefix("org.freedesktop.DBus.Error.Spawn")
            || failure.name.hasPrefix("org.freedesktop.systemd1.")
    }
}
