#!/usr/bin/python3
"""The movie player beside gst-play-1.0 and mpv, on the screen that DISPLAY names: for Benchmarks/movie.

    MovieClient.py FOLDER RUNS SEEKS LOOPS
"""
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import time

import dbus

folder, runs, seeks, loops = sys.argv[1], *map(int, sys.argv[2:5])
film, loop, load = (f"{folder}/{name}.mp4" for name in ("film", "loop", "load"))
# It prints what it sees.
eye = subprocess.Popen([f"{folder}/screen", "speaker.monitor"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
eye.stdout.readline()


def ask(line):
    eye.stdin.write(line + "\n")
    eye.stdin.flush()


def answer():
    """Milliseconds of the clock, or None."""
    words = eye.stdout.readline().split()
    return float(words[0]) if len(words) == 2 else None


def clock():
    return time.monotonic() * 1000


mpv_words = "mpv --no-config --vo=x11 --no-border --geometry=640x360+0+0 --osd-level=0 --no-osc --really-quiet".split()
commands = {
    "sessiond": ["sessiond-movie"],
    "gst-play": ["gst-play-1.0", "--no-interactive", "-q"],
    # Without OpenGL, which has no graphics card here.
    "gst-play, ximagesink": ["gst-play-1.0", "--no-interactive", "-q", "--videosink=ximagesink"],
    "mpv": mpv_words + ["--no-terminal"],
}


def begin(words, **more):
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)


def finish(process):
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    ask("see 0 5")
    answer()


class Ours:
    """The running movie player, over the bus."""

    def __init__(self):
        self.process = begin(["sessiond-movie"])
        name = f"org.mpris.MediaPlayer2.sessiond_movie.instance{self.process.pid}"
        bus = dbus.SessionBus()
        while not bus.name_has_owner(name):
            time.sleep(0.01)
        there = bus.get_object(name, "/org/sessiond1/movie", introspect=False)
        self.player = dbus.Interface(there, "org.sessiond1.Player")
        self.properties = dbus.Interface(there, "org.freedesktop.DBus.Properties")

    def show(self, path, again=False):
        self.player.Load("file://" + path, signature="s")
        if again:
            self.properties.Set("org.sessiond1.Player", "Loops", dbus.Int32(-1, variant_level=1))
        self.player.Play()

    def pause(self):
        self.player.Pause()

    def seek(self, number):
        """To the middle of a picture: the one that is shown then."""
        self.player.SeekTo((number + 0.5) / 25, signature="d")

    def end(self):
        finish(self.process)


class Mpv:
    """The running mpv, over its socket."""

    def __init__(self):
        path = f"{folder}/mpv"
        self.process = begin(mpv_words + ["--idle", "--keep-open=yes", "--hr-seek=yes", f"--input-ipc-server={path}"])
        self.socket = socket.socket(socket.AF_UNIX)
        while self.socket.connect_ex(path):
            time.sleep(0.01)

    def tell(self, *words):
        self.socket.send(json.dumps({"command": words}).encode() + b"\n")

    def show(self, path, again=False):
        self.tell("set_property", "pause", False)
        self.tell("set_property", "loop-file", "inf" if again else "no")
        self.tell("loadfile", path)

    def pause(self):
        self.tell("set_property", "pause", True)

    def seek(self, number):
        """Just before a picture: mpv shows the next one."""
        self.tell("seek", (number - 0.2) / 25, "absolute+exact")

    def end(self):
        finish(self.process)
        self.socket.close()


def table(title, rows, unit="{:9.1f}"):
    """Rows of names and values; the ratios are those of our value to the others."""
    print(f"\n{title}")
    ours = rows[0][1]
    for name, value in rows:
        shown = unit.format(value) if value is not None else "        –"
        ratio = f"   ours / this {ours / value:6.2f}" if name != rows[0][0] and value and ours is not None else ""
        print(f"{name:<28}{shown}{ratio}")


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def starts():
    times = {name: [] for name in commands}
    for _ in range(runs):
        for name, words in commands.items():
            before = clock()
            process = begin(words + [film])
            ask("any 10")
            seen = answer()
            times[name].append(seen and seen - before)
            finish(process)
    table(f"process start → first picture, ms (median of {runs})", [(name, median(all)) for name, all in times.items()])


def running():
    rows, hits = [], []
    for name, kind in [("sessiond", Ours), ("mpv", Mpv)]:
        first, sought, wrong = [], [], 0
        player = kind()
        for _ in range(runs):
            player.show(loop)
            ask("see 26 10")
            answer()
            player.pause()
            time.sleep(0.3)
            before = clock()
            player.show(film)
            ask("see 1 10")
            seen = answer()
            first.append(seen and seen - before)
            player.pause()
            time.sleep(0.3)
        for number in random.Random(1).sample(range(1, 1480), seeks):
            before = clock()
            player.seek(number)
            ask(f"see {number + 1} 3")
            seen = answer()
            wrong += seen is None
            sought.append(seen and seen - before)
        rows.append((name, median(first), median(sought)))
        hits.append((name, seeks - wrong))
        player.end()
    table(f"running player, another film → first picture, ms (median of {runs})", [(row[0], row[1]) for row in rows])
    table(f"exact seek while paused → picture, ms (median of {seeks})", [(row[0], row[2]) for row in rows])
    table(f"of {seeks} seeks, the right picture was shown", hits, "{:9.0f}")


def watched(seconds):
    """What was seen, and when clicks were heard."""
    ask(f"watch {seconds}")
    pictures, clicks = [], []
    for line in iter(eye.stdout.readline, ".\n"):
        words = line.split()
        if words[0] == "click":
            clicks.append(float(words[1]))
        else:
            pictures.append((float(words[1]), int(words[2])))
    return pictures, clicks


def repeated():
    print(f"\n{loops} loops of a film of 2 s")
    for name, kind in [("sessiond", Ours), ("mpv", Mpv)]:
        player = kind()
        player.show(loop, again=True)
        ask("see 10 10")
        answer()
        pictures, _ = watched(loops * 2)
        player.end()
        black = sum(number == 0 for _, number in pictures)
        # The last two pictures of a film and the first two of the next one: 40 ms each.
        turns = [place for place in range(1, len(pictures)) if pictures[place][1] < pictures[place - 1][1]]
        late = [pictures[place][0] - pictures[place - 1][0] for place in turns]
        missing = sum(
            max(0, after[1] - before[1] - 1) for before, after in zip(pictures, pictures[1:]) if after[1] > before[1])
        print(f"{name:<28}black pictures {black}, begun again {len(turns)}, last picture shown for {median(late) or 0:.1f} ms "
              f"(at most {max(late, default=0):.1f}), pictures not seen {missing}")


def together():
    rows = []
    for name, words in commands.items():
        process = begin(words + [film])
        ask("see 10 10")
        answer()
        pictures, clicks = watched(12)
        finish(process)
        times = {number: moment for moment, number in reversed(pictures)}
        offsets = []
        for second in range(1, 14):
            seen = times.get(second * 25 + 1)
            near = [click for click in clicks if seen and abs(click - seen) < 400]
            if near:
                offsets.append(seen - min(near, key=lambda click: abs(click - seen)))
        missing = max(times, default=0) - min(times, default=0) + 1 - len(times)
        rows.append((name, offsets, missing))
    print("\npicture − click, ms: median, smallest, largest of 12 s; pictures not seen")
    for name, offsets, missing in rows:
        if offsets:
            print(f"{name:<28}{median(offsets):9.1f} {min(offsets):9.1f} {max(offsets):9.1f} {missing:9}")
        else:
            print(f"{name:<28}        –")


def cost():
    rows = []
    for name, words in commands.items():
        before = os.times()
        process = begin(words + [load])
        process.wait()
        after = os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        rows.append((name, used))
    table("20 s of a film in 720p: processor time, s", rows, "{:9.2f}")


for part in [starts, running, repeated, together, cost]:
    part()
