#!/usr/bin/python3
"""A kiosk's alarm: it interrupts everything but calls for as long as it sounds, and the others may resume afterwards.

    alarm.py [COMMAND...]     COMMAND makes the sound, such as: paplay alarm.wav
"""
import subprocess
import sys

from gi.repository import Gio, GLib

SERVICE, MANAGER, SESSION = "org.sessiond1", "org.sessiond1.Manager", "org.sessiond1.Session"


def call(path, interface, method, *arguments):
    """Calls a method with one tuple of arguments: their signature and values."""
    parameters = GLib.Variant(*arguments) if arguments else None
    return bus.call_sync(SERVICE, path, interface, method, parameters, None, Gio.DBusCallFlags.NONE, -1, None).unpack()


bus = Gio.bus_get_sync(Gio.BusType.SESSION)
# The class decides who interrupts whom; any program of the user may take it, unless the settings say otherwise.
options = {"category": GLib.Variant("s", "playback"), "class": GLib.Variant("s", "alert")}
(session,) = call("/org/sessiond1", MANAGER, "CreateSession", "(sa{sv})", ("Alarm", options))
try:
    # Returns when the others are silent.
    call(session, SESSION, "Activate", "(a{sv})", ({},))
except GLib.Error as error:
    sys.exit("the alarm has to wait: " + Gio.DBusError.get_remote_error(error))
subprocess.run(sys.argv[1:] or ["sleep", "2"])
call(session, SESSION, "Deactivate", "(a{sv})", ({"notify-others": GLib.Variant("b", True)},))
# The session is closed when this connection ends, however it ends.
