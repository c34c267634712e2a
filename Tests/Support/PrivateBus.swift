import Foundation

/// A message bus for one test: a real dbus-daemon that can activate only the given services.
public final class PrivateBus {
    /// The address, in the form of DBUS_SESSION_BUS_ADDRESS.
    public let address: String
    public let folder: PrivateFolder
    private let arguments: [String]
    private var daemon: Child

    /// Starts the bus and waits until it listens. `services` are folders with `*.service` files. `environment` has the
    /// variables of activated services in addition to PATH and HOME.
    public init(services: [String] = [], environment: [String: String] = [:]) throws {
        folder = try PrivateFolder()
        let path = folder.path + "/bus"
        address = "unix:path=\(path)"
        let folders = services.map { "<servicedir>\($0)</servicedir>" }.joined()
        // The limits of Debian's session.conf, which are higher than the built-in ones; and as many descriptors in one
        // message as other buses let by.
        let limits = [
            "max_incoming_bytes": 1_000_000_000, "max_incoming_unix_fds": 250_000_000,
            "max_outgoing_bytes": 1_000_000_000, "max_outgoing_unix_fds": 250_000_000,
            "max_message_size": 1_000_000_000, "service_start_timeout": 120_000, "auth_timeout": 240_000,
            "pending_fd_timeout": 150_000, "max_completed_connections": 100_000,
            "max_incomplete_connections": 10_000, "max_connections_per_user": 100_000,
            "max_pending_service_starts": 10_000, "max_names_per_connection": 50_000,
            "max_match_rules_per_connection": 50_000, "max_replies_per_connection": 50_000, "max_message_unix_fds": 253,
        ]
        .map { "<limit name=\"\($0.key)\">\($0.value)</limit>" }.joined()
        let configuration = try folder.file(
            "bus.conf",
            """
            <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
             "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
            <busconfig><type>session</type><keep_umask/><listen>\(address)</listen><auth>EXTERNAL</auth>\(folders)
            <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
            <allow own="*"/></policy>\(limits)</busconfig>
            """)
        arguments = ["--nofork", "--nopidfile", "--print-address", "--config-file=\(configuration)"]
        daemon = try PrivateBus.start(
            arguments, ["PATH": searchPath, "HOME": folder.path].merging(environment) { $1 })
    }

    private static func start(_ arguments: [String], _ environment: [String: String]) throws -> Child {
        let daemon = try Child("dbus-daemon", arguments, environment: environment)
        guard daemon.line(where: { $0.hasPrefix("unix:") }) != nil else {
            throw SupportError("dbus-daemon did not start: \(daemon.errors)")
        }
        return daemon
    }

    public var processID: Int32 { daemon.processID }

    /// The variables with which a program finds this bus. It is both the session bus and the system bus, so that the
    /// program never uses the real ones.
    public var environment: [String: String] {
        ["DBUS_SESSION_BUS_ADDRESS": address, "DBUS_SYSTEM_BUS_ADDRESS": address]
    }

    public func kill() { daemon.kill() }
    public func suspend() { daemon.suspend() }
    public func resume() { daemon.resume() }
}

/// PATH for children that get no other environment.
let searchPath = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"

/// The folder in which Scripts/setup unpacks the sound servers that it does not install.
let unpackedServers = repository.appendingPathComponent(".build/servers/bin").path
