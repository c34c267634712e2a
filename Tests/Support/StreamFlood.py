"""A client of the sound server that makes many streams and removes each after 0.2 s.

    StreamFlood.py RATE SECONDS

Prints how many streams it has made.
"""
import ctypes
import sys
import time

pulse = ctypes.CDLL("libpulse.so.0")
for name in ("pa_mainloop_new", "pa_mainloop_get_api", "pa_context_new", "pa_stream_new"):
    getattr(pulse, name).restype = ctypes.c_void_p


class SampleSpec(ctypes.Structure):
    _fields_ = [("format", ctypes.c_int), ("rate", ctypes.c_uint32), ("channels", ctypes.c_uint8)]


READY, FAILED = 4, 5
rate, seconds = float(sys.argv[1]), float(sys.argv[2])
loop = ctypes.c_void_p(pulse.pa_mainloop_new())
context = ctypes.c_void_p(pulse.pa_context_new(ctypes.c_void_p(pulse.pa_mainloop_get_api(loop)), b"Flood"))
pulse.pa_context_connect(context, None, 0, None)
while pulse.pa_context_get_state(context) != READY:
    if pulse.pa_context_get_state(context) >= FAILED:
        sys.exit("no server")
    pulse.pa_mainloop_iterate(loop, 1, None)
form = SampleSpec(3, 44100, 2)
streams = []
made = 0
begun = time.monotonic()
while (now := time.monotonic()) < begun + seconds and pulse.pa_context_get_state(context) == READY:
    while made < (now - begun) * rate:
        stream = ctypes.c_void_p(pulse.pa_stream_new(context, b"s", ctypes.byref(form), None))
        pulse.pa_stream_connect_playback(stream, None, None, 0, None, None)
        streams.append((now, stream))
        made += 1
    while streams and streams[0][0] < now - 0.2:
        stream = streams.pop(0)[1]
        pulse.pa_stream_disconnect(stream)
        pulse.pa_stream_unref(stream)
    pulse.pa_mainloop_prepare(loop, 1_000)
    pulse.pa_mainloop_poll(loop)
    pulse.pa_mainloop_dispatch(loop)
print(made)
