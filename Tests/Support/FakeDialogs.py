#!/usr/bin/python3
"""The dialogs of a desktop (org.freedesktop.impl.portal.Access), for the real xdg-desktop-portal.

Writes "asked APP" for each question. Answers as the last line of standard input says: yes, no, or wait (until the next line says
something else). A question that is closed by its program is answered as real desktops do it, and "closed" is written.
"""
import sys

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.SessionBus()
CODES = {"yes": 0, "no": 1}
answer = "wait"
waiting = []


def say(*words):
    print(*words, flush=True)


class Question(dbus.service.Object):
    def __init__(self, path, reply):
        super().__init__(bus, path)
        self.reply = reply
        waiting.append(self)

    def end(self, code):
        if self in waiting:
            waiting.remove(self)
            self.remove_from_connection()
            self.reply(dbus.UInt32(code), dbus.Dictionary({}, signature="sv"))

    @dbus.service.method("org.freedesktop.impl.portal.Request")
    def Close(self):
        say("closed")
        self.end(2)


class Access(dbus.service.Object):
    @dbus.service.method(
        "org.freedesktop.impl.portal.Access", in_signature="osssssa{sv}", out_signature="ua{sv}",
        async_callbacks=("reply", "fail"))
    def AccessDialog(self, handle, app, parent, title, subtitle, body, options, reply, fail):
        say("asked", app or "-")
        question = Question(handle, reply)
        if answer in CODES:
            question.end(CODES[answer])


access = Access(bus, "/org/freedesktop/portal/desktop")
name = dbus.service.BusName("org.freedesktop.impl.portal.desktop.tests", bus)


def obey(source, condition):
    global answer
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    answer = line.strip()
    if answer in CODES:
        for question in list(waiting):
            question.end(CODES[answer])
    say("done", answer)
    return True


GLib.io_add_watch(sys.stdin, GLib.IO_IN | GLib.IO_HUP, obey)
say("ready")
GLib.MainLoop().run()
