#!/usr/bin/python3
"""Mocks of BlueZ and oFono for PulseAudio's module-bluez5-discover (headset=ofono), without a radio: one adapter, and a
headset that can connect and disconnect its two profiles. The sound for the headset is discarded.

Runs on the bus of DBUS_SYSTEM_BUS_ADDRESS. Reads commands from standard input, one on each line: connect PROFILE,
disconnect PROFILE; PROFILE is a2dp or hfp. Prints "done COMMAND" after PulseAudio was notified, or "failed …".
"""
import math
import socket
import struct
import sys
import threading
import time

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
system = dbus.SystemBus()

PROPERTIES = "org.freedesktop.DBus.Properties"
OBJECTS = "org.freedesktop.DBus.ObjectManager"
ENDPOINT = "org.bluez.MediaEndpoint1"
TRANSPORT = "org.bluez.MediaTransport1"
MEDIA = "org.bluez.Media1"
CARD = "org.ofono.HandsfreeAudioCard"
AUDIO_SOURCE = "0000110a-0000-1000-8000-00805f9b34fb"
AUDIO_SINK = "0000110b-0000-1000-8000-00805f9b34fb"
HANDSFREE = "0000111e-0000-1000-8000-00805f9b34fb"
GATEWAY = "0000111f-0000-1000-8000-00805f9b34fb"
OURS, THEIRS = "02:00:00:00:00:01", "02:00:00:00:00:02"

ADAPTER = "/org/bluez/hci0"
DEVICE = ADAPTER + "/dev_" + THEIRS.replace(":", "_")
STREAM = DEVICE + "/fd0"
SEP = DEVICE + "/sep1"
GATEWAY_CARD = "/headset"
# All that a headset can do with this codec.
SBC = bytes([0xFF, 0xFF, 2, 53])


def say(*words):
    print(*words, flush=True)


def variants(values):
    return dbus.Dictionary(values, signature="sv")


def strings(values):
    return dbus.Array(values, signature="s")


class Exported(dbus.service.Object):
    """An object with properties, by interface."""

    def __init__(self, path, interfaces):
        super().__init__(system, path)
        self.path = path
        self.interfaces = interfaces

    @dbus.service.method(PROPERTIES, in_signature="ss", out_signature="v")
    def Get(self, interface, name):
        try:
            return self.interfaces[interface][name]
        except KeyError:
            raise dbus.DBusException(name, name="org.freedesktop.DBus.Error.InvalidArgs")

    @dbus.service.method(PROPERTIES, in_signature="s", out_signature="a{sv}")
    def GetAll(self, interface):
        return variants(self.interfaces.get(interface, {}))

    @dbus.service.method(PROPERTIES, in_signature="ssv")
    def Set(self, interface, name, value):
        self.change(interface, name, value)

    @dbus.service.signal(PROPERTIES, signature="sa{sv}as")
    def PropertiesChanged(self, interface, changed, invalidated):
        pass

    def change(self, interface, name, value):
        self.interfaces[interface][name] = value
        self.PropertiesChanged(interface, variants({name: value}), strings([]))

    def described(self):
        return dbus.Dictionary({name: variants(values) for name, values in self.interfaces.items()}, signature="sa{sv}")


class Link:
    """A radio link: a pair of sockets. The server gets one end; this end discards what it receives."""

    def __init__(self, microphone=False):
        self.ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        threading.Thread(target=self.drop, daemon=True).start()
        if microphone:
            threading.Thread(target=self.speak, daemon=True).start()

    def drop(self):
        try:
            while self.ours.recv(4096):
                pass
        except OSError:
            pass

    def speak(self):
        """Sends 500 Hz, 16 bits, 8 kHz, in packets of 3 ms."""
        begun, count = time.monotonic(), 0
        try:
            while True:
                places = range(count * 24, count * 24 + 24)
                self.ours.send(b"".join(
                    struct.pack("<h", int(6000 * math.sin(math.pi * place / 8))) for place in places))
                count += 1
                time.sleep(max(0, begun + count * 0.003 - time.monotonic()))
        except OSError:
            pass

    def handed_over(self):
        descriptor = dbus.types.UnixFd(self.theirs)
        self.theirs.close()
        return descriptor

    def close(self):
        # Closing is not enough: the thread that reads keeps the socket open.
        try:
            self.ours.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.ours.close()


