import DBus
import EventLoop
import Foundation
import SessionBus
import TestSupport
import Testing

/// Plugins of other authors, installed as docs/plugins.md describes.
@Suite(.serialized) struct PluginTests {
    /// A home folder with plugins, and a daemon that finds them.
    private final class Home {
        let folder: PrivateFolder
        let pulse: (any PrivateServer)?
        let daemon: DaemonStage

        init(_ manifests: [String], pulse: (any PrivateServer)? = nil) throws {
            folder = try PrivateFolder()
            self.pulse = pulse
            let bin = try folder.folder("bin")
            let plugins = try folder.folder("share/sessiond/plugins")
            for (index, text) in manifests.enumerated() {
                try text.write(toFile: "\(plugins)/\(index).plugin", atomically: true, encoding: .utf8)
            }
            for file in ["tone/example-tone"] {
                try FileManager.default.copyItem(
                    atPath: repository.path + "/Examples/Plugins/" + file,
                    toPath: bin + "/" + URL(fileURLWithPath: file).lastPathComponent)
            }
            var variables = ["XDG_DATA_HOME": folder.path + "/share", "XDG_DATA_DIRS": "/nowhere", "HOME": folder.path]
            variables["PATH"] = bin + ":" + (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin")
            daemon = try DaemonStage(pulse: pulse, environment: variables)
            if pulse != nil, !daemon.waitForServer() { throw SupportError("no sound server") }
        }

        /// Opens a plugin on that connection. Returns its bus name and object path.
        func open(_ kind: String, _ uri: String, on connection: Connection) throws -> (String, String) {
            let values = try connection.callAndWait(
                BusName.service, ObjectPath.root, BusName.plugins, "Open", [.string(kind), .string(uri)], timeout: 20)
            return (values[0].stringValue ?? "", values[1].objectPathValue ?? "")
        }

        func refusal(_ kind: String, _ uri: String) -> String {
            do throws(Failure) {
                _ = try daemon.observer.callAndWait(
                    BusName.service, ObjectPath.root, BusName.plugins, "Open", [.string(kind), .string(uri)],
                    timeout: 20)
                return ""
            } catch {
                return error.message
            }
        }

        /// A field that the daemon lists for a plugin.
        func field(_ name: String, of id: String) throws -> String {
            let plugins = try daemon.observer.callAndWait(
                BusName.service, ObjectPath.root, BusName.plugins, "List", [], timeout: 5)
            let fields = plugins[0].arrayValue?.compactMap(\.asProperties).first { $0["id"]?.stringValue == id }
            return fields?[name]?.stringValue ?? ""
        }

        func isBusy(_ id: String) throws -> Bool? {
            let plugins = try daemon.observer.callAndWait(
                BusName.service, ObjectPath.root, BusName.plugins, "List", [], timeout: 5)
            let fields = plugins[0].arrayValue?.compactMap(\.asProperties).first { $0["id"]?.stringValue == id }
            return fields?["busy"]?.boolValue
        }

        func process(of name: String) throws -> Int32 {
            let answer = try daemon.observer.callAndWait(
                "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetConnectionUnixProcessID",
                [.string(name)])
            return Int32(answer[0].uint32Value ?? 0)
        }

        func call(_ place: (String, String), _ member: String, _ arguments: [Value] = []) throws {
            _ = try daemon.observer.callAndWait(place.0, place.1, BusName.player, member, arguments, timeout: 20)
        }

        func sessionctl(_ arguments: [String]) throws -> String {
            try Child.run(
                try builtProduct(named: "sessionctl"), arguments,
                environment: try SessionctlStage.environment(on: daemon.bus))
        }
    }

    private static func example(_ path: String) throws -> String {
        try String(contentsOfFile: repository.path + "/Examples/Plugins/" + path, encoding: .utf8)
    }

    @Test func guide_showsTheFilesThatAreTested() throws {
        let guide = try String(contentsOfFile: repository.path + "/docs/plugins.md", encoding: .utf8)
        for (file, language) in [
            ("tone/tone.plugin", "ini"), ("tone/example-tone", "python"), ("Paplay/paplay.plugin", "ini"),
            ("Paplay/main.swift", "swift"),
        ] {
            #expect(guide.contains("```\(language)\n\(try PluginTests.example(file))```\n"), "\(file)")
        }
    }

