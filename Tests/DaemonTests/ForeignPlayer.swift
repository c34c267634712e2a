import TestSupport

/// An MPRIS player in a process of its own that does not use sessiond. The test plays the role of its user.
final class ForeignPlayer {
    /// How the player handles calls over D-Bus. It always does what its user does.
    enum Manner: String {
        case correct
        /// Play and Pause both toggle.
        case toggles
        /// Replies, and does nothing.
        case ignores
        /// Handles calls only after the command `catch up`.
        case late
        /// Never announces a change.
        case quiet
        case refuses
        /// Stops instead of pausing.
        case stops
    }

    let process: Child

    /// Starts the player as playing, stopped or paused, and waits until it serves. `command` makes its sound: it runs
    /// as the player's child while the player lives. If it is an mpv with that `socket` (`--input-ipc-server`), the
    /// player pauses and plays it.
    init(
        _ name: String, _ manner: Manner = .correct, status: String = "Playing", on stage: DaemonStage,
        command: [String] = [], socket: String = "", environment: [String: String] = [:]
    ) throws {
        process = try Child(
            "/usr/bin/python3", ["-u", "-c", ForeignPlayer.program, name, manner.rawValue, status, socket] + command,
            environment: environment.merging(stage.bus.environment) { $1 })
        guard process.line(where: { $0 == "ready" }) != nil else {
            throw SupportError("the player did not start: \(process.errors)")
        }
    }

    var processID: UInt32 { UInt32(process.processID) }

    /// The methods that were called so far, in order.
    var calls: [String] {
        _ = process.isRunning
        return process.output.filter { $0.hasPrefix("call ") }.map { String($0.dropFirst(5)) }
    }

    /// The user changes the player: Playing, Paused, Stopped, or `track N`.
    func person(_ deed: String) {
        let before = process.output.filter { $0 == "done" }.count
        process.send(deed)
        _ = eventually {
            _ = process.isRunning
            return process.output.filter { $0 == "done" }.count > before
        }
    }

    var status: String {
        let before = process.output.filter { $0.hasPrefix("status ") }.count
        process.send("say")
        var answers: [String] = []
        _ = eventually {
            _ = process.isRunning
            answers = process.output.filter { $0.hasPrefix("status ") }
            return answers.count > before
        }
        return answers.last.map { String($0.dropFirst(7)) } ?? "gone"
    }

    private static let program = """
        import socket, subprocess, sys, dbus, dbus.service, dbus.mainloop.glib
        from gi.repository import GLib
        name, manner, status, path = sys.argv[1:5]
        PLAYER, PROPERTIES = "org.mpris.MediaPlayer2.Player", "org.freedesktop.DBus.Properties"
        dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
        bus = dbus.SessionBus()
        waiting = []
        class Player(dbus.service.Object):
            status, track, position = status, 1, 5000000
            def all(self, interface):
                if interface != PLAYER:
                    return {"Identity": name, "CanQuit": True, "CanRaise": False, "HasTrackList": False,
                            "SupportedUriSchemes": dbus.Array([], "s"), "SupportedMimeTypes": dbus.Array([], "s")}
                metadata = dbus.Dictionary({"mpris:trackid": dbus.ObjectPath("/track/%d" % self.track),
                    "xesam:title": "%s %d" % (name, self.track)}, "sv")
                return {"PlaybackStatus": self.status, "Metadata": metadata, "Position": dbus.Int64(self.position),
                        "CanPlay": True, "CanPause": True, "CanControl": True, "CanSeek": True, "Volume": 1.0,
                        "CanGoNext": True, "CanGoPrevious": False, "Rate": 1.0}
            @dbus.service.method(PROPERTIES, "ss", "v")
            def Get(self, interface, property): return self.all(interface)[property]
            @dbus.service.method(PROPERTIES, "s", "a{sv}")
            def GetAll(self, interface): return dbus.Dictionary(self.all(interface), "sv")
            @dbus.service.method(PROPERTIES, "ssv", "")
            def Set(self, interface, property, value): print("call Set", property, value)
            @dbus.service.signal(PROPERTIES, "sa{sv}as")
            def PropertiesChanged(self, interface, changed, invalid): pass
            @dbus.service.signal(PLAYER, "x")
            def Seeked(self, position): pass
            def become(self, status, track=None):
                before = self.status, self.track
                self.status, self.track = status, track or self.track
                if path and before[0] != self.status:
                    with socket.socket(socket.AF_UNIX) as mpv:
                        mpv.connect(path)
                        mpv.sendall(b'{"command": ["set_property", "pause", %s]}\\n'
                            % (b"false" if self.status == "Playing" else b"true"))
                        mpv.recv(1000)
                if before == (self.status, self.track) or manner == "quiet": return
                facts = self.all(PLAYER)
                self.PropertiesChanged(PLAYER, {k: facts[k] for k in ("PlaybackStatus", "Metadata")}, [])
            def heed(self, member, reply, error):
                if manner == "late":
                    waiting.append((member, reply))
                    return
                if manner == "refuses":
                    return error(dbus.DBusException("no", name="org.example.No"))
                self.act(member)
                reply()
            def act(self, member):
                if manner == "ignores": return
                playing = self.status == "Playing"
                if member == "PlayPause" or manner == "toggles":
                    self.become("Paused" if playing else "Playing")
                elif member == "Play": self.become("Playing")
                elif playing: self.become("Stopped" if manner == "stops" else "Paused")
            @dbus.service.method(PLAYER, "", "", async_callbacks=("reply", "error"))
            def Play(self, reply, error):
                print("call Play")
                self.heed("Play", reply, error)
            @dbus.service.method(PLAYER, "", "", async_callbacks=("reply", "error"))
            def Pause(self, reply, error):
                print("call Pause")
                self.heed("Pause", reply, error)
            @dbus.service.method(PLAYER, "", "", async_callbacks=("reply", "error"))
            def PlayPause(self, reply, error):
                print("call PlayPause")
                self.heed("PlayPause", reply, error)
            @dbus.service.method(PLAYER, "", "")
            def Next(self):
                print("call Next")
                self.become(self.status, self.track + 1)
            @dbus.service.method(PLAYER, "x", "")
            def Seek(self, offset):
                print("call Seek", offset)
                self.position += offset
                self.Seeked(dbus.Int64(self.position))
        player = Player(bus, "/org/mpris/MediaPlayer2")
        owned = dbus.service.BusName("org.mpris.MediaPlayer2." + name, bus, do_not_queue=True)
        child = subprocess.Popen(sys.argv[5:]) if len(sys.argv) > 5 else None
        loop = GLib.MainLoop()
        def heard(source, condition):
            line = sys.stdin.readline()
            if not line: return False
            words = line.split()
            if words[0] == "say": print("status", player.status); return True
            if words[0] == "track": player.become(player.status, int(words[1]))
            elif words[0] == "catch":
                for member, reply in waiting:
                    player.act(member)
                    reply()
                waiting.clear()
            else: player.become(words[0])
            print("done")
            return True
        GLib.io_add_watch(sys.stdin.fileno(), GLib.IO_IN, heard)
        print("ready")
        loop.run()
        """
}