class Adapter(Exported):
    def __init__(self):
        super().__init__(ADAPTER, {
            "org.bluez.Adapter1": {
                "Address": OURS, "Name": "computer", "Alias": "computer", "Powered": True,
                "UUIDs": strings([AUDIO_SOURCE, AUDIO_SINK, GATEWAY, HANDSFREE])},
            MEDIA: {}})
        self.endpoint = None

    @dbus.service.method(MEDIA, in_signature="oa{sv}", sender_keyword="sender")
    def RegisterApplication(self, path, options, sender):
        def found(objects):
            for name, interfaces in objects.items():
                if ENDPOINT in interfaces and name.endswith("A2DPSource/sbc"):
                    self.endpoint = (sender, name)
                    say("registered")
        system.call_async(sender, path, OBJECTS, "GetManagedObjects", "", (), found, failed("registering"))

    @dbus.service.method(MEDIA, in_signature="o")
    def UnregisterApplication(self, path):
        self.endpoint = None


class Transport(Exported):
    link = None

    @dbus.service.method(TRANSPORT, out_signature="hqq")
    def Acquire(self):
        self.link = Link()
        GLib.idle_add(lambda: self.change(TRANSPORT, "State", "active"))
        return self.link.handed_over(), dbus.UInt16(672), dbus.UInt16(672)

    TryAcquire = Acquire

    @dbus.service.method(TRANSPORT)
    def Release(self):
        self.hang_up()
        self.change(TRANSPORT, "State", "idle")

    def hang_up(self):
        if self.link:
            self.link.close()
        self.link = None


class GatewayCard(dbus.service.Object):
    link = None

    @dbus.service.method(CARD, out_signature="hy")
    def Acquire(self):
        self.link = Link(microphone=True)
        return self.link.handed_over(), dbus.Byte(1)

    def hang_up(self):
        if self.link:
            self.link.close()
        self.link = None


class Root(dbus.service.Object):
    """The object manager of BlueZ and the card manager of oFono: both live at "/"."""

    MANAGER = "org.ofono.HandsfreeAudioManager"

    def __init__(self):
        super().__init__(system, "/")
        self.objects = {}
        self.cards = {}

    @dbus.service.method(OBJECTS, out_signature="a{oa{sa{sv}}}")
    def GetManagedObjects(self):
        return dbus.Dictionary(
            {dbus.ObjectPath(path): each.described() for path, each in self.objects.items()}, signature="oa{sa{sv}}")

    @dbus.service.signal(OBJECTS, signature="oa{sa{sv}}")
    def InterfacesAdded(self, path, interfaces):
        pass

    @dbus.service.signal(OBJECTS, signature="oas")
    def InterfacesRemoved(self, path, interfaces):
        pass

    @dbus.service.method(MANAGER, in_signature="oay")
    def Register(self, path, codecs):
        pass

    @dbus.service.method(MANAGER, in_signature="o")
    def Unregister(self, path):
        pass

    @dbus.service.method(MANAGER, out_signature="a(oa{sv})")
    def GetCards(self):
        # PulseAudio asks after it registered. PulseAudio 16 aborts if a card was announced and is then in this list too.
        say("agent registered")
        return dbus.Array([(dbus.ObjectPath(path), card) for path, card in self.cards.items()], signature="(oa{sv})")

    @dbus.service.signal(MANAGER, signature="oa{sv}")
    def CardAdded(self, path, properties):
        pass

    @dbus.service.signal(MANAGER, signature="o")
    def CardRemoved(self, path):
        pass

    def add(self, exported):
        self.objects[exported.path] = exported
        self.InterfacesAdded(dbus.ObjectPath(exported.path), exported.described())

    def remove(self, path):
        exported = self.objects.pop(path, None)
        if exported:
            self.InterfacesRemoved(dbus.ObjectPath(path), strings(exported.interfaces))
            exported.remove_from_connection()


