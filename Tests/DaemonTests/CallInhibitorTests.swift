import DBus
import TestSupport
import Testing

/// A program in a call tells the desktop about its open connection with an inhibitor. While the inhibitor exists, the
/// guessed call continues even if the program records nothing.
@Suite(.enabled(if: ServerKind.allCases.contains(.pulseAudio), "PulseAudio only: a client states its process"))
struct CallInhibitorTests {
    /// The desktop that keeps the inhibitors; the test runs a mock of it.
    enum Desktop: String, CaseIterable, CustomTestStringConvertible {
        case gnome
        case kde
        var testDescription: String { rawValue }
    }

    /// A program that plays, and records until its user mutes it. It consists of two processes that state the same
    /// process id.
    private struct Phone {
        let program: Child
        let playing: Child
        let recording: Child?

        init(on server: any PrivateServer, records: Bool = true) throws {
            program = try Child("sleep", ["infinity"])
            let environment = server.environment.merging(
                ["PULSE_PROP": "application.process.id=\(program.processID)"]) { $1 }
            let options = ["--raw", "--client-name=Phone", "--stream-name=Call"]
            playing = try Child("pacat", ["--playback"] + options + ["/dev/zero"], environment: environment)
            recording =
                records
                ? try Child("parec", options + [server.folder.path + "/recorded"], environment: environment) : nil
        }
    }

    private static let webRTC = "WebRTC has active PeerConnections"
    private static let settings = "[adoption]\ncall-programs = Phone\n"

    /// Waits longer than the five seconds after which a call without a recording ends.
    private func goesOn(_ scene: RealCallTests.Scene) throws -> Bool {
        try !eventually(timeout: 7) { try scene.call() == nil }
    }

    @Test(arguments: zip(Desktop.allCases, [true, false]))
    func connectedProgramStopsRecording_itsCallContinuesUntilItDisconnects(_ desktop: Desktop, isRemoved: Bool) throws {
        let scene = try RealCallTests.Scene(.pulseAudio, settings: Self.settings)
        let mock = try Self.mock(desktop, on: scene)
        let phone = try Phone(on: scene.server)
        #expect(try eventually { try scene.call()?["Name"] == .string("Phone (call)") }, "\(phone.playing.errors)")
        let status = try Child.run(
            try builtProduct(named: "sessionctl"), [], environment: SessionctlStage.environment(on: scene.stage.bus))
        #expect(status.contains("Phone (call)  Call, guessed  "), "\(status)")
        mock.send("add sleep \(Self.webRTC)")
        #expect(mock.line { $0 == "done" } != nil, "\(mock.errors)")
        phone.recording?.kill()
        #expect(try goesOn(scene))
        if isRemoved { mock.send("remove") } else { mock.kill() }
        #expect(try eventually(timeout: 20) { try scene.call() == nil })
        withExtendedLifetime(phone) {}
    }

    @Test(arguments: Desktop.allCases)
    func inhibitorOfAnotherProgramOrForAnotherReason_doesNotProlongTheCall(_ desktop: Desktop) throws {
        let scene = try RealCallTests.Scene(.pulseAudio, settings: Self.settings)
        let mock = try Self.mock(desktop, on: scene)
        for line in ["add sleep Playing audio", "add /usr/bin/other \(Self.webRTC)"] {
            mock.send(line)
            #expect(mock.line { $0 == "done" } != nil, "\(mock.errors)")
        }
        let phone = try Phone(on: scene.server)
        #expect(try eventually { try scene.call()?["Name"] == .string("Phone (call)") }, "\(phone.playing.errors)")
        phone.recording?.kill()
        #expect(try eventually(timeout: 20) { try scene.call() == nil })
        withExtendedLifetime((mock, phone)) {}
    }

