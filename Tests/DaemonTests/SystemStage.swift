import DBus
import Foundation
import TestSupport

/// The real daemon with `--system` on a private system bus. The clients run as real users, so this needs root.
final class SystemStage {
    let folder: PrivateFolder
    let environment: [String: String]
    let daemon: Child
    private let bus: Child

    /// The program of the bus: dbus-daemon or dbus-broker.
    enum Kind: CaseIterable {
        case daemon, broker

        static let installed: [Kind] = isBrokerInstalled ? [.daemon, .broker] : [.daemon]
        // dbus-broker-launch starts dbus-broker from this path.
        static let isBrokerInstalled = ["dbus-broker", "dbus-broker-launch"].allSatisfy { name in
            access("/usr/bin/\(name)", X_OK) == 0
        }
    }

    /// - Parameters:
    ///   - user: The user of the daemon. If it is not root, the bus policy lets this user own the name.
    ///   - capability: A capability that the daemon gets and can pass on to children (capabilities(7), named as in setpriv).
    ///   - incomingBytes: How much the bus keeps of what one connection has sent; nil: its default.
    ///   - isOpen: Whether the bus policy lets every message to the daemon pass.
    ///   - more: Additional environment variables of the daemon and the clients.
    init(
        settings: String? = nil, as user: String = "root", capability: String? = nil, pulse: (any PrivateServer)? = nil,
        on kind: Kind = .daemon, incomingBytes: Int? = nil, isOpen: Bool = false,
        environment more: [String: String] = [:]
    ) throws {
        guard getuid() == 0 else { throw SupportError("only root can start clients of several users") }
        folder = try PrivateFolder()
        chmod(folder.path, 0o755)
        let policy = repository.appendingPathComponent("data/dbus-1/system.d/org.sessiond1.conf").path
        let address = "unix:path=\(folder.path)/bus"
        let own = user == "root" ? "" : "<policy user=\"\(user)\"><allow own=\"org.sessiond1\"/></policy>"
        let open =
            isOpen ? "<policy context=\"default\"><allow send_destination=\"org.sessiond1\"/></policy>" : ""
        let limit = incomingBytes.map { "<limit name=\"max_incoming_bytes\">\($0)</limit>" } ?? ""
        let listen = kind == .daemon ? "<listen>\(address)</listen>" : ""
        // The defaults of Debian's system.conf.
        let configuration = try folder.file(
            "system.conf",
            """
            <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
             "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
            <busconfig><type>system</type>\(listen)<auth>EXTERNAL</auth>
            <policy context="default"><allow user="*"/><deny own="*"/><deny send_type="method_call"/>
            <allow send_type="signal"/><allow send_requested_reply="true" send_type="method_return"/>
            <allow send_requested_reply="true" send_type="error"/><allow receive_type="method_call"/>
            <allow receive_type="method_return"/><allow receive_type="error"/><allow receive_type="signal"/>
            <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus"/>
            <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Introspectable"/>
            <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Properties"/>
            </policy><include>\(policy)</include>\(own)\(open)\(limit)</busconfig>
            """)
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/sbin:/usr/bin:/sbin:/bin"
        switch kind {
        case .daemon:
            bus = try Child(
                "dbus-daemon", ["--nofork", "--nopidfile", "--print-address", "--config-file=\(configuration)"],
                environment: ["PATH": path])
        case .broker:
            bus = try Child(
                "unshare", ["--mount", "--propagation", "unchanged", "python3", "-c", SystemStage.broker],
                environment: ["PATH": path, "ADDRESS": address, "CONFIGURATION": configuration])
        }
        guard bus.line(where: { $0.hasPrefix("unix:") }) != nil else {
            throw SupportError("the bus did not start: \(bus.errors)")
        }
        let home = try folder.folder("home")
        chmod(home, 0o777)
        let common = [
            "PATH": path, "HOME": home, "XDG_RUNTIME_DIR": home, "DBUS_SYSTEM_BUS_ADDRESS": address,
            // The clients of the tests use this variable.
            "DBUS_SESSION_BUS_ADDRESS": address, "PULSE_SERVER": pulse?.serverString ?? "unix:\(folder.path)/absent",
        ]
        environment = common.merging(more) { $1 }
        // The socket of the sound server is in folders that only its own user may enter.
        for folder in ["", "/run", "/run/pulse"] { if let pulse { chmod(pulse.folder.path + folder, 0o755) } }
        var words = ["setpriv", "--reuid=\(user)", "--clear-groups"]
        if let capability { words += ["--inh-caps=+\(capability)", "--ambient-caps=+\(capability)"] }
        words += [try builtProduct(named: "sessiond"), "--system"]
        if let settings {
            let file = try folder.file("sessiond.conf", settings)
            chmod(file, 0o644)
            words += ["--config", file]
        }
        // The daemon and the plugins that it starts have no session bus.
        let daemonEnvironment = environment.merging(["DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere"]) { $1 }
        daemon = try Child(words[0], Array(words.dropFirst()), environment: daemonEnvironment)
        guard daemon.line(where: { $0.contains("serves org.sessiond1") }) != nil else {
            throw SupportError("sessiond --system did not start: \(daemon.errors) \(bus.errors)")
        }
    }

    func client(as user: String, group: String? = nil) throws -> Foreigner {
        let groups = group.map { "--groups=\($0)" } ?? "--clear-groups"
        return try Foreigner(environment, ["setpriv", "--reuid=\(user)", groups])
    }

    /// Does for dbus-broker what systemd does: provides a listening socket, a machine id and a journal.
    private static let broker = """
        import os, pathlib, socket, subprocess, sys
        # This fails in a chroot. It is not needed if the mounts are private already.
        if subprocess.run(['mount', '--make-rprivate', '/'], stderr=subprocess.DEVNULL).returncode:
            if 'shared:' in pathlib.Path('/proc/self/mountinfo').read_text(): sys.exit('mounts would be seen outside')
        subprocess.run(['mount', '-t', 'tmpfs', 'tmpfs', '/run'], check=True)
        os.makedirs('/run/systemd/journal')
        pathlib.Path('/run/machine-id').write_text('0123456789abcdef0123456789abcdef\\n')
        subprocess.run(['mount', '--bind', '/run/machine-id', '/etc/machine-id'], check=True)
        journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        journal.bind('/run/systemd/journal/socket')
        address = os.environ['ADDRESS']
        server = socket.socket(socket.AF_UNIX)
        server.bind(address.removeprefix('unix:path='))
        os.chmod(address.removeprefix('unix:path='), 0o666)
        server.listen(64)
        if os.fork() == 0:
            if server.fileno() == 3: server.set_inheritable(True)
            else: os.dup2(server.fileno(), 3, inheritable=True)
            os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()), DBUS_SYSTEM_BUS_ADDRESS=address)
            os.execvp('dbus-broker-launch', ['dbus-broker-launch', '--scope', 'system', '--config-file',
                                             os.environ['CONFIGURATION']])
        server.close()
        while b'MESSAGE=Ready' not in journal.recv(65536): pass
        print(address, flush=True)
        while True: journal.recv(65536)
        """
}
