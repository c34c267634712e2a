import Glibc
import Processes
import Testing

/// Finds the application of a process in the formats of systemd, snapd and Flatpak: control groups, security labels and
/// the file `.flatpak-info`.
@Suite struct ConfinementTests {
    private static let user = "/user.slice/user-1000.slice/user@1000.service"
    private static let uuid = "54b38acc-3ba2-4c6d-b284-7ac07e1159e5"

    @Test(
        arguments: [
            ("0::\(user)/app.slice/snap.firefox.firefox-\(uuid).scope\n", "firefox"),
            ("0::\(user)/apps.slice/snap.foo.bar-baz.\(uuid).scope\n", "foo"),
            ("0::\(user)/snap.spotify.spotify-\(uuid).scope (deleted)\n", "spotify"),
            ("0::/system.slice/snap.lxd.daemon.service\n", "lxd"),
            ("0::\(user)/app.slice/snap.my-radio_two.radio.service\n", "my-radio_two"),
            ("0::/system.slice/snap.foo.hook.configure-\(uuid).scope\n", "foo"),
            ("0::/system.slice/snap.foo\\x2bcomp.hook.install-\(uuid).scope\n", "foo"),
            ("0::\(user)/app.slice/snap.firefox.firefox-\(uuid).scope/child\n", "firefox"),
            ("9:freezer:/snap.spotify\n8:pids:\(user)\n1:name=systemd:\(user)/session-2.scope\n0::/\n", "spotify"),
            ("12:pids:\(user)\n1:name=systemd:\(user)/snap.vlc.vlc.\(uuid).scope\n", "vlc"),
            ("0::/system.slice/snapd.service\n", nil), ("0::/system.slice/snap.service\n", nil),
            ("0::/system.slice/snap.foo.mount\n", nil), ("0::/system.slice/snap..service\n", nil),
            ("0::/system.slice/snap.foo.service\n", nil), ("0::/system.slice/snap.*.x.service\n", nil),
            ("0::/system.slice/snap-spotify-35.mount\n", nil), ("0::/snap.spotify\n", nil),
            ("0::/lxc.payload.box/system.slice/snap.foo.bar.service\n", nil),
            ("0::/machine.slice/box/snap.foo.bar.service\n", nil), ("0::/\n", nil), ("", nil),
            ("snap.foo.bar.scope", nil),
        ] as [(String, String?)])
    func controlGroups_nameTheSnap(_ groups: String, _ snap: String?) {
        #expect(Confinement.snap(groups: groups) == snap)
    }

    @Test(
        arguments: [
            ("snap.firefox.firefox (enforce)\n", "firefox"), ("snap.code.code (complain)\n", "code"),
            ("snap.my-radio_two.radio (enforce)\0", "my-radio_two"), ("snap.foo.hook.configure (enforce)", "foo"),
            ("snap.foo+comp.hook.install (enforce)", "foo"), ("snap.chromium.chromium//child (enforce)", "chromium"),
            ("unconfined\n", nil), ("snap-update-ns.spotify (enforce)\n", nil),
            ("/usr/lib/snapd/snap-confine (enforce)\n", nil),
            ("/snap/snapd/1/usr/lib/snapd/snap-confine//mount-namespace-capture-helper (enforce)", nil),
            ("/usr/bin/evince (enforce)", nil), ("unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023\0", nil),
            ("snap.foo", nil), ("", nil),
        ] as [(String, String?)])
    func label_namesTheSnap(_ label: String, _ snap: String?) {
        #expect(Confinement.snap(label: label) == snap)
    }

    @Test(
        arguments: [
            ("app.slice/app-gnome-firefox-2345.scope", "app-gnome-firefox-2345.scope"),
            ("app.slice/app-flatpak-org.mozilla.firefox-2345.scope", "app-flatpak-org.mozilla.firefox-2345.scope"),
            ("app.slice/app-firefox@\(uuid).service", "app-firefox@\(uuid).service"),
            (
                "app.slice/app-org.kde.kdeconnect.daemon@autostart.service",
                "app-org.kde.kdeconnect.daemon@autostart.service"
            ),
            ("app.slice/app-org.kde.konsole-\(uuid).scope/tab(77).scope", "app-org.kde.konsole-\(uuid).scope"),
            (
                "app.slice/app-org.gnome.Terminal.slice/vte-spawn-\(uuid).scope",
                "app-org.gnome.Terminal.slice/vte-spawn-\(uuid).scope"
            ),
            (
                "app.slice/app-org.gnome.Terminal.slice/gnome-terminal-server.service",
                "app-org.gnome.Terminal.slice/gnome-terminal-server.service"
            ),
            (
                "app.slice/app-dbus\\x2d:1.2\\x2dorg.gnome.Nautilus.slice/dbus-:1.2-org.gnome.Nautilus@0.service",
                "app-dbus\\x2d:1.2\\x2dorg.gnome.Nautilus.slice/dbus-:1.2-org.gnome.Nautilus@0.service"
            ),
            ("app.slice/snap.firefox.firefox-\(uuid).scope", "snap.firefox.firefox-\(uuid).scope"),
            ("session.slice/org.gnome.Shell@wayland.service", nil), ("init.scope", nil),
            ("app.slice/wyoming-satellite.service", nil),
        ] as [(String, String?)])
    func controlGroups_nameTheUnitOfTheApplication(_ path: String, _ unit: String?) {
        #expect(Confinement.applicationUnit(groups: "0::\(Self.user)/\(path)\n") == unit)
        let versionOne = "8:pids:\(Self.user)\n1:name=systemd:\(Self.user)/\(path)\n0::/\n"
        #expect(Confinement.applicationUnit(groups: versionOne) == unit)
    }

    @Test func flatpakInfo_namesTheApplication() {
        let info = "[Application]\nname=org.example.Music\nruntime=runtime/x\n\n[Environment]\nname=liar\n"
        #expect(Confinement.flatpak(info) == "org.example.Music")
        #expect(
            Confinement.flatpak("[Environment]\nname=liar\n[Runtime]\nname=org.example.Platform\n")
                == "org.example.Platform")
        #expect(Confinement.flatpak("[Environment]\nname=liar\n") == nil)
        #expect(Confinement.flatpak("") == nil)
    }

    /// Its connection to a bus may still be open in a program in a sandbox, which has nothing else left to look at.
    @Test func processThatHasEnded_isGoneAlsoBeforeItsParentHasWaited() throws {
        var process: pid_t = 0
        try #require(
            posix_spawn(&process, "/bin/true", nil, nil, ["true", nil].map { $0.map { strdup($0) } }, nil) == 0)
        // It has ended, and is not waited for.
        var end = siginfo_t()
        #expect(waitid(P_PID, id_t(process), &end, WEXITED | WNOWAIT) == 0)
        #expect(Sandbox(of: UInt32(process)) == .gone)
        #expect(waitpid(process, nil, 0) == process)
        #expect(Sandbox(of: UInt32(process)) == .gone)
        #expect(Sandbox(of: UInt32(getpid())) == .none)
    }
}
