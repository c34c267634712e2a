import DBus
import Foundation
import Fuzzing
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// Who may take the classes call and alert; who asks is what the kernel says (contract §6, [privileges]).
@Suite struct PrivilegeTests {
    private static let missing = "org.sessiond1.Error.MissingEntitlement"
    private static let python = "/usr/bin/python3"

    @Test(arguments: ["call", "alert"]) func anyone_meansEveryUnsandboxedProcess(sessionClass: String) throws {
        let stage = try DaemonStage(settings: "[privileges]\n\(sessionClass) = any\n")
        let client = try stage.foreigner()
        #expect(client.create("A", class: sessionClass).hasPrefix("/org/"))
    }

    @Test(arguments: ["call", "alert"]) func emptyList_meansNobody(sessionClass: String) throws {
        let other = sessionClass == "call" ? "alert" : "call"
        let stage = try DaemonStage(settings: "[privileges]\n\(sessionClass) =\n")
        let client = try stage.foreigner()
        #expect(client.create("A", class: sessionClass) == Self.missing)
        #expect(client.create("A", class: other).hasPrefix("/org/"), "each class has its own list")
        #expect(client.create("A").hasPrefix("/org/"), "an app needs nobody's leave")
    }

    @Test func listedExecutable_isAllowedAndNoOtherIs() throws {
        let stage = try DaemonStage(
            settings: "[privileges]\ncall = /usr/bin/phone;\(Self.python)\nalert = /usr/bin/phone\n")
        let client = try stage.foreigner()
        // Debian's python3 is a link to the real program: the list may name either.
        #expect(client.create("A", class: "call").hasPrefix("/org/"))
        #expect(client.create("A", class: "alert") == Self.missing)
        let ours = try stage.client()
        #expect(throws: Failure.self) { try ours.session("B", class: "call") }
    }

    @Test func listChangedByReload_countsFromThenOn() throws {
        let stage = try DaemonStage(settings: "[privileges]\ncall =\n")
        let client = try stage.foreigner()
        #expect(client.create("A", class: "call") == Self.missing)
        let path = stage.bus.folder.path + "/sessiond.conf"
        try Data("[privileges]\ncall = any\n".utf8).write(to: URL(fileURLWithPath: path))
        stage.daemon.signal(SIGHUP)
        #expect(eventually { client.create("A", class: "call").hasPrefix("/org/") })
    }

    @Test(.enabled(if: getuid() == 0, "chroot is root's")) func sandboxedProcess_isItsApplicationWhateverItRuns() throws
    {
        let root = try PrivateFolder()
        try root.file(".flatpak-info", "[Application]\nname=org.example.Phone\nruntime=runtime/x\n")
        let any = try DaemonStage(settings: "[privileges]\ncall = any\n")
        let first = try any.foreigner()
        #expect(first.ask("chroot \(root.path)") == "ok")
        #expect(first.create("A", class: "call") == Self.missing, "any is for those outside of sandboxes")
        #expect(first.create("A").hasPrefix("/org/"))

        let executable = try DaemonStage(settings: "[privileges]\ncall = \(Self.python)\n")
        let second = try executable.foreigner()
        #expect(second.ask("chroot \(root.path)") == "ok")
        #expect(second.create("A", class: "call") == Self.missing, "its executable is the sandbox's own affair")

        let listed = try DaemonStage(settings: "[privileges]\ncall = org.example.Phone\n")
        let third = try listed.foreigner()
        #expect(third.create("A", class: "call") == Self.missing, "not in that sandbox yet")
        #expect(third.ask("chroot \(root.path)") == "ok")
        #expect(third.create("A", class: "call").hasPrefix("/org/"))
    }