    @Test func pythonPlayer_playsAndIsInterruptedAndIsEndedWhenIdle() throws {
        let pulse = try ServerKind.standard.server()
        let ear = try Ear(pulse, sink: "speaker")
        let home = try Home([PluginTests.example("tone/tone.plugin") + "IdleTimeout=1\n"], pulse: pulse)
        #expect(try home.field("state", of: "org.example.tone") == "stopped")
        let user = try home.daemon.client()
        let tone = try home.open("player", "tone:440", on: user.connection)
        #expect(try home.field("state", of: "org.example.tone") == "running")
        #expect(try home.open("player", "tone:880", on: user.connection) == tone)
        try home.call(tone, "Load", [.string("tone:440")])
        try home.call(tone, "Play")
        #expect(ear.waitUntil(440, above: -20, timeout: 20))
        // The desktop can control it like any other player.
        func keys(_ words: String...) throws -> String {
            try Child.run("playerctl", ["-p", "tone"] + words, environment: home.daemon.bus.environment)
        }
        #expect(try keys("status") == "Playing")
        #expect(try keys("metadata", "title") == "tone:440")
        _ = try keys("play-pause")
        #expect(ear.waitUntil(440, below: -70))
        #expect(try keys("status") == "Paused")
        _ = try keys("open", "tone:880")
        #expect(ear.waitUntil(880, above: -20, timeout: 20))
        _ = try keys("stop")
        #expect(ear.waitUntil(880, below: -70))
        #expect(try keys("status") == "Stopped")
        _ = try keys("open", "tone:440")
        #expect(ear.waitUntil(440, above: -20, timeout: 20))
        let call = try user.beginCall("Phone")
        #expect(ear.waitUntil(440, below: -70))
        user.deactivate(call)
        #expect(ear.waitUntil(440, above: -20, timeout: 20))
        // It plays on after the client that opened it is gone.
        user.connection.close()
        let playing = ear.duration
        #expect(eventually { ear.duration > playing + 1.5 })
        #expect(ear.level(of: 440, last: 0.1) > -20)
        try home.call(tone, "Stop")
        #expect(try eventually { try home.field("state", of: "org.example.tone") == "stopped" })
        #expect(try home.field("bus-name", of: "org.example.tone") == "")
    }

    @Test func pluginIsOpenedWhileItIsEnded_startsAgain() throws {
        let home = try Home([PluginTests.example("tone/tone.plugin") + "IdleTimeout=1\n"])
        for _ in 0..<2 {
            let user = try home.daemon.client()
            _ = try home.open("player", "tone:440", on: user.connection)
            user.connection.close()
            #expect(
                try eventually {
                    let state = try home.field("state", of: "org.example.tone")
                    return state == "stopping" || state == "stopped"
                })
        }
        _ = try home.open("player", "tone:440", on: home.daemon.observer)
        #expect(try home.field("state", of: "org.example.tone") == "running")
    }

    @Test func swiftPlayer_isChosenByMediaTypeAndPlays() throws {
        let pulse = try ServerKind.standard.server()
        let ear = try Ear(pulse, sink: "speaker")
        let everything = """
            [sessiond Plugin]
            Id=org.example.everything
            Name=Everything
            Kind=player
            Exec=/bin/false
            Version=1
            Schemes=file;
            MimeTypes=audio/*;
            """
        let home = try Home([everything, PluginTests.example("Paplay/paplay.plugin")], pulse: pulse)
        let file = home.folder.path + "/tone.aiff"
        try Child.run(
            "gst-launch-1.0",
            [
                "-q", "audiotestsrc", "freq=1000", "num-buffers=400", "!", "audio/x-raw,rate=48000", "!", "aiffmux",
                "!", "filesink", "location=\(file)",
            ])
        let place = try home.open("player", "file://" + file, on: home.daemon.observer)
        #expect(try home.field("state", of: "org.example.paplay") == "running")
        try home.call(place, "Load", [.string("file://" + file)])
        try home.call(place, "Play")
        #expect(ear.waitUntil(1_000, above: -20))
        try home.call(place, "Pause")
        #expect(ear.waitUntil(1_000, below: -70))
        #expect(try home.field("state", of: "org.example.everything") == "stopped")
    }

    @Test func crashedPlugin_isReportedAndNotStartedForever() throws {
        let manifest = """
            [sessiond Plugin]
            Id=org.example.broken
            Name=Broken
            Kind=player
            Exec=/bin/false
            Version=1
            Schemes=broken;
            """
        let home = try Home([manifest])
        var told: [String] = []
        let subscription = home.daemon.observer.subscribe(
            path: ObjectPath.root, interface: BusName.plugins, member: "StateChanged", sender: BusName.service
        ) { message in
            let values = (try? message.arguments())?.compactMap(\.stringValue) ?? []
            told.append(values.joined(separator: " "))
        }
        for _ in 0..<3 { #expect(home.refusal("player", "broken:x").contains("exited with 1")) }
        #expect(home.refusal("player", "broken:x").contains("crashed 3 times in a row"))
        #expect(try home.field("state", of: "org.example.broken") == "crashed")
        #expect(try home.field("message", of: "org.example.broken") == "exited with 1")
        #expect(home.daemon.loop.iterate(timeout: 10) { told.count == 6 })
        let once = ["org.example.broken starting ", "org.example.broken crashed exited with 1"]
        #expect(told == once + once + once)
        let status = try home.sessionctl(["status"])
        #expect(
            status.contains("Broken") && status.contains("crashed") && status.contains("exited with 1"), "\(status)")
        withExtendedLifetime(subscription) {}
    }

