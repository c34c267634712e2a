#!/usr/bin/python3
"""Pictures and exports by the running plugin, beside ffmpeg: for Benchmarks/assets.

    AssetsClient.py BUS-NAME FILM RUNS FOLDER
"""
import os
import random
import statistics
import subprocess
import sys
import time

import dbus
import dbus.mainloop.glib
from gi.repository import GLib

place, film, runs, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.SessionBus()
loop = GLib.MainLoop()
assets = dbus.Interface(bus.get_object(place, "/org/sessiond1/assets"), "org.sessiond1.Assets")
uri = "file://" + film
state = {}


def finished(success, message, path):
    state["over"] = (path, bool(success), message)
    loop.quit()


bus.add_signal_receiver(finished, "Finished", "org.sessiond1.Job", path_keyword="path")


def run(begin):
    """Seconds of a job."""
    start = time.monotonic()
    job = begin()
    while state.pop("over", ("", True, ""))[0] != job:
        loop.run()
    return time.monotonic() - start


def pictures(times, **options):
    return run(lambda: assets.GenerateImages(uri, dbus.Array(times, "d"), dbus.Dictionary(options, "sv"), timeout=300))


def median(body, count=runs):
    return statistics.median(body() for _ in range(count))


def row(name, seconds):
    print(f"{name:<28} {seconds * 1000:9.1f}")


size = dbus.Struct((dbus.UInt32(256), dbus.UInt32(256)), signature="uu")
place_of = iter(range(1, 10_000_000))
pictures([1.0])
print("\nthe plugin runs already and knows the film, ms")
row("one key frame", median(lambda: pictures([next(place_of) * 7.3 % 59], **{"maximum-size": size})))
row("one exact picture", median(lambda: pictures([next(place_of) * 7.3 % 59], mode="exact", **{"maximum-size": size})))
row("20 key frames", median(lambda: pictures([i * 3.0 for i in range(20)], **{"maximum-size": size})))



def inspect(path):
    """Seconds."""
    start = time.monotonic()
    assets.Inspect("file://" + path, dbus.Dictionary({}, "sv"), timeout=300)
    return time.monotonic() - start


def unknown():
    """The same film under another name."""
    path = f"{folder}/film-{next(place_of)}.mp4"
    os.link(film, path)
    return path


print("\nwhat is in a file, asked of the running plugin, ms")
row("a file that it does not know", median(lambda: inspect(unknown())))
row("one that it knows", median(lambda: inspect(film)))

print("\n1000 pictures: memory of the largest process before and after, MB")


def largest():
    owner = int(bus.get_object("org.freedesktop.DBus", "/").GetConnectionUnixProcessID(place))
    found = 0
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/status", encoding="ascii") as file:
                fields = dict(line.split(":", 1) for line in file)
            if int(fields["PPid"]) == owner or int(fields["Pid"]) == owner:
                found = max(found, int(fields["VmRSS"].split()[0]))
        except (OSError, KeyError, ValueError):
            pass
    return found / 1024


before = largest()
seconds = pictures([i * 0.059 for i in range(1000)], **{"maximum-size": size})
print(f"{before:.1f} {largest():.1f}   ({seconds:.1f} s)")


def export(preset, **options):
    output = folder + "/out.mp4"
    options |= {"preset": preset, "overwrite": True}
    return run(lambda: assets.Export(uri, output, dbus.Dictionary(options, "sv"), timeout=300))


def ffmpeg(*words):
    start = time.monotonic()
    # As nice as a worker is, on a machine that does other things, too.
    subprocess.run(
        ["nice", "-n", "10", "ffmpeg", "-nostdin", "-v", "error", "-y", "-i", film, *words, folder + "/peer.mp4"],
        check=True)
    return time.monotonic() - start


def megabytes(name):
    return os.path.getsize(f"{folder}/{name}") / 1e6


def psnr(name, size):
    """Brightness, then all, of the new film against the old one in its size."""
    text = subprocess.run(
        ["ffmpeg", "-nostdin", "-i", f"{folder}/{name}", "-i", film, "-lavfi", f"[1:v]scale={size}[o];[0:v][o]psnr", "-f",
         "null", "-"], capture_output=True, text=True, check=True).stderr
    return tuple(float(text.split(key)[1].split()[0]) for key in ("PSNR y:", "average:"))


few = max(3, runs // 3)
print(f"\nexport of a minute of 720p, s (median of {few})")
for preset, size, quality in (("high", "1280:720", ["-crf", "21"]),
                              ("medium", "854:480", ["-crf", "25", "-maxrate", "1500k", "-bufsize", "3000k"])):
    sound = "80k" if preset == "high" else "48k"
    here = median(lambda: export(preset), few)
    peer = median(lambda: ffmpeg(
        "-vf", f"scale={size}", "-c:v", "libx264", "-preset", "fast", *quality, "-g", "300", "-profile:v", "high", "-c:a",
        "aac", "-b:a", sound, "-ac", "1"), few)
    print(f"{preset:12} here {here:6.2f}  ffmpeg {peer:6.2f}  of ffmpeg {here / peer:.2f}")
    print(f"size, MB     here {megabytes('out.mp4'):6.2f}  ffmpeg {megabytes('peer.mp4'):6.2f}")
    for name, new in (("here", "out.mp4"), ("ffmpeg", "peer.mp4")):
        bright, whole = psnr(new, size)
        print(f"PSNR, dB     {name:6} brightness {bright:6.2f}  all {whole:6.2f}")
here = median(lambda: export("passthrough", **{"optimize-for-network": True}), runs)
peer = median(lambda: ffmpeg("-c", "copy", "-movflags", "+faststart"), runs)
print(f"passthrough  here {here:6.2f}  ffmpeg {peer:6.2f}  of ffmpeg {here / peer:.2f}")


def copied_to_the_disk():
    """An export has ended when the disk has it."""
    start = time.monotonic()
    ffmpeg("-c", "copy", "-movflags", "+faststart")
    with open(folder + "/peer.mp4", "rb") as file:
        os.fdatasync(file)
    return time.monotonic() - start


peer = median(copied_to_the_disk, runs)
print(f"             here {here:6.2f}  ffmpeg and fdatasync {peer:6.2f}  of both {here / peer:.2f}")
print("\ncancelled exports at 20 random moments, ms until the answer and until the file is gone")
os.mkdir(folder + "/cancelled")
answered, gone = [], []
for number in range(20):
    options = {"preset": "medium", "optimize-for-network": bool(number % 2)}
    path = assets.Export(uri, folder + "/cancelled/out.mp4", dbus.Dictionary(options, "sv"), timeout=300)
    job = dbus.Interface(bus.get_object(place, path), "org.sessiond1.Job")
    time.sleep(random.uniform(0, 1.5))
    start = time.monotonic()
    job.Cancel()
    answered.append(time.monotonic() - start)
    while os.listdir(folder + "/cancelled") and time.monotonic() - start < 10:
        time.sleep(0.0005)
    gone.append(time.monotonic() - start)
print(f"median {statistics.median(answered) * 1000:.1f} {statistics.median(gone) * 1000:.1f}   "
      f"largest {max(answered) * 1000:.1f} {max(gone) * 1000:.1f}")
