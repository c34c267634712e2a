#!/usr/bin/python3
"""NetworkManager and login1 as far as uploads ask them, on the bus of DBUS_SYSTEM_BUS_ADDRESS.

Reads one command a line from standard input and answers "done COMMAND": metered N (NMMetered), state N (NMState),
sleep, wake. Writes "lock WHAT WHO MODE" when somebody inhibits, and "unlock" when the descriptor is closed.
"""
import os
import sys

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
system = dbus.SystemBus()
NETWORK = "org.freedesktop.NetworkManager"
LOGIN = "org.freedesktop.login1"


def say(*words):
    print(*words, flush=True)


class Network(dbus.service.Object):
    values = {"Metered": dbus.UInt32(4), "State": dbus.UInt32(70)}

    @dbus.service.method("org.freedesktop.DBus.Properties", in_signature="s", out_signature="a{sv}")
    def GetAll(self, interface):
        return dbus.Dictionary(self.values, signature="sv")

    @dbus.service.signal("org.freedesktop.DBus.Properties", signature="sa{sv}as")
    def PropertiesChanged(self, interface, changed, invalidated):
        pass

    def change(self, name, number):
        self.values[name] = dbus.UInt32(number)
        self.PropertiesChanged(NETWORK, {name: self.values[name]}, [])


class Login(dbus.service.Object):
    @dbus.service.method(LOGIN + ".Manager", in_signature="ssss", out_signature="h")
    def Inhibit(self, what, who, why, mode):
        ours, theirs = os.pipe()
        say("lock", what, who, mode)

        def closed(*_):
            os.close(ours)
            say("unlock")
            return False

        GLib.io_add_watch(ours, GLib.IO_HUP, closed)
        lock = dbus.types.UnixFd(theirs)
        os.close(theirs)
        return lock

    @dbus.service.signal(LOGIN + ".Manager", signature="b")
    def PrepareForSleep(self, start):
        pass


network = Network(system, "/org/freedesktop/NetworkManager")
login = Login(system, "/org/freedesktop/login1")
names = [dbus.service.BusName(name, system) for name in (NETWORK, LOGIN)]


def obey(source, condition):
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    words = line.split()
    if words[0] in ("metered", "state"):
        network.change(words[0].capitalize(), int(words[1]))
    elif words[0] in ("sleep", "wake"):
        login.PrepareForSleep(words[0] == "sleep")
    say("done", line.strip())
    return True


GLib.io_add_watch(sys.stdin, GLib.IO_IN | GLib.IO_HUP, obey)
say("ready")
GLib.MainLoop().run()
