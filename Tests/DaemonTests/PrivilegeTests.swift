import DBus
import Foundation
import Fuzzing
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// The programs that may use the classes call and alert. The kernel, not the client, says which program a client is
/// ([privileges]).
@Suite struct PrivilegeTests {
    private static let missing = "org.sessiond1.Error.MissingEntitlement"
    private static let python = "/usr/bin/python3"

    @Test(arguments: ["call", "alert"])
    func anyInTheList_allowsEveryProcessOutsideOfSandboxes(sessionClass: String) throws {
        let stage = try DaemonStage(settings: "[privileges]\n\(sessionClass) = any\n")
        let client = try stage.foreigner()
        #expect(client.create("A", class: sessionClass).hasPrefix("/org/"))
    }

    @Test(arguments: ["call", "alert"]) func emptyList_allowsNoProcess(sessionClass: String) throws {
        let other = sessionClass == "call" ? "alert" : "call"
        let stage = try DaemonStage(settings: "[privileges]\n\(sessionClass) =\n")
        let client = try stage.foreigner()
        #expect(client.create("A", class: sessionClass) == Self.missing)
        #expect(client.create("A", class: other).hasPrefix("/org/"), "each class has its own list")
        #expect(client.create("A").hasPrefix("/org/"), "the class app needs no privilege")
    }

    @Test func listedExecutable_isAllowedAndOthersAreRefused() throws {
        let stage = try DaemonStage(
            settings: "[privileges]\ncall = /usr/bin/phone;\(Self.python)\nalert = /usr/bin/phone\n")
        let client = try stage.foreigner()
        // Debian's python3 is a link to the real program. The list may name the link or the program.
        #expect(client.create("A", class: "call").hasPrefix("/org/"))
        #expect(client.create("A", class: "alert") == Self.missing)
        let ours = try stage.client()
        #expect(throws: Failure.self) { try ours.session("B", class: "call") }
    }

    @Test func listChangedByReload_appliesToNewSessions() throws {
        let stage = try DaemonStage(settings: "[privileges]\ncall =\n")
        let client = try stage.foreigner()
        #expect(client.create("A", class: "call") == Self.missing)
        let path = stage.bus.folder.path + "/sessiond.conf"
        try Data("[privileges]\ncall = any\n".utf8).write(to: URL(fileURLWithPath: path))
        stage.daemon.signal(SIGHUP)
        #expect(eventually { client.create("A", class: "call").hasPrefix("/org/") })
    }

    @Test(.enabled(if: getuid() == 0, "only root can use chroot"))
    func sandboxedProcess_isIdentifiedByItsApplication() throws {
        let root = try PrivateFolder()
        try root.file(".flatpak-info", "[Application]\nname=org.example.Phone\nruntime=runtime/x\n")
        let any = try DaemonStage(settings: "[privileges]\ncall = any\n")
        let first = try any.foreigner()
        #expect(first.ask("chroot \(root.path)") == "ok")
        #expect(first.create("A", class: "call") == Self.missing, "'any' means programs outside of sandboxes")
        #expect(first.create("A").hasPrefix("/org/"))

        let executable = try DaemonStage(settings: "[privileges]\ncall = \(Self.python)\n")
        let second = try executable.foreigner()
        #expect(second.ask("chroot \(root.path)") == "ok")
        #expect(second.create("A", class: "call") == Self.missing, "paths in a sandbox do not count")

        let listed = try DaemonStage(settings: "[privileges]\ncall = org.example.Phone\n")
        let third = try listed.foreigner()
        #expect(third.create("A", class: "call") == Self.missing, "the client is not in the sandbox yet")
        #expect(third.ask("chroot \(root.path)") == "ok")
        #expect(third.create("A", class: "call").hasPrefix("/org/"))
    }