    @Test(.enabled(if: getuid() == 0, "several users are root's to be"))
    func sandboxThatCannotBeSeen_isNotTakenForNone() throws {
        let root = try PrivateFolder()
        try root.file(".flatpak-info", "[Application]\nname=org.example.Game\n")
        #expect(chmod(root.path, 0o755) == 0)
        let nobody = try SystemStage(settings: "[privileges]\ncall = any\n", as: "nobody")
        let visible = try nobody.client(as: "nobody")
        #expect(visible.create("A", class: "call").hasPrefix("/org/"))
        let hidden = try nobody.client(as: "nobody")
        #expect(hidden.ask("hide") == "ok")
        #expect(hidden.create("A", class: "call") == Self.missing, "nobody may look who it is")
        #expect(hidden.create("A").hasPrefix("/org/"))
    }
}

/// The daemon on a system bus with the policy that is installed with it.
@Suite(.enabled(if: getuid() == 0, "several users are root's to be")) struct PrivilegeSystemBusTests {
    private static let denied = "org.freedesktop.DBus.Error.AccessDenied"

    @Test func name_isOwnedByRootAndNobodyElse() throws {
        let stage = try SystemStage()
        #expect(try stage.client(as: "nobody").ask("own") == Self.denied)
        let other = try Child(
            "setpriv", ["--reuid=nobody", "--clear-groups", try builtProduct(named: "sessiond"), "--system"],
            environment: stage.environment)
        #expect(other.wait() == .code(1))
        let lines = other.errors.filter { !$0.isEmpty }
        #expect(lines.count == 1, "\(lines)")
        #expect(lines.first?.contains("cannot be owned") == true, "\(lines)")
    }

    @Test func machineWideSwitches_areForRootAndTheAudioGroup() throws {
        let stage = try SystemStage()
        let root = try stage.client(as: "root")
        let nobody = try stage.client(as: "nobody")
        let audio = try stage.client(as: "nobody", group: "audio")
        let session = nobody.create("A")
        #expect(session.hasPrefix("/org/sessiond1/session/"))
        for call in ["silent on", "locked on", "foreground \(session) off", "silent off", "locked off"] {
            #expect(nobody.ask(call) == Self.denied, "\(call)")
            #expect(root.ask(call) == "ok", "\(call)")
            #expect(audio.ask(call) == "ok", "\(call)")
        }
        #expect(nobody.ask("list") == "ok 1", "everybody may read")
        #expect(nobody.ask("open player file:///x") == Self.denied, "a plugin would run as the daemon")
    }

    @Test func session_isItsOwnersAloneEvenForRoot() throws {
        let stage = try SystemStage()
        let nobody = try stage.client(as: "nobody")
        let session = nobody.create("A")
        for user in ["root", "nobody"] {
            let other = try stage.client(as: user)
            for call in ["activate", "deactivate", "close"] {
                #expect(other.ask("\(call) \(session)") == "org.sessiond1.Error.NotOwner", "\(user) \(call)")
            }
        }
        #expect(nobody.ask("activate \(session)") == "ok")
    }

    @Test func processOfAnotherUser_isNotActedFor() throws {
        let stage = try SystemStage()
        let (nobody, root) = (try stage.client(as: "nobody"), try stage.client(as: "root"))
        let (theirs, ours) = (nobody.process.processID, root.process.processID)
        #expect(nobody.ask("create A playback - app \(ours)") == "org.sessiond1.Error.MissingEntitlement")
        #expect(root.ask("create A playback - app \(theirs)") == "org.sessiond1.Error.MissingEntitlement")
        #expect(nobody.ask("create A playback - app 1") == "org.sessiond1.Error.MissingEntitlement")
        let second = try stage.client(as: "nobody")
        #expect(nobody.ask("create A playback - app \(second.process.processID)").hasPrefix("ok /org/"))
    }

    @Test func clientOfAnotherUserKilled_theOthersAreReleased() throws {
        let stage = try SystemStage()
        let (nobody, root) = (try stage.client(as: "nobody"), try stage.client(as: "root"))
        let (music, other) = (nobody.create("Music"), root.create("Other"))
        #expect(nobody.ask("activate \(music)") == "ok")
        #expect(root.ask("activate \(other)") == "ok")
        root.process.kill()
        #expect(eventually { nobody.ask("list") == "ok 1" })
        #expect(nobody.ask("activate \(music)") == "ok")
    }
}

