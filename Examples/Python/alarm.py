#!/usr/bin/python3
"""An alarm for a kiosk: while it sounds, it interrupts everything except calls. Others may resume afterwards.

    alarm.py [COMMAND...]     COMMAND makes the sound, such as: paplay alarm.wav
"""
import subprocess
import sys

from gi.repository import Gio, GLib

SERVICE, MANAGER, SESSION = "org.sessiond1", "org.sessiond1.Manager", "org.sessiond1.Session"


def call(path, interface, method, *arguments):
    """Calls a method. `arguments` are the signature of a tuple and its values."""
    parameters = GLib.Variant(*arguments) if arguments else None
    return bus.call_sync(SERVICE, path, interface, method, parameters, None, Gio.DBusCallFlags.NONE, -1, None).unpack()


bus = Gio.bus_get_sync(Gio.BusType.SESSION)
# The class determines the priority. Any program of the user may use it, unless the settings forbid it.
options = {"category": GLib.Variant("s", "playback"), "class": GLib.Variant("s", "alert")}
(session,) = call("/org/sessiond1", MANAGER, "CreateSession", "(sa{sv})", ("Alarm", options))
try:
    # Returns after all signals to the interrupted sessions have been sent.
    call(session, SESSION, "Activate", "(a{sv})", ({},))
except GLib.Error as error:
    sys.exit("the alarm has to wait: " + Gio.DBusError.get_remote_error(error))
subprocess.run(sys.argv[1:] or ["sleep", "2"])
call(session, SESSION, "Deactivate", "(a{sv})", ({"notify-others": GLib.Variant("b", True)},))
# The daemon closes the session when this connection ends, for any reason.
