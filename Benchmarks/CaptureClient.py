"""The measurements of Benchmarks/capture: CaptureClient.py FOLDER"""
import array, bisect, os, statistics, subprocess, sys, time

import dbus
import dbus.mainloop.glib
from gi.repository import GLib

FOLDER = sys.argv[1]
RUNS, MINUTE, FILM = (int(os.environ.get(name, usual)) for name, usual in (("RUNS", 9), ("MINUTE", 60), ("FILM", 60)))
RATE, SOUND = 30, 48000
SESSION = "org.sessiond1.CaptureSession"

dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.SessionBus()
loop = GLib.MainLoop()


class Camera:
    """A camera without hardware, and when each of its pictures was sent."""

    def __init__(self):
        self.program = subprocess.Popen(
            [FOLDER + "/camera", "front", "front", "640", "480", str(RATE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.program.stdout.readline() == "ready\n"
        self.first = int(self.program.stdout.readline().split()[1]) / 1e6

    def time(self, number): return self.first + number * (1000000 // RATE) / 1e6


def place():
    plugins = dbus.Interface(bus.get_object("org.sessiond1", "/org/sessiond1"), "org.sessiond1.Plugins")
    for entry in plugins.List():
        if entry.get("kind") == "capture" and entry.get("bus-name"): return str(entry["bus-name"])
    return None


def begin_plugin():
    """Starts the plugin, as a command does, and waits until it knows the camera."""
    while b"front" not in subprocess.run(["sessionctl", "camera", "list"], capture_output=True).stdout: time.sleep(0.2)
    return place()


def session(name, outputs, sound=False):
    capture = dbus.Interface(bus.get_object(name, "/org/sessiond1/capture"), "org.sessiond1.Capture")
    path = capture.CreateSession("Benchmark", dbus.Dictionary({}, signature="sv"))
    made = dbus.Interface(bus.get_object(name, path), SESSION)
    none = dbus.Dictionary({}, signature="sv")
    made.AddInput("front", none)
    if sound: made.AddInput("default", none)
    for kind in outputs: made.AddOutput(kind, none)
    return path, made


def value(name, path, key):
    return dbus.Interface(bus.get_object(name, path), "org.freedesktop.DBus.Properties").Get(SESSION, key)


def signal(path, member, request):
    """Calls `request`, and waits for a signal of the session: seconds between both."""
    seen = []
    match = bus.add_signal_receiver(
        lambda *values: (seen.append((time.monotonic(), values)), loop.quit()), member, SESSION, path=path)
    begun = time.monotonic()
    request()
    if not seen: loop.run()
    match.remove()
    return seen[0][0] - begun, seen[0][1]


def pictures(film):
    """The number in each picture of a film."""
    raw = subprocess.run(
        ["ffmpeg", "-nostdin", "-v", "error", "-xerror", "-i", film, "-an", "-vf", "scale=16:2:flags=area", "-vsync", "0", "-pix_fmt",
         "gray", "-f", "rawvideo", "-"], capture_output=True, check=True).stdout
    return [sum(1 << bit for bit in range(16) if raw[at + bit] > 128) for at in range(0, len(raw), 32)]


def moments(film):
    """When each picture of a film is shown, in seconds: a picture that the encoder did not get leaves a gap."""
    text = subprocess.run(
        ["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "packet=pts_time", "-of", "csv=p=0", film],
        capture_output=True, check=True, text=True).stdout
    return sorted(float(line.strip(",")) for line in text.split())


def onsets(samples, start=0.0):
    """When sound begins after silence, in seconds."""
    found, quiet = [], SOUND
    for place, sample in enumerate(samples):
        if abs(sample) > 2000:
            if quiet > SOUND // 8: found.append(start + place / SOUND)
            quiet = 0
        else: quiet += 1
    return found


class Ticks:
    """A microphone with a tick twice a second, which tells when each of them was there."""

    def __init__(self):
        self.program = subprocess.Popen([FOLDER + "/microphone", "ticks"], stdin=subprocess.PIPE, stdout=open(FOLDER + "/ticks", "w"))
        while subprocess.run(["pw-link", "ticks:capture_MONO", "microphone:input_MONO"], capture_output=True).returncode: time.sleep(0.1)

    @property
    def heard(self):
        with open(FOLDER + "/ticks") as file: return [int(line.split()[1]) / 1e9 for line in file if line[0].isdigit()]

    def end(self): self.program.kill()


def memory(process):
    with open(f"/proc/{process}/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))


def film(name, seconds, path, sound, watch=None):
    """Records a film: the session's properties at its end."""
    at, made = session(name, ["movie-file"], sound)
    made.StartRunning()
    options = dbus.Dictionary({"maximum-duration": dbus.Double(seconds)}, signature="sv")
    timer = watch and GLib.timeout_add_seconds(60, watch)
    _, (_, success, reason) = signal(at, "DidFinishRecording", lambda: made.StartRecording(path, options))
    if timer: GLib.source_remove(timer)
    dropped = int(value(name, at, "DroppedFrames"))
    made.StopRunning()
    return bool(success), str(reason), dropped


camera = Camera()
name = begin_plugin()

print(f"camera → first picture, ms (median of {RUNS}; limit: 1.2 × gst-launch, which also starts a process)")
wanted = "video/x-raw,format=YUY2,width=640,height=480"
starts, launches, photos = [], [], []
for _ in range(RUNS):
    path, made = session(name, ["photo"])
    begun = time.monotonic()
    made.StartRunning()
    starts.append(time.monotonic() - begun)
    took, (_, _, error) = signal(
        path, "DidCapturePhoto", lambda: made.CapturePhoto(FOLDER + "/photo.jpg", dbus.Dictionary({}, signature="sv")))
    assert not error, error
    photos.append(took)
    made.StopRunning()
    begun = time.monotonic()
    subprocess.run(
        ["gst-launch-1.0", "-q", "pipewiresrc", "target-object=front", "do-timestamp=true", "num-buffers=1", "!", wanted, "!", "fakesink"],
        check=True, timeout=20, stderr=subprocess.DEVNULL)
    launches.append(time.monotonic() - begun)
start, launch = statistics.median(starts), statistics.median(launches)
print(f"here {start * 1e3:8.1f}   gst-launch {launch * 1e3:8.1f}   of gst-launch {start / launch:.2f}")
print(f"\na photo in JPEG, saved, ms (median, most; limit: two pictures, {2e3 / RATE:.1f})")
print(f"here {statistics.median(photos) * 1e3:8.1f} {max(photos) * 1e3:8.1f}")

print(f"\na film of {MINUTE} s, 640x480 at {RATE}/s with sound, on {os.cpu_count()} processors")
print("               pictures   in the file   counted as missing   of the camera, not in the film")
for load in (0, 4):
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(load)]
    file = f"{FOLDER}/film{load}.mp4"
    success, reason, dropped = film(name, MINUTE, file, True)
    for loop_process in busy: loop_process.kill()
    numbers = pictures(file)
    skipped = sum(max(0, after - before - 1) for before, after in zip(numbers, numbers[1:]))
    print(f"{load} busy loops   {MINUTE * RATE:8} {len(numbers):13} {dropped:20} {skipped:32}{'' if success else '   ' + reason}")

def steps(file):
    """At each tick of a film: how much later a picture is in it than the sound of the same moment, in ms."""
    numbers, shown, heard = pictures(file), moments(file), ticks.heard
    assert len(numbers) == len(shown), f"{len(numbers)} pictures at {len(shown)} times"
    raw = subprocess.run(
        ["ffmpeg", "-nostdin", "-v", "error", "-i", file, "-vn", "-ac", "1", "-ar", str(SOUND), "-af", "aresample=async=1:first_pts=0",
         "-f", "s16le", "-"], capture_output=True, check=True).stdout

    def offset(sound):
        place = min(bisect.bisect_left(shown, sound), len(shown) - 1)
        # What the film's beginning is by the pictures around it, and by the nearest tick.
        near = range(max(0, place - RATE // 2), min(len(numbers), place + RATE // 2))
        by_pictures = statistics.median(camera.time(numbers[at]) - shown[at] for at in near)
        by_sound = min((tick - sound for tick in heard), key=lambda by: abs(by - by_pictures))
        return (by_sound - by_pictures) * 1e3

    return [offset(sound) for sound in onsets(array.array("h", raw))[1:-1]], len(numbers)


ticks = Ticks()
print(f"\npicture - sound, ms (median of five ticks; limit: 20), of {RUNS} films of 4 s")
values = []
for number in range(RUNS):
    file = f"{FOLDER}/start{number}.mp4"
    film(name, 4, file, True)
    values.append(statistics.median(steps(file)[0][:5]))
print(" ".join(f"{value:.1f}" for value in values))

print(f"\na film of {FILM} s: picture - sound, ms (median of five ticks), and the plugin's memory, MB")
process = dbus.Interface(bus.get_object("org.freedesktop.DBus", "/"), "org.freedesktop.DBus").GetConnectionUnixProcessID(name)
sizes = []
file = FOLDER + "/step.mp4"
success, reason, dropped = film(name, FILM, file, True, lambda: sizes.append(memory(process)) or True)
sizes.append(memory(process))
values, count = steps(file)
ticks.end()
minutes = [statistics.median(values[at:at + 120][-5:]) for at in range(0, len(values), 120)]
print(f"begin {statistics.median(values[:5]):8.1f}   end of each minute {' '.join(f'{value:.1f}' for value in minutes)}   "
      f"pictures {count} of {FILM * RATE}, {dropped} counted as missing")
print("memory each minute " + " ".join(f"{size:.1f}" for size in sizes))