/// The real daemon with `--system` on a private bus of that kind. Other users are real ones: this needs root.
final class SystemStage {
    let folder: PrivateFolder
    let environment: [String: String]
    let daemon: Child
    private let bus: Child

    /// - Parameters:
    ///   - user: whom the daemon runs as. Another than root may own the name as if it were in the policy.
    ///   - more: what everybody's environment has beside the usual.
    init(
        settings: String? = nil, as user: String = "root", pulse: (any PrivateServer)? = nil,
        environment more: [String: String] = [:]
    ) throws {
        guard getuid() == 0 else { throw SupportError("clients of several users can be started by root alone") }
        folder = try PrivateFolder()
        chmod(folder.path, 0o755)
        let policy = repository.appendingPathComponent("data/dbus-1/system.d/org.sessiond1.conf").path
        let address = "unix:path=\(folder.path)/bus"
        let own = user == "root" ? "" : "<policy user=\"\(user)\"><allow own=\"org.sessiond1\"/></policy>"
        // The defaults of Debian's system.conf.
        let configuration = try folder.file(
            "system.conf",
            """
            <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
             "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
            <busconfig><type>system</type><listen>\(address)</listen><auth>EXTERNAL</auth>
            <policy context="default"><allow user="*"/><deny own="*"/><deny send_type="method_call"/>
            <allow send_type="signal"/><allow send_requested_reply="true" send_type="method_return"/>
            <allow send_requested_reply="true" send_type="error"/><allow receive_type="method_call"/>
            <allow receive_type="method_return"/><allow receive_type="error"/><allow receive_type="signal"/>
            <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus"/>
            <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Introspectable"/>
            <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Properties"/>
            </policy><include>\(policy)</include>\(own)</busconfig>
            """)
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/sbin:/usr/bin:/sbin:/bin"
        bus = try Child(
            "dbus-daemon", ["--nofork", "--nopidfile", "--print-address", "--config-file=\(configuration)"],
            environment: ["PATH": path])
        guard bus.line(where: { $0.hasPrefix("unix:") }) != nil else {
            throw SupportError("dbus-daemon did not start: \(bus.errors)")
        }
        let home = try folder.folder("home")
        chmod(home, 0o777)
        let common = [
            "PATH": path, "HOME": home, "XDG_RUNTIME_DIR": home, "DBUS_SYSTEM_BUS_ADDRESS": address,
            // The clients' word for the bus that is meant.
            "DBUS_SESSION_BUS_ADDRESS": address, "PULSE_SERVER": pulse?.serverString ?? "unix:\(folder.path)/absent",
        ]
        environment = common.merging(more) { $1 }
        // Its socket lies in folders that the server keeps to itself.
        for folder in ["", "/run", "/run/pulse"] { if let pulse { chmod(pulse.folder.path + folder, 0o755) } }
        var words = ["setpriv", "--reuid=\(user)", "--clear-groups", try builtProduct(named: "sessiond"), "--system"]
        if let settings {
            let file = try folder.file("sessiond.conf", settings)
            chmod(file, 0o644)
            words += ["--config", file]
        }
        // It has no session bus, and neither have the plugins that it starts.
        let daemonEnvironment = environment.merging(["DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere"]) { $1 }
        daemon = try Child(words[0], Array(words.dropFirst()), environment: daemonEnvironment)
        guard daemon.line(where: { $0.contains("serves org.sessiond1") }) != nil else {
            throw SupportError("sessiond --system did not come up: \(daemon.errors) \(bus.errors)")
        }
    }

    func client(as user: String, group: String? = nil) throws -> Foreigner {
        let groups = group.map { "--groups=\($0)" } ?? "--clear-groups"
        return try Foreigner(environment, ["setpriv", "--reuid=\(user)", groups])
    }
}
