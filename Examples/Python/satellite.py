#!/usr/bin/python3
"""A voice satellite that ducks music while it speaks. It keeps one session, which is active while it speaks.

    satellite.py     reads events from standard input, one on each line: "speak" and "done"
"""
import sys

from gi.repository import Gio, GLib

SERVICE, MANAGER, SESSION = "org.sessiond1", "org.sessiond1.Manager", "org.sessiond1.Session"


class Satellite:
    def __init__(self, name):
        self.bus = Gio.bus_get_sync(Gio.BusType.SESSION)
        options = {
            "category": GLib.Variant("s", "playback"),
            "mode": GLib.Variant("s", "voice-prompt"),
            # Ducks music, but interrupts podcasts and audio books, which are hard to understand while the satellite
            # speaks.
            "options": GLib.Variant("as", ["duck-others", "interrupt-spoken-audio-and-mix-with-others"]),
        }
        (self.session,) = self.call("/org/sessiond1", MANAGER, "CreateSession", "(sa{sv})", (name, options))

    def call(self, path, interface, method, signature, arguments):
        arguments = GLib.Variant(signature, arguments)
        return self.bus.call_sync(
            SERVICE, path, interface, method, arguments, None, Gio.DBusCallFlags.NONE, -1, None).unpack()

    def speak(self):
        try:
            self.call(self.session, SESSION, "Activate", "(a{sv})", ({},))
            print("speaking", flush=True)
        except GLib.Error as error:
            # During a call, for example.
            print("not now: " + Gio.DBusError.get_remote_error(error), flush=True)

    def done(self):
        self.call(self.session, SESSION, "Deactivate", "(a{sv})", ({"notify-others": GLib.Variant("b", True)},))
        print("done", flush=True)


satellite = Satellite("Satellite")
print("ready", flush=True)
for line in sys.stdin:
    if line.strip() == "speak":
        satellite.speak()
    elif line.strip() == "done":
        satellite.done()
