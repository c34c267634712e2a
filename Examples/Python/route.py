#!/usr/bin/python3
"""Prints the outputs of the current route, and each change with its reason. It needs no session."""
from gi.repository import Gio, GLib

SERVICE, PATH, MANAGER = "org.sessiond1", "/org/sessiond1", "org.sessiond1.Manager"
# The numbers are those of AVAudioSession.RouteChangeReason.
REASONS = {
    0: "unknown", 1: "new device available", 2: "old device unavailable", 3: "category changed", 4: "override",
    6: "wake from sleep", 7: "no suitable route for category", 8: "route configuration changed",
}


def outputs(route):
    return ", ".join(port["name"] for port in route["outputs"]) or "nowhere"


def changed(bus, sender, path, interface, signal, parameters):
    reason, previous, current = parameters.unpack()
    print("%s → %s: %s" % (outputs(previous), outputs(current), REASONS.get(reason, reason)), flush=True)


bus = Gio.bus_get_sync(Gio.BusType.SESSION)
bus.signal_subscribe(SERVICE, MANAGER, "RouteChanged", PATH, None, Gio.DBusSignalFlags.NONE, changed)
arguments = GLib.Variant("(ss)", (MANAGER, "CurrentRoute"))
(route,) = bus.call_sync(
    SERVICE, PATH, "org.freedesktop.DBus.Properties", "Get", arguments, None, Gio.DBusCallFlags.NONE, -1, None).unpack()
print(outputs(route), flush=True)
GLib.MainLoop().run()