def failed(what):
    return lambda error: say("failed", what, error)


class Headset:
    """Never waits for PulseAudio, because PulseAudio waits for this process while it acquires a link."""

    def __init__(self):
        self.root = Root()
        self.adapter = Adapter()
        self.root.objects[ADAPTER] = self.adapter
        self.gateway = GatewayCard(system, GATEWAY_CARD)

    def device(self):
        if DEVICE not in self.root.objects:
            self.root.add(Exported(DEVICE, {"org.bluez.Device1": {
                "Address": THEIRS, "AddressType": "public", "Name": "Headset", "Alias": "Headset",
                "Adapter": dbus.ObjectPath(ADAPTER), "Paired": True, "Trusted": True, "Connected": True,
                "ServicesResolved": True, "Class": dbus.UInt32(0x240404), "Icon": "audio-headset",
                "UUIDs": strings([AUDIO_SINK, HANDSFREE])}}))
            # PipeWire uses a codec only if the headset has an endpoint for it.
            self.root.add(Exported(SEP, {ENDPOINT: {
                "UUID": AUDIO_SINK, "Codec": dbus.Byte(0), "Capabilities": dbus.ByteArray(SBC), "DelayReporting": False,
                "Device": dbus.ObjectPath(DEVICE)}}))

    def connect_a2dp(self, done):
        self.device()
        owner, endpoint = self.adapter.endpoint

        def configured(configuration):
            values = {
                "Device": dbus.ObjectPath(DEVICE), "UUID": AUDIO_SOURCE, "Codec": dbus.Byte(0),
                "Configuration": dbus.Array(configuration, signature="y"), "State": "idle", "Volume": dbus.UInt16(100)}
            self.root.add(Transport(STREAM, {TRANSPORT: values}))
            system.call_async(
                owner, endpoint, ENDPOINT, "SetConfiguration", "oa{sv}", (dbus.ObjectPath(STREAM), variants(values)),
                lambda: done(), failed("SetConfiguration"))
        system.call_async(
            owner, endpoint, ENDPOINT, "SelectConfiguration", "ay", (dbus.ByteArray(SBC),),
            configured, failed("SelectConfiguration"))

    def disconnect_a2dp(self, done):
        owner, endpoint = self.adapter.endpoint
        self.root.objects[STREAM].hang_up()

        def cleared(*_):
            self.root.remove(STREAM)
            done()
        system.call_async(
            owner, endpoint, ENDPOINT, "ClearConfiguration", "o", (dbus.ObjectPath(STREAM),), cleared, cleared)

    def connect_hfp(self, done):
        self.device()
        self.root.cards[GATEWAY_CARD] = variants({"RemoteAddress": THEIRS, "LocalAddress": OURS, "Type": "gateway"})
        self.root.CardAdded(GATEWAY_CARD, self.root.cards[GATEWAY_CARD])
        done()

    def disconnect_hfp(self, done):
        self.gateway.hang_up()
        self.root.cards.pop(GATEWAY_CARD, None)
        self.root.CardRemoved(GATEWAY_CARD)
        done()


headset = Headset()
# Own the names last, so that all objects exist when PulseAudio finds the names.
names = [dbus.service.BusName(name, system) for name in ("org.bluez", "org.ofono")]
loop = GLib.MainLoop()


def heard(_, __):
    line = sys.stdin.readline()
    if not line:
        loop.quit()
        return False
    command = line.strip()
    method = getattr(headset, command.replace(" ", "_"), None)
    if method:
        method(lambda: say("done", command))
    else:
        say("failed", command, "unknown")
    return True


GLib.io_add_watch(0, GLib.IO_IN | GLib.IO_HUP, heard)
say("ready")
loop.run()