    /// The inhibitor alone does not begin a call: a program that only receives sound takes it, too.
    @Test func connectedProgramThatRecordsNothing_isInNoCall() throws {
        let scene = try RealCallTests.Scene(.pulseAudio, settings: Self.settings)
        let mock = try Self.mock(.gnome, on: scene)
        let phone = try Phone(on: scene.server, records: false)
        mock.send("add sleep \(Self.webRTC)")
        #expect(mock.line { $0 == "done" } != nil, "\(mock.errors)")
        #expect(try eventually { try scene.session("Phone")?["State"] == .string("active") })
        #expect(try !eventually(timeout: 2) { try scene.call() != nil })
        withExtendedLifetime(phone) {}
    }

    private static func mock(_ desktop: Desktop, on scene: RealCallTests.Scene) throws -> Child {
        let mock = try Child(
            "/usr/bin/python3", ["-u", "-c", program, desktop.rawValue], environment: scene.stage.bus.environment)
        guard mock.line(where: { $0 == "ready" }) != nil else {
            throw SupportError("the mock of the desktop did not start: \(mock.errors)")
        }
        return mock
    }

    /// The mock reads commands: `add APPLICATION REASON`, and `remove`, which removes all inhibitors.
    private static let program = """
        import sys, dbus, dbus.service, dbus.mainloop.glib
        from gi.repository import GLib
        dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
        bus = dbus.SessionBus()
        GNOME, KDE = "org.gnome.SessionManager", "org.kde.Solid.PowerManagement.PolicyAgent"
        class Inhibitor(dbus.service.Object):
            def __init__(self, number, application, reason):
                self.path, self.application, self.reason = "%s/Inhibitor%d" % (Gnome.path, number), application, reason
                super().__init__(bus, self.path)
            @dbus.service.method(GNOME + ".Inhibitor", "", "s")
            def GetAppId(self): return self.application
            @dbus.service.method(GNOME + ".Inhibitor", "", "s")
            def GetReason(self): return self.reason
        class Gnome(dbus.service.Object):
            name, path, all, count = GNOME, "/org/gnome/SessionManager", [], 0
            @dbus.service.method(GNOME, "", "ao")
            def GetInhibitors(self): return dbus.Array([one.path for one in self.all], "o")
            @dbus.service.signal(GNOME, "o")
            def InhibitorAdded(self, path): pass
            @dbus.service.signal(GNOME, "o")
            def InhibitorRemoved(self, path): pass
            def add(self, application, reason):
                self.count += 1
                self.all.append(Inhibitor(self.count, application, reason))
                self.InhibitorAdded(self.all[-1].path)
            def remove(self):
                while self.all:
                    one = self.all.pop()
                    one.remove_from_connection()
                    self.InhibitorRemoved(one.path)
        class Kde(dbus.service.Object):
            name, path, all = KDE, "/org/kde/Solid/PowerManagement/PolicyAgent", []
            @dbus.service.method(KDE, "", "a(ss)")
            def ListInhibitions(self): return dbus.Array(self.all, "(ss)")
            @dbus.service.signal(KDE, "a(ss)as")
            def InhibitionsChanged(self, added, removed): pass
            def add(self, application, reason):
                self.all.append((application, reason))
                self.InhibitionsChanged(dbus.Array(self.all[-1:], "(ss)"), dbus.Array([], "s"))
            def remove(self):
                gone = [application for application, _ in self.all]
                self.all.clear()
                self.InhibitionsChanged(dbus.Array([], "(ss)"), dbus.Array(gone, "s"))
        kind = Gnome if sys.argv[1] == "gnome" else Kde
        desktop = kind(bus, kind.path)
        owned = dbus.service.BusName(kind.name, bus, do_not_queue=True)
        loop = GLib.MainLoop()
        def heard(source, condition):
            line = sys.stdin.readline()
            if not line: return False
            words = line.split(None, 2)
            if words[0] == "add": desktop.add(words[1], words[2].strip())
            else: desktop.remove()
            print("done")
            return True
        GLib.io_add_watch(sys.stdin.fileno(), GLib.IO_IN, heard)
        print("ready")
        loop.run()
        """
}