    @Test func pluginIsKilled_isListedAsCrashedAndTheNextOpenStartsIt() throws {
        let home = try Home([PluginTests.example("tone/tone.plugin")])
        let place = try home.open("player", "tone:440", on: home.daemon.observer)
        kill(try home.process(of: place.0), SIGKILL)
        #expect(try eventually { try home.field("state", of: "org.example.tone") == "crashed" })
        #expect(try home.field("message", of: "org.example.tone") == "was ended by signal 9")
        #expect(try home.open("player", "tone:440", on: home.daemon.observer) != place)
    }

    /// The manifest of a plugin without a session. The test tells the plugin's program when to be busy, and when to
    /// leave the bus and continue to run.
    private static func library(_ id: String, in folder: PrivateFolder) throws -> String {
        let program = try folder.file(
            "library",
            """
            #!/usr/bin/python3
            import sys
            import dbus, dbus.service
            from dbus.mainloop.glib import DBusGMainLoop
            from gi.repository import GLib

            class Library(dbus.service.Object):
                def register(self, busy):
                    plugins = dbus.Interface(bus.get_object("org.sessiond1", "/org/sessiond1"), "org.sessiond1.Plugins")
                    plugins.Register(sys.argv[sys.argv.index("--id") + 1], {
                        "object": dbus.ObjectPath("/org/example/library"), "kind": "library",
                        "busy": dbus.Boolean(busy)})

                @dbus.service.method("org.example.Library", "b")
                def SetBusy(self, busy):
                    self.register(busy)

                @dbus.service.method("org.example.Library")
                def Leave(self):
                    GLib.idle_add(bus.close)

            DBusGMainLoop(set_as_default=True)
            bus = dbus.StarterBus(private=True)
            bus.set_exit_on_disconnect(False)
            Library(bus, "/org/example/library").register(False)
            GLib.MainLoop().run()

            """)
        chmod(program, 0o755)
        return """
            [sessiond Plugin]
            Id=\(id)
            Name=\(id)
            Kind=library
            Exec=\(program)
            Version=1
            Schemes=\(id);
            IdleTimeout=1

            """
    }

    @Test func pluginWithoutASession_isOpenedAndListed_andStaysWhileItIsBusy() throws {
        let folder = try PrivateFolder()
        let home = try Home([PluginTests.library("busy", in: folder), PluginTests.library("idle", in: folder)])
        let user = try home.daemon.client()
        let place = try home.open("library", "busy:x", on: user.connection)
        #expect(place.1 == "/org/example/library")
        #expect(try home.field("kind", of: "busy") == "library")
        #expect(try home.isBusy("busy") == false)
        func setBusy(_ isBusy: Bool) throws {
            _ = try home.daemon.observer.callAndWait(
                place.0, place.1, "org.example.Library", "SetBusy", [.bool(isBusy)], timeout: 20)
        }
        try setBusy(true)
        #expect(try home.isBusy("busy") == true)
        // The client that opened both is gone. The daemon ends the idle one, although it was opened later.
        _ = try home.open("library", "idle:x", on: user.connection)
        user.connection.close()
        #expect(try eventually { try home.field("state", of: "idle") == "stopped" })
        #expect(try home.field("state", of: "busy") == "running")
        try setBusy(false)
        #expect(try eventually { try home.field("state", of: "busy") == "stopped" })
        #expect(try home.isBusy("busy") == false)
    }

    @Test func pluginIsRunByAScript_endsWithIt() throws {
        let folder = try PrivateFolder()
        let manifest = try PluginTests.library("script", in: folder)
        let script = try folder.file("script", "#!/bin/sh\n\(folder.path)/library \"$@\"\ntrue\n")
        chmod(script, 0o755)
        let home = try Home([manifest.replacing("Exec=\(folder.path)/library", with: "Exec=\(script)")])
        let user = try home.daemon.client()
        let place = try home.open("library", "script:x", on: user.connection)
        let first = try home.process(of: place.0)
        user.connection.close()
        #expect(try eventually { try home.field("state", of: "script") == "stopped" })
        #expect(eventually { kill(first, 0) == -1 })
        let second = try home.open("library", "script:x", on: home.daemon.observer)
        let program = try home.process(of: second.0)
        kill(getpgid(program), SIGKILL)
        #expect(try eventually { try home.field("state", of: "script") == "crashed" })
        #expect(eventually { kill(program, 0) == -1 })
    }