    /// Programs may choose the names of their control groups.
    @Test(.enabled(if: getuid() == 0 && unifiedGroups != nil, "only root can make control groups"))
    func controlGroupOfASnap_takesRightsAndGivesNone() throws {
        let group = try #require(Self.unifiedGroups) + "/snap.calls.calls-\(getpid()).scope"
        #expect(mkdir(group, 0o755) == 0)
        for (settings, isSystem) in [("calls", false), ("calls", true), ("any", false)] {
            let settings = "[privileges]\ncall = \(settings)\n"
            let session = try isSystem ? nil : DaemonStage(settings: settings)
            let system = try isSystem ? SystemStage(settings: settings) : nil
            let found = try session?.foreigner() ?? system?.client(as: "nobody")
            let client = try #require(found)
            try "\(client.process.processID)".write(
                toFile: group + "/cgroup.procs", atomically: false, encoding: .utf8)
            #expect(client.create("A", class: "call") == Self.missing, "\(settings)")
            #expect(client.ask("silent on") == "org.freedesktop.DBus.Error.AccessDenied")
            #expect(client.create("A").hasPrefix("/org/"))
        }
        #expect(eventually { rmdir(group) == 0 })
    }

    /// Where control groups of version 2 are.
    private static let unifiedGroups: String? = {
        let mounts = (try? String(contentsOfFile: "/proc/self/mounts", encoding: .utf8)) ?? ""
        let fields = mounts.split(separator: "\n").map { $0.split(separator: " ") }
        return fields.first { $0.count > 2 && $0[2] == "cgroup2" && access(String($0[1]), W_OK) == 0 }.map {
            String($0[1])
        }
    }()

    @Test(.enabled(if: getuid() == 0, "only root can run programs as several users"))
    func hiddenSandbox_isNotTakenForNoSandbox() throws {
        let root = try PrivateFolder()
        try root.file(".flatpak-info", "[Application]\nname=org.example.Game\n")
        #expect(chmod(root.path, 0o755) == 0)
        let nobody = try SystemStage(settings: "[privileges]\ncall = any\n", as: "nobody")
        let visible = try nobody.client(as: "nobody")
        #expect(visible.create("A", class: "call").hasPrefix("/org/"))
        let hidden = try nobody.client(as: "nobody")
        #expect(hidden.ask("hide") == "ok")
        #expect(hidden.create("A", class: "call") == Self.missing, "the daemon cannot see which program it is")
        #expect(hidden.create("A").hasPrefix("/org/"))
    }
}

/// The daemon on a system bus with the policy that is installed with it.
@Suite(.enabled(if: getuid() == 0, "only root can run programs as several users")) struct PrivilegeSystemBusTests {
    private static let denied = "org.freedesktop.DBus.Error.AccessDenied"

    @Test func busName_isOwnedByRootOnly() throws {
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
        #expect(nobody.ask("list") == "ok 1", "any user may read")
        let history = try Child.run(
            "setpriv",
            [
                "--reuid=nobody", "--clear-groups", try builtProduct(named: "sessionctl"), "history", "--all",
                "--system",
            ], environment: stage.environment)
        #expect(history.contains("silent switch"), "\(history)")
        #expect(nobody.ask("open player file:///x") == Self.denied, "a plugin would run as the daemon's user")
    }

    @Test func session_isChangedByItsOwnerOnly() throws {
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

    @Test func sessionForAProcessOfAnotherUser_isRefused() throws {
        let stage = try SystemStage()
        let (nobody, root) = (try stage.client(as: "nobody"), try stage.client(as: "root"))
        let (theirs, ours) = (nobody.process.processID, root.process.processID)
        #expect(nobody.ask("create A playback - app \(ours)") == "org.sessiond1.Error.MissingEntitlement")
        #expect(root.ask("create A playback - app \(theirs)") == "org.sessiond1.Error.MissingEntitlement")
        #expect(nobody.ask("create A playback - app 1") == "org.sessiond1.Error.MissingEntitlement")
        let second = try stage.client(as: "nobody")
        #expect(nobody.ask("create A playback - app \(second.process.processID)").hasPrefix("ok /org/"))
    }

    @Test func clientOfAnotherUserIsKilled_othersAreReleased() throws {
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
