import DBus
import EventLoop
import SessionBus

/// The unit `sessiond.service`, as the systemd on a bus knows it. Reading it starts nothing.
struct ServiceUnit {
    /// What the unit's state means for the daemon.
    enum Condition {
        /// systemd has no such unit.
        case missing
        /// It was made impossible to start.
        case masked
        /// Its file cannot be used.
        case broken
        /// The daemon ended with an error, and systemd does not start it again.
        case failed
        /// It runs, or can be started.
        case usable
    }

    /// systemd's words: `loaded`, `masked`, `not-found`, `bad-setting` and others.
    let load: String
    /// `active`, `inactive`, `failed` and others.
    let active: String
    /// `enabled`, `disabled` and others; empty if unknown.
    let file: String
    /// Why it ended: `success`, `exit-code`, `start-limit-hit` and others.
    let result: String

    /// Nil if no systemd answers on the bus within `patience` seconds for each question.
    init?(on connection: Connection, patience: Double) {
        let systemd = "org.freedesktop.systemd1"
        func ask(_ path: String, _ interface: String, _ member: String, _ arguments: [Value]) -> Value? {
            guard
                let message = try? Message.methodCall(
                    destination: systemd, path: path, interface: interface, member: member)
            else { return nil }
            message.autoStart = false
            message.append(arguments)
            return try? connection.callAndWait(message, timeout: patience).first
        }
        let manager = "/org/freedesktop/systemd1"
        let found = ask(manager, systemd + ".Manager", "LoadUnit", [.string("sessiond.service")])
        guard let unit = found?.objectPathValue else { return nil }
        func property(_ name: String, of interface: String = ".Unit") -> String {
            ask(unit, StandardName.properties, "Get", [.string(systemd + interface), .string(name)])?
                .unwrapped.stringValue ?? ""
        }
        load = property("LoadState")
        active = property("ActiveState")
        file = property("UnitFileState")
        result = property("Result", of: ".Service")
    }

    var condition: Condition {
        switch (load, active) {
        case ("not-found", _): .missing
        case ("masked", _): .masked
        case ("loaded", "failed"): .failed
        case ("loaded", _): .usable
        default: .broken
        }
    }

    /// The command that helps; nil if there is nothing to mend.
    func remedy(system: Bool) -> String? {
        let systemctl = system ? "systemctl" : "systemctl --user"
        switch condition {
        case .masked: return "\(systemctl) unmask sessiond"
        case .broken: return "\(systemctl) cat sessiond"
        case .failed:
            // While systemd counts too many starts, it refuses another one.
            let first = result == "start-limit-hit" ? "\(systemctl) reset-failed sessiond && " : ""
            return first + "\(systemctl) restart sessiond"
        case .missing, .usable: return nil
        }
    }
}