    @Test func programOfAScriptDoesNotEnd_isKilledBeforeThePluginIsStopped() throws {
        let folder = try PrivateFolder()
        let manifest = try PluginTests.library("script", in: folder)
        let script = try folder.file(
            "script",
            """
            #!/bin/sh
            sh -c 'trap "" TERM; while :; do sleep 0.1; done' &
            echo $! >\(folder.path)/deaf
            \(folder.path)/library "$@"
            true

            """)
        chmod(script, 0o755)
        let home = try Home([manifest.replacing("Exec=\(folder.path)/library", with: "Exec=\(script)")])
        let user = try home.daemon.client()
        let place = try home.open("library", "script:x", on: user.connection)
        let first = try home.process(of: place.0)
        func readDeaf() -> Int32? {
            (try? String(contentsOfFile: folder.path + "/deaf", encoding: .utf8)).flatMap { Int32($0.dropLast()) }
        }
        let deaf = try #require(readDeaf())
        // The one that the second script has started.
        defer { if let other = readDeaf() { kill(other, SIGKILL) } }
        user.connection.close()
        #expect(try eventually { try home.field("state", of: "script") == "stopping" })
        #expect(kill(deaf, 0) == 0)
        // This waits for the end of the first one.
        let second = try home.open("library", "script:x", on: home.daemon.observer)
        #expect(eventually { kill(deaf, 0) == -1 })
        #expect(try home.process(of: second.0) != first)
    }

    @Test func programIsMissing_pluginIsListedAsStopped() throws {
        let folder = try PrivateFolder()
        let manifest = try PluginTests.library("gone", in: folder)
        let home = try Home([manifest.replacing("\(folder.path)/library", with: "/nowhere/library")])
        #expect(home.refusal("library", "gone:x").contains("there is no program"))
        #expect(try home.field("state", of: "gone") == "stopped")
    }

    @Test func pluginLeavesTheBusAndRunsOn_isEndedBeforeItIsStartedAgain() throws {
        let folder = try PrivateFolder()
        let home = try Home([PluginTests.library("stray", in: folder)])
        let place = try home.open("library", "stray:x", on: home.daemon.observer)
        let first = try home.process(of: place.0)
        _ = try home.daemon.observer.callAndWait(place.0, place.1, "org.example.Library", "Leave", [], timeout: 20)
        #expect(try eventually { try home.field("state", of: "stray") == "stopped" })
        #expect(kill(first, 0) == 0)
        let second = try home.open("library", "stray:x", on: home.daemon.observer)
        #expect(second.0 != place.0)
        // The first process has ended, and is no zombie.
        #expect(kill(first, 0) == -1)
        #expect(try home.process(of: second.0) != first)
        #expect(try home.field("state", of: "stray") == "running")
    }

    @Test func otherInterfaceVersion_isRefusedWithTheReason() throws {
        let manifest = try PluginTests.example("tone/tone.plugin") + "Interface=2\n"
        let home = try Home([manifest])
        let refusal = home.refusal("player", "tone:440")
        #expect(refusal.contains("implements version 2 of the plugin interface, this daemon version 1"), "\(refusal)")
        #expect(try home.field("state", of: "org.example.tone") == "unsupported")
        #expect(try home.sessionctl(["plugins"]).contains("unsupported"))
        #expect(home.refusal("recorder", "tone:440").contains("no plugin of kind"))
        #expect(home.refusal("recorder", "tone:440").contains("install the package sessiond-plugins"))
        #expect(home.refusal("player", "zap:440").contains("install one, see sessiond-plugin(5)"))
        #expect(throws: Failure.self) {
            try home.daemon.observer.callAndWait(
                BusName.service, ObjectPath.root, BusName.plugins, "Register",
                [.string("x"), .properties([("object", .objectPath("/x")), ("interface", .uint32(7))])])
        }
    }

    /// A program without a manifest that the daemon did not start.
    @Test func programThatRegisters_isFoundWhileItIsConnected() throws {
        let home = try Home([])
        let guest = try home.daemon.client()
        _ = try guest.connection.callAndWait(
            BusName.service, ObjectPath.root, BusName.plugins, "Register",
            [
                .string("guest"),
                .properties([
                    ("object", .objectPath("/zap")), ("kind", .string("player")), ("schemes", .strings(["zap"])),
                ]),
            ])
        let place = try home.open("player", "zap://a", on: home.daemon.observer)
        #expect(place == (guest.connection.uniqueName, "/zap"))
        #expect(home.refusal("recorder", "zap://a").contains("no plugin of kind"))
        guest.connection.close()
        #expect(eventually { home.refusal("player", "zap://a").contains("no plugin of kind") })
    }
}
