#!/usr/bin/python3
"""Connects sessiond to an MQTT broker: one room of several, as Home Assistant discovers it.

    rooms.py ROOM [HOST[:PORT]]

It publishes who plays (sessiond/ROOM/sessions, playing, now-playing) and the silent switch (sessiond/ROOM/silent).
It obeys sessiond/ROOM/silent/set (ON, OFF), and announcements to this room (sessiond/ROOM/announce/set) or to all rooms
(sessiond/announce/set): ON, OFF or a number of seconds. During an announcement, the room's music is ducked. ON lasts for
a minute at most, because OFF may be lost. MQTT_USERNAME and MQTT_PASSWORD are for a broker that wants them.
"""
import json
import os
import re
import sys

import paho.mqtt.client as mqtt
from gi.repository import Gio, GLib

SERVICE, ROOT = "org.sessiond1", "/org/sessiond1"
MANAGER, SESSION, PROPERTIES = "org.sessiond1.Manager", "org.sessiond1.Session", "org.freedesktop.DBus.Properties"
LONGEST = 60


class Room:
    def __init__(self, name, host, port):
        self.name = name
        self.id = re.sub(r"[^A-Za-z0-9_-]", "_", name)
        self.base = "sessiond/" + self.id
        self.published = {}
        self.session = None
        self.ending = 0
        self.due = 0
        self.bus = Gio.bus_get_sync(Gio.BusType.SESSION)
        # Who is heard changes with the sessions' properties, and when sessions come and go.
        self.bus.signal_subscribe(SERVICE, None, None, None, None, Gio.DBusSignalFlags.NONE, self.changed)
        Gio.bus_watch_name_on_connection(
            self.bus, SERVICE, Gio.BusNameWatcherFlags.AUTO_START, self.appeared, self.vanished)
        # Version 2 of the library asks which of its interfaces is meant.
        version = [mqtt.CallbackAPIVersion.VERSION2] if hasattr(mqtt, "CallbackAPIVersion") else []
        self.client = mqtt.Client(*version, client_id="sessiond-" + self.id)
        if "MQTT_USERNAME" in os.environ:
            self.client.username_pw_set(os.environ["MQTT_USERNAME"], os.environ.get("MQTT_PASSWORD"))
        self.client.will_set(self.base + "/available", "offline", qos=1, retain=True)
        # The library calls these in a thread of its own.
        self.client.on_connect = lambda *_: GLib.idle_add(self.connected)
        self.client.on_disconnect = lambda *_: GLib.idle_add(self.announce, "OFF")
        self.client.on_message = lambda client, data, message: GLib.idle_add(self.obey, message)
        self.client.connect_async(host, port, keepalive=30)
        self.client.loop_start()

    # MQTT

    def connected(self):
        print("connected", flush=True)
        for topic in (self.base + "/silent/set", self.base + "/announce/set", "sessiond/announce/set"):
            self.client.subscribe(topic, qos=1)
        self.discover()
        self.published = {}
        self.refresh()

    def discover(self):
        """See https://www.home-assistant.io/integrations/mqtt/#mqtt-discovery."""
        device = {"identifiers": ["sessiond_" + self.id], "name": self.name, "manufacturer": "sessiond"}
        entities = {
            "binary_sensor/playing": {"name": "Playing", "device_class": "sound", "state_topic": "playing"},
            "sensor/now_playing": {"name": "Now playing", "state_topic": "now-playing", "icon": "mdi:music"},
            "switch/silent": {
                "name": "Silent", "state_topic": "silent", "command_topic": "silent/set", "icon": "mdi:volume-off"},
            "switch/announce": {
                "name": "Announcement", "state_topic": "announce", "command_topic": "announce/set",
                "icon": "mdi:bullhorn"},
        }
        for entity, values in entities.items():
            kind, key = entity.split("/")
            config = {name: self.base + "/" + value if name.endswith("_topic") else value
                      for name, value in values.items()}
            config.update(
                unique_id=f"sessiond_{self.id}_{key}", availability_topic=self.base + "/available", device=device)
            self.client.publish(
                f"homeassistant/{kind}/sessiond_{self.id}/{key}/config", json.dumps(config), qos=1, retain=True)

    def publish(self, topic, value):
        if self.published.get(topic) != value:
            self.published[topic] = value
            self.client.publish(f"{self.base}/{topic}", value, qos=1, retain=True)

    def obey(self, message):
        # A retained command is an old one.
        if message.retain:
            return
        word = message.payload.decode(errors="replace").strip()
        if message.topic.endswith("silent/set"):
            if word in ("ON", "OFF"):
                self.call(ROOT, MANAGER, "SetSilentMode", "(b)", (word == "ON",))
        else:
            self.announce(word)

    # sessiond

    def call(self, path, interface, method, signature, arguments):
        try:
            return self.bus.call_sync(
                SERVICE, path, interface, method, GLib.Variant(signature, arguments), None,
                Gio.DBusCallFlags.NONE, 5000, None).unpack()
        except GLib.Error as error:
            # The daemon may be away.
            print("sessiond: " + error.message, file=sys.stderr, flush=True)
            return None

    def announce(self, word):
        """One session for all announcements, which is active during them."""
        if word == "ON":
            seconds = LONGEST
        elif word == "OFF":
            seconds = 0
        else:
            try:
                seconds = min(float(word), LONGEST)
            except ValueError:
                return print(f"{word!r} is not ON, OFF or a number of seconds", file=sys.stderr, flush=True)
        if self.ending:
            GLib.source_remove(self.ending)
            self.ending = 0
        if seconds > 0:
            if not self.session:
                options = {
                    "category": GLib.Variant("s", "playback"), "mode": GLib.Variant("s", "voice-prompt"),
                    "options": GLib.Variant("as", ["duck-others"]), "notify-on-exit": GLib.Variant("b", True)}
                answer = self.call(ROOT, MANAGER, "CreateSession", "(sa{sv})", ("Announcement", options))
                self.session = answer and answer[0]
            if self.session and self.call(self.session, SESSION, "Activate", "(a{sv})", ({},)) is not None:
                self.ending = GLib.timeout_add(int(seconds * 1000), self.ended)
        elif self.session:
            self.call(
                self.session, SESSION, "Deactivate", "(a{sv})", ({"notify-others": GLib.Variant("b", True)},))
        self.refresh()

    def ended(self):
        self.ending = 0
        self.announce("OFF")
        return GLib.SOURCE_REMOVE

    def appeared(self, *_):
        self.session = None
        self.publish("available", "online")
        self.refresh()

    def vanished(self, *_):
        self.session = None
        self.publish("available", "offline")

    def changed(self, *_):
        # Many signals may come at once.
        if not self.due:
            self.due = GLib.idle_add(self.refresh)

    def refresh(self):
        self.due = 0
        answer = self.call(ROOT, MANAGER, "ListSessions", "()", ())
        properties = self.call(ROOT, PROPERTIES, "GetAll", "(s)", (MANAGER,))
        if answer is None or properties is None:
            return GLib.SOURCE_REMOVE
        sessions = [
            {"name": s["Name"], "state": s["State"], "class": s["Class"], "ducked": s["Ducked"], "muted": s["Muted"]}
            for s in answer[0]]
        playing = [s for s in sessions if s["state"] == "active" and s["name"] != "Announcement"]
        front = next((s["Name"] for s in answer[0] if s["path"] == properties[0]["NowPlaying"]), "")
        self.publish("available", "online")
        self.publish("sessions", json.dumps(sessions))
        self.publish("playing", "ON" if playing else "OFF")
        self.publish("now-playing", front or ", ".join(s["name"] for s in playing) or "nothing")
        self.publish("silent", "ON" if properties[0]["SilentMode"] else "OFF")
        self.publish("announce", "ON" if self.ending else "OFF")
        return GLib.SOURCE_REMOVE


if not 2 <= len(sys.argv) <= 3:
    print(__doc__, file=sys.stderr)
    sys.exit(64)
address = (sys.argv[2] if len(sys.argv) == 3 else "localhost").rpartition(":")
room = Room(
    sys.argv[1], address[0] or address[2], int(address[2]) if address[0] else 1883)
try:
    GLib.MainLoop().run()
except KeyboardInterrupt:
    room.client.publish(room.base + "/available", "offline", qos=1, retain=True).wait_for_publish(2)
    room.client.loop_stop()
